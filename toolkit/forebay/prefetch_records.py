"""What reading ahead did: one record per file and opening (docs/formats/report.md), and the sum of
each file that `forebay run` prints and writes as JSON; what is wrong with what was declared; and
which processes gave it up."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from forebay import record_files
from forebay.units import show_bytes, show_count, show_seconds

FORMAT_VERSION = 1
SHOWN_FILES = 12  # on the screen; JSON has them all

_SUMS = (
    "reads",
    "reads_served",
    "bytes_asked",
    "bytes_asked_declared",
    "bytes_served",
    "stalls",
    "seconds_waited",
    "requests",
    "requests_failed",
    "bytes_fetched",
    "bytes_refetched",
    "bytes_between",
    "bytes_unused",
    "bytes_resident",
    "bytes_planned",
    "extents_outside",
    "plans_given_up",
    "helper_cpu_seconds",
)
_SECONDS = ("seconds_waited", "helper_cpu_seconds")  # of the sums


@dataclass(frozen=True)
class PrefetchedFile:
    """All openings of one file together, by all processes: sums, but for the peak of memory. None,
    where there is but something wrong with what was declared."""

    path: str
    openings: int
    totals: dict[str, float]
    memory_peak: int  # bytes; the largest of one opening
    gap_found: int  # bytes; the largest that was fetched along in the end, as measured; 0: none
    latency_seconds: float | None  # the shortest request; None: there was none
    stopped: list[str]  # why some openings were read ahead no further
    mistakes: list[str]  # what of the intent file does not fit it, with the lines

    @property
    def share_served(self) -> float:
        """Of the bytes that the program asked for, 0 to 1."""
        asked = self.totals["bytes_asked"]
        return self.totals["bytes_served"] / asked if asked else 0.0

    @property
    def share_declared(self) -> float | None:
        """Of the bytes that the program asked for, 0 to 1. None: nothing was declared, or what was
        read is not known (C streams, mappings)."""
        asked = self.totals["bytes_asked"]
        known = asked and self.totals["bytes_planned"]
        return self.totals["bytes_asked_declared"] / asked if known else None

    @property
    def bytes_unique(self) -> int:
        """Fetched, each byte counted once in an opening."""
        return int(self.totals["bytes_fetched"] - self.totals["bytes_refetched"])


@dataclass(frozen=True)
class GaveUp:
    """A process that read nothing ahead any more, or wrote no reads down."""

    process: int
    stopped: str  # what ended, and why


@dataclass(frozen=True)
class PrefetchRecords:
    """Files in the order of their first record, and the records that were not whole."""

    files: list[PrefetchedFile]
    rejected: list[str]
    raw: list[dict[str, Any]] = field(default_factory=list, repr=False)
    gave_up: list[GaveUp] = field(default_factory=list)


def load(directory: Path) -> PrefetchRecords:
    """Every record in `directory`; what is not whole is named in `rejected`."""
    rejected: list[str] = []
    raw = record_files.read(directory.glob("*.reads"), FORMAT_VERSION, _checked, rejected)
    gave_up = record_files.read(directory.glob("*.gave-up"), FORMAT_VERSION, _gave_up, rejected)
    mistakes = record_files.read(directory.glob("*.mistakes"), FORMAT_VERSION, _mistakes, rejected)
    return PrefetchRecords(_files(raw, mistakes), rejected, raw, gave_up)


def _gave_up(record: dict[str, Any]) -> GaveUp:
    process = record_files.count(record["process"], "process")
    return GaveUp(process, record_files.text(record, "stopped"))


def _mistakes(record: dict[str, Any]) -> tuple[str, list[str]]:
    """The path of a file, and the mistakes."""
    if not isinstance(record["mistakes"], list):
        raise ValueError("mistakes is no list")
    sentences = [record_files.text({"a mistake": each}, "a mistake") for each in record["mistakes"]]
    return record_files.text(record, "path"), sentences


def _checked(record: dict[str, Any]) -> dict[str, Any]:
    for name in (*_SUMS, "memory_peak", "gap_found"):
        if name not in _SECONDS:
            record_files.count(record[name], name)
    for name in (*_SECONDS, "latency_seconds"):
        record_files.number(record, name)
    for name in ("path", "stopped"):
        record_files.text(record, name)
    return record


def _files(
    raw: Iterable[dict[str, Any]], mistakes: Iterable[tuple[str, list[str]]]
) -> list[PrefetchedFile]:
    by_path: dict[str, list[dict[str, Any]]] = {}
    for record in raw:
        by_path.setdefault(record["path"], []).append(record)
    wrong: dict[str, dict[str, None]] = {}
    for path, sentences in mistakes:  # Each process that opens a file tells them.
        by_path.setdefault(path, [])
        wrong.setdefault(path, {}).update(dict.fromkeys(sentences))
    files = []
    for path, openings in by_path.items():
        latencies = [r["latency_seconds"] for r in openings if r["latency_seconds"] > 0]
        files.append(
            PrefetchedFile(
                path=path,
                openings=len(openings),
                totals={name: sum(r[name] for r in openings) for name in _SUMS},
                memory_peak=max((int(r["memory_peak"]) for r in openings), default=0),
                gap_found=max((int(r["gap_found"]) for r in openings), default=0),
                latency_seconds=min(latencies, default=None),
                stopped=sorted({r["stopped"] for r in openings if r["stopped"]}),
                mistakes=list(wrong.get(path, {})),
            )
        )
    return files


def as_json(records: PrefetchRecords) -> dict[str, Any]:
    """The part of `forebay run --json` that tells of reading ahead."""
    files = [
        {
            "path": file.path,
            "openings": file.openings,
            **file.totals,
            "bytes_unique": file.bytes_unique,
            "share_declared": file.share_declared,
            "memory_peak": file.memory_peak,
            "gap_found": file.gap_found,
            "latency_seconds": file.latency_seconds,
            "stopped": file.stopped,
            "mistakes": file.mistakes,
        }
        for file in records.files
    ]
    return {
        "prefetch": {
            "files": files,
            "records": records.raw,
            "gave_up": [asdict(each) for each in records.gave_up],
            "rejected": records.rejected,
        }
    }


def show(console: Console, records: PrefetchRecords) -> None:
    """Prints each file's lines, those that were read most first."""
    ordered = sorted(records.files, key=lambda file: -file.totals["bytes_asked"])
    for file in ordered[:SHOWN_FILES]:
        for line in _lines(file):
            console.print(line, soft_wrap=True)
    if len(ordered) > SHOWN_FILES:
        console.print(f"... and {len(ordered) - SHOWN_FILES} more files read ahead (--json OUT)")
    for why, count in Counter(each.stopped for each in records.gave_up).items():
        processes = "1 process" if count == 1 else f"{show_count(count)} processes"
        console.print(Text(f"{processes}: {why}", style="yellow"), soft_wrap=True)
    for text in records.rejected:
        console.print(Text(f"record left out: {text}", style="yellow"), soft_wrap=True)


def _lines(file: PrefetchedFile) -> list[Text]:
    total = {name: int(value) for name, value in file.totals.items()}
    title = Text()
    title.append(file.path, style="bold")
    wrong = [Text(f"  intent file, {text}", style="yellow") for text in file.mistakes]
    if file.openings == 0:
        title.append("  not read ahead", style="dim")
        return [title, *wrong]
    openings = f", {file.openings} openings" if file.openings > 1 else ""
    title.append(f"  read ahead{openings}", style="dim")
    lines = [
        title,
        Text(
            f"  reads: {show_count(total['reads'])} of {show_bytes(total['bytes_asked'])}, "
            f"{file.share_served:.0%} of the bytes from memory; "
            f"{show_count(total['stalls'])} waited more than 1 ms, "
            f"{show_seconds(file.totals['seconds_waited'])} in all"
        ),
        Text(
            f"  fetched: {show_bytes(total['bytes_fetched'])} in "
            f"{show_count(total['requests'])} requests, {show_bytes(total['bytes_unused'])} of it "
            f"for nothing; memory {show_bytes(file.memory_peak)}"
        ),
    ]
    if total["bytes_refetched"]:
        unique, again = show_bytes(file.bytes_unique), show_bytes(total["bytes_refetched"])
        lines.append(Text(f"  different bytes of it: {unique}; fetched again: {again}"))
    if file.share_declared is not None:
        lines.append(Text(f"  of what was read, {file.share_declared:.0%} had been declared"))
    if file.totals["helper_cpu_seconds"] > 0:
        helper = show_seconds(file.totals["helper_cpu_seconds"])
        lines.append(Text(f"  processor time of reading ahead: {helper}"))
    if total["bytes_between"]:
        between = show_bytes(total["bytes_between"])
        said = f'gap = "{file.gap_found >> 10}KiB" in the intent file spares finding that out'
        lines.append(
            Text(
                f"  fetched with it, for fewer requests: {between} of gaps"
                + (f" ({said})" if file.gap_found else "")
            )
        )
    if total["bytes_resident"]:
        resident = show_bytes(total["bytes_resident"])
        lines.append(Text(f"  left to the page cache, which had it: {resident}"))
    if total["extents_outside"]:
        count = show_count(total["extents_outside"])
        lines.append(Text(f"  declared, but not in the file: {count} extents", style="yellow"))
    if total["plans_given_up"]:
        count = show_count(total["plans_given_up"])
        lines.append(Text(f"  the reads were not those foreseen: {count} times", style="yellow"))
    if total["requests_failed"]:
        count = show_count(total["requests_failed"])
        lines.append(Text(f"  requests that failed: {count}", style="yellow"))
    lines += [Text(f"  not to the end: {why}", style="yellow") for why in file.stopped]
    return lines + wrong

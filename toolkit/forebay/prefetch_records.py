"""What reading ahead did: one record per file and opening (docs/formats/report.md), and the sum of
each file that `forebay run` prints and writes as JSON; openings of further files that were left
alone; what is wrong with what was declared; and which processes gave it up."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from forebay import record_files
from forebay.units import show_bytes, show_count, show_seconds

FORMAT_VERSION = 2  # of what is told of reads; other records are of the first
OTHERS_VERSION = 1
SHOWN_FILES = 12  # on the screen; JSON has them all

_SUMS = (
    "openings",
    "reads",
    "reads_served",
    "bytes_asked",
    "bytes_asked_declared",
    "bytes_unfollowed",
    "bytes_served",
    "requests",
    "requests_failed",
    "bytes_fetched",
    "bytes_refetched",
    "bytes_between",
    "bytes_resident",
    "bytes_planned",
    "extents_outside",
    "plans_given_up",
    "helper_cpu_seconds",
)
# The same of what not every way of reading ahead knows: then it is null.
_KNOWN_TO_SOME = (
    "stalls",
    "seconds_waited",
    "kernel_reads",
    "kernel_stalls",
    "kernel_seconds",
    "bytes_unused",
)
_CALLS = ("reads", "stalls")  # of the kernel
_SECONDS = ("seconds_waited", "kernel_seconds", "helper_cpu_seconds", "latency_seconds")


@dataclass(frozen=True)
class PrefetchedFile:
    """All openings of one file together, by all processes: sums, but for the peak of memory. None,
    where there is but something wrong with what was declared."""

    path: str
    totals: dict[str, float]
    known: dict[str, float | None]  # more sums, of the openings that know them; None: none does
    at_least: frozenset[str]  # of these, those that some openings do not know
    has_unseen_reads: bool  # by C streams or mappings; the sums are of the others
    memory_peak: int  # bytes; the largest of one opening
    gap_found: int  # bytes; the largest that was fetched along in the end, as measured; 0: none
    latency_seconds: float | None  # the shortest request; None: there was none
    stopped: list[str]  # why some openings were read ahead no further, or not at all
    not_begun: frozenset[str]  # of these, what kept openings from being read ahead at all
    mistakes: list[str]  # what of the intent file does not fit it, with the lines

    @property
    def openings(self) -> int:
        return int(self.totals["openings"])

    @property
    def share_served(self) -> float:
        """Of the bytes that the program asked for, 0 to 1."""
        asked = self.totals["bytes_asked"]
        return self.totals["bytes_served"] / asked if asked else 0.0

    @property
    def share_declared(self) -> float | None:
        """Of the bytes that the program asked for, as far as that is known, 0 to 1. None: nothing
        was declared, or what was read is not known (C streams, mappings)."""
        asked = self.totals["bytes_asked"] - self.totals["bytes_unfollowed"]
        known = asked > 0 and self.totals["bytes_planned"]
        return self.totals["bytes_asked_declared"] / asked if known else None

    @property
    def is_read_ahead(self) -> bool:
        """Anything was fetched of it, or was to be, had the page cache not had it."""
        return any(self.totals[name] for name in ("requests", "bytes_resident", "reads_served"))

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
class LeftAlone:
    """Openings by one process that nothing was fetched for, of files beyond those that it tells of
    by their names."""

    openings: int
    kernel_reads: int  # calls that were seen
    kernel_stalls: int  # of them, those that took more than 1 ms
    kernel_seconds: float
    reads: int  # that the kernel carried out
    bytes_asked: int
    stopped: str  # why, of the first


@dataclass(frozen=True)
class PrefetchRecords:
    """Files in the order of their first record, and the records that were not whole."""

    files: list[PrefetchedFile]
    rejected: list[str]
    raw: list[dict[str, Any]] = field(default_factory=list, repr=False)
    gave_up: list[GaveUp] = field(default_factory=list)
    left_alone: list[LeftAlone] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Nothing was to be read ahead."""
        return not (self.files or self.gave_up or self.left_alone)


def load(directory: Path) -> PrefetchRecords:
    """Every record in `directory`; what is not whole is named in `rejected`."""
    rejected: list[str] = []
    raw = record_files.read(directory.glob("*.reads"), FORMAT_VERSION, _checked, rejected)
    gave_up = record_files.read(directory.glob("*.gave-up"), OTHERS_VERSION, _gave_up, rejected)
    mistakes = record_files.read(directory.glob("*.mistakes"), OTHERS_VERSION, _mistakes, rejected)
    left_alone = record_files.read(
        directory.glob("*.left-alone"), OTHERS_VERSION, _left_alone, rejected
    )
    return PrefetchRecords(_files(raw, mistakes), rejected, raw, gave_up, left_alone)


def _gave_up(record: dict[str, Any]) -> GaveUp:
    process = record_files.count(record["process"], "process")
    return GaveUp(process, record_files.text(record, "stopped"))


def _left_alone(record: dict[str, Any]) -> LeftAlone:
    names = ("openings", "kernel_reads", "kernel_stalls", "reads", "bytes_asked")
    counts = {name: record_files.count(record[name], name) for name in names}
    seconds = record_files.number(record, "kernel_seconds")
    stopped = record_files.text(record, "stopped")
    return LeftAlone(**counts, kernel_seconds=seconds, stopped=stopped)


def _mistakes(record: dict[str, Any]) -> tuple[str, list[str]]:
    """The path of a file, and the mistakes."""
    if not isinstance(record["mistakes"], list):
        raise ValueError("mistakes is no list")
    sentences = [record_files.text({"a mistake": each}, "a mistake") for each in record["mistakes"]]
    return record_files.text(record, "path"), sentences


def _checked(record: dict[str, Any]) -> dict[str, Any]:
    known = [name for name in _KNOWN_TO_SOME if record[name] is not None]
    for name in (*_SUMS, *known, "memory_peak", "gap_found", "latency_seconds"):
        if name in _SECONDS:
            record_files.number(record, name)
        else:
            record_files.count(record[name], name)
    for name in ("path", "stopped"):
        record_files.text(record, name)
    if not isinstance(record["has_unseen_reads"], bool):
        raise ValueError("has_unseen_reads is neither true nor false")
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
        sums = {name: [r[name] for r in openings if r[name] is not None] for name in _KNOWN_TO_SOME}
        files.append(
            PrefetchedFile(
                path=path,
                totals={name: sum(r[name] for r in openings) for name in _SUMS},
                known={name: sum(each) if each else None for name, each in sums.items()},
                at_least=frozenset(n for n, each in sums.items() if len(each) < len(openings)),
                has_unseen_reads=any(r["has_unseen_reads"] for r in openings),
                memory_peak=max((int(r["memory_peak"]) for r in openings), default=0),
                gap_found=max((int(r["gap_found"]) for r in openings), default=0),
                latency_seconds=min(latencies, default=None),
                stopped=sorted({r["stopped"] for r in openings if r["stopped"]}),
                not_begun=frozenset(r["stopped"] for r in openings if r["requests"] == 0),
                mistakes=list(wrong.get(path, {})),
            )
        )
    return files


def as_json(records: PrefetchRecords) -> dict[str, Any]:
    """The part of `forebay run --json` that tells of reading ahead."""
    files = [
        {
            "path": file.path,
            **file.totals,
            **file.known,
            "has_unseen_reads": file.has_unseen_reads,
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
            "left_alone": [asdict(each) for each in records.left_alone],
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
    if records.left_alone:
        console.print(_line_of_left_alone(records.left_alone), soft_wrap=True)
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
    done = "read ahead" if file.is_read_ahead else "not read ahead"
    title.append(f"  {done}{openings}", style="dim")
    lines = [title, *_lines_of_reads(file)]
    if file.is_read_ahead:
        lines.append(_line_of_requests(file))
    if total["bytes_refetched"]:
        unique, again = show_bytes(file.bytes_unique), show_bytes(total["bytes_refetched"])
        lines.append(Text(f"  different bytes of it: {unique}; fetched again: {again}"))
    if file.share_declared is not None:
        followed = ", as far as it was followed" if total["bytes_unfollowed"] else ""
        share = f"{file.share_declared:.0%}"
        lines.append(Text(f"  of what was read{followed}, {share} had been declared"))
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
    for why in file.stopped:
        end = "some openings not read ahead" if why in file.not_begun else "not to the end"
        lines.append(Text(f"  {end if file.is_read_ahead else 'why'}: {why}", style="yellow"))
    return lines + wrong


def _lines_of_reads(file: PrefetchedFile) -> list[Text]:
    """How many there were, and how long they waited: as far as that is known."""
    lines = []
    total, known = file.totals, file.known
    if total["reads"]:
        seen = " that were seen" if file.has_unseen_reads else ""
        text = f"  reads{seen}: {show_count(int(total['reads']))} of "
        text += show_bytes(total["bytes_asked"])
        if file.is_read_ahead and known["stalls"] is not None:
            stalls, waited = show_count(int(known["stalls"])), known["seconds_waited"] or 0.0
            text += f", {file.share_served:.0%} of the bytes from memory; "
            text += f"{stalls} waited more than 1 ms, {show_seconds(waited)} in all"
        lines.append(Text(text))
    if known["kernel_reads"]:
        calls, stalls = (show_count(int(known[f"kernel_{each}"] or 0)) for each in _CALLS)
        spent = show_seconds(known["kernel_seconds"] or 0.0)
        lines.append(
            Text(f"  by the kernel: {calls} calls, {stalls} took more than 1 ms, {spent} in all")
        )
    if file.has_unseen_reads:
        lines.append(Text("  reads by C streams or mappings: not seen"))
    return lines


def _line_of_left_alone(records: list[LeftAlone]) -> Text:
    count = sum(each.openings for each in records)
    openings = "1 opening" if count == 1 else f"{show_count(count)} openings"
    text = f"... and {openings} of further files that were not read ahead"
    if calls := sum(each.kernel_reads for each in records):
        asked = show_bytes(sum(each.bytes_asked for each in records))
        text += f", by the kernel: {show_count(calls)} calls, {asked}"
    return Text(f"{text}; why, of the first: {records[0].stopped}", style="yellow")


def _line_of_requests(file: PrefetchedFile) -> Text:
    total, unused = file.totals, file.known["bytes_unused"]
    text = f"  fetched: {show_bytes(total['bytes_fetched'])} in "
    text += f"{show_count(int(total['requests']))} requests"
    if unused is not None:
        at_least = "at least " if "bytes_unused" in file.at_least else ""
        text += f", {at_least}{show_bytes(unused)} of it for nothing"
    place = "page cache" if file.known["stalls"] is None else "memory"
    of_one = " of one opening" if file.openings > 1 else ""
    return Text(f"{text}; {place} {show_bytes(file.memory_peak)}{of_one}")

"""What a run did, file by file: the value that `forebay run` prints and writes as JSON."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from forebay.records import CALL_CLASSES, Record, Records
from forebay.units import show_bytes, show_count, show_seconds

SHOWN_FILES = 12  # on the screen; JSON has them all


@dataclass(frozen=True)
class FileSummary:
    """All openings of one file together. Bytes and calls: sums over ranks. Seconds: the slowest
    rank's of each opening, added up. What only the engine counts is None under `observe`."""

    path: str
    mode: str
    mpi: str
    openings: int
    ranks: int
    nodes: int
    file_system: str
    stripe_size: int
    stripe_count: int
    aggregators: list[int]
    calls: dict[str, int]
    mpi_seconds: dict[str, float]
    bytes_asked: dict[str, int] | None
    bytes_moved: dict[str, int] | None
    amplification: dict[str, float | None] | None
    seconds: dict[str, float] | None
    counters: dict[str, int]
    hints: dict[str, str]
    hint_problems: list[str]
    passed_through: dict[str, int]
    failures: dict[str, int]
    notes: list[str]


def summarise(records: Iterable[Record]) -> list[FileSummary]:
    """One summary per file, in order of first appearance."""
    by_path: dict[str, list[Record]] = {}
    for record in records:
        by_path.setdefault(record.path, []).append(record)
    return [_summary(path, openings) for path, openings in by_path.items()]


def _summary(path: str, openings: list[Record]) -> FileSummary:
    last = openings[-1]
    counters: Counter[str] = Counter()
    passed: Counter[str] = Counter()
    failures: Counter[str] = Counter()
    for record in openings:
        counters.update(record.counters)
        passed.update(record.passed_through)
        failures.update(record.failures)
    asked = moved = amplification = seconds = None
    if any(record.counters for record in openings):
        asked = {"write": counters["bytes_written"], "read": counters["bytes_read"]}
        moved = {
            "write": counters["storage_bytes_written"],
            "read": counters["storage_bytes_read"],
        }
        amplification = {kind: moved[kind] / asked[kind] if asked[kind] else None for kind in asked}
        seconds = {
            kind: counters[f"{kind}_ns"] / 1e9
            for kind in ("exchange", "storage", "waiting", "schedule")
        }
    return FileSummary(
        path=path,
        mode=last.mode,
        mpi=last.mpi,
        openings=len(openings),
        ranks=max(r.ranks for r in openings),
        nodes=max(r.nodes for r in openings),
        file_system=last.file_system,
        stripe_size=last.stripe_size,
        stripe_count=last.stripe_count,
        aggregators=sorted({rank for r in openings for rank in r.aggregators}),
        calls={kind: sum(r.calls.get(kind, 0) for r in openings) for kind in CALL_CLASSES},
        mpi_seconds={
            kind: sum(r.seconds_max.get(kind, 0.0) for r in openings) for kind in CALL_CLASSES
        },
        bytes_asked=asked,
        bytes_moved=moved,
        amplification=amplification,
        seconds=seconds,
        counters=dict(counters),
        hints={key: value for r in openings for key, value in r.hints.items()},
        hint_problems=list(dict.fromkeys(text for r in openings for text in r.hint_problems)),
        passed_through=dict(passed),
        failures=dict(failures),
        notes=list(dict.fromkeys(text for r in openings for text in r.notes)),
    )


def as_json(files: list[FileSummary], records: Records) -> dict[str, Any]:
    """The part of `forebay run --json` that comes from the records."""
    return {
        "files": [asdict(file) for file in files],
        "records": [record.raw for record in records.records],
        "rejected": records.rejected,
    }


def show(console: Console, files: list[FileSummary], records: Records) -> None:
    """Prints the summary: a table and what needs words below it."""
    for file in sorted(files, key=_io_seconds, reverse=True)[:SHOWN_FILES]:
        console.print(_rendered(file))
    hidden = len(files) - SHOWN_FILES
    if hidden > 0:
        console.print(f"... and {hidden} more files that took less time (all are in --json OUT)")
    for text in records.rejected:
        console.print(Text(f"record left out: {text}", style="yellow"))


def _io_seconds(file: FileSummary) -> float:
    return sum(file.mpi_seconds.values())


def _rendered(file: FileSummary) -> RenderableType:
    title = Text()
    title.append(file.path, style="bold")
    facts = [
        f"{file.ranks} rank{'s' if file.ranks != 1 else ''}",
        *([f"{file.nodes} node{'s' if file.nodes != 1 else ''}"] if file.nodes else []),
        file.file_system or "unknown file system",
        file.mpi,
    ]
    if file.stripe_size:
        facts.append(f"{file.stripe_count} x {show_bytes(file.stripe_size)} stripes")
    if file.openings > 1:
        facts.append(f"{file.openings} openings")
    title.append("  " + ", ".join(facts), style="dim")
    parts: list[RenderableType] = [title, _table(file)]
    parts += [Text(f"  {line}", style=style) for line, style in _lines(file)]
    return Group(*parts)


def _table(file: FileSummary) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 2))
    table.add_column("")
    for name in ("calls", "time in MPI-IO", "asked", "at the storage", "amplification"):
        table.add_column(name, justify="right")
    for kind in ("write", "read"):
        if not file.calls[kind]:
            continue
        row = [kind, show_count(file.calls[kind]), show_seconds(file.mpi_seconds[kind])]
        if file.bytes_asked is None or file.bytes_moved is None or file.amplification is None:
            row += ["-", "-", "-"]
        else:
            factor = file.amplification[kind]
            row += [
                show_bytes(file.bytes_asked[kind]),
                show_bytes(file.bytes_moved[kind]),
                "-" if factor is None else f"{factor:.2f}x",
            ]
        table.add_row(*row)
    for kind in ("open", "sync", "close", "other"):
        if file.calls[kind]:
            table.add_row(kind, show_count(file.calls[kind]), show_seconds(file.mpi_seconds[kind]))
    return table


def _lines(file: FileSummary) -> list[tuple[str, str]]:
    """Sentences below the table, with their style."""
    lines: list[tuple[str, str]] = []
    if file.seconds is not None:
        spent = ", ".join(
            f"{name} {show_seconds(file.seconds[kind])}"
            for kind, name in (
                ("exchange", "in exchange"),
                ("storage", "in storage"),
                ("waiting", "waiting"),
                ("schedule", "scheduling"),
            )
        )
        lines.append((f"time (slowest rank): {spent}", ""))
        ranks = ", ".join(str(rank) for rank in file.aggregators[:16])
        more = " ..." if len(file.aggregators) > 16 else ""
        lines.append((f"aggregators: ranks {ranks}{more}" if ranks else "aggregators: none", ""))
    absorbed = file.counters.get("cache_absorbed", 0)
    if absorbed:
        drained = show_bytes(file.counters.get("cache_drained", 0))
        waited = show_seconds(file.counters.get("cache_exposed_ns", 0) / 1e9)
        lines.append(
            (
                f"write-behind cache: took {show_bytes(absorbed)}, wrote {drained} to the file; "
                f"calls waited {waited} for it",
                "",
            )
        )
    if file.seconds is None and file.mode == "observe":
        lines.append(("observed only: the MPI itself carried out the calls", "dim"))
    if file.hints:
        lines.append(("hints in force: " + _pairs(file.hints), ""))
    if file.passed_through:
        lines.append(("passed through unchanged: " + _reasons(file.passed_through), "yellow"))
    lines += [
        (f"failed: {what} ({_times(count)})", "bold red") for what, count in file.failures.items()
    ]
    lines += [(f"hint not understood: {text}", "red") for text in file.hint_problems]
    lines += [(f"note: {text}", "dim") for text in file.notes]
    return lines


def _pairs(values: dict[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in sorted(values.items()))


def _reasons(reasons: dict[str, int]) -> str:
    ordered = sorted(reasons.items(), key=lambda item: -item[1])
    return ", ".join(f"{why} ({_times(count)})" for why, count in ordered)


def _times(count: int) -> str:
    return f"{show_count(count)} call{'s' if count != 1 else ''}"

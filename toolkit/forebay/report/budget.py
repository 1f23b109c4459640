"""Where the time of a run went: by its calls, or by the sums that Darshan counted."""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from forebay.report import timeline
from forebay.report.layers import Flags, Ints, Layer
from forebay.report.timeline import CATEGORIES, COMPUTE, Segments
from forebay.trace import tables
from forebay.trace.directory import Trace

# Of the bytes of the process that moved most: who moves less is no part of what the run is for.
_PART = 0.01


@dataclass(frozen=True)
class Slowest:
    """The process that was in I/O longest: its rank or number, seconds, and share of its time."""

    name: str
    seconds: float
    share: float


@dataclass(frozen=True)
class Budget:
    """Seconds of all counted processes together. `source` is `calls`, `counters` or `none`."""

    source: str
    wall_s: float
    processes: int
    total_s: float
    seconds: dict[str, float]
    slowest: Slowest | None = None
    behind_s: float = 0.0  # storage calls that nobody waited for
    waited_s: float = 0.0  # for ranks that came later to a collective call
    notes: list[str] = field(default_factory=list)

    @property
    def io_s(self) -> float:
        return sum(self.seconds[name] for name in CATEGORIES)

    @property
    def io_share(self) -> float | None:
        """Of the processes' time; None if there is nothing to tell it by."""
        return None if self.source == "none" or self.total_s <= 0 else self.io_s / self.total_s

    @property
    def best_speedup(self) -> float:
        """How many times as fast the run would be if its I/O took no time at all [Amdahl]."""
        return 1 / max(1e-9, 1 - min(1.0, self.io_share or 0.0))

    def of_run(self, process_seconds: float) -> float:
        """Seconds of the run's time that seconds of its processes together stand for."""
        return process_seconds / self.total_s * self.wall_s if self.total_s else 0.0

    def as_json(self) -> dict[str, object]:
        return {
            "source": self.source,
            "wall_seconds": self.wall_s,
            "processes": self.processes,
            "process_seconds": self.total_s,
            "seconds": self.seconds,
            "io_share": self.io_share,
            "slowest": None if self.slowest is None else vars(self.slowest),
            "behind_seconds": self.behind_s,
            "waited_seconds": self.waited_s,
            "notes": self.notes,
        }


def of(trace: Trace, posix: Layer, mpi: Layer, found: Segments) -> Budget:
    """The budget of a trace: by counters where it was imported with them, as a log's calls leave
    out what moves no data."""
    wall_s = trace.run.wall_ns / 1e9
    if trace.run.origin.get("kind") == "darshan":
        counted = _by_counters(trace, wall_s)
        if counted is not None:
            return counted
    if len(posix) + len(mpi) == 0:
        return Budget("none", wall_s, trace.rows("processes"), 0.0, _shared({}, 0.0))
    return _by_calls(trace, posix, mpi, found)


def counted_processes(trace: Trace, posix: Layer, mpi: Layer) -> Flags:
    """The processes whose time is the run's: one of each rank, or without MPI those that read or
    wrote a part of the bytes. A shell that read its script and waits for the program is none of
    them."""
    used = [int(layer.process.max(initial=-1)) + 1 for layer in (posix, mpi)]
    count = max(1, trace.rows("processes"), *used)
    counts = np.zeros(count, np.bool_)
    moved = np.bincount(posix.process, posix.moved, minlength=count)
    if trace.rows("processes"):
        ranks = tables.integers(trace.table("processes", ["rank"]), "rank")
        # What starts a rank's program (a shell, numactl) is told its rank, too, and calls no MPI.
        calls = np.bincount(mpi.process, minlength=count)
        most_last = np.lexsort((moved[: len(ranks)], calls[: len(ranks)], ranks))
        ascending = ranks[most_last]
        is_last = np.diff(ascending, append=ascending[-1] + 1) > 0
        counts[most_last[is_last & (ascending >= 0)]] = True
    if not counts.any():
        counts = (moved > 0) & (moved >= _PART * moved.max())
    return counts if counts.any() else np.ones(count, np.bool_)


def process_names(trace: Trace, count: int) -> list[str]:
    """`rank 3`, or `process 3` where there are no ranks."""
    ranks = tables.integers(trace.table("processes", ["rank"]), "rank")
    return [
        f"rank {ranks[i]}" if i < len(ranks) and ranks[i] >= 0 else f"process {i}"
        for i in range(count)
    ]


def _by_calls(trace: Trace, posix: Layer, mpi: Layer, found: Segments) -> Budget:
    counts = counted_processes(trace, posix, mpi)
    ends = np.zeros(len(counts), np.int64)
    np.maximum.at(ends, found.process, found.end_ns)
    begins = np.zeros(len(counts), np.int64)
    if trace.rows("processes"):
        table = trace.table("processes", ["start_ns", "end_ns"])
        begin, end = tables.integers(table, "start_ns", 0), tables.integers(table, "end_ns", -1)
        begins[: len(begin)] = np.maximum(begin, 0)
        ends[: len(end)] = np.maximum(ends[: len(end)], np.where(end < 0, trace.run.wall_ns, end))
    else:
        ends = np.maximum(ends, trace.run.wall_ns)
    lives = np.maximum(1, ends - begins) / 1e9
    part = timeline.chosen(found, counts)
    length = (part.end_ns - part.start_ns) / 1e9
    by_category = np.bincount(part.category, length, minlength=len(CATEGORIES))
    by_process = np.bincount(part.process, length, minlength=len(counts))
    total = float(lives[counts].sum())
    spent = dict(zip(CATEGORIES, by_category.tolist(), strict=True))
    most = int(np.argmax(np.where(counts, by_process, -1)))
    slowest = None
    if counts.sum() > 1:
        name = process_names(trace, len(counts))[most]
        slowest = Slowest(name, float(by_process[most]), float(by_process[most] / lives[most]))
    behind = posix.behind & counts[posix.process]
    return Budget(
        source="calls",
        wall_s=max(trace.run.wall_ns / 1e9, float(ends.max()) / 1e9),
        processes=int(counts.sum()),
        total_s=total,
        seconds=_shared(spent, total),
        slowest=slowest,
        behind_s=float(posix.seconds[behind].sum()),
        waited_s=timeline.arrival_wait_seconds(mpi),
        notes=_thread_notes(posix),
    )


def _thread_notes(posix: Layer) -> list[str]:
    if (posix.thread[~posix.behind] > 0).any():
        return ["A moment is I/O where any of a process's threads is in a call of it."]
    return []


def _shared(spent: dict[str, float], total: float) -> dict[str, float]:
    seconds = {name: spent.get(name, 0.0) for name in CATEGORIES}
    return {COMPUTE: max(0.0, total - sum(seconds.values())), **seconds}


def _by_counters(trace: Trace, wall_s: float) -> Budget | None:
    posix, stdio = _times(trace, "posix", "POSIX"), _times(trace, "stdio", "STDIO")
    mpi = _times(trace, "mpi_io", "MPIIO")
    present = [table for table in (posix, stdio, mpi) if table is not None]
    if not present:
        return None
    spent = dict.fromkeys(CATEGORIES, 0.0)
    below: dict[int, float] = {}
    for table in (posix, stdio):
        if table is not None:
            for name in ("read", "write", "metadata"):
                spent[name] += float(table[name].sum())
    if posix is not None:
        for file, seconds in zip(posix["file"].tolist(), _sum(posix).tolist(), strict=True):
            below[int(file)] = below.get(int(file), 0.0) + seconds
    if mpi is not None:
        above: dict[int, float] = {}
        for file, seconds in zip(mpi["file"].tolist(), _sum(mpi).tolist(), strict=True):
            above[int(file)] = above.get(int(file), 0.0) + seconds
        spent["mpi"] = sum(max(0.0, s - below.get(file, 0.0)) for file, s in above.items())
    ranks = max(1, trace.run.ranks)
    total = wall_s * ranks
    notes = ["By Darshan's counters: sums over processes and files, without their moments."]
    if sum(spent.values()) > total:
        notes.append("Calls took longer than the run: several threads made them at a time.")
        total = sum(spent.values())
    return Budget("counters", wall_s, ranks, total, _shared(spent, total), notes=notes)


def _sum(table: dict[str, NDArray[np.float64]]) -> NDArray[np.float64]:
    total: NDArray[np.float64] = table["read"] + table["write"] + table["metadata"]
    return total


def _times(trace: Trace, name: str, prefix: str) -> dict[str, NDArray[np.float64]] | None:
    """Seconds of each record of a module, and its file; what is no storage is left out."""
    if not trace.rows(f"counters_{name}"):
        return None
    table = trace.table(f"counters_{name}")
    files: Ints = tables.integers(table, "file")
    standard = trace.table("files").column("kind").to_pylist()
    kept = np.array([*(kind != "standard" for kind in standard), True])[files]

    def column(counter: str) -> NDArray[np.float64]:
        return _positive(table, f"{prefix}_F_{counter}_TIME", kept)

    return {
        "file": files[kept].astype(np.float64),
        "read": column("READ"),
        "write": column("WRITE"),
        "metadata": column("META"),
    }


def _positive(table: pa.Table, column: str, rows: Flags) -> NDArray[np.float64]:
    if column not in table.column_names:
        return np.zeros(int(rows.sum()))
    values = np.nan_to_num(np.asarray(table.column(column).to_numpy(), np.float64))
    positive: NDArray[np.float64] = np.maximum(values, 0.0)[rows]
    return positive

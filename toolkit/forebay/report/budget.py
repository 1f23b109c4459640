"""Where the time of a run went: by its calls, or by the sums that Darshan counted."""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from forebay.report import timeline
from forebay.report.layers import Flags, Ints, Layer
from forebay.report.timeline import CATEGORIES, COMPUTE, Segments
from forebay.report.waiting import Waiting, is_waiting
from forebay.trace import tables
from forebay.trace.directory import Trace
from forebay.units import show_seconds

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
    """Seconds of all counted processes together. `source` is `calls`, `counters` or `none`.
    `overlapping`: they are sums over calls that were made at a time, so that it is not known for
    how much of the time any was, and there is no `compute` among them."""

    source: str
    wall_s: float
    processes: int
    total_s: float
    seconds: dict[str, float]
    slowest: Slowest | None = None
    behind_s: float = 0.0  # storage calls that nobody waited for
    waited_s: float = 0.0  # for ranks that came later to a collective call
    overlapping: bool = False
    waiting: Waiting | None = None  # for other processes, which is no I/O
    notes: list[str] = field(default_factory=list)

    @property
    def io_s(self) -> float:
        return sum(self.seconds[name] for name in CATEGORIES)

    @property
    def io_share(self) -> float | None:
        """Of the processes' time; None if there is nothing to tell it by."""
        return self.share(*CATEGORIES)

    def share(self, *names: str) -> float | None:
        """That of some kinds of I/O, or of compute; None where it cannot be told."""
        if self.source == "none" or self.overlapping or self.total_s <= 0:
            return None
        return sum(self.seconds[name] for name in names) / self.total_s

    @property
    def best_speedup(self) -> float | None:
        """How many times as fast the run would be if its I/O took no time at all [Amdahl]."""
        share = self.io_share
        return None if share is None else 1 / max(1e-9, 1 - min(1.0, share))

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
            "overlapping": self.overlapping,
            "waiting": None if self.waiting is None else vars(self.waiting),
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
    storage = [times for times in (posix, stdio) if times is not None]
    if not storage and mpi is None:
        return None
    spent = dict.fromkeys(CATEGORIES, 0.0)
    for times in storage:
        for name, seconds in times.spent.items():
            spent[name] += float(seconds.sum())
    if mpi is not None:
        below = {} if posix is None else posix.by_file()
        above = mpi.by_file().items()
        spent["mpi"] = sum(max(0.0, seconds - below.get(file, 0.0)) for file, seconds in above)
    ranks = max(1, trace.run.ranks)
    in_calls, most = sum(spent.values()), _most_of_a_rank(storage)
    # Before 3.2.1, Darshan told a run's beginning and end in whole seconds.
    unknown_s = 1.0 if wall_s.is_integer() else 0.0
    # A process that makes one call at a time is not in calls for longer than the run lasts.
    overlapping = in_calls > (wall_s + unknown_s) * ranks or most > wall_s + unknown_s
    total = wall_s * ranks if overlapping else max(wall_s * ranks, in_calls)
    shared = _shared(spent, total)
    notes = ["By Darshan's counters: sums over processes and files, without their moments."]
    if overlapping:
        told = (in_calls, total, "all processes") if in_calls > total else (most, wall_s, "a rank")
        notes.append(_overlap(*told))
        del shared[COMPUTE]
    waiting = _waiting(trace, storage)
    return Budget(
        "counters", wall_s, ranks, total, shared, overlapping=overlapping, waiting=waiting,
        notes=notes,
    )  # fmt: skip


def _overlap(in_calls: float, time: float, whose: str) -> str:
    return (
        f"Calls of {whose} took {show_seconds(in_calls)} within {show_seconds(time)}: several "
        "were made at a time, as by threads."
    )


def _most_of_a_rank(storage: list["_Times"]) -> float:
    """Seconds in calls of the rank with most; of what all ranks share it is not known whose."""
    if not storage:
        return 0.0
    rank = np.concatenate([times.rank for times in storage])
    seconds = np.concatenate([times.seconds for times in storage])
    own = rank >= 0
    return float(np.bincount(rank[own], seconds[own], minlength=1).max())


def _waiting(trace: Trace, storage: list["_Times"]) -> Waiting | None:
    seconds: dict[int, float] = {}
    for times in storage:
        rows = times.waited > 0
        waited = times.waited[rows].tolist()
        for file, each in zip(times.file[rows].tolist(), waited, strict=True):
            seconds[file] = seconds.get(file, 0.0) + each
    if not seconds:
        return None
    paths = trace.table("files")["path"].to_pylist()
    most = max(seconds, key=lambda file: seconds[file])
    return Waiting(sum(seconds.values()), len(seconds), paths[most] if most >= 0 else "?")


@dataclass(frozen=True)
class _Times:
    """Of each record of a module: its file, its rank (-1: of all), seconds by what was done, and
    those in metadata calls that waited for another process, which are not among them."""

    file: Ints
    rank: Ints
    spent: dict[str, NDArray[np.float64]]
    waited: NDArray[np.float64]

    @property
    def seconds(self) -> NDArray[np.float64]:
        return np.asarray(sum(self.spent.values()), np.float64)

    def by_file(self) -> dict[int, float]:
        found: dict[int, float] = {}
        for file, seconds in zip(self.file.tolist(), self.seconds.tolist(), strict=True):
            found[file] = found.get(file, 0.0) + seconds
        return found


def _times(trace: Trace, name: str, prefix: str) -> _Times | None:
    """What a module counted; what is no storage is left out."""
    if not trace.rows(f"counters_{name}"):
        return None
    table = trace.table(f"counters_{name}")
    standard = trace.table("files").column("kind").to_pylist()
    kept = np.array([*(kind != "standard" for kind in standard), True])
    table = table.filter(pa.array(kept[tables.integers(table, "file")]))
    spent = {
        what: _positive(table, f"{prefix}_F_{counter}_TIME")
        for what, counter in (("read", "READ"), ("write", "WRITE"), ("metadata", "META"))
    }
    waits = is_waiting(table, prefix, spent["metadata"], trace.run.ranks)
    waited = np.where(waits, spent["metadata"], 0.0)
    spent["metadata"] = spent["metadata"] - waited
    return _Times(tables.integers(table, "file"), tables.integers(table, "rank"), spent, waited)


def _positive(table: pa.Table, column: str) -> NDArray[np.float64]:
    if column not in table.column_names:
        return np.zeros(table.num_rows)
    values = np.nan_to_num(np.asarray(table.column(column).to_numpy(), np.float64))
    return np.maximum(values, 0.0)

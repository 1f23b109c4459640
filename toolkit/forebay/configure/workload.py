"""A traced program as the model sees it: which bytes it moves, how, and with what time between."""

from dataclasses import dataclass, field

import numpy as np

from forebay.characterise import app
from forebay.characterise.phases import Phase
from forebay.configure import rates
from forebay.configure.rates import Point
from forebay.report import budget as budget_of
from forebay.report import call_order, layers, timeline
from forebay.report.budget import Budget
from forebay.report.layers import Flags, Layer
from forebay.trace import places, tables
from forebay.trace.calls import Kind
from forebay.trace.directory import Trace

#: A file of fewer bytes is small: whatever its striping, one server serves it [ARCHER].
SMALL_FILE_BYTES = 4 << 20

# Less is not worth reading ahead, as in `forebay run --record`.
_LEAST_READ_BYTES = 1 << 20


@dataclass(frozen=True)
class Work:
    """One phase of all its processes: `bytes` in `calls`, `repetitions` times with `pause_s` of
    other things after each. `piece_bytes` is contiguous in the file. `paths` are of its files, as
    far as the trace has them, and `file_bytes` is the largest one's size."""

    write: bool
    mpi: bool
    collective: bool
    processes: int
    bytes: int
    calls: int
    piece_bytes: int
    repetitions: int
    pause_s: float
    new_file_each_time: bool
    shared: bool
    paths: tuple[str, ...]
    file_bytes: int
    at_random: bool = False  # its calls jump about in their files

    @property
    def operation(self) -> str:
        return "write" if self.write else "read"

    @property
    def call_bytes(self) -> int:
        return max(1, self.bytes // max(1, self.calls))

    @property
    def scattered(self) -> bool:
        """Whether a call's bytes are in several pieces of the file."""
        return self.piece_bytes < self.call_bytes


@dataclass(frozen=True)
class TracedFile:
    """A file of the program. `made`: it was not there when the program opened it through MPI, as
    far as the trace tells, so that its striping is still to be had."""

    path: str
    mount_point: str
    file_system: str
    bytes: int
    mpi: bool
    made: bool
    stripe_bytes: int  # 0: none, or not known
    stripe_count: int


@dataclass(frozen=True)
class Workload:
    """`compute_s` is the run's time without its I/O, `ceiling_share` the I/O's share in the time of
    the process that has most of it. `reads`: extents that were read of each file that nobody wrote,
    in the order of reading, without MPI or below its independent calls."""

    trace: Trace
    budget: Budget
    compute_s: float
    works: list[Work]
    files: list[TracedFile]
    ranks: int
    nodes: int
    traced: list[Point] = field(default_factory=list)
    reads: dict[str, list[tuple[int, int]]] = field(default_factory=dict)

    @property
    def ceiling_share(self) -> float | None:
        """Others may wait for the slowest process, which a trace of I/O does not show: so the
        ceiling is that process's."""
        share = self.budget.io_share
        if share is None:
            return None
        slowest = self.budget.slowest
        return min(1.0, max(share, slowest.share if slowest else 0.0))

    @property
    def best_speedup(self) -> float | None:
        """How many times as fast the run were without any I/O [Amdahl]."""
        share = self.ceiling_share
        return None if share is None else 1 / max(1e-9, 1 - share)

    def through_mpi(self, write: bool | None = None) -> list[Work]:
        return [w for w in self.works if w.mpi and (write is None or w.write == write)]

    @property
    def opens_through_mpi(self) -> bool:
        return any(file.mpi for file in self.files)


def of(trace: Trace) -> Workload:
    """Reads a trace once. Raises ForebayError where it is damaged."""
    found = layers.load(trace)
    owners = places.owners(trace)
    posix, mpi = layers.of_storage(trace, found["posix"], owners), found["mpiio"]
    moments = timeline.segments(posix, mpi)
    budget = budget_of.of(trace, posix, mpi, moments)
    own = layers.of_the_application(posix, owners)
    reads = _reads(trace, own, mpi)
    application = app.characterise(trace)
    works: list[Work] = []
    sizes = _sizes(trace, (own, mpi))
    for layer in application.layers:
        for phase in layer.phases.listed:
            calls = mpi if layer.name == "mpiio" else own
            works.append(_work(phase, layer.name, application.files, sizes, calls))
    ranks = max(1, trace.run.ranks)
    nodes = max(1, len(trace.run.machine.get("hosts", [])))
    return Workload(
        trace=trace,
        budget=budget,
        compute_s=_compute_s(budget),
        works=works,
        files=_files(trace, own, mpi, sizes),
        ranks=ranks,
        nodes=nodes,
        traced=rates.of_trace(trace, own, mpi),
        reads=reads,
    )


def _compute_s(budget: Budget) -> float:
    """What is left of the run's time without the I/O of the process that has most of it: others,
    the launcher among them, wait for it meanwhile."""
    if budget.slowest is not None:
        return max(0.0, budget.wall_s - budget.slowest.seconds)
    return budget.wall_s * max(0.0, 1 - (budget.io_share or 0.0))


def _work(phase: Phase, layer: str, paths: list[str], sizes: list[int], calls: Layer) -> Work:
    piece = phase.view[1] if phase.view else phase.bytes // max(1, phase.calls)
    pause = max(0.0, (phase.period_s or 0.0) - phase.duration_s)
    return Work(
        write=phase.write,
        mpi=layer == "mpiio",
        collective=phase.collective,
        processes=len(phase.ranks),
        bytes=phase.bytes,
        calls=phase.calls,
        piece_bytes=max(1, piece),
        repetitions=phase.repetitions,
        pause_s=pause,
        new_file_each_time=phase.new_file_each_time,
        shared=phase.shared == "shared",
        paths=tuple(paths[file] for file in phase.files),
        file_bytes=max((sizes[file] for file in phase.files), default=0),
        at_random=call_order.at_random(calls.only(_of_phase(phase, calls))),
    )


def _of_phase(phase: Phase, calls: Layer) -> Flags:
    """The calls that move data in the files, the direction and the time of a phase."""
    rows: Flags = np.isin(calls.file, phase.files)
    rows &= calls.kind == (Kind.WRITE if phase.write else Kind.READ)
    rows &= (calls.end_ns >= phase.first_s * 1e9) & (calls.start_ns <= phase.last_s * 1e9)
    return rows


def _sizes(trace: Trace, found: tuple[Layer, ...]) -> list[int]:
    """Of each file, as it was told or as far as it was read and written."""
    sizes = np.maximum(tables.integers(trace.table("files"), "size_end", 0), 0)
    for layer in found:
        rows = layer.only((layer.file >= 0) & (layer.offset >= 0) & (layer.moved > 0))
        np.maximum.at(sizes, rows.file, rows.offset + rows.moved)
    told: list[int] = sizes.tolist()
    return told


def _files(trace: Trace, posix: Layer, mpi: Layer, sizes: list[int]) -> list[TracedFile]:
    """Those of the application that data was moved in, in the order of the trace."""
    used = np.zeros(trace.rows("files") + 1, np.bool_)
    for layer in (posix, mpi):
        used[layer.file[layer.data]] = True
    used &= places.applications(trace)
    through_mpi = set(np.unique(mpi.file[mpi.file >= 0]).tolist())
    openings = trace.table("openings", ["file", "amode"])
    creating = {
        int(file)
        for file, amode in zip(
            tables.integers(openings, "file"), openings["amode"].to_pylist(), strict=True
        )
        if "CREATE" in (amode or "")
    }
    table = trace.table("files")
    names = ("path", "mount_point", "file_system")
    texts = [table[name].to_pylist() for name in names]
    start = tables.integers(table, "size_start")
    size = tables.integers(table, "stripe_size", 0)
    count = tables.integers(table, "stripe_count", 0)
    return [
        TracedFile(
            path=texts[0][file],
            mount_point=texts[1][file] or "",
            file_system=texts[2][file] or "",
            bytes=sizes[file],
            mpi=file in through_mpi,
            made=file in creating and int(start[file]) <= 0,
            stripe_bytes=int(size[file]),
            stripe_count=int(count[file]),
        )
        for file in np.flatnonzero(used[:-1]).tolist()
    ]


def _independently_read(trace: Trace, mpi: Layer) -> set[int]:
    """Files that MPI-IO opened for reading alone, and of which it read by independent calls alone:
    below those, reads are the rank's own, and are read ahead (decision 043)."""
    openings = trace.table("openings", ["file", "amode"])
    files = tables.integers(openings, "file").tolist()
    amodes = openings["amode"].to_pylist()
    others = {
        file for file, amode in zip(files, amodes, strict=True) if "RDONLY" not in (amode or "")
    }
    others |= set(mpi.file[mpi.collective & mpi.data].tolist())
    return set(files) - others


def _reads(trace: Trace, posix: Layer, mpi: Layer) -> dict[str, list[tuple[int, int]]]:
    """What was read of files that nobody wrote, file by file, of what can be read ahead."""
    written = np.unique(posix.file[posix.kind == Kind.WRITE])
    through_mpi = np.array(sorted(_independently_read(trace, mpi)), np.int64)
    rows = (posix.kind == Kind.READ) & ~posix.behind & (posix.offset >= 0) & (posix.moved > 0)
    rows &= ~posix.below | np.isin(posix.file, through_mpi)
    rows &= (posix.file >= 0) & ~np.isin(posix.file, written)
    part = posix.only(rows)
    paths = trace.table("files")["path"].to_pylist()
    found = {}
    for file in np.unique(part.file).tolist():
        of_file = part.only(part.file == file)
        if int(of_file.moved.sum()) < _LEAST_READ_BYTES:
            continue
        order = np.argsort(of_file.start_ns, kind="stable")
        pairs = zip(of_file.offset[order].tolist(), of_file.moved[order].tolist(), strict=True)
        found[str(paths[file])] = [(int(offset), int(moved)) for offset, moved in pairs]
    return found

"""The calls of a trace as the report needs them: those on storage, one layer at a time."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from forebay.trace import calls, tables
from forebay.trace.calls import Kind
from forebay.trace.directory import Trace
from forebay.trace.places import OF_THE_KERNEL, Owner

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

#: Who waits for these waits for another process or a person, not for storage.
_NO_STORAGE = ("pipe", "socket", "standard", "other")
_COLUMNS = (
    *("process", "thread", "call", "file", "offset", "length", "result"),
    *("start_ns", "duration_ns"),
)


@dataclass(frozen=True)
class Layer:
    """One item of each array a call, in the order of the trace: process, thread, start.

    `asked` and `moved` are bytes of data calls and 0 for others; `offset` is -1 where it is not
    known. `argument` is the trace's: flags of an opening; of a rename the file by its old name; -1
    is none. `error` is errno, or the error class of MPI; 0 also where it is not known. `below`
    marks calls that MPI-IO or Forebay made, or that went to a file of MPI-IO where the trace does
    not say who made them. `behind` marks those by threads that only Forebay has: no program waits
    for them. `timed`: the trace has the time that the call took, not only that in which its result
    was asked for (aio).
    """

    process: Ints
    thread: Ints
    file: Ints
    kind: Ints
    offset: Ints
    asked: Ints
    moved: Ints
    start_ns: Ints
    end_ns: Ints
    argument: Ints
    error: Ints
    failed: Flags
    collective: Flags
    below: Flags
    behind: Flags
    timed: Flags

    def __len__(self) -> int:
        return len(self.process)

    def only(self, rows: Flags) -> "Layer":
        """The calls that `rows` marks."""
        if rows.all():
            return self
        places = np.flatnonzero(rows)
        return Layer(**{name: values[places] for name, values in vars(self).items()})

    @property
    def seconds(self) -> NDArray[np.float64]:
        """That each call took."""
        return (self.end_ns - self.start_ns) / 1e9

    @property
    def data(self) -> Flags:
        """Which calls read or write."""
        return self.kind <= Kind.WRITE


def load(trace: Trace) -> dict[str, Layer]:
    """The layers `posix` and `mpiio`; one without calls is an empty one."""
    mpi = _layer(trace, "mpiio")
    return {"mpiio": mpi, "posix": _with_owners(trace, _layer(trace, "posix"), mpi)}


def of_storage(trace: Trace, posix: Layer, owners: NDArray[np.int8]) -> Layer:
    """`posix` without what an MPI shares between its processes in memory: that is no storage.
    `owners`: of the trace's files, as `places.owners` has them."""
    files = trace.table("files", ["path", "file_system"])
    columns = (files["path"].to_pylist(), files["file_system"].to_pylist())
    in_memory = [
        (path or "").startswith("/dev/shm/") or kind == "tmpfs"
        for path, kind in zip(*columns, strict=True)
    ]
    shared = (owners == Owner.MPI) & np.array([*in_memory, False])
    return posix.only(~shared[posix.file])


def of_the_application(posix: Layer, owners: NDArray[np.int8]) -> Layer:
    """`posix` without the MPI's own files, and without reads and writes of the system's, such as
    libraries. `owners`: as for `of_storage`."""
    owner = owners[posix.file]
    of_system = posix.data & (owner == Owner.SYSTEM)
    return posix.only((owner != Owner.MPI) & ~of_system)


def _layer(trace: Trace, name: str) -> Layer:
    extra = ("argument", "errno") if name == "posix" else ("collective", "error")
    table = trace.table(name, [*_COLUMNS, *extra])
    kind = calls.kinds(table)
    data = kind <= Kind.WRITE
    result = tables.integers(table, "result", 0)
    start = tables.integers(table, "start_ns", 0)
    count = table.num_rows
    collective = np.zeros(count, np.bool_)
    if name == "mpiio" and count:
        collective = np.asarray(table["collective"].fill_null(False).to_numpy(), np.bool_)
    nothing = np.zeros(count, np.bool_)
    error = tables.integers(table, extra[1], 0)
    return Layer(
        process=tables.integers(table, "process", 0),
        thread=tables.integers(table, "thread", 0),
        file=tables.integers(table, "file"),
        kind=kind,
        offset=tables.integers(table, "offset"),
        asked=np.where(data, _asked(name, table), 0),
        moved=np.where(data, calls.moved_bytes(table), 0),
        start_ns=start,
        end_ns=start + np.maximum(tables.integers(table, "duration_ns", 0), 0),
        argument=(
            tables.integers(table, "argument") if name == "posix" else np.full(count, -1, np.int64)
        ),
        error=error,
        failed=(error > 0) | (result < 0),
        collective=collective,
        below=nothing,
        behind=nothing,
        timed=_is_timed(table),
    )


# What one system call moves at most (read(2)).
_MOST_MOVED = 0x7FFFF000


def _asked(name: str, table: pa.Table) -> NDArray[np.int64]:
    """Who asks for more than a call can move (`cat`, by copy_file_range) asks for what there is."""
    length = np.maximum(tables.integers(table, "length", 0), 0)
    if name != "posix":
        return length
    return np.where(length > _MOST_MOVED, calls.moved_bytes(table), length)


def _is_timed(table: pa.Table) -> Flags:
    numbers, words = tables.codes(table, "call")
    return np.array([*(not word.startswith("aio_") for word in words), True], np.bool_)[numbers]


def _with_owners(trace: Trace, posix: Layer, mpi: Layer) -> Layer:
    """`posix` without what is no storage, and with who made each call."""
    numbers, words = tables.codes(trace.table("posix", ["within"]), "within")
    if (numbers < 0).all():
        below = np.isin(posix.file, np.unique(mpi.file[mpi.file >= 0]))
        by_forebay = np.zeros(len(posix), np.bool_)
    else:
        name = np.array([*words, "program"])[numbers]
        below, by_forebay = name != "program", name == "forebay"
    begins = _begins(posix)
    thread = np.cumsum(begins) - 1
    by_others = np.bincount(thread[~by_forebay], minlength=int(thread.max(initial=-1)) + 1) > 0
    shared = set(_threads(mpi, _begins(mpi)))
    has_mpi = np.array([each in shared for each in _threads(posix, begins)], np.bool_)
    behind = ~(by_others | has_mpi)[thread] if len(posix) else np.zeros(0, np.bool_)
    files = trace.table("files", ["kind", "file_system"])
    kept = [
        kind not in _NO_STORAGE and file_system not in OF_THE_KERNEL
        for kind, file_system in zip(*(column.to_pylist() for column in files.columns), strict=True)
    ]
    storage = np.array([*kept, True])[posix.file]
    marked = Layer(**(vars(posix) | {"below": below, "behind": behind}))
    return marked.only(storage)


def _begins(layer: Layer) -> Flags:
    """Which calls are the first of their thread."""
    new = np.ones(len(layer), np.bool_)
    new[1:] = (np.diff(layer.process) != 0) | (np.diff(layer.thread) != 0)
    return new


def _threads(layer: Layer, begins: Flags) -> list[tuple[int, int]]:
    """Process and thread of the calls that `begins` marks."""
    return list(zip(layer.process[begins].tolist(), layer.thread[begins].tolist(), strict=True))

"""The calls of a trace that move data, of one layer, as arrays."""

import re
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from forebay.trace import calls, tables
from forebay.trace.calls import Kind
from forebay.trace.directory import Trace

_Ints = NDArray[np.int64]

UNKNOWN = -1

_COLUMNS = {
    "posix": [
        "process",
        "thread",
        "call",
        "within",
        "file",
        "offset",
        "length",
        "result",
        "argument",
        "start_ns",
        "duration_ns",
    ],
    "mpiio": [
        "process",
        "thread",
        "call",
        "collective",
        "file",
        "view",
        "position",
        "offset",
        "length",
        "result",
        "start_ns",
        "duration_ns",
    ],
}


@dataclass(frozen=True)
class Accesses:
    """Reads and writes in the order of process and start: one item of each array a call.

    `offset` is UNKNOWN where no trace told it. `bytes` is what was transferred. `blocks` counts the
    contiguous pieces that one turn of the file view has, of `block_bytes` on average and `stride`
    bytes apart, 0 if unevenly; 1, 0 and 0 for a call that meets no hole of its view.
    """

    process: _Ints
    thread: _Ints
    file: _Ints
    write: NDArray[np.bool_]
    call: _Ints
    words: list[str]  # that `call` is the place in
    collective: NDArray[np.bool_]
    offset: _Ints
    bytes: _Ints
    start_ns: _Ints
    end_ns: _Ints
    blocks: _Ints
    block_bytes: _Ints
    stride: _Ints

    def __len__(self) -> int:
        return len(self.process)


@dataclass(frozen=True)
class OtherCalls:
    """Calls of a layer that move no data: in all and of each process. And reads and writes of files
    that are not looked at."""

    count: _Ints
    duration_ns: _Ints
    left_out: int
    left_out_bytes: int


def load(
    trace: Trace, layer: str, wanted: NDArray[np.bool_] | None = None
) -> tuple[Accesses, OtherCalls]:
    """The calls of layer `posix` or `mpiio`, of `wanted` files if given (with an item for unknown
    ones at the end). Of POSIX those by the program itself, if the trace says whose they are; what
    MPI or Forebay did below is no pattern of the application. Those by MPI stand for the program's
    where the calls of MPI-IO are not in the trace."""
    table = trace.table(layer, _COLUMNS[layer])
    kind = calls.kinds(table)
    own = np.ones(len(kind), np.bool_)
    if layer == "posix" and table["within"].null_count < table.num_rows:
        whose = {"program"} if trace.rows("mpiio") else {"program", "mpi"}
        own = calls.marked(table.rename_columns(_renamed(table)), whose)
    moves = own & (kind <= Kind.WRITE)
    rest = own & ~moves
    processes = max(1, trace.rows("processes"))
    process = tables.integers(table, "process")
    duration = tables.integers(table, "duration_ns")
    foreign = np.zeros(len(kind), np.bool_)
    if wanted is not None:
        foreign = moves & ~wanted[tables.integers(table, "file", UNKNOWN)]
    others = OtherCalls(
        np.bincount(process[rest], minlength=processes),
        np.bincount(process[rest], duration[rest], minlength=processes).astype(np.int64),
        int(np.count_nonzero(foreign)),
        int(calls.moved_bytes(table.filter(pa.array(foreign))).sum()),
    )
    moves &= ~foreign
    table, kind = table.filter(pa.array(moves)), kind[moves]
    number, words = tables.codes(table, "call")
    start = tables.integers(table, "start_ns")
    count = len(start)
    if layer == "mpiio":
        collective = np.asarray(table["collective"].fill_null(False).to_numpy(), np.bool_)
        offset, blocks, block_bytes, stride = _through_views(trace, table)
    else:
        collective = np.zeros(count, np.bool_)
        offset = tables.integers(table, "offset", UNKNOWN)
        blocks, block_bytes, stride = np.ones(count, np.int64), *np.zeros((2, count), np.int64)
    order = np.lexsort((start, process[moves]))
    return Accesses(
        process=process[moves][order],
        thread=tables.integers(table, "thread")[order],
        file=tables.integers(table, "file", UNKNOWN)[order],
        write=kind[order] == Kind.WRITE,
        call=number[order],
        words=words,
        collective=collective[order],
        offset=offset[order],
        bytes=calls.moved_bytes(table)[order],
        start_ns=start[order],
        end_ns=(start + duration[moves])[order],
        blocks=blocks[order],
        block_bytes=block_bytes[order],
        stride=stride[order],
    ), others


def _renamed(table: pa.Table) -> list[str]:
    """Names under which the words of `within` are looked for as if they were calls."""
    swap = {"call": "within", "within": "call"}
    return [swap.get(name, name) for name in table.column_names]


def _through_views(trace: Trace, table: pa.Table) -> tuple[_Ints, _Ints, _Ints, _Ints]:
    """First byte in the file, and the shape of the view, of each call."""
    offset = tables.integers(table, "offset", UNKNOWN)
    position = tables.integers(table, "position", UNKNOWN)
    view = tables.integers(table, "view", UNKNOWN)
    views, types = trace.table("views"), trace.table("datatypes")

    def of_type(place: str, column: str, default: int) -> _Ints:
        """A column of each view's etype or filetype, and `default` where there is no view."""
        ids = tables.integers(views, place)
        values = np.append(tables.integers(types, column, default), default)
        chosen = values[np.where((ids < 0) | (ids >= len(values) - 1), len(values) - 1, ids)]
        return np.append(chosen, default)[view]

    displacement = np.append(tables.integers(views, "displacement", 0), 0)[view]
    etype = of_type("etype", "size", 1)
    size, extent = of_type("filetype", "size", 1), of_type("filetype", "extent", 1)
    begins = of_type("filetype", "true_lower_bound", 0)
    # 0 pieces: it is not known how many, or there is no view.
    blocks, stride = of_type("filetype", "blocks", 0), of_type("filetype", "stride", 0)
    block_bytes = of_type("filetype", "block_bytes", 0)
    turns, rest = np.divmod(position * etype, np.maximum(size, 1))
    single = blocks == 1
    first = displacement + begins + turns * extent + np.where(single, rest, 0)
    known = (position >= 0) & ((rest == 0) | single)
    offset = np.where(offset >= 0, offset, np.where(known, first, UNKNOWN))
    # One piece in a larger extent leaves holes, too: turn by turn. A call that stays inside a piece
    # touches none.
    within = rest + tables.integers(table, "length", 0) <= np.where(single, size, block_bytes)
    holes = ((blocks > 1) | (extent > size)) & ~(known & within)
    pieces = np.maximum(blocks, 1)
    mean = np.maximum(size // pieces, 1)
    return (
        offset,
        np.where(holes, pieces, 1),
        np.where(holes, np.where(block_bytes > 0, block_bytes, mean), 0),
        np.where(holes, np.where(single, extent, np.maximum(stride, 0)), 0),
    )


def families(paths: list[str]) -> tuple[_Ints, list[str]]:
    """The series that each file belongs to: its path with every number replaced by a star."""
    names = [re.sub(r"\d+", "*", path) for path in paths]
    listed = sorted(set(names))
    place = {name: i for i, name in enumerate(listed)}
    return np.array([place[name] for name in names], np.int64), listed

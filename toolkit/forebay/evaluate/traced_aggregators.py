"""How many processes an MPI had move the bytes of collective calls, as a trace shows: what it made
of the number of aggregators that it was asked for."""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from forebay.trace import calls, tables
from forebay.trace.calls import Kind
from forebay.trace.directory import Trace

_COLUMNS = ["process", "call", "file", "start_ns", "duration_ns"]


@dataclass(frozen=True)
class Collective:
    """The collective reads of a file, or the collective writes: processes that asked for bytes, and
    those in which the MPI moved some meanwhile."""

    asking: int
    moving: int

    def __str__(self) -> str:
        return f"{self.moving} of {self.asking} processes moved the bytes"


def of(trace: Trace) -> list[Collective]:
    """A file's reads and writes each, by blocking calls: what moves their bytes lies within."""
    mpi = _rows(trace, "mpiio", "collective", "length")
    posix = _rows(trace, "posix", "within", "result", "argument")
    asking: dict[tuple[int, int], set[int]] = defaultdict(set)
    moving: dict[tuple[int, int], set[int]] = defaultdict(set)
    for process in np.unique(tables.integers(mpi, "process")).tolist():
        own = _of_process(mpi, process)
        file, kind = tables.integers(own, "file"), calls.kinds(own)
        start = tables.integers(own, "start_ns")
        end = start + tables.integers(own, "duration_ns")
        for key in _pairs(file, kind, tables.integers(own, "length") > 0):
            asking[key].add(process)
        below = _of_process(posix, process)
        begun = tables.integers(below, "start_ns")
        place = np.searchsorted(start, begun, side="right") - 1
        moves = (place >= 0) & (begun < end[place])
        moves &= tables.integers(below, "file") == file[place]
        moves &= calls.kinds(below) == kind[place]
        for key in _pairs(file[place], kind[place], moves):
            moving[key].add(process)
    return [Collective(len(asked), len(moving[key])) for key, asked in asking.items()]


def _rows(trace: Trace, name: str, *more: str) -> pa.Table:
    """Of `posix` the reads and writes by the MPI, of `mpiio` those that are collective and end with
    their bytes moved; in the order of time."""
    table = trace.table(name, [*_COLUMNS, *more])
    wanted = calls.kinds(table) <= Kind.WRITE
    if name == "posix":
        numbers, words = tables.codes(table, "within")
        wanted &= np.array([*(word == "mpi" for word in words), False], np.bool_)[numbers]
        wanted &= tables.integers(table, "result") > 0
    else:
        numbers, words = tables.codes(table, "call")
        later = [calls.is_nonblocking(word) or calls.is_split(word) for word in words]
        wanted &= ~np.array([*later, False], np.bool_)[numbers]
        wanted &= tables.integers(table, "collective", 0) > 0
    return table.filter(pa.array(wanted)).sort_by("start_ns")


def _of_process(table: pa.Table, process: int) -> pa.Table:
    return table.filter(pa.array(tables.integers(table, "process") == process))


def _pairs(
    file: NDArray[np.int64], kind: NDArray[np.int64], rows: NDArray[np.bool_]
) -> set[tuple[int, int]]:
    return set(zip(file[rows].tolist(), kind[rows].tolist(), strict=True))

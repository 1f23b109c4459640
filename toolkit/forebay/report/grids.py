"""Calls counted into cells: what pictures are drawn of, whatever the number of calls."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forebay.report.layers import Flags, Ints, Layer
from forebay.report.timeline import CATEGORIES, Segments
from forebay.trace.calls import Kind

TIME_CELLS = 240
ROWS_MOST = 128
OFFSET_CELLS = 160

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RankTime:
    """`share[category, row, cell]`: of a cell's time, how much the processes of a row were in a
    category. A row is `per_row` processes. `rates[0 or 1, cell]`: bytes a second read, written."""

    share: Floats
    per_row: int
    processes: int
    cell_s: float
    rates: Floats


@dataclass(frozen=True)
class OffsetTime:
    """`amount[0 or 1, row, cell]`: bytes read and written of a stretch of a file in a cell of
    time."""

    path: str
    layer: str
    amount: Floats
    low: int
    high: int
    cell_s: float


def spread(row: Ints, begin: Ints, end: Ints, weight: Floats, shape: tuple[int, int]) -> Floats:
    """A grid of rows and cells. Each span gives its weight to the cells of its row, in proportion
    to what it has of each. `begin` and `end` are scaled so that the cells are 0..2**40; a span of
    no length is in one cell."""
    rows, cells = shape
    width = -(-(1 << _BITS) // cells)
    last = np.maximum(begin, end - 1)
    first_cell, last_cell = begin // width, last // width
    length = np.maximum(1, end - begin).astype(np.float64)
    grid = np.zeros(rows * cells)
    within = first_cell == last_cell
    place = row * cells + first_cell
    grid += np.bincount(place[within], weight[within], minlength=rows * cells)
    over = np.flatnonzero(~within)
    if len(over):
        density = weight[over] / length[over]
        first, final = first_cell[over], last_cell[over]
        base = row[over] * cells
        head = density * ((first + 1) * width - begin[over])
        tail = density * (end[over] - final * width)
        grid += np.bincount(base + first, head, minlength=rows * cells)
        grid += np.bincount(base + final, tail, minlength=rows * cells)
        full = density * width
        step = np.zeros((rows, cells + 1))
        np.add.at(step, (row[over], first + 1), full)
        np.add.at(step, (row[over], final), -full)
        grid += np.cumsum(step, axis=1)[:, :cells].ravel()
    return grid.reshape(shape)


_BITS = 40


def scaled(values: Ints, low: int, high: int) -> Ints:
    """`values` between `low` and `high` as 0..2**40."""
    share = (values - low).astype(np.float64) / max(1, high - low)
    top = (1 << _BITS) - 1
    return np.clip(np.rint(share * top), 0, top).astype(np.int64)


def rank_time(found: Segments, counts: Flags, posix: Layer, mpi: Layer, wall_ns: int) -> RankTime:
    """The processes that `counts` marks, in their order."""
    who = np.cumsum(counts) - 1
    processes = int(counts.sum())
    per_row = -(-processes // ROWS_MOST)
    rows = -(-processes // per_row)
    cell_s = wall_ns / 1e9 / TIME_CELLS
    kept = counts[found.process]
    row = who[found.process[kept]] // per_row
    begin, end = found.start_ns[kept], found.end_ns[kept]
    category = found.category[kept]
    grids = []
    in_row = np.full(rows, per_row)
    in_row[-1] = processes - per_row * (rows - 1)
    for place in range(len(CATEGORIES)):
        chosen = category == place
        spans = scaled(begin[chosen], 0, wall_ns), scaled(end[chosen], 0, wall_ns)
        seconds = (end - begin)[chosen] / 1e9
        grid = spread(row[chosen], *spans, seconds, (rows, TIME_CELLS))
        grids.append(grid / (cell_s * in_row[:, None]))
    return RankTime(np.stack(grids), per_row, processes, cell_s, _rates(posix, mpi, wall_ns))


def _rates(posix: Layer, mpi: Layer, wall_ns: int) -> Floats:
    layer = posix if posix.data.any() else mpi
    rates = []
    for kind in (Kind.READ, Kind.WRITE):
        rows = layer.kind == kind
        spans = scaled(layer.start_ns[rows], 0, wall_ns), scaled(layer.end_ns[rows], 0, wall_ns)
        moved = layer.moved[rows].astype(np.float64)
        none = np.zeros(int(rows.sum()), np.int64)
        rates.append(spread(none, *spans, moved, (1, TIME_CELLS))[0])
    return np.stack(rates) / (wall_ns / 1e9 / TIME_CELLS)


def offset_time(posix: Layer, mpi: Layer, paths: list[str], wall_ns: int) -> OffsetTime | None:
    """Of the file with most bytes at known places, in the lowest layer that knows them; None
    where no place is known."""
    for name, layer in (("POSIX", posix), ("MPI-IO", mpi)):
        rows = layer.data & (layer.offset >= 0) & (layer.file >= 0) & (layer.moved > 0)
        if not rows.any():
            continue
        part = layer.only(rows)
        file = int(np.argmax(np.bincount(part.file, part.moved)))
        part = part.only(part.file == file)
        low, high = int(part.offset.min()), int((part.offset + part.moved).max())
        cell = scaled(part.start_ns, 0, wall_ns) * TIME_CELLS >> _BITS
        amount = []
        for kind in (Kind.READ, Kind.WRITE):
            own = part.kind == kind
            spans = (
                scaled(part.offset[own], low, high),
                scaled((part.offset + part.moved)[own], low, high),
            )
            moved = part.moved[own].astype(np.float64)
            amount.append(spread(cell[own], *spans, moved, (TIME_CELLS, OFFSET_CELLS)).T)
        return OffsetTime(
            paths[file], name, np.stack(amount), low, high, wall_ns / 1e9 / TIME_CELLS
        )
    return None

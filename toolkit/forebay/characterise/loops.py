"""Sequences of offsets as nested loops: 0, 8, 64, 72, 128, 136 is three times two, 8 and 64 apart.

A loop is found where neighbours that are alike follow each other at a constant distance; then loops
that are alike are neighbours in turn. No step of it visits single items in Python.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LEVELS_MAX = 4

_Ints = NDArray[np.int64]
_Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Loops:
    """Loop nests in the order of the items they stand for, one a row.

    `first` is the first item and `items` their number. `counts` and `steps` have a column for each
    level, the innermost first: how often, and how far apart. A level that is not there has 1 and 0.
    """

    first: _Ints
    items: _Ints
    counts: _Ints
    steps: _Ints

    def __len__(self) -> int:
        return len(self.first)


def mixed(*columns: NDArray[np.integer] | NDArray[np.bool_]) -> NDArray[np.uint64]:
    """A number for each row that is, but for one chance in 2**64 a pair, the same for equal rows
    alone (the finalizer of SplitMix64, column after column)."""
    value = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        value = value + column.astype(np.int64).view(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
        value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        value ^= value >> np.uint64(31)
    return value


def found_in(offsets: _Ints, keys: NDArray[np.uint64]) -> Loops:
    """The loop nests of a sequence. Only neighbours of the same key are in one loop."""
    count = len(offsets)
    first = np.arange(count)
    items = np.ones(count, np.int64)
    counts = np.ones((count, LEVELS_MAX), np.int64)
    steps = np.zeros((count, LEVELS_MAX), np.int64)
    for level in range(LEVELS_MAX):
        if count < 2:
            break
        base = offsets[first]
        linked = _linked(np.diff(base), keys[1:] == keys[:-1])
        begins = np.flatnonzero(np.append(True, ~linked))
        if len(begins) == count:
            break
        lengths = np.diff(np.append(begins, count))
        counts, steps = counts[begins], steps[begins]
        counts[:, level] = lengths
        second = np.minimum(begins + 1, count - 1)
        steps[:, level] = np.where(lengths > 1, base[second] - base[begins], 0)
        items = np.add.reduceat(items, begins)
        first = first[begins]
        keys = mixed(keys[begins].view(np.int64), counts[:, level], steps[:, level])
        count = len(begins)
    return Loops(first, items, counts, steps)


def _linked(distances: _Ints, alike: _Bools) -> _Bools:
    """Which items belong to the loop of their predecessor; `distances` and `alike` say how they
    follow it.

    Three or more at one distance are a loop. What is left between such is paired, so that the next
    level finds that the pairs repeat.
    """
    count = len(distances)
    same_as_before = np.zeros(count, np.bool_)
    same_as_before[1:] = (distances[1:] == distances[:-1]) & alike[1:] & alike[:-1]
    same_as_next = np.append(same_as_before[1:], False)
    long = alike & (same_as_before | same_as_next)
    # An item where two loops meet belongs to the first.
    linked: _Bools = long.copy()
    linked[1:] &= same_as_before[1:] | ~long[:-1]
    taken_before = np.append(False, linked[:-1])
    taken_behind = np.append(linked[1:], False)
    free = alike & ~long & ~taken_before & ~taken_behind
    begins = free & ~np.append(False, free[:-1])
    place = np.arange(count)
    start = np.maximum.accumulate(np.where(begins, place, 0))
    linked |= free & ((place - start) % 2 == 0)
    return linked

"""Numbers that every place has its own of: what the files of the readers hold, so that bytes from
the wrong place are found."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Places = npt.NDArray[np.uint64]
Numbers = npt.NDArray[np.float64]


def at(places: Places) -> Numbers:
    """Numbers in [0, 1), of 32 random bits each, as a measurement has no more: a quarter of their
    bytes compresses. [Steele et al., "Fast splittable pseudorandom number generators", 2014]"""
    mixed = places * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(30)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(27)
    mixed *= np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return (mixed >> np.uint64(32)).astype(np.float64) * 2.0**-32


def between(first: int, end: int) -> Numbers:
    """Those of the places from `first` on, before `end`."""
    return at(np.arange(first, end, dtype=np.uint64))


def of_column(column: int, first: int, end: int) -> Numbers:
    """The rows from `first` on, before `end`, of a column of a table."""
    return between((column << 32) + first, (column << 32) + end)

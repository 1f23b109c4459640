"""Reads pieces of a file through numpy.memmap."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import pieces
import reader
from content import Numbers


def read(path: Path, count: int) -> list[Numbers]:
    """Copies of the pieces."""
    numbers = np.memmap(path, dtype="f8", mode="r")
    return [np.array(numbers[first:end]) for first, end in pieces.places(count)]


if __name__ == "__main__":
    reader.run(__doc__ or "", pieces.PIECES, pieces.create, read, pieces.expected, pieces.extents)

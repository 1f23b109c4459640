"""Reads pieces of a file by numpy.fromfile, which makes a C stream for each."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import pieces
import reader
from content import Numbers


def read(path: Path, count: int) -> list[Numbers]:
    """Piece by piece of one file that is open."""
    found = []
    with path.open("rb") as file:
        for first, end in pieces.places(count):
            file.seek(8 * first)
            found.append(np.fromfile(file, dtype="f8", count=end - first))
    return found


if __name__ == "__main__":
    reader.run(__doc__ or "", pieces.PIECES, pieces.create, read, pieces.expected, pieces.extents)

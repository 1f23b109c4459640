"""Reads two bands of every plane of a chunked HDF5 dataset, with h5py."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np

import content
import reader
from content import Numbers

PLANES = 64
"""256 MiB."""

ROWS, COLUMNS = 512, 1024
CHUNK = (1, 64, 128)
"""64 KiB: 8 by 8 chunks a plane."""

BANDS = (slice(128, 256), slice(640, 768))
"""Each of one chunk's width: between two chunks that are read lie three that are not."""

DATASET = "field"


def create(path: Path, planes: int) -> None:
    """Plane by plane."""
    with h5py.File(path, "w") as file:
        field = file.create_dataset(DATASET, (planes, ROWS, COLUMNS), "f8", chunks=CHUNK)
        for plane in range(planes):
            field[plane] = _plane(plane)


def read(path: Path, planes: int) -> list[Numbers]:
    """Band by band."""
    with h5py.File(path, "r") as file:
        field = file[DATASET]
        return [field[plane, :, band] for plane in range(planes) for band in BANDS]


def expected(planes: int) -> Iterator[Numbers]:
    """The same, computed."""
    for plane in range(planes):
        whole = _plane(plane)
        for band in BANDS:
            yield whole[:, band]


def _plane(number: int) -> Numbers:
    size = ROWS * COLUMNS
    return np.reshape(content.between(number * size, (number + 1) * size), (ROWS, COLUMNS))


if __name__ == "__main__":
    reader.run(__doc__ or "", PLANES, create, read, expected)

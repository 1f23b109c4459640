"""Reads one of the four fields that a model has written step by step into an HDF5 file, with
h5py."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np

import content
import reader
from content import Numbers

STEPS = 1024
"""256 MiB."""

FIELDS = ("u", "v", "w", "p")
READ = "v"

ROWS, COLUMNS = 64, 128
"""Of a plane, which is a chunk of 64 KiB: those of the other fields lie between two of one."""


def create(path: Path, steps: int) -> None:
    """Step by step."""
    with h5py.File(path, "w") as file:
        shape = (steps, ROWS, COLUMNS)
        fields = [file.create_dataset(name, shape, "f8", chunks=(1, *shape[1:])) for name in FIELDS]
        for step in range(steps):
            for number, field in enumerate(fields):
                field[step] = _plane(number, step)


def read(path: Path, steps: int) -> list[Numbers]:
    """Step by step."""
    with h5py.File(path, "r") as file:
        field = file[READ]
        return [field[step] for step in range(steps)]


def expected(steps: int) -> Iterator[Numbers]:
    """The same, computed."""
    number = FIELDS.index(READ)
    return (_plane(number, step) for step in range(steps))


def _plane(field: int, step: int) -> Numbers:
    size = ROWS * COLUMNS
    numbers = content.of_column(field, step * size, (step + 1) * size)
    return np.reshape(numbers, (ROWS, COLUMNS))


if __name__ == "__main__":
    reader.run(__doc__ or "", STEPS, create, read, expected)

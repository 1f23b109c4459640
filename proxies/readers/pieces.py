"""A file of numbers of which pieces are read, with gaps between them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import content
from content import Numbers

PIECES = 1024
"""In 256 MiB."""

_STEP = 32 << 10
_PIECE = 8 << 10


def places(count: int) -> list[tuple[int, int]]:
    """First and end of each: 64 KiB somewhere in every 256 KiB, in rising order."""
    draw = random.Random(1)
    firsts = [step * _STEP + draw.randrange(_STEP - _PIECE) for step in range(count)]
    return [(first, first + _PIECE) for first in firsts]


def extents(count: int) -> list[tuple[int, int]]:
    """The same as offsets and lengths in bytes."""
    return [(8 * first, 8 * (end - first)) for first, end in places(count)]


def create(path: Path, count: int) -> None:
    """The numbers, nothing else."""
    with path.open("wb") as file:
        for step in range(count):
            file.write(content.between(step * _STEP, (step + 1) * _STEP).tobytes())


def expected(count: int) -> Iterator[Numbers]:
    """The pieces, computed."""
    for first, end in places(count):
        yield content.between(first, end)

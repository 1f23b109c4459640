"""Packs a directory of small files with tar, which opens and reads one after the other [ARCHER]."""

from __future__ import annotations

import random
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

import content
import reader
from content import Numbers

FILES = 5000
_MOST_NUMBERS = 8 << 10
"""64 KiB: 160 MB in all."""


def expected(files: int) -> Iterator[Numbers]:
    """What each file holds."""
    draw = random.Random(1)
    for number in range(files):
        yield content.of_column(number, 0, draw.randrange(1, _MOST_NUMBERS))


def create(path: Path, files: int) -> None:
    """The directory."""
    path.mkdir(parents=True)
    for number, numbers in enumerate(expected(files)):
        (path / f"file{number:05}").write_bytes(numbers.tobytes())


def packed(archive: Path) -> Iterator[Numbers]:
    """What the files in the archive hold, by their names."""
    with tarfile.open(archive) as file:
        for member in sorted(file.getnames()[1:]):
            opened = file.extractfile(member)
            assert opened is not None, member
            yield np.frombuffer(opened.read())


def main(
    path: Annotated[Path, typer.Argument(help="The directory.")],
    make: Annotated[bool, typer.Option("--create", help="Make it, and do no more.")] = False,
    size: Annotated[int, typer.Option(min=1, help="How many files.")] = FILES,
) -> None:
    """Packs a directory of small files with tar, into memory."""
    if make:
        create(path, size)
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        archive = Path(directory) / "archive"
        start = time.perf_counter()
        subprocess.run(["tar", "-cf", archive, "-C", path.parent, path.name], check=True)
        reader.report(time.perf_counter() - start, packed(archive), expected(size))


if __name__ == "__main__":
    typer.run(main)

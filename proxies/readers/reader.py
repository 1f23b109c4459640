"""What the readers share: their command line, the clock, and the check of what was read."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from content import Numbers

Extents = Iterable[tuple[int, int]]
"""Offsets and lengths in bytes."""


def run(
    about: str,
    size: int,
    create: Callable[[Path, int], None],
    read: Callable[[Path, int], Iterable[Numbers]],
    expected: Callable[[int], Iterator[Numbers]],
    extents: Callable[[int], Extents] | None = None,
) -> None:
    """The program. `size`, in units of the reader's own, is what its functions are given unless the
    user says otherwise. `read` returns when all is in memory of the program's own; it alone is
    timed. `expected` is what it has to return, `extents` what it reads, where that can be told."""

    def command(
        path: Annotated[Path, typer.Argument(help="The file.")],
        make: Annotated[bool, typer.Option("--create", help="Make it, and do no more.")] = False,
        units: Annotated[int, typer.Option("--size", min=1, help="How much there is.")] = size,
        intent: Annotated[
            Path | None, typer.Option(help="Write there what it reads, and do no more.")
        ] = None,
        processes: Annotated[
            int, typer.Option(min=1, help="So many read it, all the same and at once.")
        ] = 1,
    ) -> None:
        if make:
            create(path, units)
            return
        if intent is not None:
            if extents is None:
                raise typer.BadParameter("this reader leaves where it reads to a library")
            lines = [f"  [{offset}, {length}]," for offset, length in extents(units)]
            text = "\n".join(["[[file]]", f"path = '{path.absolute()}'", "willneed = [", *lines])
            intent.write_text(f"{text}\n]\n")
            return

        def read_and_report() -> None:
            start = time.perf_counter()
            found = read(path, units)
            report(time.perf_counter() - start, found, expected(units))

        if processes == 1:
            read_and_report()
        else:
            _at_once(processes, read_and_report)

    command.__doc__ = about
    typer.run(command)


def _at_once(count: int, work: Callable[[], None]) -> None:
    """Does it in so many processes, which `multiprocessing` forks from this one, and which begin
    when all are there. Ends the program if one of them fails."""
    fork = multiprocessing.get_context("fork")
    beginning = fork.Barrier(count)

    def begin_together() -> None:
        beginning.wait()
        work()

    workers = [fork.Process(target=begin_together) for _ in range(count)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if any(worker.exitcode != 0 for worker in workers):
        raise typer.Exit(1)


def report(seconds: float, found: Iterable[Numbers], expected: Iterator[Numbers]) -> None:
    """Says what was read, and whether it is right; ends the program if it is not."""
    pieces = list(found)
    amount = sum(piece.nbytes for piece in pieces)
    print(f"read {amount} bytes in {len(pieces)} pieces: {seconds:.3f} s")
    for number, (piece, right) in enumerate(zip(pieces, expected, strict=True)):
        if not np.array_equal(piece, right):
            print(f"piece {number} is wrong")
            raise typer.Exit(1)
    print("all bytes are right")

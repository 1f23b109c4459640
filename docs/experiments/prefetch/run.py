"""Repeats what is claimed of reading ahead, and writes the pages that show it: see --help."""

from __future__ import annotations

import json
import random
import signal
import sys
from collections.abc import Callable, Collection
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

import analysis_page
import analysis_runs
import kernel_page
import kernel_runs
import readers_page
import readers_runs
import unlisted_page
import unlisted_runs
from analysis_runs import COMPUTE_US, ROOT, Tools
from control_groups import CannotBeDoneError
from forebay.units import parse_size
from rounds import next_number, numbers, path_of

HERE = Path(__file__).resolve().parent


class What(StrEnum):
    """What to do."""

    MEASURE = "measure"
    KERNEL = "kernel"
    EXT4 = "ext4"
    READERS = "readers"
    TOGETHER = "together"
    UNLISTED = "unlisted"
    TABLE = "table"


def main(
    what: Annotated[
        What,
        typer.Argument(
            help="measure: add rounds without a page cache. kernel: add rounds against the "
            "kernel's read-ahead; needs root. ext4: the same on a throttled disk, which needs loop "
            "devices and control groups of version 1. readers: add rounds of real programs; needs "
            "root. together: the same by several processes on one file. unlisted: add rounds of "
            "what interception costs calls that are not read ahead. table: write the pages from "
            "what is there."
        ),
    ],
    rounds: Annotated[int, typer.Option("--rounds", "-n", min=1, help="Of each kind.")] = 5,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            help="Of measure: compute-bound or I/O-bound. Of readers: "
            f"{', '.join(readers_runs.BY_NAME)}; of together: "
            f"{', '.join(readers_runs.TOGETHER)}."
        ),
    ] = None,
    processes: Annotated[
        list[int] | None,
        typer.Option(
            help="Of kernel, ext4 and together: only with so many on the one file, "
            f"{', '.join(map(str, kernel_runs.CASES))}; may be said several times."
        ),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Of kernel: the workload as long as it was published.")
    ] = False,
    memory_limit: Annotated[
        str | None,
        typer.Option(
            help="Of kernel: memory for the programs, the page cache included, as 64MiB, which is "
            "a quarter of the file (320MiB with --full)."
        ),
    ] = None,
    tmpfs: Annotated[Path, typer.Option(help="A directory in memory.")] = Path("/dev/shm"),
    forebay: Annotated[Path, typer.Option(help="The command.")] = ROOT / ".venv/bin/forebay",
    analysis: Annotated[Path, typer.Option(help="The workload.")] = ROOT / "build/proxies/analysis",
    output: Annotated[Path, typer.Option(help="Where results/ and the pages are.")] = HERE,
) -> None:
    """Results are added: an interrupted campaign goes on with the same command. Needs /dev/fuse."""
    # What is mounted is taken down then, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    tools = Tools(forebay.absolute(), analysis.absolute())
    counts = processes or list(kernel_runs.CASES)
    if full and what is not What.KERNEL:
        raise typer.BadParameter("--full is of kernel")
    if unknown := set(counts) - set(kernel_runs.CASES):
        raise typer.BadParameter(f"nothing is measured with {min(unknown)} processes")

    def add(stem: str, measure: Callable[[random.Random], dict[str, Any]]) -> None:
        number = next_number(output, stem)
        path = path_of(output, stem, number)
        path.parent.mkdir(parents=True, exist_ok=True)
        found = measure(random.Random(number))
        path.write_text(json.dumps(found, indent=1) + "\n")
        print(path, flush=True)

    def of_kind(one: str) -> Callable[[random.Random], dict[str, Any]]:
        return lambda shuffle: analysis_runs.measure_round(tools, tmpfs, one, shuffle)

    def of_reader(
        name: str, by: Collection[int] = (1,)
    ) -> Callable[[random.Random], dict[str, Any]]:
        reader = readers_runs.BY_NAME[name]
        return lambda shuffle: readers_runs.measure_round(tools, tmpfs, reader, by, shuffle)

    def of_kernel(shuffle: random.Random) -> dict[str, Any]:
        workload = kernel_runs.PUBLISHED if full else kernel_runs.SMALL
        if memory_limit is None:
            return kernel_runs.measure_round(tools, tmpfs, workload, counts, shuffle)
        limit = parse_size(memory_limit)
        return kernel_runs.measure_limited(tools, tmpfs, workload, limit, counts, shuffle)

    def of_ext4(shuffle: random.Random) -> dict[str, Any]:
        return kernel_runs.measure_ext4(tools, tmpfs, counts, shuffle)

    try:
        for _ in range(rounds if what is not What.TABLE else 0):
            if what is What.KERNEL:
                stems = ("full", "full-memory") if full else ("kernel", "memory")
                add(stems[memory_limit is not None], of_kernel)
            elif what is What.EXT4:
                add("ext4", of_ext4)
            elif what is What.READERS:
                for one in kind or list(readers_runs.BY_NAME):
                    add(f"reader-{one}", of_reader(one))
            elif what is What.TOGETHER:
                for one in kind or readers_runs.TOGETHER:
                    add(f"together-{one}", of_reader(one, processes or readers_runs.SEVERAL))
            elif what is What.UNLISTED:
                add("unlisted", lambda _: unlisted_runs.measure_round())
            else:
                for one in kind or list(COMPUTE_US):
                    add(one.replace("/", ""), of_kind(one))
    except CannotBeDoneError as missing:
        print(f"cannot be measured here: {missing}", file=sys.stderr)
        raise typer.Exit(2) from None
    print(analysis_page.write(output))
    for subject in kernel_page.SUBJECTS:
        if numbers(output, subject.stem):
            print(kernel_page.write(output, subject))
    print(readers_page.write(output))
    print(unlisted_page.write(output))


if __name__ == "__main__":
    typer.run(main)

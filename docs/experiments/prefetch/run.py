"""Repeats what is claimed of reading ahead, and writes the pages that show it: see --help."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
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
from analysis_runs import COMPUTE_US, ROOT, Tools

HERE = Path(__file__).resolve().parent


class What(StrEnum):
    """What to do."""

    MEASURE = "measure"
    KERNEL = "kernel"
    READERS = "readers"
    TABLE = "table"


def main(
    what: Annotated[
        What,
        typer.Argument(
            help="measure: add rounds without a page cache. kernel: add rounds against the "
            "kernel's read-ahead; needs root. readers: add rounds of real programs; needs root. "
            "table: write the pages from what is there."
        ),
    ],
    rounds: Annotated[int, typer.Option("--rounds", "-n", min=1, help="Of each kind.")] = 5,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            help="Of measure: compute-bound or I/O-bound. Of readers: "
            f"{', '.join(readers_runs.BY_NAME)}."
        ),
    ] = None,
    tmpfs: Annotated[Path, typer.Option(help="A directory in memory.")] = Path("/dev/shm"),
    forebay: Annotated[Path, typer.Option(help="The command.")] = ROOT / ".venv/bin/forebay",
    analysis: Annotated[Path, typer.Option(help="The workload.")] = ROOT / "build/proxies/analysis",
    output: Annotated[Path, typer.Option(help="Where results/ and the pages are.")] = HERE,
) -> None:
    """Results are added: an interrupted campaign goes on with the same command. Needs /dev/fuse."""
    tools = Tools(forebay.absolute(), analysis.absolute())

    def add(stem: str, measure: Callable[[random.Random], dict[str, Any]]) -> None:
        results = output / "results"
        results.mkdir(exist_ok=True)
        number = len(list(results.glob(f"{stem}-[0-9]*.json")))
        found = measure(random.Random(number))
        path = results / f"{stem}-{number}.json"
        path.write_text(json.dumps(found, indent=1) + "\n")
        print(path, flush=True)

    def of_kind(one: str) -> Callable[[random.Random], dict[str, Any]]:
        return lambda shuffle: analysis_runs.measure_round(tools, tmpfs, one, shuffle)

    def of_reader(name: str) -> Callable[[random.Random], dict[str, Any]]:
        reader = readers_runs.BY_NAME[name]
        return lambda shuffle: readers_runs.measure_round(tools, tmpfs, reader, shuffle)

    for _ in range(rounds if what is not What.TABLE else 0):
        if what is What.KERNEL:
            add("kernel", lambda shuffle: kernel_runs.measure_round(tools, tmpfs, shuffle))
            continue
        if what is What.READERS:
            for one in kind or list(readers_runs.BY_NAME):
                add(f"reader-{one}", of_reader(one))
            continue
        for one in kind or list(COMPUTE_US):
            add(one.replace("/", ""), of_kind(one))
    print(analysis_page.write(output))
    print(kernel_page.write(output))
    print(readers_page.write(output))


if __name__ == "__main__":
    typer.run(main)

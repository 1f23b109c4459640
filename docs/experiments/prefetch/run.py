"""Repeats what is claimed of reading ahead, and writes the page that shows it: see --help."""

from __future__ import annotations

import json
import random
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

import analysis_page
from analysis_runs import COMPUTE_US, ROOT, Tools, measure_round

HERE = Path(__file__).resolve().parent


class What(StrEnum):
    """What to do."""

    MEASURE = "measure"
    TABLE = "table"


def main(
    what: Annotated[
        What, typer.Argument(help="measure: add rounds. table: write the page from what is there.")
    ],
    rounds: Annotated[int, typer.Option("--rounds", "-n", min=1, help="Of each kind.")] = 5,
    kind: Annotated[list[str] | None, typer.Option(help="compute-bound or I/O-bound.")] = None,
    tmpfs: Annotated[Path, typer.Option(help="A directory in memory.")] = Path("/dev/shm"),
    forebay: Annotated[Path, typer.Option(help="The command.")] = ROOT / ".venv/bin/forebay",
    analysis: Annotated[Path, typer.Option(help="The workload.")] = ROOT / "build/proxies/analysis",
    output: Annotated[Path, typer.Option(help="Where results/ and the page are.")] = HERE,
) -> None:
    """Results are added: an interrupted campaign goes on with the same command. Needs /dev/fuse."""
    results = output / "results"
    if what is What.MEASURE:
        results.mkdir(exist_ok=True)
        tools = Tools(forebay.absolute(), analysis.absolute())
        for _ in range(rounds):
            for one in kind or list(COMPUTE_US):
                stem = one.replace("/", "")
                number = len(list(results.glob(f"{stem}-*.json")))
                found = measure_round(tools, tmpfs, one, random.Random(number))
                path = results / f"{stem}-{number}.json"
                path.write_text(json.dumps(found, indent=1) + "\n")
                print(path, flush=True)
    print(analysis_page.write(output))


if __name__ == "__main__":
    typer.run(main)

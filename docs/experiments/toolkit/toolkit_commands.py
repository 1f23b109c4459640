"""What run.py does: adds rounds, and writes the pages."""

import random
import signal
import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

import campaign
import configure_page
import configure_pairs
import configure_planted
import configure_runs
import logs_page
import logs_runs
import methodology_page
import methodology_runs
import results
import striping_page
import striping_runs
import tracing_page
import tracing_runs
from configure_pairs import PAIRS, SYSTEMS, Pair
from control_groups import CannotBeDoneError
from measuring import MeasuringError, Tools, named
from methodology_runs import PROGRAMS
from results import ROOT
from rounds import next_number, path_of
from toolkit_pages import SCRIPT

HERE = Path(__file__).resolve().parent


class What(StrEnum):
    """What to do."""

    METHODOLOGY = "methodology"
    STRIPING = "striping"
    FILES = "files"
    SYSTEMS = "systems"
    CONFIGURE = "configure"
    PLANTED = "planted"
    TRACING = "tracing"
    LOGS = "logs"
    TABLE = "table"


Round = Callable[[random.Random], dict[str, Any]]

MPI = "openmpi"


def measure(
    what: Annotated[
        What,
        typer.Argument(
            help="methodology: BT-IO and MADBench2 in 8 configurations each. striping: a 3-D array "
            "over 1, 4 and 48 servers. files: many small files, and a large one, on one brick each "
            "and over all. systems: the limits of those of configure, which needs them. configure: "
            "what it proposes on five pairs of a program and a system, beside the best of a grid. "
            "planted: what a report finds of what was planted. tracing: what a trace costs, by a "
            "call, by a run and in a report. logs: Darshan's logs that PyDarshan's package brings, "
            "imported and reported on. table: write the pages from the results that are there."
        ),
    ],
    rounds: Annotated[int, typer.Option("--rounds", "-n", min=1, help="To add.")] = 5,
    only: Annotated[
        list[str] | None,
        typer.Option(
            help="Of methodology: multipart or outofcore. Of systems and configure: a system, a "
            "pair. May be repeated."
        ),
    ] = None,
    tmpfs: Annotated[Path, typer.Option(help="A directory in memory.")] = Path("/dev/shm"),
    local: Annotated[Path, typer.Option(help="Of tracing: a directory on a local disk.")] = Path(
        "/tmp"
    ),
    also: Annotated[
        list[Path] | None,
        typer.Option(
            exists=True, file_okay=False, help="Of logs: a directory of more. May be repeated."
        ),
    ] = None,
    forebay: Annotated[Path, typer.Option(help="The command.")] = ROOT / ".venv/bin/forebay",
    workloads: Annotated[Path, typer.Option(help="The workloads, by MPI.")] = ROOT
    / "build/proxies",
    output: Annotated[
        Path, typer.Option(help="Where results/ and the pages are.", file_okay=False)
    ] = HERE,
) -> None:
    """Repeats the experiments of the papers on configuring I/O, and writes the pages that show it.

    Rounds are added to those that are there: an interrupted campaign goes on with the same command.
    Needs root, loop devices, btrfs, control groups of version 1, /dev/fuse and GlusterFS.
    """
    # What is mounted is taken down then, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    tools = Tools(forebay.absolute(), workloads.absolute())
    described = campaign.load(Path(campaign.__file__).with_name("campaign.toml"))
    mpi = described.mpis[MPI]

    def add(stem: str, one: Round, count: int = rounds) -> None:
        for _ in range(count):
            number = next_number(output, stem)
            path = path_of(output, stem, number)
            results.store(path, one(random.Random(number)), SCRIPT)
            print(path, flush=True)

    if what is not What.TABLE:
        tools.check()
    if what is What.METHODOLOGY:
        with methodology_runs.places(tools, tmpfs) as directories:
            for program in named("program", PROGRAMS, only or []):

                def of_program(
                    shuffle: random.Random, program: methodology_runs.Program = program
                ) -> dict[str, Any]:
                    return methodology_runs.measure_round(tools, mpi, directories, program, shuffle)

                add(f"methodology-{program.name}", of_program)
    elif what is What.STRIPING:
        with striping_runs.testbeds(tools, described.testbed, tmpfs) as mounts:

            def of_array(shuffle: random.Random) -> dict[str, Any]:
                return striping_runs.measure_round(tools, mpi, mounts, shuffle)

            add("striping", of_array)
    elif what is What.FILES:
        with striping_runs.volumes(tools, tmpfs) as layouts:
            add("files", lambda shuffle: striping_runs.measure_files(layouts, shuffle))
    elif what is What.SYSTEMS:
        with configure_pairs.mounted(tools, tmpfs) as systems:
            for system in named("system", SYSTEMS, only or []):
                configure_runs.characterise(tools, systems[system.name], output)
    elif what is What.CONFIGURE:
        limits = configure_runs.limits(output)
        with configure_pairs.mounted(tools, tmpfs) as systems:
            # In turn, so that a bad hour is no pair's alone.
            for pair in rounds * named("pair", PAIRS, only or []):

                def of_pair(shuffle: random.Random, pair: Pair = pair) -> dict[str, Any]:
                    mpi = described.mpis[pair.mpi]
                    return configure_runs.measure(tools, mpi, systems, pair, limits, shuffle)

                add(f"configure-{pair.name}", of_pair, 1)
    elif what is What.PLANTED:
        limits = configure_runs.limits(output)
        with configure_pairs.mounted(tools, tmpfs, configure_planted.SYSTEMS) as systems:

            def of_planted(_: random.Random) -> dict[str, Any]:
                return configure_planted.measure_round(tools, described.mpis, systems, limits)

            add("planted", of_planted)
    elif what is What.TRACING:
        mpis = [described.mpis[key] for key in ("mpich", "openmpi")]

        def of_tracing(shuffle: random.Random) -> dict[str, Any]:
            return tracing_runs.measure_round(tools, mpis, tmpfs, local, shuffle)

        add("tracing", of_tracing)
    elif what is What.LOGS:
        logs = logs_runs.sample_logs(also or ())
        add("logs", lambda _: logs_runs.measure_round(tools, logs))
    print(methodology_page.write(output))
    print(striping_page.write(output))
    print(configure_page.write(output))
    print(tracing_page.write(output))
    print(logs_page.write(output))


def main() -> None:
    """Entry point. Exit status 130 after Ctrl-C, 1 where something cannot be measured."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(measure)
    try:
        app(standalone_mode=True)
    except (CannotBeDoneError, MeasuringError) as error:
        print(f"run.py: {error}", file=sys.stderr)
        sys.exit(1)

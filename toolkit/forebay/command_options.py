"""Options and arguments that several verbs have."""

import math
from pathlib import Path
from typing import Annotated

import typer

from forebay import output_paths

TAKES_COMMAND = {"allow_interspersed_args": False, "ignore_unknown_options": False}


def _mpi(value: str) -> str:
    if value not in ("auto", "mpich", "openmpi"):
        raise typer.BadParameter("write auto, mpich or openmpi")
    return value


def writable_file(path: Path | None) -> Path | None:
    if path is not None:
        output_paths.require_file(path)
    return path


def writable_directory(path: Path | None) -> Path | None:
    if path is not None:
        output_paths.require_directory(path)
    return path


CommandArgument = Annotated[
    list[str],
    typer.Argument(help="The command as you would start it, after '--'.", metavar="COMMAND"),
]
MpiOption = Annotated[
    str,
    typer.Option(
        "--mpi",
        metavar="auto|mpich|openmpi",
        callback=_mpi,
        help="The launcher's MPI, where 'mpiexec --version' does not tell.",
    ),
]
IntentOption = Annotated[
    Path | None,
    typer.Option("--intent", exists=True, dir_okay=False, help="Intent file (TOML)."),
]
HintOption = Annotated[
    list[str] | None,
    typer.Option("--hint", metavar="K=V", help="A hint, as in MPI_Info; may be repeated."),
]
JsonOption = Annotated[
    Path | None,
    typer.Option("--json", callback=writable_file, help="Write the result as JSON."),
]
RanksPerNodeOption = Annotated[
    int | None,
    typer.Option("--ranks-per-node", min=1, help="Treat each K ranks as a node (for tests)."),
]
IgnoreOption = Annotated[
    list[str] | None,
    typer.Option(
        "--ignore", metavar="PATTERN", help="Files not to compare ('*.log'); may be repeated."
    ),
]


def finite(value: float | None) -> float | None:
    """Refuses what is no number, which every comparison with a bound lets pass."""
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter("write a number")
    return value


# poll(2) takes no more milliseconds.
_TIMEOUT_MOST_S = (2**31 - 1) // 1000

TimeoutOption = Annotated[
    float | None,
    typer.Option(
        "--timeout",
        metavar="SECONDS",
        min=0.001,
        max=_TIMEOUT_MOST_S,
        callback=finite,
        help="End a run that takes longer.",
    ),
]
PrepareOption = Annotated[
    str | None,
    typer.Option(metavar="CMD", help="A shell command to run before each run, untimed."),
]


def _time(value: str) -> str:
    from forebay.comparison import QUANTITIES

    if value not in QUANTITIES:
        raise typer.BadParameter(f"write one of {', '.join(QUANTITIES)}")
    return value


TimeOption = Annotated[
    str,
    typer.Option(
        metavar="wall|write|read|data|mpiio",
        callback=_time,
        help="What is timed: the whole command, or the calls of MPI-IO as in 'compare'.",
    ),
]

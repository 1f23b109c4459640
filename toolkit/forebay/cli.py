"""The command line: options and their help. What a verb does is in the module of its name."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

import forebay
from forebay.errors import ForebayError
from forebay.settings import Settings, parse_hints

app = typer.Typer(
    name="forebay",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Makes unmodified MPI programs write and read faster, and proves it.",
    epilog="Start with: [bold]forebay doctor[/bold], then "
    "[bold]forebay compare -- mpiexec -n 4 ./your_program[/bold]",
)

_TAKES_COMMAND = {"allow_interspersed_args": False, "ignore_unknown_options": False}


def error_console() -> Console:
    """Everything of ours goes to standard error: standard output is the program's. Rich itself
    leaves colours out where that is no terminal or NO_COLOR is set."""
    console = Console(stderr=True, highlight=False, soft_wrap=False)
    if not console.is_terminal:
        console = Console(stderr=True, highlight=False, width=160)
    return console


def _mpi(value: str) -> str:
    if value not in ("auto", "mpich", "openmpi"):
        raise typer.BadParameter("write auto, mpich or openmpi")
    return value


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
    Path | None, typer.Option("--json", dir_okay=False, help="Write the result as JSON.")
]
RanksPerNodeOption = Annotated[
    int | None,
    typer.Option("--ranks-per-node", min=1, help="Treat each K ranks as a node (for tests)."),
]


@app.callback(invoke_without_command=True)
def _top(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        typer.echo(f"forebay {forebay.__version__}")
        raise typer.Exit


@app.command(
    "run",
    context_settings=_TAKES_COMMAND,
    epilog="Examples:\n\n"
    "  forebay run -- mpiexec -n 4 ./simulation input.nml\n\n"
    "  forebay run --hint cb_nodes=2 --json run.json -- srun -n 128 ./simulation\n\n"
    "  forebay run --intent checkpoint.toml -- mpirun -n 4 python3 analyse.py",
)
def run_command(
    command: CommandArgument,
    mpi: MpiOption = "auto",
    intent: IntentOption = None,
    hint: HintOption = None,
    observe: Annotated[
        bool, typer.Option("--observe", help="Only time the calls; the MPI does the I/O.")
    ] = False,
    json: JsonOption = None,
    ranks_per_node: RanksPerNodeOption = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print no summary.")] = False,
) -> None:
    """Run a program through Forebay and say what its I/O did.

    The exit status is the command's. The summary goes to standard error.
    """
    from forebay import run

    options = run.RunOptions(
        command=command,
        settings=Settings(mpi, intent, parse_hints(hint or []), ranks_per_node),
        observe=observe,
        json_path=json,
        quiet=quiet,
    )
    raise typer.Exit(run.run(options, error_console()))


def main() -> None:
    """Entry point of the `forebay` command."""
    try:
        app()
    except ForebayError as error:
        console = error_console()
        console.print(f"[bold red]forebay:[/bold red] {error.message}", soft_wrap=True)
        if error.advice:
            console.print(error.advice, soft_wrap=True)
        sys.exit(error.exit_code)

"""The command line: options and their help. What a verb does is in the module of its name."""

import codecs
import io
import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

import forebay
from forebay import (
    cache_cli,
    characterise_cli,
    configure_cli,
    evaluate_cli,
    intent_cli,
    report_cli,
    testbed_cli,
    top_cli,
    trace_cli,
)
from forebay.command_options import (
    TAKES_COMMAND,
    CommandArgument,
    HintOption,
    IgnoreOption,
    IntentOption,
    JsonOption,
    MpiOption,
    PrepareOption,
    RanksPerNodeOption,
    TimeoutOption,
    writable_directory,
    writable_file,
)
from forebay.errors import ForebayError, refused
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

_NAMES = "forebay.names"  # what of an output cannot be encoded
_PIPED_WIDTH = 160  # columns, where no terminal gives them


def _console(stderr: bool) -> Console:
    """Rich leaves colours out by itself where there is no terminal or NO_COLOR is set."""
    console = Console(stderr=stderr, highlight=False)
    if not console.is_terminal:
        console = Console(stderr=stderr, highlight=False, width=_PIPED_WIDTH)
    return console


def error_console() -> Console:
    """Errors, progress, and what must not mix with a program's own output."""
    return _console(stderr=True)


def output_console() -> Console:
    """What a command was asked for."""
    return _console(stderr=False)


@app.callback(invoke_without_command=True)
def _top(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        typer.echo(f"forebay {forebay.version()}")
        raise typer.Exit


@app.command(
    "run",
    context_settings=TAKES_COMMAND,
    epilog="Examples:\n\n"
    "  forebay run -- mpiexec -n 4 ./simulation input.nml\n\n"
    "  forebay run --hint cb_nodes=2 --json run.json -- srun -n 128 ./simulation\n\n"
    "  forebay run --intent checkpoint.toml -- mpirun -n 4 python3 analyse.py\n\n"
    "  forebay run --record --intent-out reads.toml -- python3 analyse.py",
)
def run_command(
    command: CommandArgument,
    mpi: MpiOption = "auto",
    intent: IntentOption = None,
    hint: HintOption = None,
    observe: Annotated[
        bool, typer.Option("--observe", help="Only time the calls; the MPI does the I/O.")
    ] = False,
    record: Annotated[
        bool,
        typer.Option("--record", help="Write down what the program reads by POSIX, for a replay."),
    ] = False,
    intent_out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            callback=writable_file,
            help="Where --record leaves the intent file.  [default: reads.toml]",
        ),
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(
            "--trace",
            metavar="DIR",
            help="Also write down each call, into a new trace. Before '--' DIR may be left out: "
            "PROGRAM.trace.",
        ),
    ] = None,
    pages: Annotated[
        bool,
        typer.Option(
            "--pages",
            help="With --record, or an intent file: see reads in the kernel's page cache, also of "
            "static and Go programs and of mappings. Takes root.",
        ),
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
        record_to=(intent_out or Path("reads.toml")) if record or intent_out else None,
        trace_to=trace,
        pages=pages,
        json_path=json,
        quiet=quiet,
    )
    raise typer.Exit(run.run(options, error_console()))


@app.command(
    "trace",
    context_settings=TAKES_COMMAND,
    epilog="Examples:\n\n"
    "  forebay trace -- mpiexec -n 4 ./simulation input.nml\n\n"
    "  forebay trace -o reader.trace -- python3 analyse.py\n\n"
    "  forebay trace --spills reader.trace.spills -o reader.trace",
)
def trace_command(
    command: Annotated[
        list[str] | None,
        typer.Argument(help="The command as you would start it, after '--'.", metavar="COMMAND"),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help="The trace directory, a new one.  [default: PROGRAM.trace]",
        ),
    ] = None,
    spills: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            exists=True,
            file_okay=False,
            help="Run nothing: make a trace of what an interrupted one left.",
        ),
    ] = None,
    mpi: MpiOption = "auto",
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print no summary.")] = False,
) -> None:
    """Run a program as it is and write down each call of its I/O.

    Forebay's engine stays out. The exit status is the command's, or 1 if there is no trace of a
    command that succeeded. The summary goes to standard error.
    """
    from forebay import trace_run

    if spills is not None:
        directory = out or Path(spills.name.removesuffix(".spills"))
        trace_run.require_over(spills)
        captured = trace_run.convert(spills, directory)
        for line in trace_run.summary(captured, directory):
            error_console().print(line, markup=False, soft_wrap=True)
        return
    if not command:
        raise ForebayError("there is no command", "Write it after '--'.")
    options = trace_run.TraceOptions(command, out, mpi, quiet)
    raise typer.Exit(trace_run.trace(options, error_console()))


@app.command(
    "compare",
    context_settings=TAKES_COMMAND,
    epilog="Examples:\n\n"
    "  forebay compare -- mpiexec -n 2 ./simulation out.dat\n\n"
    "  forebay compare -n 10 --limit --json result.json -- mpiexec -n 2 ./simulation out.dat\n\n"
    "  forebay compare --prepare 'cp start.h5 work.h5' -- mpiexec -n 2 ./update work.h5\n\n"
    "  forebay compare --stock-hints 'cb_nodes=4;cb_buffer_size=16777216' -- srun ./simulation",
)
def compare_command(
    command: CommandArgument,
    pairs: Annotated[int, typer.Option("--pairs", "-n", min=1, help="Timed pairs.")] = 6,
    prepare: PrepareOption = None,
    limit: Annotated[
        bool, typer.Option("--limit", help="Measure the physical limit beside each pair.")
    ] = False,
    json: JsonOption = None,
    report: Annotated[
        Path | None,
        typer.Option(
            callback=writable_directory,
            help="Write report.md and a picture into this directory.",
        ),
    ] = None,
    mpi: MpiOption = "auto",
    intent: IntentOption = None,
    hint: HintOption = None,
    stock_hints: Annotated[
        list[str] | None,
        typer.Option(metavar="K=V;...", help="Hints for the stock MPI (ROMIO's names)."),
    ] = None,
    ranks_per_node: RanksPerNodeOption = None,
    ignore: IgnoreOption = None,
    timeout: TimeoutOption = None,
    seed: Annotated[int, typer.Option(help="Seed of the shuffled order.")] = 1,
) -> None:
    """Time a program with the stock MPI and through Forebay, and compare what it wrote.

    Runs one untimed pair and then N timed ones, in shuffled order. Files that the program creates
    through MPI are removed before each run; files that were there before are never removed.

    Compared byte for byte are all files written through MPI, and those written otherwise in the
    working directory, the directories that the command names, and those of the MPI files. Written
    without MPI and different from run to run of the stock MPI too, as logs are, a file is named and
    does not count.

    Exit status: 0 if no file differs, 1 if one does (it is named) or if the program fails only
    under Forebay, 2 for wrong usage, 3 if it fails without Forebay, 130 if interrupted.
    """
    from forebay import compare, compare_report

    options = compare.CompareOptions(
        command=command,
        settings=Settings(mpi, intent, parse_hints(hint or []), ranks_per_node),
        pairs=pairs,
        prepare=prepare,
        measure_limit=limit,
        stock_hints=parse_hints(stock_hints or []),
        ignore=ignore or [],
        timeout_s=timeout,
        seed=seed,
    )
    result = compare.Campaign(options, error_console()).run()
    written = []
    if json is not None:  # first: the terminal may be gone by now
        compare.write_json(result, json)
        written.append(f"result: {json}")
    if report is not None:
        written.append(f"report: {compare_report.write_report(result, report)}")
    console = output_console()
    compare_report.show(console, result)
    for line in written:
        console.print(line, markup=False, soft_wrap=True)
    raise typer.Exit(compare.exit_code(result))


@app.command(
    "doctor",
    epilog="Examples:\n\n  forebay doctor\n\n  forebay doctor /scratch/me/run1\n\n"
    "  forebay doctor --json",
)
def doctor_command(
    path: Annotated[Path, typer.Argument(help="Where your program writes.")] = Path(),
    json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Check the MPIs, the library, a path and this machine, and say how to repair what fails.

    Exit status: 0 if nothing failed, else 1.
    """
    import json as json_format

    from forebay import doctor

    checks = doctor.examine(path)
    if json:
        typer.echo(json_format.dumps(doctor.as_json(checks), indent=2))
    else:
        doctor.show(output_console(), checks)
    raise typer.Exit(0 if doctor.healthy(checks) else 1)


app.add_typer(cache_cli.app, name="cache")
app.add_typer(characterise_cli.app, name="characterise")
app.add_typer(configure_cli.app)
app.add_typer(evaluate_cli.app)
app.add_typer(intent_cli.app, name="intent")
app.add_typer(report_cli.app)
app.add_typer(testbed_cli.app, name="testbed")
app.add_typer(top_cli.app)
app.add_typer(trace_cli.app)


def main() -> None:
    """Entry point of the `forebay` command."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        codecs.register_error(_NAMES, _name_bytes)
        sys.stdout.reconfigure(errors=_NAMES)
    try:
        _run_app()
    finally:
        _give_up_full_streams()


def _name_bytes(error: UnicodeError) -> tuple[str | bytes, int]:
    """Names are any bytes, and are shown as they are; what none can hold (JSON can) is escaped."""
    try:
        return codecs.lookup_error("surrogateescape")(error)
    except UnicodeError:
        return codecs.lookup_error("backslashreplace")(error)


def _give_up_full_streams() -> None:
    """What a full disk did not take is lost. Python would try it once more at its end, and exit
    with a status of its own."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:  # it may have been closed before we were started
                stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _run_app() -> None:
    try:
        app()
    except ForebayError as error:
        _tell(error.message, error.advice)
        sys.exit(error.exit_code)
    except OSError as error:
        told = refused(error)
        _tell(told.message, told.advice)
        sys.exit(told.exit_code)


def _tell(message: str, advice: str = "") -> None:
    """Says what went wrong. Paths and commands may hold what Rich would take for markup."""
    console = error_console()
    console.print(Text.assemble(("forebay:", "bold red"), " ", message), soft_wrap=True)
    if advice:
        console.print(advice, markup=False, soft_wrap=True)

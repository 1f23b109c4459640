"""The command line of `forebay characterise`: options and their help."""

from pathlib import Path
from typing import Annotated

import typer

from forebay.command_options import MpiOption
from forebay.errors import ForebayError

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="What an application's I/O is like, and what a system can do.",
    epilog="Examples:\n\n  forebay characterise app job.trace\n\n"
    "  forebay characterise system --quick /scratch/me",
)


@app.command(
    "app",
    epilog="Examples:\n\n  forebay characterise app job.trace\n\n"
    "  forebay characterise app job.trace --processes --json pattern.json\n\n"
    "  forebay import job.darshan -o job.trace && forebay characterise app job.trace",
)
def app_command(
    directory: Annotated[
        Path, typer.Argument(exists=True, help="A trace directory.", metavar="DIR")
    ],
    json: Annotated[Path | None, typer.Option("--json", help="Write all of it as JSON.")] = None,
    processes: Annotated[bool, typer.Option("--processes", help="Show each process, too.")] = False,
    phases: Annotated[int, typer.Option(min=0, metavar="N", help="Phases to show.")] = 10,
    all_files: Annotated[
        bool,
        typer.Option("--all-files", help="Files of the system (/proc, ...) and of the MPI, too."),
    ] = False,
    pause: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Pauses from this on part two bursts.  [default: as found]"
        ),
    ] = None,
) -> None:
    """Say what pattern the I/O of a traced run has, and of which phases it is made.

    The pattern has five dimensions: operation, request size, spatial, temporal and repetition. A
    phase is what processes do alike and again and again, with its offsets as a formula.

    Exit status: 0, 1 if the trace is damaged, 2 for wrong usage.
    """
    import json as json_format

    from forebay import output_paths
    from forebay.characterise import app as application
    from forebay.characterise import app_report
    from forebay.cli import output_console
    from forebay.trace import arrow_alone
    from forebay.trace.directory import Trace
    from forebay.units import parse_seconds

    if json is not None:
        output_paths.require_file(json)
    arrow_alone.leave_pandas_out()
    pause_s = None if pause is None else parse_seconds(pause)
    found = application.characterise(Trace(directory), pause_s, all_files)
    if json is not None:
        output_paths.write_text(json, json_format.dumps(found.as_json(), indent=2))
    app_report.show(output_console(), found, phases, processes)
    if json is not None:
        output_console().print(f"pattern: {json}", markup=False, soft_wrap=True)


@app.command(
    "system",
    epilog="Examples:\n\n  forebay characterise system /scratch/me /tmp\n\n"
    "  forebay characterise system /scratch/me --full -o scratch.json\n\n"
    "  forebay characterise system --again       (an hour later: adds to system.json)\n\n"
    "  forebay characterise system /scratch/me --launcher 'srun -N 2 -n 8'\n\n"
    "  forebay characterise system --show",
)
def system_command(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PATH...",
            help="A directory of each file system to measure; with --again those of the file, if "
            "none is named.",
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="At most five minutes.  [default]")
    ] = False,
    full: Annotated[
        bool, typer.Option("--full", help="More sizes and processes, longer runs, larger files.")
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Add a campaign to the file that is there.")
    ] = False,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="The system file.")
    ] = Path("system.json"),
    processes: Annotated[
        int | None,
        typer.Option(
            "--processes",
            "-p",
            min=1,
            metavar="N",
            help="That read and write together.  [default: the cores, 8 at most]",
        ),
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(min=4, metavar="N", help="Of all measurements.  [default: 6; 8 with --full]"),
    ] = None,
    launcher: Annotated[
        str | None,
        typer.Option(
            metavar="WORDS",
            help="What starts MPI ranks, with their number, as to measure between hosts.  "
            "[default: the installed mpiexec, on this host]",
        ),
    ] = None,
    mpi: MpiOption = "auto",
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="Seed of the order and of the data.  [default: a fresh one]"),
    ] = None,
    show: Annotated[
        bool, typer.Option("--show", help="Measure nothing: print what the file has.")
    ] = False,
) -> None:
    """Measure what devices, file systems, MPI-IO, network and memory can do.

    Files are made in a hidden directory of each PATH and removed at the end. They take a small part
    of the free space, which is printed. Every measurement is repeated in rounds of shuffled order.
    Ctrl-C keeps the rounds that were finished, if they are four or more.

    Exit status: 0, 1 if a place is too full, nothing could be measured or the file is damaged, 2
    for wrong usage, 130 if interrupted.
    """
    import secrets

    from forebay import output_paths, system_file
    from forebay.characterise.system import campaign, scale, system_report
    from forebay.cli import error_console, output_console

    if show:
        if not out.exists():
            raise ForebayError(f"{out} is not there", "-o names the file to show.")
        system_report.show(output_console(), system_file.load(out).document)
        return
    if quick and full:
        raise ForebayError("--quick and --full exclude each other", "Choose one.")
    output_paths.require_file(out)
    options = campaign.SystemOptions(
        paths=paths or [],
        out=out,
        seed=secrets.randbelow(2**32) if seed is None else seed,
        scale=scale.FULL if full else scale.QUICK,
        again=again,
        processes=processes,
        rounds=rounds,
        mpi=mpi,
        launcher=launcher,
    )
    outcome = campaign.Campaign(options, error_console()).run()
    console = output_console()
    if outcome.document is not None:
        system_report.show(console, outcome.document)
    for note in outcome.notes:
        console.print(f"note: {note}", markup=False, soft_wrap=True, style="dim")
    if outcome.document is not None:
        console.print(f"system: {out}", markup=False, soft_wrap=True)
    if outcome.interrupted:
        kept = "the rounds that were finished are kept" if outcome.document else "nothing is kept"
        console.print(f"interrupted: {kept}", style="yellow")
        raise typer.Exit(130)

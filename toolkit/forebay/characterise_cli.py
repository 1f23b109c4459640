"""The command line of `forebay characterise`: options and their help."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="What an application's I/O is like.",
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
        bool, typer.Option("--all-files", help="Files of the system (/proc, /usr, ...), too.")
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
    from forebay.trace.directory import Trace
    from forebay.units import parse_seconds

    if json is not None:
        output_paths.require_file(json)
    pause_s = None if pause is None else parse_seconds(pause)
    found = application.characterise(Trace(directory), pause_s, all_files)
    app_report.show(output_console(), found, phases, processes)
    if json is not None:
        json.write_text(json_format.dumps(found.as_json(), indent=2), encoding="utf-8")
        output_console().print(f"pattern: {json}", markup=False, soft_wrap=True)

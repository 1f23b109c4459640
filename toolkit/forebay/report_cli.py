"""The command line of `forebay report`: options and their help."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer()


@app.command(
    "report",
    epilog="Examples:\n\n  forebay report job.trace\n\n"
    "  forebay report job.trace -o job.html --system system.json\n\n"
    "  forebay import job.darshan -o job.trace && forebay report job.trace",
)
def report_command(
    directory: Annotated[
        Path, typer.Argument(exists=True, help="A trace directory.", metavar="RUN")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The page.")] = Path(
        "report.html"
    ),
    system: Annotated[
        Path | None,
        typer.Option(
            exists=True, dir_okay=False, metavar="FILE", help="Limits of the system (system.json)."
        ),
    ] = None,
    json: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the findings as JSON.")
    ] = None,
) -> None:
    """Say what a run's I/O cost and what of it could be had back: a page, and a summary.

    The page is one file of HTML that needs no network and no script.

    Exit status: 0, 1 if the trace or the system file is damaged, 2 for wrong usage.
    """
    import json as json_format

    from forebay import output_paths, system_file
    from forebay.cli import output_console
    from forebay.report import contents, page, terminal
    from forebay.trace.directory import Trace

    for path in (out, json):
        if path is not None:
            output_paths.require_file(path)
    limits = None if system is None else system_file.load(system)
    found = contents.examine(Trace(directory), limits)
    console = output_console()
    terminal.show(console, found)
    page.write(found, out)
    console.print(f"report: {out}", markup=False, soft_wrap=True)
    if json is not None:
        json.write_text(json_format.dumps(found.as_json(), indent=2), encoding="utf-8")
        console.print(f"findings: {json}", markup=False, soft_wrap=True)

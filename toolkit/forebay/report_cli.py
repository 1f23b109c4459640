"""The command line of `forebay report`: options and their help."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forebay.errors import ForebayError

if TYPE_CHECKING:
    from rich.console import Console

app = typer.Typer()


@app.command(
    "report",
    epilog="Examples:\n\n  forebay report job.trace\n\n"
    "  forebay report job.trace -o job.html --system system.json\n\n"
    "  forebay evaluate --json e.json -- mpiexec -n 4 ./simulation && forebay report e.json\n\n"
    "  forebay import job.darshan -o job.trace && forebay report job.trace",
)
def report_command(
    source: Annotated[
        Path,
        typer.Argument(
            exists=True,
            help="A trace directory, or what 'evaluate --json' wrote.",
            metavar="RUN|CAMPAIGN",
        ),
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
    """Say what a run's I/O cost and what of it could be had back, or what a campaign showed.

    The page is one file of HTML that needs no network and no script. The terminal has a summary.

    Exit status: 0, 1 if what is read is damaged, 2 for wrong usage.
    """
    import json as json_format

    from forebay import output_paths
    from forebay.cli import output_console

    for path in (out, json):
        if path is not None:
            output_paths.require_file(path)
    console = output_console()
    if source.is_dir():
        content = _report_run(source, out, system, console)
    elif system is None:
        content = _report_campaign(source, out, console)
    else:
        raise ForebayError(
            f"{source} is no trace directory", "--system is for the report of a run."
        )
    console.print(f"report: {out}", markup=False, soft_wrap=True)
    if json is not None:
        json.write_text(json_format.dumps(content, indent=2), encoding="utf-8")
        console.print(f"findings: {json}", markup=False, soft_wrap=True)


def _report_run(
    directory: Path, out: Path, system: Path | None, console: "Console"
) -> dict[str, Any]:
    from forebay import system_file
    from forebay.report import contents, page, terminal
    from forebay.trace.directory import Trace

    limits = None if system is None else system_file.load(system)
    found = contents.examine(Trace(directory), limits)
    terminal.show(console, found)
    page.write(found, out)
    return found.as_json()


def _report_campaign(file: Path, out: Path, console: "Console") -> dict[str, Any]:
    from forebay.evaluate import stored
    from forebay.report import campaign, campaign_page, campaign_terminal

    found = campaign.examine(file, stored.load(file))
    campaign_terminal.show(console, found)
    campaign_page.write(found, out)
    return found.as_json()

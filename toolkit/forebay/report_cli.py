"""The command line of `forebay report`: options and their help."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forebay.errors import ForebayError

if TYPE_CHECKING:
    from rich.console import Console

# The findings as JSON, and what shows them on a terminal.
_Reported = tuple[dict[str, Any], Callable[["Console"], None]]

app = typer.Typer()


@app.command(
    "report",
    epilog="Examples:\n\n  forebay report job.trace\n\n"
    "  forebay report job.trace -o job.html --system system.json\n\n"
    "  forebay evaluate --json e.json -- mpiexec -n 4 ./simulation && forebay report e.json\n\n"
    "  forebay report configure.sqlite -o search.html\n\n"
    "  forebay import job.darshan -o job.trace && forebay report job.trace",
)
def report_command(
    source: Annotated[
        Path,
        typer.Argument(
            exists=True,
            help="A trace directory, what 'evaluate --json' wrote, or a search: its directory, its "
            "history, or what 'configure --json' wrote.",
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

    Of a search for settings it tells every run, and what evaluations beside it showed.

    The page is one file of HTML that needs no network, and reads without JavaScript. The terminal
    has a summary.

    Exit status: 0, 1 if what is read is damaged, 2 for wrong usage.
    """
    import json as json_format

    from forebay import output_paths
    from forebay.cli import output_console

    written = [out, *([json] if json else [])]
    for path in written:
        output_paths.require_file(path)
        output_paths.require_other(path, [source, *([system] if system else [])])
    output_paths.require_apart(written)
    content, show = _reporter(source, system)(source, out)
    if json is not None:
        output_paths.write_text(json, json_format.dumps(content, indent=2))
    console = output_console()  # last: whoever reads it may end before
    show(console)
    console.print(f"report: {out}", markup=False, soft_wrap=True)
    if json is not None:
        console.print(f"findings: {json}", markup=False, soft_wrap=True)


def _reporter(source: Path, system: Path | None) -> Callable[[Path, Path], _Reported]:
    """Who reports what `source` is: a run, a search or an evaluation. Each writes the page."""
    from forebay.trace.directory import RUN_FILE

    if (source / RUN_FILE).exists():  # what else there is takes long to import
        return partial(_report_run, system)
    from forebay.configure import stored
    from forebay.report import search

    if source.is_dir() and search.source_in(source) is None:
        return partial(_report_run, system)
    if system is not None:
        raise ForebayError(
            f"{source} is no trace directory", "--system is for the report of a run."
        )
    is_search = source.is_dir() or stored.is_one(source)
    return _report_search if is_search else _report_campaign


def _report_run(system: Path | None, directory: Path, out: Path) -> _Reported:
    from forebay import system_file
    from forebay.report import contents, page, terminal
    from forebay.trace import arrow_alone
    from forebay.trace.directory import Trace

    arrow_alone.leave_pandas_out()
    limits = None if system is None else system_file.load(system)
    found = contents.examine(Trace(directory), limits)
    page.write(found, out)
    return found.as_json(), lambda console: terminal.show(console, found)


def _report_campaign(file: Path, out: Path) -> _Reported:
    from forebay.evaluate import stored
    from forebay.report import campaign, campaign_page, campaign_terminal

    found = campaign.examine(file, stored.load(file))
    campaign_page.write(found, out)
    return found.as_json(), lambda console: campaign_terminal.show(console, found)


def _report_search(source: Path, out: Path) -> _Reported:
    from forebay.configure import stored
    from forebay.report import search, search_page, search_terminal

    found = search.examine(stored.load(search.source_in(source) or source))
    search_page.write(found, out)
    return found.as_json(), lambda console: search_terminal.show(console, found)

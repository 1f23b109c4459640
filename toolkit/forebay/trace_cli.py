"""The command line of what makes trace directories of other things, and other things of them."""

import math
import re
from pathlib import Path
from typing import Annotated

import typer

from forebay.errors import ForebayError
from forebay.units import parse_seconds

app = typer.Typer()


@app.command(
    "import",
    epilog="Examples:\n\n  forebay import job.darshan -o job.trace\n\n"
    "  forebay import job.darshan -o job.trace && forebay characterise app job.trace",
)
def import_command(
    log: Annotated[Path, typer.Argument(exists=True, help="A log of Darshan.", metavar="LOG")],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="The trace directory, a new one.")
    ],
) -> None:
    """Make a trace directory of a Darshan log.

    Each read and write is in it where the log has extended traces (DXT), else the sums that Darshan
    counted.

    Exit status: 0, 1 if the log is damaged or none, 2 for wrong usage.
    """
    from forebay.cli import output_console
    from forebay.trace import darshan_import
    from forebay.units import show_count

    imported = darshan_import.import_log(log, out)
    console = output_console()
    calls = f"{show_count(imported.calls)} calls" if imported.calls else "no single calls"
    console.print(
        f"{out}: {calls}, {show_count(imported.counters)} records of counters, "
        f"{show_count(imported.files)} names",
        markup=False,
        soft_wrap=True,
    )
    for note in imported.notes:
        console.print(f"note: {note}", markup=False, soft_wrap=True)


def _window(text: str | None) -> tuple[float, float]:
    """Seconds of `START:END`, either of which may be missing; a bare number means seconds."""
    begin, colon, end = (text or ":").partition(":")

    def seconds(word: str, missing: float) -> float:
        if not word.strip():
            return missing
        bare = re.fullmatch(r"[0-9.]+", word.strip()) is not None
        try:
            return parse_seconds(f"{word}s" if bare else word)
        except ForebayError as error:
            raise typer.BadParameter(f"{error.message}; write 2.5, 800ms or 2.5s") from error

    window = seconds(begin, 0.0), seconds(end, math.inf)
    if not colon or window[1] < window[0]:
        raise typer.BadParameter("write START:END, as 2.5:4, 800ms: or :10")
    return window


@app.command(
    "export",
    epilog="Examples:\n\n  forebay export job.trace --perfetto job.json.gz --window 10:12.5\n\n"
    "  forebay export job.trace --darshan job.darshan && python -m darshan summary job.darshan",
)
def export_command(
    directory: Annotated[
        Path, typer.Argument(exists=True, help="A trace directory.", metavar="DIR")
    ],
    perfetto: Annotated[
        Path | None,
        typer.Option(
            metavar="OUT", help="JSON for ui.perfetto.dev; compressed if it ends with .gz."
        ),
    ] = None,
    darshan: Annotated[
        Path | None, typer.Option(metavar="OUT", help="A log for Darshan's tools.")
    ] = None,
    window: Annotated[
        str | None,
        typer.Option(metavar="START:END", help="Calls of this time alone (--perfetto), in s."),
    ] = None,
) -> None:
    """Give a trace to other tools: Perfetto's timeline, Darshan's reports.

    Exit status: 0, 1 if the trace is damaged, 2 for wrong usage.
    """
    from forebay import output_paths
    from forebay.cli import output_console
    from forebay.units import show_count

    if perfetto is None and darshan is None:
        raise typer.BadParameter("name what to write: --perfetto OUT or --darshan OUT")
    if window is not None and perfetto is None:
        raise typer.BadParameter("--window is for --perfetto: Darshan's counters are of all calls")
    calls = _window(window)
    written = [out for out in (perfetto, darshan) if out is not None]
    for out in written:
        output_paths.require_file(out)
        output_paths.require_other(out, [directory])
    output_paths.require_apart(written)
    from forebay.trace.directory import Trace

    trace = Trace(directory)
    console = output_console()
    if perfetto is not None:
        from forebay.trace import perfetto_export

        count = perfetto_export.export(trace, perfetto, calls)
        console.print(f"{perfetto}: {show_count(count)} calls", markup=False, soft_wrap=True)
    if darshan is not None:
        from forebay.trace import darshan_export

        notes = darshan_export.export(trace, darshan)
        console.print(f"{darshan}: written", markup=False, soft_wrap=True)
        for note in notes:
            console.print(f"note: {note}", markup=False, soft_wrap=True)

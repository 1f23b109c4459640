"""The command line of what makes trace directories of other things, and other things of them."""

from pathlib import Path
from typing import Annotated

import typer

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

"""The command line of `forebay top`."""

import json as json_format
from typing import Annotated

import typer

from forebay.command_options import finite

_DEFAULT_WINDOW_S = 5
app = typer.Typer()


@app.command(
    "top",
    epilog="Examples:\n\n  forebay trace -o job.trace -- mpiexec -n 4 ./simulation &\n\n"
    "  forebay top\n\n  forebay top job.trace\n\n  forebay top --sort io $(pgrep simulation)\n\n"
    "  forebay top --once --filter 0-7 /scratch/me/job.trace.spills\n\n"
    "  forebay top --json job.trace | jq '.processes[] | {rank, io_share}'",
)
def top_command(
    where: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[DIR|PID...]",
            help="The trace that is being made, its directory of spills, or processes of the run "
            "on this host. Default: what of yours is traced on this host.",
        ),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="One picture as text.")] = False,
    json: Annotated[bool, typer.Option("--json", help="One picture as JSON.")] = False,
    sort: Annotated[
        str,
        typer.Option(metavar="COLUMN", help="By which column the processes are sorted."),
    ] = "rank",
    wanted: Annotated[
        str,
        typer.Option(
            "--filter", metavar="TEXT", help="Ranks (0-3,7), or a part of program, host or state."
        ),
    ] = "",
    window: Annotated[
        int, typer.Option(min=1, max=60, metavar="SECONDS", help="Of which rates are the means.")
    ] = _DEFAULT_WINDOW_S,
    interval: Annotated[
        float,
        typer.Option(min=0.2, callback=finite, metavar="SECONDS", help="Between two pictures."),
    ] = 1.0,
) -> None:
    """Show what the processes of a running job do for I/O now: per rank, and per file.

    The job is one that 'forebay trace' or 'forebay run --trace' started. What is not on a
    terminal, --once and --json give one picture. It only reads, and the job does not notice.

    Exit status: 0, 1 if what is there cannot be read, 2 for wrong usage.
    """
    from forebay.cli import error_console, output_console
    from forebay.top import plain_text, run_place
    from forebay.top.arrangement import Arrangement
    from forebay.top.columns import column_keys
    from forebay.top.live_run import LiveRun

    if sort not in column_keys():
        raise typer.BadParameter(f"there is no column '{sort}'; write {', '.join(column_keys())}")
    run = LiveRun(run_place.find(where or []), window)
    console = output_console()
    if not (once or json or not console.is_terminal):
        from forebay.top.screen import Top

        # A long run is caught up with bit by bit, beside what is new.
        screen = Top(lambda: run.look(most_s=0.5), interval, sort, wanted)
        screen.run()
        if screen.failure is not None:
            raise screen.failure
        return
    with error_console().status("") as status:
        picture = run.look(most_s=1.0)
        while picture.behind_bytes:
            status.update(plain_text.notes(picture)[0])
            picture = run.look(most_s=1.0)
    if json:
        typer.echo(json_format.dumps(picture.as_json(), indent=2))
    else:
        plain_text.show(console, picture, Arrangement(sort, wanted=wanted))

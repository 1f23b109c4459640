"""The command line of `forebay cache`: options, their help, and questions."""

import enum
import json as json_format
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from forebay.command_options import finite
from forebay.errors import ForebayError

if TYPE_CHECKING:
    from forebay.cache import Entry, Selection, Survey

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Write-behind logs of this node: what is in them and in no file yet, and what is left of "
    "programs that died.",
    epilog="Examples:\n\n  forebay cache ls\n\n  forebay cache recover",
)

WhereArgument = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="[WHERE]...",
        help="Files whose logs are meant, or node-local directories to look in. Default: all "
        "node-local storage.",
    ),
]
LogOption = Annotated[
    list[str] | None,
    typer.Option("--log", metavar="NAME", help="Only the log of this name; may be repeated."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="As JSON, to standard output.")]


def _consoles() -> tuple[Console, Console]:
    """For what was asked for, and for questions, progress and errors."""
    from forebay.cli import error_console, output_console

    return output_console(), error_console()


def _print_json(content: object) -> None:
    typer.echo(json_format.dumps(content, indent=2))


@app.command(
    "ls",
    epilog="Examples:\n\n  forebay cache ls\n\n  forebay cache ls /scratch/me/run1/out.h5\n\n"
    "  forebay cache ls --json /local/nvme",
)
def ls_command(
    where: WhereArgument = None, log: LogOption = None, json: JsonOption = False
) -> None:
    """List logs: their files, jobs and ages, what is in no file yet, and what state they are in."""
    _survey(where, log, json, verify=False)


@app.command("verify", epilog="Example:\n\n  forebay cache verify /scratch/me/run1/out.h5")
def verify_command(
    where: WhereArgument = None, log: LogOption = None, json: JsonOption = False
) -> None:
    """List logs with every checksum looked at. Nothing is changed.

    Logs that a running program writes are listed, not judged. Exit status: 1 if any of what was
    promised to be there is damaged, unreadable or lost, or what was named could not be looked at,
    else 0.
    """
    _survey(where, log, json, verify=True)


def _survey(where: list[Path] | None, log: list[str] | None, json: bool, verify: bool) -> None:
    from forebay import cache, cache_report

    output, errors = _consoles()
    selection = cache.select(where or [], log or [])
    with cache_report.progress_bars(errors) as progress:
        found = cache.survey(selection, verify, progress)
    if json:
        _print_json(found.as_json())
    else:
        cache_report.show_survey(output, found)
    is_lost = any(notice["state"] == "lost" for notice in found.missing)
    is_unseen = bool(_told_to_look(selection, found.problems))
    is_unknown = _tell_unknown(errors, selection, found)
    is_wrong = found.in_state("damaged", "unreadable") or is_lost or is_unseen or is_unknown
    if verify and is_wrong:
        raise typer.Exit(1)


def _tell_unknown(console: Console, selection: "Selection", found: "Survey") -> bool:
    """Says which named files are not there and are in no log, nor in a notice, and which named logs
    were not found: misspelt, it may be. Whether there are any."""
    from forebay.json_document import shown

    entries = [*found.logs, *found.missing]
    files = {entry["file"] for entry in entries}
    names = {entry["name"] for entry in entries}
    unknown = [
        f"{path} does not exist, and no log that was found is of it"
        for path in selection.files
        if not path.exists() and shown(os.path.realpath(path)) not in files
    ]
    unknown += [f"no log {name} was found" for name in selection.names if name not in names]
    for what in unknown:
        console.print(f"forebay: {what}", markup=False, soft_wrap=True)
    return bool(unknown)


def _drop_or_replay(value: str | None) -> str | None:
    if value not in (None, "drop", "replay"):
        raise typer.BadParameter("write drop or replay")
    return value


def _recovery_examples(verb: str) -> str:
    return (
        f"Examples:\n\n  forebay cache {verb}\n\n"
        f"  forebay cache {verb} --incomplete drop /scratch/me/run1/out.h5\n\n"
        f"  forebay cache {verb} --lost node17 /rescued/node16 /rescued/node18"
    )


@app.command("recover", epilog=_recovery_examples("recover"))
@app.command("flush", epilog=_recovery_examples("flush"))
def recover_command(
    where: WhereArgument = None,
    incomplete: Annotated[
        str | None,
        typer.Option(
            metavar="drop|replay",
            callback=_drop_or_replay,
            help="What to do with an access that its program did not finish. Default: ask.",
        ),
    ] = None,
    overtaken: Annotated[
        str | None,
        typer.Option(
            metavar="drop|replay",
            callback=_drop_or_replay,
            help="What to do with logs that were left before other programs opened the file to "
            "write. Default: leave the file as it is.",
        ),
    ] = None,
    skip_damage: Annotated[
        bool, typer.Option("--skip-damage", help="Recover what is intact of damaged logs.")
    ] = False,
    partial: Annotated[
        bool, typer.Option("--partial", help="Also files of which other logs are not here.")
    ] = False,
    lost: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NODE|LOG|all",
            help="Other nodes, or logs of theirs, that are lost for good: rebuild the logs from "
            "what protects them. May be repeated.",
        ),
    ] = None,
    into: Annotated[
        Path | None,
        typer.Option(
            dir_okay=False, help="Into this file, new or empty, for one that is gone or replaced."
        ),
    ] = None,
    further: Annotated[
        bool,
        typer.Option(
            "--further",
            help="The file of --into was begun by a recovery: one that was interrupted, or that of "
            "other nodes' logs.",
        ),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Bring to their files what logs hold whose programs have ended, and remove the logs.

    It may be interrupted and run again. 'recover' and 'flush' are the same. Exit status: 1 if
    something that can be recovered was not, or WHERE names a file that a running program writes, or
    one that is not there and that no log is of.
    """
    from forebay import cache, cache_report

    output, errors = _consoles()
    selection = cache.select(where or [])
    if into is not None and len(selection.files) != 1:
        raise ForebayError(
            "--into needs the one file whose logs are meant",
            "forebay cache recover --into NEW OLD",
        )
    if further and into is None:
        raise ForebayError(
            "--further is about the file of --into",
            "forebay cache recover --into NEW --further OLD",
        )
    is_unknown = False
    if incomplete is None or lost or not selection.files_exist:
        found = cache.survey(selection)
        if incomplete is None:
            incomplete = _ask_about_incomplete(errors, found)
        is_unknown = _tell_unknown(errors, selection, found)
        for word in found.names_nothing(lost or []):
            errors.print(
                f"forebay: --lost {word} names nothing here: {found.what_may_be_lost()}",
                markup=False,
                soft_wrap=True,
            )
    options = cache.RecoverOptions(
        selection, incomplete, overtaken, skip_damage, partial, into, further, lost or []
    )
    with cache_report.progress_bars(errors) as progress:
        outcome = cache.recover(options, progress)
    if json:
        _print_json(outcome.as_json())
    else:
        cache_report.show_recovery(output, outcome)
    # Of a directory only what programs have left is meant.
    fine = {"recovered"} if selection.files else {"recovered", "in use"}
    left = [entry for entry in outcome.files if entry["state"] not in fine]
    if left or outcome.unreadable or is_unknown or _told_to_look(selection, outcome.problems):
        raise typer.Exit(1)


def _told_to_look(selection: "Selection", problems: "list[Entry]") -> "list[Entry]":
    """Those of what was named. Of all storage of the node, some may be for others alone, and hold
    no log of ours."""
    from forebay import filesystem

    if selection.explicit:
        return problems
    places = {place.path for place in filesystem.local_paths()}
    return [problem for problem in problems if problem["where"] not in places]


class _Unfinished(enum.Enum):
    """What may be answered about an access that its program did not finish."""

    drop = "drop"
    replay = "replay"
    stop = "stop"


def _ask_about_incomplete(console: Console, found: "Survey") -> str | None:
    from forebay import cache_report

    logs = [log for log in found.logs if not log["in_use"] and log.get("incomplete_records")]
    if not logs:
        return None
    if not sys.stdin.isatty():
        raise ForebayError(
            f"{len(logs)} logs end with an access that their program did not finish: "
            + ", ".join(sorted({log["file"] for log in logs})),
            "Say --incomplete drop to leave those bytes out, or --incomplete replay to write what "
            "is there of them. Nothing was changed.",
            exit_code=1,
        )
    cache_report.show_incomplete(console, logs)
    answers = ", ".join(answer.value for answer in _Unfinished)
    answer: _Unfinished = typer.prompt(
        f"Drop those bytes, replay what is there of them, or stop? ({answers})",
        type=_Unfinished,
        default=_Unfinished.stop.value,
        err=True,
    )
    if answer is _Unfinished.stop:
        raise typer.Exit(1)
    return str(answer.value)


@app.command(
    "drop",
    epilog="Examples:\n\n  forebay cache drop /scratch/me/run1/out.h5\n\n"
    "  forebay cache drop --log NAME\n\n  forebay cache drop --all",
)
def drop_command(
    where: WhereArgument = None,
    log: LogOption = None,
    everything: Annotated[bool, typer.Option("--all", help="All logs of this node.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    json: JsonOption = False,
) -> None:
    """Remove logs whose programs have ended, and lose what they hold. Asks first.

    Exit status: 1 if something was left.
    """
    from forebay import cache, cache_report

    output, errors = _consoles()
    selection = cache.select(where or [], log or [])
    if not selection.explicit and not everything:
        raise ForebayError(
            "it was not said which logs to drop",
            "Name a file, a directory or --log NAME ('forebay cache ls' lists them), or say --all.",
        )
    found = cache.survey(selection)
    doomed = [entry for entry in found.logs if not entry["in_use"]]
    doomed += [entry for entry in found.missing if entry["state"] == "lost"]
    if not doomed:
        written = any(entry["state"] != "spare" for entry in found.logs)
        if json:
            _print_json(cache.Outcome([], [], [], found.problems).as_json())
        raise ForebayError(
            "there is no log to drop" + (": a running program writes it" if written else ""),
            "'forebay cache ls' lists what is there.",
            exit_code=1,
        )
    if not yes:
        cache_report.show_doomed(errors, doomed)
        if not sys.stdin.isatty():
            raise ForebayError(
                "nobody can be asked here, and nothing was dropped", "Say --yes.", exit_code=1
            )
        if not typer.confirm("Lose them?", err=True):
            raise typer.Exit(1)
    # These and no others, whatever was left meanwhile.
    names = [entry["name"] for entry in doomed]
    outcome = cache.drop(cache.Selection(selection.directories, selection.files, names))
    if json:
        _print_json(outcome.as_json())
    else:
        cache_report.show_dropped(output, outcome)
    is_left = any(entry["state"] != "dropped" for entry in outcome.files)
    if is_left or any(log["name"] in names for log in outcome.unreadable):
        raise typer.Exit(1)


@app.command(
    "watch",
    epilog="Examples:\n\n  forebay cache watch\n\n  forebay cache watch --json --interval 5",
)
def watch_command(
    where: WhereArgument = None,
    interval: Annotated[
        float,
        typer.Option(min=0.1, callback=finite, metavar="SECONDS", help="Between looks."),
    ] = 1.0,
    count: Annotated[int | None, typer.Option(min=1, help="End after so many looks.")] = None,
    json: Annotated[bool, typer.Option("--json", help="A line of JSON for each look.")] = False,
) -> None:
    """Show what running programs put into logs and bring to files, until none does any more.

    Exit status: 1 if WHERE names a file that is not there and that no log is of.
    """
    from forebay import cache, cache_watch

    selection = cache.select(where or [])
    if not selection.files_exist and _tell_unknown(
        _consoles()[1], selection, cache.survey(selection)
    ):
        raise typer.Exit(1)
    if not json:
        cache_watch.watch(_consoles()[0], selection, interval, count)
        return
    for found in cache_watch.looks(selection, interval, count):
        typer.echo(json_format.dumps({"logs": [each.as_json() for each in found]}))

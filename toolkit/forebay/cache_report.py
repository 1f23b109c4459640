"""What `forebay cache` prints: tables of logs, questions, and what became of them."""

import contextlib
import time
from collections.abc import Iterator

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as ProgressBars
from rich.table import Table
from rich.text import Text

from forebay.cache import Entry, Outcome, Progress, Survey
from forebay.units import show_bytes

#: What each state means, and the colour of its word.
STATES = {
    "writing": ("a running program writes it", "cyan"),
    "draining": ("its file was closed, and what is left drains", "cyan"),
    "spare": ("storage that a running program keeps for its next logs", "green"),
    "left": ("its program has ended; 'forebay cache recover' brings it to the file", "yellow"),
    "incomplete": ("the same, and its program died in the middle of an access", "yellow"),
    "damaged": ("what was promised to be there is not; 'verify' says what", "red"),
    "protects": ("parity of logs of other nodes: it rebuilds them if those are lost", "green"),
    "clean": ("all of it is in the file", "green"),
    "empty": ("nothing was written to it", "green"),
    "begun": ("its node crashed when it was begun, before anything in it was durable", "green"),
    "unreadable": ("nothing can be read of it", "red"),
    "elsewhere": ("on another node", "yellow"),
    "lost": ("its node has lost it", "red"),
    "unseen": ("on this node, where it could not be looked for", "red"),
}


def show_age(seconds: float) -> str:
    """93784 -> '1 d 2 h'."""
    whole = max(int(seconds), 0)
    days, hours, minutes = whole // 86400, whole // 3600 % 24, whole // 60 % 60
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min" if minutes else f"{whole} s"


def dirty_bytes(log: Entry) -> int:
    """Bytes of a log that are not in its file: as its writer said last, or as they are there."""
    progress = log["progress"]
    if log["in_use"] and progress is not None:
        return int(progress["dirty_bytes"])
    if log.get("purpose") == "protection":
        return 0
    return int(log.get("complete_bytes", 0)) + int(log.get("incomplete_bytes", 0))


def _state(entry: Entry) -> Text:
    return Text(entry["state"], style=STATES[entry["state"]][1])


def _line(console: Console, *parts: str | Text) -> None:
    """Paths may hold what Rich would take for markup."""
    console.print(Text.assemble(*parts), soft_wrap=True)


def show_survey(console: Console, found: Survey, now: float | None = None) -> None:
    """Prints logs by file, and notices of those that are not here."""
    now = time.time() if now is None else now
    if not found.logs and not found.missing:
        console.print("there are no write-behind logs")
    files: dict[str, list[Entry]] = {}
    for log in found.logs:
        files.setdefault(log["file"] or "of no file that is known", []).append(log)
    for file, logs in files.items():
        state = logs[0].get("file_state", "there")
        _line(console, Text(file, style="bold"), "" if state == "there" else f" ({state})")
        console.print(_table(logs, now))
    if found.missing:
        console.print("[bold]not here[/bold]")
        console.print(_missing_table(found.missing, now))
    for log in found.logs:
        for damage in log["damage"]:
            _line(console, Text("damage: ", style="red"), damage["what"])
        if log["state"] == "unreadable":
            _line(console, Text("unreadable: ", style="red"), log["error"])
        if log.get("unusable_bytes"):
            _line(
                console,
                f"{log['name']}: {show_bytes(log['unusable_bytes'])} behind a gap at its end "
                "were never whole, and cannot be used",
            )
    show_problems(console, found.problems)
    states = dict.fromkeys(entry["state"] for entry in [*found.logs, *found.missing])
    for state in states:
        _line(console, f"  {state}: {STATES[state][0]}")


def _table(logs: list[Entry], now: float) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 2))
    for name in ("state", "not in the file", "takes", "age", "job", "rank", "process"):
        table.add_column(name, justify="left" if name in ("state", "job") else "right")
    table.add_column("log", overflow="fold")
    for log in logs:
        known = log["file"] is not None
        table.add_row(
            _state(log),
            show_bytes(dirty_bytes(log)),
            show_bytes(log["stored_bytes"]) if known else "",
            show_age(now - log["made_unix_s"]) if known else "",
            Text(str(log.get("job", ""))),
            str(log.get("rank", "")),
            str(log.get("process", "")),
            Text(log["path"]),
        )
    return table


def _missing_table(notices: list[Entry], now: float) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 2))
    for name in ("state", "age", "job", "rank", "host", "log"):
        table.add_column(name, justify="right" if name in ("age", "rank") else "left")
    table.add_column("file", overflow="fold")
    for notice in notices:
        table.add_row(
            _state(notice),
            show_age(now - notice["since_unix_s"]),
            Text(notice["job"]),
            str(notice["rank"]),
            Text(notice["host"]),
            Text(notice["path"]),
            Text(notice["file"]),
        )
    return table


def show_problems(console: Console, problems: list[Entry]) -> None:
    for problem in problems:
        _line(console, Text("not looked at: ", style="red"), f"{problem['where']}: ",
              problem["what"])  # fmt: skip


def show_incomplete(console: Console, logs: list[Entry]) -> None:
    """What a program was about when it died, for the question what to do with it."""
    for log in logs:
        _line(
            console,
            f"{log['file']}: its program died in the middle of an access; "
            f"{show_bytes(log['incomplete_bytes'])} of it are in the log of rank {log['rank']}",
        )


def show_doomed(console: Console, logs: list[Entry]) -> None:
    """What is about to be lost, for the question whether it may be."""
    for log in logs:
        what = "what it held is lost already" if log["state"] == "lost" else (
            f"{show_bytes(dirty_bytes(log))} that are in no file"
        )  # fmt: skip
        _line(console, f"{log['path']}, of {log['file'] or 'an unknown file'}: {what}")


_ADVICE = {
    "in use": "it will drain by itself",
    "partial": "recover where all its logs are; if a node is lost and they are protected, say "
    "--lost NODE; say --partial if ranks of different nodes never write the same bytes",
    "unreadable": "if it is protected, name the directories of the file's other logs, too, and it "
    "is rebuilt; else say --partial to bring what its other logs hold to the file; 'forebay cache "
    "drop --log NAME' gives the unreadable one up",
    "another": "recover them next: without --into if that file is there, else into a FILE of "
    "its own",
    "gone": "--into FILE brings the data to another file; 'forebay cache drop' gives it up",
    "replaced": "--into FILE brings the data to another file; 'forebay cache drop' gives it up",
    "occupied": "nothing was changed; name a file that is not there yet, or say --further if a "
    "recovery of these logs was interrupted, or other nodes' logs were brought there before",
    "elsewhere": "run this on those nodes ('forebay cache ls FILE' names them)",
    "overtaken": "say --overtaken replay if they only read it or wrote other bytes, or --overtaken "
    "drop to give up what these logs hold",
    "incomplete": "say --incomplete drop or --incomplete replay",
}


def show_recovery(console: Console, outcome: Outcome) -> None:
    """Prints what became of each file."""
    for entry in outcome.files:
        if entry["state"] != "recovered":
            _show_refused(console, entry)
            continue
        rate = entry["written_bytes"] / max(entry["seconds"], 1e-6)
        _line(
            console,
            Text("recovered ", style="green"),
            f"{entry['into']}: {show_bytes(entry['written_bytes'])} written "
            f"({entry['records']} records of {show_bytes(entry['record_bytes'])}, "
            f"{entry['logs']} logs) at {show_bytes(rate)}/s",
        )
        if entry["rebuilt_logs"]:
            _line(
                console,
                f"  {entry['rebuilt_logs']} of the logs were lost or damaged, and rebuilt from "
                f"what protected them ({show_bytes(entry['rebuilt_bytes'])})",
            )
        if entry["kept_logs"]:
            _show_kept(console, entry)
        for path in entry["begun"]:
            _line(
                console,
                f"  {path} was only begun when its node crashed: nothing in it was durable yet, "
                "and it is removed",
            )
        for host, where in sorted({(log["host"], log["path"]) for log in entry["unfinished"]}):
            _line(
                console,
                f"  {where} of {host} is in the file, too, and not removed yet: if no recovery "
                "goes on there, recover there with its directory; if it is gone, say --lost "
                f"{host}",
            )
        for amount, what in (
            (entry["dropped_bytes"], "of an access that was not finished were dropped"),
            (
                entry["replayed_incomplete_bytes"],
                "of an access that was not finished were replayed",
            ),
            (entry["unusable_bytes"], "behind a gap at the end of a log were never whole"),
        ):
            if amount:
                _line(console, f"  {show_bytes(amount)} {what}")
        for damage in entry["damage"]:
            _line(console, Text("  skipped: ", style="red"), damage)
    _show_rest(console, outcome)
    if not outcome.files and not outcome.unreadable:
        console.print("there is nothing to recover")


def _show_kept(console: Console, entry: Entry) -> None:
    logs = [f"{log['name']} of {log['host']}" for log in entry["kept_for"]]
    _line(
        console,
        f"  {entry['kept_logs']} of the logs stay, in {', '.join(entry['kept_in'])}: "
        f"{_some(logs) or 'a log whose notice cannot be read'} may have to be rebuilt from them",
    )
    _line(console, "  once that is in the file, too, this removes them: ", entry["next_command"])
    if entry["lost_command"]:
        _line(
            console,
            "  if that is lost, this rebuilds it, with the directories of the file's other logs "
            "added: ",
            entry["lost_command"],
        )


def _some(names: list[str]) -> str:
    """The first ones, and how many more there are."""
    more = len(names) - 3
    return ", ".join(names[:3]) + (f" and {more} more" if more > 0 else "")


def show_dropped(console: Console, outcome: Outcome) -> None:
    for entry in outcome.files:
        if entry["state"] == "dropped":
            _line(console, Text("dropped ", style="yellow"), f"{entry['logs']} logs of ",
                  entry["file"])  # fmt: skip
        else:
            _show_refused(console, entry)
    _show_rest(console, outcome)


def _show_refused(console: Console, entry: Entry) -> None:
    advice = _ADVICE.get(entry["state"], "")
    _line(
        console,
        Text("left as it is ", style="yellow"),
        f"{entry['file']}: {entry['error']}{'; ' if advice else ''}{advice}",
    )


def _show_rest(console: Console, outcome: Outcome) -> None:
    for path in outcome.removed:
        _line(console, f"removed {path}, which held nothing that can be read")
    for log in outcome.unreadable:
        _line(console, Text("unreadable: ", style="red"), f"{log['path']}: {log['error']}; ",
              f"'forebay cache drop --log {log['name']}' gives it up")  # fmt: skip
    show_problems(console, outcome.problems)


@contextlib.contextmanager
def progress_bars(console: Console) -> Iterator[Progress]:
    """Bars on a terminal, nothing elsewhere."""
    with ProgressBars(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(binary_units=True),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as bars:
        tasks = {}

        def tell(phase: str, file: str, done: int, total: int) -> None:
            key = (phase, file)
            if key not in tasks:
                tasks[key] = bars.add_task(f"{phase} {file}".replace("[", "\\["), total=total)
            bars.update(tasks[key], completed=done, total=total)

        yield tell

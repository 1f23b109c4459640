"""`forebay cache`: write-behind logs, and what is left of them. The work is done by forebay-cache,
a native program of the code that writes the logs."""

import json
import shlex
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from forebay import filesystem, native
from forebay.errors import ForebayError

Entry = dict[str, Any]
"""An object of the tool's answer; its keys are in docs/guide/command.md."""

Progress = Callable[[str, str, int, int], None]
"""Called with a phase ("check", "rebuild", "replay"), a file, and how many bytes of how many are
done."""


@dataclass(frozen=True)
class Selection:
    """Which logs are meant: in which directories, of which files, of which names. Empty: any."""

    directories: list[Path] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    @property
    def explicit(self) -> bool:
        """Whether the user named something."""
        return bool(self.directories or self.files or self.names)

    @property
    def files_exist(self) -> bool:
        """Whether all files that were named are there."""
        return all(path.exists() for path in self.files)

    def arguments(self) -> list[str]:
        """Of the tool. Where no directory was named, all storage that is local to this node is
        looked at."""
        directories = self.directories or [Path(p.path) for p in filesystem.local_paths()]
        words = []
        for option, values in (
            ("--directory", directories),
            ("--file", self.files),
            ("--log", self.names),
        ):
            words += [word for value in values for word in (option, str(value))]
        return words


def select(where: Iterable[Path], names: Iterable[str] = ()) -> Selection:
    """Directories are looked into; anything else is a file that may have logs, and may be gone."""
    directories: list[Path] = []
    files: list[Path] = []
    for path in where:
        (directories if path.is_dir() else files).append(path.absolute())
    return Selection(directories, files, list(names))


@dataclass(frozen=True)
class Survey:
    """What logs there are. `missing`: notices of logs that are not here; `problems`: what could not
    be looked at."""

    logs: list[Entry]
    missing: list[Entry]
    problems: list[Entry]

    def in_state(self, *states: str) -> list[Entry]:
        return [log for log in self.logs if log["state"] in states]

    def as_json(self) -> dict[str, Any]:
        return {"logs": self.logs, "missing": self.missing, "problems": self.problems}

    def names_nothing(self, words: Iterable[str]) -> list[str]:
        """Of words for lost nodes and logs, those that are none of what is not here."""
        known = {"all"}.union(*({log["host"], log["name"]} for log in self.missing))
        return [word for word in words if word not in known]

    def what_may_be_lost(self) -> str:
        """What such words may be, for a person."""
        hosts = sorted({log["host"] for log in self.missing})
        return f"logs of {', '.join(hosts)} are not here" if hosts else "no log is missing"


@dataclass(frozen=True)
class Outcome:
    """What became of logs, by file. `removed`: logs that held nothing; `unreadable`: logs that
    nothing can be done with."""

    files: list[Entry]
    removed: list[str]
    unreadable: list[Entry]
    problems: list[Entry]

    def as_json(self) -> dict[str, Any]:
        return {
            "files": self.files,
            "removed": self.removed,
            "unreadable": self.unreadable,
            "problems": self.problems,
        }


def _ignore(_phase: str, _file: str, _done: int, _total: int) -> None:
    pass


def survey(selection: Selection, verify: bool = False, progress: Progress = _ignore) -> Survey:
    """Looks at logs; with `verify` at every checksum. Raises ForebayError."""
    verb = "verify" if verify else "list"
    answer = _ask([verb, *selection.arguments()], progress)
    return Survey(answer["logs"], answer["missing"], answer["problems"])


@dataclass(frozen=True)
class RecoverOptions:
    """One `forebay cache recover` command line."""

    selection: Selection
    incomplete: str | None = None  # "drop", "replay"; None: refuse where there is any
    overtaken: str | None = None  # the same for logs that other programs wrote past
    skip_damage: bool = False
    partial: bool = False
    into: Path | None = None
    further: bool = False  # an earlier recovery began to write it
    lost: list[str] = field(default_factory=list)
    """Nodes and logs that are lost for good; "all"."""

    def arguments(self) -> list[str]:
        """Of the tool, and of this command, but for what is selected."""
        words = []
        for option, value in (("--incomplete", self.incomplete), ("--overtaken", self.overtaken)):
            if value is not None:
                words += [option, value]
        if self.skip_damage:
            words.append("--skip-damage")
        if self.partial:
            words.append("--partial")
        if self.into is not None:
            words += ["--into", str(self.into.absolute())]
        if self.further:
            words.append("--further")
        return words + [word for name in self.lost for word in ("--lost", name)]


def recover(options: RecoverOptions, progress: Progress = _ignore) -> Outcome:
    """Brings what logs hold, whose writers are gone, to their files. Raises ForebayError."""
    words = ["recover", *options.selection.arguments(), *options.arguments()]
    outcome = _outcome(_ask(words, progress))
    for entry in outcome.files:
        if entry.get("kept_logs"):
            entry.update(_next_commands(entry, options))
    return outcome


def _next_commands(entry: Entry, options: RecoverOptions) -> Entry:
    """What to run for the logs that a recovery keeps: once those for which it does are in the file,
    and where these are lost."""
    where = [*entry["kept_in"], entry["file"]]

    def command(lost: list[str]) -> str:
        again = replace(options, partial=False, lost=lost, further=options.into is not None)
        return shlex.join(["forebay", "cache", "recover", *again.arguments(), *where])

    hosts = sorted({log["host"] for log in entry["kept_for"]})
    return {
        "next_command": command(options.lost),
        "lost_command": command([*options.lost, *hosts]) if hosts else None,
    }


def drop(selection: Selection) -> Outcome:
    """Removes logs whose writers are gone, and what they hold. Raises ForebayError."""
    return _outcome(_ask(["drop", *selection.arguments()], _ignore))


def _outcome(answer: Entry) -> Outcome:
    return Outcome(answer["files"], answer["removed"], answer["unreadable"], answer["problems"])


def _ask(words: list[str], progress: Progress) -> Entry:
    """Runs the tool, and returns its last line, the result."""
    command = [str(native.cache_program()), *words]
    result: Entry | None = None
    # Errors go to ours, as they come. Who interrupts us at the terminal interrupts it as well.
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, errors="replace"
    ) as tool:
        assert tool.stdout is not None
        for line in tool.stdout:
            event = json.loads(line)
            if event.pop("event") == "result":
                result = event
            else:
                progress(event["phase"], event["file"], event["done_bytes"], event["all_bytes"])
    if tool.returncode != 0 or result is None:
        raise ForebayError(
            f"forebay-cache ended with status {tool.returncode} before it was done",
            "Nothing is lost: run the command again.",
            exit_code=1,
        )
    return result

"""What a run left in write-behind logs and in no file: what to say about it."""

import contextlib
import math
import os
import shlex
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from forebay import cache, filesystem, intent_file, record_files
from forebay.errors import ForebayError, first_line
from forebay.records import Record
from forebay.units import show_bytes

_CACHE = ("forebay_cache", "e10_cache")
_PATH = ("forebay_cache_path", "e10_cache_path")
_NOTICE = ".forebay-dirty"
_HOSTS_NAMED = 16
_MARK_VERSION = 1
_USUAL = Path("/dev/shm")  # of logs, where nobody says another place
_HOLDING = ("writing", "draining", "left", "incomplete", "damaged")
_RUNNING = ("writing", "draining")


def _declared(variables: Mapping[str, str], records: Iterable[Record]) -> list[tuple[str, str]]:
    """All hints that a run's variables, intent file and records speak of, in no order."""
    pairs: list[tuple[str, str]] = []
    for text in variables.get("FOREBAY_HINTS", "").split(";"):
        key, _, value = text.partition("=")
        pairs.append((key.strip(), value.strip()))
    pairs += [pair for record in records for pair in record.hints.items()]
    if "FOREBAY_INTENT" in variables:
        try:
            intent = intent_file.load(Path(variables["FOREBAY_INTENT"]))
        except (OSError, ForebayError):  # The library has said so.
            return pairs
        for section in intent_file.sections(intent):
            pairs += _of_section(section)
    return pairs


def _of_section(section: dict[str, Any]) -> list[tuple[str, str]]:
    table = section.get("cache")
    if not isinstance(table, dict):
        return [(key, str(value)) for key, value in section.items()]
    words = {"mode": "forebay_cache"}
    return [(words.get(key, f"forebay_cache_{key}"), str(value)) for key, value in table.items()]


@dataclass(frozen=True)
class Opened:
    """A file that was opened with a write-behind cache (docs/formats/report.md)."""

    path: Path
    log_path: Path | None  # None: the usual one


def opened_with_cache(directory: Path) -> list[Opened]:
    """Those that a run's marks in `directory` tell of, as far as they are whole."""
    return record_files.read(directory.glob("*.cached"), _MARK_VERSION, _mark, [])


def _mark(raw: dict[str, Any]) -> Opened:
    log_path = None if raw["log_path"] is None else Path(record_files.text(raw, "log_path"))
    return Opened(Path(record_files.text(raw, "path")), log_path)


@dataclass(frozen=True)
class Unsafe:
    """Bytes that are in no file."""

    here: list[cache.Entry] = field(default_factory=list)
    """Logs on this node."""
    elsewhere: list[cache.Entry] = field(default_factory=list)
    """Notices of logs on other nodes."""
    lost: list[cache.Entry] = field(default_factory=list)
    """Notices of logs that this node has no more."""
    unseen: list[str] = field(default_factory=list)
    """Why it is not known whether there are more."""


def left_in_logs(
    variables: Mapping[str, str],
    records: Iterable[Record],
    failed: bool,
    since_unix_s: float,
    opened: Iterable[Opened] = (),
) -> Unsafe:
    """Logs made since then that hold bytes which are in no file. Looks where logs usually are,
    where the run's declarations and marks say, and where notices do; not at all where it went well
    and declares no cache. Notices are found beside the files of this node's logs, of the records
    and of the marks, and in the working directory."""
    records, opened = list(records), list(opened)
    pairs = _declared(variables, records)
    declares = bool(opened) or any(key in _CACHE for key, _ in pairs)
    if not failed and not declares:
        return Unsafe()
    places = {Path(place.path) for place in filesystem.local_paths()}
    said = {Path(value) for key, value in pairs if key in _PATH}
    said |= {one.log_path for one in opened if one.log_path is not None}
    not_said = places - said - {_USUAL}
    places |= {place for place in said if _is_directory(place)}
    theirs = {*(Path(record.path) for record in records), *(one.path for one in opened)}
    since = _Since(int(since_unix_s), frozenset(os.path.realpath(path) for path in theirs))
    here: list[cache.Entry] = []
    try:
        beside = {Path.cwd(), *(path.parent for path in theirs)}
        found = cache.survey(cache.Selection(directories=sorted(places)))
        here = since.holding(found)
        beside |= {Path(log["file"]).parent for log in here}
        unseen = _problems(found, not_said) if declares or here else []
        unseen += since.unreadable(found)
        files = _announced_in(beside)
        if not files:
            return Unsafe(here, unseen=unseen)
        announced = cache.survey(cache.Selection(directories=sorted(places), files=files))
    except (ForebayError, OSError, ValueError) as error:
        # No forebay-cache is installed, or it failed; the command's own status must not be lost.
        return Unsafe(here, unseen=[first_line(error)] if declares or here else [])
    elsewhere, lost = since.missing(announced, "elsewhere"), since.missing(announced, "lost")
    known = {log["path"] for log in here}
    here += [log for log in since.holding(announced) if log["path"] not in known]
    if declares or here or elsewhere or lost:
        unseen += _problems(announced, not_said)
    unseen += since.unreadable(announced)
    return Unsafe(here, elsewhere, lost, list(dict.fromkeys(unseen)))


@dataclass(frozen=True)
class _Since:
    """What a survey found of a run that began then, and is known to have opened some files."""

    unix_s: int
    files: frozenset[str]

    def holding(self, found: cache.Survey) -> list[cache.Entry]:
        """Logs that hold something. Those of a file that a program writes count if the run has
        opened it: another run may go on."""
        return [
            log
            for log in found.in_state(*_HOLDING)
            if log.get("made_unix_s", 0) >= self.unix_s
            and (log["state"] not in _RUNNING or log["file"] in self.files)
        ]

    def missing(self, found: cache.Survey, state: str) -> list[cache.Entry]:
        """Notices of logs that are not here."""
        return [
            notice
            for notice in found.missing
            if notice["state"] == state and notice["since_unix_s"] >= self.unix_s
        ]

    def unreadable(self, found: cache.Survey) -> list[str]:
        """Logs that nobody can read or see, and why."""
        logs = [
            f"{log['path']} cannot be read: {log['error']}"
            for log in found.in_state("unreadable")
            if _changed_unix_s(log["path"]) >= self.unix_s
        ]
        notices = self.missing(found, "unseen")
        return logs + [f"{notice['path']} cannot be looked at" for notice in notices]


def _changed_unix_s(log: str) -> float:
    """The latest that anything was made in the log."""
    try:
        return Path(log).stat().st_mtime
    except FileNotFoundError:
        return -math.inf
    except OSError:
        return math.inf


def _is_directory(place: Path) -> bool:
    """Not where that cannot be seen, as of a place on another node."""
    try:
        return place.is_dir()
    except OSError:
        return False


def _problems(found: cache.Survey, not_said: Collection[Path]) -> list[str]:
    """What could not be looked at, but for places that nobody had said: some of them may be for
    others alone, and hold no log of ours."""
    return [
        f"{problem['where']}: {problem['what']}"
        for problem in found.problems
        if not any(Path(problem["where"]).is_relative_to(place) for place in not_said)
    ]


def _announced_in(directories: Iterable[Path]) -> list[Path]:
    """Files there beside which a notice says that they are not complete."""
    files = []
    for directory in directories:
        with contextlib.suppress(OSError):
            for entry in directory.glob(f".*{_NOTICE}"):
                files.append(directory / entry.name.removeprefix(".").removesuffix(_NOTICE))
    return sorted(files)


def advice(unsafe: Unsafe) -> list[str]:
    """What is missing from which file, and how to get it there."""
    by_file: dict[str, list[cache.Entry]] = {}
    lines = [
        f"forebay: whether more is left in write-behind logs is not known: {why}. "
        "Look again: forebay cache ls"
        for why in unsafe.unseen
    ]
    for log in unsafe.here:
        by_file.setdefault(log["file"], []).append(log)
    for file, theirs in by_file.items():
        size = sum(log["complete_bytes"] + log["incomplete_bytes"] for log in theirs)
        logs = _logs(len(theirs))
        lines.append(f"forebay: {file} is not complete: {show_bytes(size)} are in {logs} only.")
        if any(log["in_use"] for log in theirs):
            lines.append("A process of it still runs, and may be writing them to the file.")
        partial = "--partial " if any(notice["file"] == file for notice in unsafe.elsewhere) else ""
        lines.append(f"Bring them there: forebay cache recover {partial}{shlex.quote(file)}")
    for file in dict.fromkeys(notice["file"] for notice in unsafe.lost):
        count = sum(notice["file"] == file for notice in unsafe.lost)
        lines.append(
            f"forebay: {file} lacks what was in {_logs(count)} that this node has lost. "
            f"Which ones: forebay cache ls {shlex.quote(file)}"
        )
    hosts_by_file: dict[str, set[str]] = {}
    for notice in unsafe.elsewhere:
        hosts_by_file.setdefault(notice["file"], set()).add(notice["host"])
    for file, hosts in hosts_by_file.items():
        lines.append(f"forebay: {file} lacks what is in write-behind logs on {_named(hosts)}.")
        lines.append(
            f"Bring it there, on each: forebay cache recover --partial {shlex.quote(file)}"
        )
        if any(notice["protected"] for notice in unsafe.elsewhere if notice["file"] == file):
            lines.append(
                "If one is lost, then from where the logs of all others are reached: forebay cache "
                f"recover --lost NODE {shlex.quote(file)}"
            )
    return lines


def _logs(count: int) -> str:
    return f"{count} write-behind log{'s' if count != 1 else ''}"


def _named(hosts: set[str]) -> str:
    names = sorted(hosts)
    if len(names) <= _HOSTS_NAMED:
        return ", ".join(names)
    return f"{', '.join(names[:_HOSTS_NAMED])} and {len(names) - _HOSTS_NAMED} more"

"""Which run is meant: a directory, processes, or whatever runs."""

import os
import pwd
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from forebay.errors import ForebayError
from forebay.top import local_process
from forebay.trace.capture import SUFFIX

_SPILLS = ".spills"
_ONLY_YOURS = "A job is seen by who runs it."


@dataclass(frozen=True)
class RunPlace:
    """Where a run spills. `pids`: of this host, if some of its processes alone are meant."""

    spills: Path
    pids: frozenset[int] = field(default_factory=frozenset)


def find(words: Sequence[str]) -> RunPlace:
    """Of what was named: one directory, or processes of one run; without a word what runs. Raises
    ForebayError."""
    if not words:
        return RunPlace(_only_one())
    if all(word.isdigit() and not Path(word).exists() for word in words):
        return _of_pids([int(word) for word in words])
    if len(words) > 1:
        raise ForebayError("name one directory, or processes by their numbers")
    return RunPlace(_of_directory(Path(words[0])))


def _of_directory(named: Path) -> Path:
    beside = named.with_name(named.name + _SPILLS)
    if (named / "run.json").is_file():
        raise ForebayError(
            f"{named} is the trace of a run that has ended", f"Look at it: forebay report {named}"
        )
    for place in (named, beside):
        if place.is_dir() and (place.name.endswith(_SPILLS) or _has_spills(place)):
            return _readable(place)
    if not named.exists():
        raise ForebayError(
            f"there is no {named}, and no {beside.name} beside it",
            "A run is seen while it is traced: forebay trace -o NAME -- COMMAND spills into "
            "NAME.spills.",
        )
    inside = sorted(named.glob(f"*{_SPILLS}")) if named.is_dir() else []
    if len(inside) == 1:
        return _readable(inside[0])
    raise ForebayError(
        f"{named} holds no spills of a traced run",
        f"Name one of these: {', '.join(map(str, inside))}"
        if inside
        else "Start the run with: forebay trace -- COMMAND, or forebay run --trace NAME -- COMMAND",
    )


def _has_spills(place: Path) -> bool:
    try:
        return any(place.glob(f"*{SUFFIX}")) or (place / "command.json").is_file()
    except PermissionError:
        return True  # told by who looks into it


def _readable(place: Path) -> Path:
    if not os.access(place, os.R_OK | os.X_OK):
        raise ForebayError(
            f"{place} is {_owner(place.stat().st_uid)}'s, and not yours to read",
            _ONLY_YOURS,
        )
    return place.absolute()


def _owner(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def _only_one() -> Path:
    running = [place for place in local_process.own_traces() if place.is_dir()]
    found = running or sorted(Path().glob(f"*{_SPILLS}"))
    if not found:
        raise ForebayError(
            "no traced program of yours runs on this host",
            "Start one with: forebay trace -- COMMAND. For a job on other hosts name its directory "
            "of spills.",
        )
    if len(found) > 1:
        raise ForebayError(
            "several runs are traced: name one of them", "\n".join(f"  {p}" for p in found)
        )
    return _readable(found[0])


def _of_pids(pids: list[int]) -> RunPlace:
    """A process that is not traced itself, as a launcher, stands for the run of those that it
    started, which may be on other hosts, too."""
    places: set[Path] = set()
    meant: set[int] = set()
    is_whole = False
    for pid in pids:
        life = local_process.life_of(pid)
        if life is None:
            raise ForebayError(f"there is no process {pid} on this host")
        family = local_process.descendants(pid)
        found = {each: place for each in family if (place := _trace_of(each, pid)) is not None}
        if not found:
            raise ForebayError(
                f"process {pid} is not traced, and none that it started",
                "Start the program with: forebay trace -- COMMAND. A running one cannot be joined.",
            )
        places |= set(found.values())
        meant |= set(family)
        is_whole = is_whole or pid not in found
    if len(places) > 1:
        raise ForebayError("these processes are of several runs", "Name processes of one of them.")
    return RunPlace(_readable(places.pop()), frozenset() if is_whole else frozenset(meant))


def _trace_of(pid: int, asked_for: int) -> Path | None:
    try:
        return local_process.traced_into(pid)
    except FileNotFoundError:
        return None
    except PermissionError as error:
        if pid != asked_for:
            return None
        owner = _owner(Path(f"/proc/{pid}").stat().st_uid)
        raise ForebayError(f"process {pid} is {owner}'s", _ONLY_YOURS) from error

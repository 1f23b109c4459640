"""A search as its history or `forebay configure --json` left it, read back."""

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from forebay import json_document
from forebay.comparison import QUANTITIES
from forebay.configurations import BUILT_IN, Configuration, configuration_of
from forebay.configure import history
from forebay.configure.history import Recalled, Search, SearchRun, State, Why
from forebay.configure.result import FORMAT, VERSION
from forebay.errors import ForebayError
from forebay.evaluate import in_force
from forebay.evaluate.in_force import Setting

_ADVICE = "'forebay configure RUN -- COMMAND' leaves one in configure.sqlite."
_SQLITE = b"SQLite format 3\0"


@dataclass(frozen=True)
class Ceiling:
    """The share of I/O in the time of the process that has most, and how many times as fast the
    run were without it."""

    io_share: float
    best_speedup: float


@dataclass(frozen=True)
class Estimate:
    """The seconds of a configuration, from all runs, with the interval that holds them with 95 % as
    far as the process of the search is right."""

    configuration: str
    seconds: float
    low: float
    high: float
    runs: int


@dataclass(frozen=True)
class Ending:
    """What was known when the search, or its last session, ended."""

    stopped: str
    best: str | None
    least_gain: float
    ceiling: Ceiling | None
    ranking: list[Estimate]
    configurations: dict[str, Configuration]
    constraints: list[str] = field(default_factory=list)
    left_out: list[tuple[str, str | None, str]] = field(default_factory=list)  # factor, value, why
    feasible: int = 0
    host: str = ""
    system: str = ""  # path of the system file, if there was one
    failure: str = ""
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class StoredSearch:
    """`ending` is None where the last session was killed."""

    path: Path
    search: Search
    runs: list[SearchRun]
    ending: Ending | None

    @property
    def counted(self) -> list[SearchRun]:
        """Runs whose times count, in the order of time."""
        return [
            run
            for run in self.runs
            if run.state is State.MEASURED and run.why is not Why.WARM_UP and run.seconds
        ]

    def settings(self, run: SearchRun) -> list[Setting]:
        """As they were asked for in a run, and what its records have in their place."""
        return [in_force.setting_of(entry) for entry in run.observed]

    def configuration(self, name: str) -> Configuration | None:
        known = {} if self.ending is None else self.ending.configurations
        return known.get(name) or BUILT_IN.get(name)


def is_history(path: Path) -> bool:
    """Whether a file is a database of SQLite, of whatever."""
    with path.open("rb") as file:
        return file.read(len(_SQLITE)) == _SQLITE


def is_one(path: Path) -> bool:
    """Whether a file is to be read as a search: a database, or JSON that says so."""
    if is_history(path):
        return True
    try:
        document = json_document.parsed(path)
    except ValueError:
        return False
    return isinstance(document, dict) and _is_result(document)


def _is_result(document: dict[str, Any]) -> bool:
    return document.get("format") == FORMAT


def load(path: Path) -> StoredSearch:
    """Raises ForebayError for what is no search, is damaged, in use or of a later version."""
    if is_history(path):
        return _stored(path, history.recall(path))
    document = json_document.load(path, "result of a search", VERSION, _is_result, _ADVICE)
    try:
        runs = [history.run_of(entry) for entry in document["runs"]]
        recalled = Recalled(history.search_of(document), runs, document)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise _damaged(path, error) from error
    return _stored(path, recalled)


def _stored(path: Path, recalled: Recalled) -> StoredSearch:
    try:
        _check(recalled)
        ending = None if recalled.ending is None else _ending(recalled.ending)
        found = StoredSearch(path, recalled.search, recalled.runs, ending)
        for run in found.runs:
            found.settings(run)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise _damaged(path, error) from error
    return found


def _damaged(path: Path, error: Exception) -> ForebayError:
    return ForebayError(f"{path} is damaged: {error!r}", _ADVICE, exit_code=1)


def _check(recalled: Recalled) -> None:
    """Raises TypeError, ValueError for what no search writes."""
    search = recalled.search
    if search.time not in QUANTITIES:
        raise ValueError(f"{search.time!r} is no time of a run")
    _texts(search.command, search.directory, search.reference, *search.trace.values())
    for number, run in enumerate(recalled.runs, start=1):
        if run.number != number:
            raise ValueError(f"run {number} has the number {run.number!r}")
        _texts(run.settings, run.configuration, run.started, run.reason, *run.settings.values())
        for value in (run.seconds, run.predicted, *(run.expected or {}).values()):
            if value is not None and _number(value) < 0:
                raise ValueError(f"run {number} has {value!r} seconds")


def _texts(texts: object, *more: object) -> None:
    for text in (*texts, *more) if isinstance(texts, (list, dict)) else (texts, *more):
        if not isinstance(text, str):
            raise TypeError(f"{text!r} is no text")


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError(f"{value!r} is no number")
    return float(value)


def _ending(entry: dict[str, Any]) -> Ending:
    ceiling, system = entry["ceiling"], entry["system"]
    return Ending(
        stopped=str(entry["stopped"]),
        best=None if entry["best"] is None else str(entry["best"]),
        least_gain=_number(entry["least_gain"]),
        ceiling=None
        if ceiling is None
        else Ceiling(_number(ceiling["io_share"]), _number(ceiling["best_speedup"])),
        ranking=[
            Estimate(
                configuration=str(each["configuration"]),
                seconds=_number(each["seconds"]),
                low=_number(each["low"]),
                high=_number(each["high"]),
                runs=int(each["runs"]),
            )
            for each in entry["ranking"]
        ],
        configurations={
            str(name): configuration_of(name, each)
            for name, each in entry["configurations"].items()
        },
        constraints=[str(rule) for rule in entry["constraints"]],
        left_out=[
            (str(e["factor"]), None if e["value"] is None else str(e["value"]), str(e["reason"]))
            for e in entry["left_out"]
        ],
        feasible=int(entry["candidates"]["feasible"]),
        host=str(entry["host"]),
        system="" if system is None else str(system["path"]),
        failure=str(entry["failure"] or ""),
        notes=[str(note) for note in entry["notes"]],
    )

"""The file in which a search is kept, so that it can go on (docs/formats/search.md)."""

import json
import math
import os
import shutil
import sqlite3
import tempfile
from contextlib import closing
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import Any
from urllib.parse import quote

import xxhash

from forebay.errors import ForebayError

APPLICATION_ID = 0x46624353
VERSION = 1
FILE_NAME = "configure.sqlite"
_HEAD_BYTES = 100


class State(StrEnum):
    """What came of a run."""

    STARTED = "started"
    MEASURED = "measured"
    FAILED = "failed"
    NOT_IN_FORCE = "not in force"
    OTHER_FILES = "other files"
    INTERRUPTED = "interrupted"


class Why(StrEnum):
    """What a run was for."""

    WARM_UP = "warm-up"
    REFERENCE = "reference"
    MODEL = "model"
    SEARCH = "search"
    AGAIN = "again"
    TRACED = "traced"


@dataclass(frozen=True)
class Search:
    """What a search is of; it goes on only with the same."""

    command: list[str]
    directory: str
    trace: dict[str, str]  # path, checksum
    time: str
    reference: str
    seed: int
    prepare: str | None = None
    mpi: str = "auto"
    ranks_per_node: int | None = None
    variables: dict[str, list[str]] = field(default_factory=dict)

    # The path of a trace may be another one; its content may not. Seeds differ where none is given.
    def differences(self, other: "Search") -> list[str]:
        """What `other` has otherwise, in words."""
        told = []
        for item in fields(self):
            mine, its = getattr(self, item.name), getattr(other, item.name)
            if item.name == "trace":
                mine, its = mine.get("checksum"), its.get("checksum")
            if mine != its and item.name != "seed":
                told.append(f"{item.name}: {_shown(mine)} there, {_shown(its)} now")
        return told


def _shown(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


@dataclass
class SearchRun:
    """One run, as the format has it."""

    number: int
    configuration: str
    settings: dict[str, str]
    why: Why
    started: str
    predicted: float | None = None
    expected: dict[str, float] | None = None
    seconds: float | None = None
    state: State = State.STARTED
    reason: str = ""
    side: dict[str, Any] | None = None
    written: list[str] = field(default_factory=list)
    observed: list[dict[str, Any]] = field(default_factory=list)  # each setting, as in_force has it
    timed_out: bool = False

    @property
    def lasted_s(self) -> float | None:
        """What a search learns from: infinite where the run did not end in time."""
        return math.inf if self.timed_out else self.seconds

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


class History:
    """An open history. Each change is durable before the call returns."""

    def __init__(self, path: Path, search: Search) -> None:
        """Opens the history at `path`, or makes one. Raises ForebayError for what is none, is
        damaged, of another version or of another search."""
        self.path = path
        self.search = search
        self.runs: list[SearchRun] = []
        self._database: sqlite3.Connection | None = None
        if path.exists() and path.stat().st_size > 0:
            _require_format(path)
        try:
            self._database = sqlite3.connect(path, timeout=0, isolation_level=None)
            self._database.execute("PRAGMA synchronous = FULL")
            self._open()
        except sqlite3.DatabaseError as error:
            self.close()
            raise _unusable(path, str(error)) from error
        except ForebayError:
            self.close()
            raise

    @property
    def _rows(self) -> sqlite3.Connection:
        assert self._database is not None
        return self._database

    def close(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None

    def _open(self) -> None:
        # One search at a time: a second one waits for nothing and is told so.
        self._rows.execute("PRAGMA locking_mode = EXCLUSIVE")
        self._rows.execute("BEGIN EXCLUSIVE")
        if self._rows.execute("PRAGMA user_version").fetchone()[0] == 0:
            self._make()
        else:
            self._read()
        self._rows.execute("COMMIT")

    def _make(self) -> None:
        self._rows.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        self._rows.execute(f"PRAGMA user_version = {VERSION}")
        self._rows.execute("CREATE TABLE search (key TEXT PRIMARY KEY, value TEXT NOT NULL)")
        self._rows.execute(
            "CREATE TABLE runs (number INTEGER PRIMARY KEY, content TEXT NOT NULL, "
            "xxh64 TEXT NOT NULL)"
        )
        values = [(key, json.dumps(value)) for key, value in asdict(self.search).items()]
        self._rows.executemany("INSERT INTO search VALUES (?, ?)", values)

    def _read(self) -> None:
        before = _search(self._rows, self.path)
        told = before.differences(self.search)
        if told:
            raise ForebayError(
                f"{self.path} is of another search ({'; '.join(told)})",
                "Name another file by --history, or begin anew by --again.",
            )
        self.search = before
        self.runs = _runs(self._rows, self.path)
        for run in self.runs:
            if run.state is State.STARTED:
                _end_killed(run)
                self._write(run)

    def add(self, run: SearchRun) -> None:
        """Takes note of a run that is about to start."""
        self._write(run)
        self.runs.append(run)

    def update(self, run: SearchRun) -> None:
        """Takes note of what came of it."""
        self._write(run)

    def conclude(self, result: dict[str, Any]) -> None:
        """Takes note of how this session ended: `result` as the JSON has it, whose runs are here
        already."""
        ending = {key: value for key, value in result.items() if key != "runs"}
        self._change(_MAKE_ENDINGS)
        self._put("endings", len(self.runs), ending)

    def _write(self, run: SearchRun) -> None:
        self._put("runs", run.number, run.as_json())

    def _put(self, table: str, number: int, value: dict[str, Any]) -> None:
        content = json.dumps(value)
        digest = xxhash.xxh64_hexdigest(content.encode())
        self._change(f"INSERT OR REPLACE INTO {table} VALUES (?, ?, ?)", number, content, digest)

    def _change(self, statement: str, *values: object) -> None:
        try:
            self._rows.execute(statement, values)
        except sqlite3.DatabaseError as error:
            raise ForebayError(
                f"{self.path} cannot be written: {error}",
                "The runs before are in it. Free some space there, and the same command goes on.",
                exit_code=1,
            ) from error


def forget(path: Path) -> None:
    """Removes a history, if there is one, a damaged one too. Raises ForebayError for what is none,
    is of another version or in use."""
    if path.exists() and path.stat().st_size > 0:
        _require_format(path)
        try:
            with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as rows:
                rows.execute("BEGIN EXCLUSIVE")
        except sqlite3.DatabaseError as error:
            if _is_busy(str(error)):
                raise _unusable(path, str(error)) from error
    path.unlink(missing_ok=True)


@dataclass(frozen=True)
class Recalled:
    """A history as it stands. `ending`: how its last session ended, as the JSON of docs/formats/
    search.md has it; None if that was killed, or goes on."""

    search: Search
    runs: list[SearchRun]
    ending: dict[str, Any] | None


def recall(path: Path) -> Recalled:
    """What the history at `path` holds, which stays as it is. Raises ForebayError for what is none,
    is damaged, of another version or in use."""
    _require_format(path)
    try:
        try:
            return _recalled(path, "ro", path)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_READONLY_ROLLBACK:
                raise
        # The search was killed while it wrote. What it had begun is undone in a copy.
        with tempfile.TemporaryDirectory() as place:
            copy = Path(place) / FILE_NAME
            for ending in ("", "-journal"):
                shutil.copyfile(f"{path}{ending}", f"{copy}{ending}")
            return _recalled(copy, "rw", path)
    except sqlite3.DatabaseError as error:
        raise _unusable(path, str(error)) from error


def _recalled(database: Path, mode: str, path: Path) -> Recalled:
    """`path` is what errors name. Raises sqlite3.DatabaseError, too."""
    where = f"file:{quote(os.fsencode(database.absolute()))}?mode={mode}"
    with closing(sqlite3.connect(where, uri=True, timeout=0)) as rows:
        search, runs = _search(rows, path), _runs(rows, path)
        endings = _contents(rows, "endings", path) if _has_endings(rows) else []
    for run in runs:
        if run.state is State.STARTED:
            _end_killed(run)
    number, ending = endings[-1] if endings else (-1, None)
    return Recalled(search, runs, ending if number == len(runs) else None)


_MAKE_ENDINGS = (
    "CREATE TABLE IF NOT EXISTS endings (runs INTEGER PRIMARY KEY, content TEXT NOT NULL, "
    "xxh64 TEXT NOT NULL)"
)


def _has_endings(rows: sqlite3.Connection) -> bool:
    found = rows.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'endings'")
    return found.fetchone() is not None


def _search(rows: sqlite3.Connection, path: Path) -> Search:
    found = rows.execute("SELECT key, value FROM search")
    try:
        return search_of({str(key): json.loads(value) for key, value in found})
    except (TypeError, ValueError) as error:
        raise _unusable(path, str(error)) from error


def search_of(content: dict[str, Any]) -> Search:
    """Of an object of the format, which may have more keys. Raises TypeError where one lacks."""
    known = {item.name for item in fields(Search)}
    return Search(**{key: value for key, value in content.items() if key in known})


def _runs(rows: sqlite3.Connection, path: Path) -> list[SearchRun]:
    try:
        return [run_of(content) for _, content in _contents(rows, "runs", path)]
    except (KeyError, TypeError, ValueError) as error:
        raise _unusable(path, repr(error)) from error


def _contents(rows: sqlite3.Connection, table: str, path: Path) -> list[tuple[int, dict[str, Any]]]:
    """The rows of a table whose content has a checksum, in the order of their numbers."""
    found = []
    for number, content, digest in rows.execute(f"SELECT * FROM {table} ORDER BY 1"):
        if xxhash.xxh64_hexdigest(str(content).encode()) != digest:
            what = "run" if table == "runs" else "the ending after run"
            raise _unusable(path, f"the checksum of {what} {number} does not fit it")
        found.append((int(number), json.loads(content)))
    return found


def _end_killed(run: SearchRun) -> None:
    run.state, run.reason = State.INTERRUPTED, "the search was killed"


def run_of(content: dict[str, Any]) -> SearchRun:
    """Of an object of the format. Raises KeyError, TypeError, ValueError."""
    known = {item.name for item in fields(SearchRun)}
    kept = {key: value for key, value in content.items() if key in known}
    return SearchRun(**(kept | {"why": Why(content["why"]), "state": State(content["state"])}))


def _require_format(path: Path) -> None:
    """Raises ForebayError unless `path` is a history of this version, by the file's head alone, so
    that a foreign one is not touched. [sqlite.org/fileformat.html, 1.3]"""
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    told = int.from_bytes(head[68:72], "big"), int.from_bytes(head[60:64], "big")
    if not head.startswith(b"SQLite format 3\0") or told[0] != APPLICATION_ID:
        raise ForebayError(
            f"{path} is no search history", "Name another file by --history; this one is not ours."
        )
    if told[1] != VERSION:
        raise ForebayError(
            f"{path} has version {told[1]}, and this command reads {VERSION}",
            "Use the Forebay that wrote it, or name another file by --history.",
        )


def _is_busy(why: str) -> bool:
    return "locked" in why


def _unusable(path: Path, why: str) -> ForebayError:
    busy = _is_busy(why)
    return ForebayError(
        f"{path} is in use by another search" if busy else f"{path} cannot be read: {why}",
        "Wait for it, or name another file by --history."
        if busy
        else "Name another file by --history, or begin anew by --again.",
        exit_code=1,
    )

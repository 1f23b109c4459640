"""A trace directory as a whole: written table by table, finished by its run.json, and read."""

import json
import shutil
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import pyarrow as pa
import xxhash

from forebay.errors import ForebayError
from forebay.json_document import shown
from forebay.output_paths import require_new_directory
from forebay.trace import tables
from forebay.units import show_count

FORMAT = "forebay trace directory"
VERSION = 1
RUN_FILE = "run.json"


@dataclass
class Run:
    """What run.json says beside the list of tables; keys as there."""

    origin: dict[str, Any] = field(default_factory=dict)
    command: list[str] = field(default_factory=list)
    start_unix_ns: int = 0
    wall_ns: int = 0
    ranks: int = 0
    levels: dict[str, str] = field(default_factory=lambda: {"posix": "none", "mpiio": "none"})
    complete: bool = True
    losses: dict[str, int | None] = field(default_factory=dict)
    clock: dict[str, Any] = field(default_factory=dict)
    overhead: dict[str, Any] = field(default_factory=dict)
    mpi: dict[str, str] = field(default_factory=dict)
    machine: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    file_systems: list[dict[str, str]] = field(default_factory=list)
    storage: dict[str, Any] = field(default_factory=dict)
    job: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def caveats(self) -> list[str]:
        """What is missing, a sentence each."""
        said = []
        if not self.complete:
            said.append("The run did not end by itself: what came last is missing.")
        for reason, number in self.losses.items():
            how_many = "Calls" if number is None else f"{show_count(number)} calls"
            said.append(f"{how_many} are not in the trace ({reason}): sums are too low.")
        return said


def remove_made(path: Path, is_made: bool) -> None:
    """What was written into a directory goes; so does the directory unless it was there before."""
    if is_made:
        shutil.rmtree(path, ignore_errors=True)
    elif path.is_dir():
        for file in path.iterdir():
            file.unlink()


class TraceWriter:
    """Makes a trace directory. As a context: an exception leaves nothing, which would only be in
    the way of the next try. What is killed leaves no run.json, so nobody takes it for a trace."""

    def __init__(self, path: Path) -> None:
        """Raises ForebayError if `path` is there and not an empty directory."""
        require_new_directory(path)
        self._is_made = not path.exists()
        path.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._files: dict[str, tables.TableFile] = {}

    def __enter__(self) -> "TraceWriter":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            remove_made(self.path, self._is_made)

    def add(self, name: str, table: pa.Table) -> None:
        """Appends rows to a table. Calls come sorted by process, thread and start. Raises KeyError,
        ValueError (also pa.ArrowInvalid) for what the format has no place for."""
        if table.num_rows == 0:
            return
        if name not in self._files:
            self._files[name] = tables.TableFile(name, self.path / f"{name}.parquet")
        self._files[name].add(table)

    def finish(self, run: Run) -> None:
        """Completes the tables, then writes run.json."""
        listed = {}
        for name, file in sorted(self._files.items()):
            file.close()
            path = self.path / f"{name}.parquet"
            listed[name] = {
                "rows": file.rows,
                "bytes": path.stat().st_size,
                "xxh64": _digest(path),
            }
        document = {
            "format": FORMAT,
            "version": VERSION,
            **printable(asdict(run)),
            "tables": listed,
        }
        document["checksum"] = checksum(document)
        unfinished = self.path / f".{RUN_FILE}"
        unfinished.write_text(json.dumps(document, indent=2, ensure_ascii=False), encoding="utf-8")
        unfinished.replace(self.path / RUN_FILE)


class Trace:
    """A trace directory that was finished."""

    def __init__(self, path: Path) -> None:
        """Raises ForebayError for what is none, is damaged, or is of a later version."""
        self.path = path
        document = _document(path)
        self._tables: dict[str, dict[str, Any]] = document["tables"]
        known = {item.name for item in fields(Run)}
        self.run = Run(**{key: value for key, value in document.items() if key in known})
        self._verified: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self._tables

    def names(self) -> list[str]:
        """Of the tables that have rows."""
        return sorted(self._tables)

    def rows(self, name: str) -> int:
        return int(self._tables[name]["rows"]) if name in self._tables else 0

    def stored_bytes(self) -> int:
        """Of all tables."""
        return sum(int(table["bytes"]) for table in self._tables.values())

    def table(self, name: str, columns: list[str] | None = None) -> pa.Table:
        """A table, of `columns` alone if given; one without rows if the trace has none. Raises
        ForebayError if its file is not what run.json says."""
        if name not in self._tables:
            empty = tables.SCHEMAS.get(name, pa.schema([])).empty_table()
            return empty if columns is None else empty.select(columns)
        path = self.path / f"{name}.parquet"
        try:
            if name not in self._verified:
                if _digest(path) != self._tables[name]["xxh64"]:
                    raise _damaged(path, "its checksum is not the one in run.json")
                self._verified.add(name)
            return tables.read(name, path, columns)
        except FileNotFoundError as error:
            raise _damaged(path, "the file is missing") from error
        except pa.ArrowInvalid as error:
            raise _damaged(path, str(error)) from error


def paths(names: Iterable[bytes]) -> dict[str, pa.Array]:
    """The columns `path` and `path_bytes` of the table of files."""
    listed = list(names)
    shown = [name.decode(errors="replace") for name in listed]
    kept = [None if s.encode() == name else name for s, name in zip(shown, listed, strict=True)]
    return {"path": pa.array(shown, pa.string()), "path_bytes": pa.array(kept, pa.binary())}


def _damaged(path: Path, why: str) -> ForebayError:
    return ForebayError(
        f"{path} is damaged: {why}", "Capture or import the run again.", exit_code=1
    )


def _digest(path: Path) -> str:
    digest = xxhash.xxh64()
    with path.open("rb") as file:
        while part := file.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()


def checksum(document: dict[str, Any]) -> str:
    """XXH64 of a JSON object but for its key `checksum` (docs/formats/trace-directory.md)."""
    content = {key: value for key, value in document.items() if key != "checksum"}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return xxhash.xxh64_hexdigest(text.encode())


def printable(document: dict[str, Any]) -> dict[str, Any]:
    """`document` with what is no UTF-8 in its strings replaced."""

    def replaced(value: object) -> object:
        if isinstance(value, str):
            return shown(value)
        if isinstance(value, dict):
            return {shown(str(key)): replaced(item) for key, item in value.items()}
        return [replaced(item) for item in value] if isinstance(value, list) else value

    return {key: replaced(value) for key, value in document.items()}


def _document(path: Path) -> dict[str, Any]:
    run_file = path / RUN_FILE
    if not path.is_dir():
        raise ForebayError(
            f"{path} is no trace directory", "'forebay trace' and 'forebay import' make one."
        )
    if not run_file.exists():
        raise ForebayError(
            f"{path} holds no {RUN_FILE}: it is no trace directory, or was not finished",
            "'forebay trace' and 'forebay import' make one.",
        )
    try:
        document = json.loads(run_file.read_bytes())
    except ValueError as error:
        raise _damaged(run_file, f"no JSON ({error})") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ForebayError(f"{run_file} is not that of a trace directory", "Name another one.")
    version = document.get("version")
    if version != VERSION:
        raise ForebayError(
            f"{path} has version {version!r} of the format, and this command reads {VERSION}",
            "Read it with the Forebay that wrote it, or a newer one.",
        )
    if document.get("checksum") != checksum(document):
        raise _damaged(run_file, "its checksum does not fit its content")
    return document

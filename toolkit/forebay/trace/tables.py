"""The tables of a trace directory: their columns in memory, and how those are stored.

In memory the calls have `start_ns`; stored is `since_ns`, from the end of the call before, which
takes fewer bits (docs/decisions/026-times-are-stored-as-gaps.md).
"""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

_WORD = pa.dictionary(pa.int32(), pa.string())
_INT = pa.int64()
_ID = pa.int32()

#: Column to type, of each table that always has the same columns.
SCHEMAS: dict[str, pa.Schema] = {
    "posix": pa.schema(
        {
            "process": _ID,
            "thread": _ID,
            "call": _WORD,
            "within": _WORD,
            "file": _ID,
            "descriptor": _ID,
            "offset": _INT,
            "length": _INT,
            "result": _INT,
            "errno": _ID,
            "argument": _INT,
            "start_ns": _INT,
            "duration_ns": _INT,
        }
    ),
    "mpiio": pa.schema(
        {
            "process": _ID,
            "thread": _ID,
            "call": _WORD,
            "collective": pa.bool_(),
            "file": _ID,
            "opening": _ID,
            "view": _ID,
            "hints": _ID,
            "datatype": _ID,
            "count": _INT,
            "position": _INT,
            "offset": _INT,
            "length": _INT,
            "result": _INT,
            "error": _ID,
            "start_ns": _INT,
            "duration_ns": _INT,
            "completed_ns": _INT,
        }
    ),
    "processes": pa.schema(
        {
            "pid": _INT,
            "parent": _ID,
            "rank": _ID,
            "host": pa.string(),
            "executable": pa.string(),
            "start_ns": _INT,
            "end_ns": _INT,
            "ended": pa.string(),
        }
    ),
    "threads": pa.schema(
        {"process": _ID, "thread": _ID, "tid": _INT, "events": _INT, "lost": _INT}
    ),
    "files": pa.schema(
        {
            "path": pa.string(),
            "path_bytes": pa.binary(),
            "kind": pa.string(),
            "file_system": pa.string(),
            "mount_point": pa.string(),
            "device": _INT,
            "inode": _INT,
            "size_start": _INT,
            "size_end": _INT,
            "stripe_size": _INT,
            "stripe_count": _INT,
            "record": _INT,
        }
    ),
    "openings": pa.schema(
        {
            "process": _ID,
            "file": _ID,
            "rank": _ID,
            "ranks": _ID,
            "amode": pa.string(),
            "mode": pa.string(),
            "hints_asked": _ID,
            "start_ns": _INT,
            "end_ns": _INT,
        }
    ),
    "views": pa.schema(
        {"displacement": _INT, "etype": _ID, "filetype": _ID, "representation": pa.string()}
    ),
    "datatypes": pa.schema(
        {
            "combiner": pa.string(),
            "shape": pa.string(),
            "size": _INT,
            "extent": _INT,
            "lower_bound": _INT,
            "true_lower_bound": _INT,
            "true_extent": _INT,
            "blocks": _INT,
            "block_bytes": _INT,
            "stride": _INT,
        }
    ),
    "hints": pa.schema({"set": _ID, "key": pa.string(), "value": pa.string()}),
    "heatmap": pa.schema(
        {
            "process": _ID,
            "module": pa.string(),
            "bin": _ID,
            "start_ns": _INT,
            "duration_ns": _INT,
            "read_bytes": _INT,
            "write_bytes": _INT,
        }
    ),
}

#: Tables whose rows are calls, sorted by process, thread and start.
CALLS = ("posix", "mpiio")
COUNTERS_PREFIX = "counters_"

_ROW_GROUP = 1 << 20
_SINCE = "since_ns"
# Noise: the bytes of like weight together are what zstd makes the most of.
_NOISE = (_SINCE, "duration_ns")


def conforming(name: str, table: pa.Table) -> pa.Table:
    """`table` with the columns of table `name`: those that it lacks are null, and columns that the
    format does not know follow. Raises KeyError where there is no such table, pa.ArrowInvalid where
    a value does not fit its column."""
    if name.startswith(COUNTERS_PREFIX):
        return table
    schema = SCHEMAS[name]
    known: set[str] = set(schema.names)
    columns = {
        field.name: (
            table.column(field.name).cast(field.type)
            if field.name in table.column_names
            else pa.nulls(table.num_rows, field.type)
        )
        for field in schema
    }
    more = {column: table.column(column) for column in table.column_names if column not in known}
    return pa.table(columns | more)


def integers(table: pa.Table, column: str, null: int = -1) -> NDArray[np.int64]:
    """A column of integers as an array, with `null` where it has no value."""
    values = table.column(column).cast(pa.int64()).fill_null(null).combine_chunks()
    return np.asarray(values.to_numpy(), dtype=np.int64)


def codes(table: pa.Table, column: str) -> tuple[NDArray[np.int64], list[str]]:
    """A column of words as numbers, and the words that they are the places of. -1 is null."""
    words = table.column(column)
    if not pa.types.is_dictionary(words.type):
        words = words.dictionary_encode()
    words = words.unify_dictionaries().combine_chunks()
    if isinstance(words, pa.ChunkedArray):  # of no chunks
        return np.empty(0, np.int64), []
    numbers = words.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    return np.asarray(numbers, dtype=np.int64), [str(word) for word in words.dictionary.to_pylist()]


def _firsts(table: pa.Table) -> NDArray[np.bool_]:
    """Which rows are the first of their thread."""
    process, thread = integers(table, "process"), integers(table, "thread")
    first = np.ones(len(process), np.bool_)
    first[1:] = (process[1:] != process[:-1]) | (thread[1:] != thread[:-1])
    return first


@dataclass
class _LastCall:
    """Where the gap to the first call of the next part is counted from."""

    process: int = -1
    thread: int = -1
    end_ns: int = 0


class TableFile:
    """A table on its way to a file, in parts. Calls come sorted by process, thread and start."""

    def __init__(self, name: str, path: Path) -> None:
        self._name = name
        self._path = path
        self._file: pa.NativeFile | None = None
        self._writer: pq.ParquetWriter | None = None
        self._last = _LastCall()
        self.rows = 0

    def add(self, table: pa.Table) -> None:
        """Appends rows. Raises ValueError if calls are not sorted."""
        table = conforming(self._name, table)
        if self._name in CALLS:
            table = self._as_gaps(table)
        if self._writer is None:
            self._file = opened(self._path, "wb")
            self._writer = _writer(self._file, table.schema)
        self._writer.write_table(table.cast(self._writer.schema), row_group_size=_ROW_GROUP)
        self.rows += table.num_rows

    def close(self) -> None:
        if self._writer is not None and self._file is not None:
            self._writer.close()
            self._file.close()

    def _as_gaps(self, table: pa.Table) -> pa.Table:
        start, duration = integers(table, "start_ns"), integers(table, "duration_ns")
        if table.column("start_ns").null_count or table.column("duration_ns").null_count:
            raise ValueError(f"a call of table {self._name} has no time")
        first = _firsts(table)
        end = start + duration
        since = start.copy()
        since[1:] -= np.where(first[1:], 0, end[:-1])
        if len(start):
            if np.any((start[1:] < start[:-1]) & ~first[1:]):
                raise ValueError(f"the calls of table {self._name} are not sorted by their start")
            process, thread = integers(table, "process"), integers(table, "thread")
            if (process[0], thread[0]) == (self._last.process, self._last.thread):
                since[0] -= self._last.end_ns
            self._last = _LastCall(int(process[-1]), int(thread[-1]), int(end[-1]))
        place = table.column_names.index("start_ns")
        return table.set_column(place, _SINCE, pa.array(since))


def opened(path: Path, mode: str) -> pa.NativeFile:
    """Arrow takes paths that are no UTF-8 as bytes alone."""
    return pa.OSFile(os.fsencode(path), mode)


def _writer(file: pa.NativeFile, schema: pa.Schema) -> pq.ParquetWriter:
    encodings, words = {}, []
    for field in schema:
        if field.name in _NOISE:
            encodings[field.name] = "BYTE_STREAM_SPLIT"
        elif pa.types.is_integer(field.type):
            encodings[field.name] = "DELTA_BINARY_PACKED"
        elif pa.types.is_list(field.type):
            words.append(f"{field.name}.list.element")
        else:
            words.append(field.name)
    return pq.ParquetWriter(
        file,
        schema,
        compression="zstd",
        use_dictionary=words or False,
        column_encoding=encodings or None,
        write_page_checksum=True,
    )


def read(name: str, path: Path, columns: list[str] | None = None) -> pa.Table:
    """The table in a file, with `start_ns`; of `columns` alone if given. Raises pa.ArrowInvalid or
    OSError for what is no such table."""
    if columns is not None and name in CALLS:
        stored = [_SINCE if column == "start_ns" else column for column in columns]
        if _SINCE in stored:
            stored += ["process", "thread", "duration_ns"]
        table = _stored(path, list(dict.fromkeys(stored)))
    else:
        table = _stored(path, columns)
    if _SINCE in table.column_names:
        table = _with_starts(table)
    return table if columns is None else table.select(columns)


def _stored(path: Path, columns: list[str] | None) -> pa.Table:
    # pq.read_table would import what data sets of files need.
    with opened(path, "rb") as source, pq.ParquetFile(source) as file:
        missing = set(columns or ()).difference(file.schema_arrow.names)
        if missing:
            raise pa.ArrowInvalid(f"there is no column {', '.join(sorted(missing))}")
        return file.read(columns)


def _with_starts(table: pa.Table) -> pa.Table:
    since, duration = integers(table, _SINCE), integers(table, "duration_ns")
    ends = np.cumsum(since + duration)
    first = np.flatnonzero(_firsts(table))
    before = np.concatenate(([0], ends))[first]  # the running sum where each thread begins
    counts = np.diff(np.append(first, len(since)))
    start = ends - duration - np.repeat(before, counts)
    place = table.column_names.index(_SINCE)
    return table.set_column(place, "start_ns", pa.array(start))

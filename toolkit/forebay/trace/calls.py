"""What kind of thing a call in a trace does."""

import re
from collections.abc import Collection
from enum import IntEnum

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from forebay.trace import tables


class Kind(IntEnum):
    """What a call does to a file."""

    READ = 0
    WRITE = 1
    OPEN = 2
    CLOSE = 3
    SYNC = 4
    SEEK = 5
    STAT = 6
    MAP = 7
    OTHER = 8
    REMOVE = 9
    RENAME = 10
    LOCK = 11


DATA = (Kind.READ, Kind.WRITE)

_POSIX = {
    Kind.READ: "read pread readv preadv preadv2 aio_read fread fread_unlocked fgets fgetc getline "
    "getdelim fscanf scanf",
    Kind.WRITE: "write pwrite writev pwritev pwritev2 aio_write dprintf fwrite fwrite_unlocked "
    "fputs fputc puts fprintf printf",
    Kind.OPEN: "open openat openat2 creat fopen fdopen freopen tmpfile "
    "mkstemp mkostemp mkstemps mkostemps",
    Kind.CLOSE: "close fclose close_range closefrom",
    Kind.SYNC: "fsync fdatasync sync_file_range syncfs sync msync fflush",
    Kind.SEEK: "lseek fseek fseeko rewind fsetpos",
    Kind.STAT: "stat fstat lstat fstatat newfstatat statx access faccessat",
    Kind.MAP: "mmap munmap mremap",
    Kind.REMOVE: "unlink unlinkat",
    Kind.RENAME: "rename renameat renameat2",
    Kind.LOCK: "flock fcntl lockf",
}
_KIND_OF_POSIX = {call: kind for kind, calls in _POSIX.items() for call in calls.split()}

# By stream and not by descriptor: those that move data, and all.
STREAM_MOVES = frozenset(
    {"fread", "fread_unlocked", "fgets", "fgetc", "getline", "getdelim", "fscanf", "scanf"}
    | {"fwrite", "fwrite_unlocked", "fputs", "fputc", "puts", "fprintf", "printf"}
)
STREAMS = STREAM_MOVES | {
    *("fopen", "fdopen", "freopen", "fclose", "fflush", "fseek", "fseeko", "rewind", "fsetpos"),
    *("fwide", "tmpfile"),
}

# Have two rows: what is read, with argument 0, and what is written, with 1. A side that is no file,
# as one of `splice` always, has none.
COPIES = frozenset({"copy_file_range", "sendfile", "splice"})

# The end of a split call moves nothing: its beginning has the sizes.
_MPI_DATA = re.compile(
    r"MPI_File_(?P<nonblocking>i?)(?P<what>read|write)(?:_at|_shared|_ordered)?(?:_all)?"
    r"(?P<split>_begin)?"
)
_MPI = {
    "MPI_File_open": Kind.OPEN,
    "MPI_File_close": Kind.CLOSE,
    "MPI_File_sync": Kind.SYNC,
    "MPI_File_seek": Kind.SEEK,
    "MPI_File_seek_shared": Kind.SEEK,
    "MPI_File_get_size": Kind.STAT,
}


def kind_of(call: str) -> Kind:
    """The kind of the call of this name, of libc or MPI."""
    if call in _MPI:
        return _MPI[call]
    if match := _MPI_DATA.fullmatch(call):
        return Kind.READ if match["what"] == "read" else Kind.WRITE
    return _KIND_OF_POSIX.get(call, Kind.OTHER)


def is_split(call: str) -> bool:
    """Whether a data call of MPI-IO is the beginning of one that is ended by another."""
    match = _MPI_DATA.fullmatch(call)
    return match is not None and bool(match["split"])


def is_nonblocking(call: str) -> bool:
    match = _MPI_DATA.fullmatch(call)
    return match is not None and bool(match["nonblocking"])


def kinds(table: pa.Table) -> NDArray[np.int64]:
    """The Kind of each row. Without the column `argument`, a copy is of Kind.OTHER."""
    numbers, words = tables.codes(table, "call")
    of_word = np.array([*(kind_of(word) for word in words), Kind.OTHER], dtype=np.int64)
    found = of_word[numbers]
    if "argument" in table.column_names and not COPIES.isdisjoint(words):
        side = tables.integers(table, "argument")
        copies = marked(table, COPIES)
        found[copies & (side == 0)] = Kind.READ
        found[copies & (side == 1)] = Kind.WRITE
    return found


def marked(table: pa.Table, wanted: Collection[str]) -> NDArray[np.bool_]:
    """Which rows are calls of these names."""
    numbers, words = tables.codes(table, "call")
    return np.array([*(word in wanted for word in words), False], dtype=np.bool_)[numbers]


def moved_bytes(table: pa.Table) -> NDArray[np.int64]:
    """What each data call transferred: what it returned, or if that is not known what it asked."""
    result, length = tables.integers(table, "result"), tables.integers(table, "length", 0)
    known = np.asarray(table.column("result").is_valid().combine_chunks().to_numpy(False))
    return np.where(known, np.maximum(result, 0), np.maximum(length, 0))

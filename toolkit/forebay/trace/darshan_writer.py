"""A Darshan log on its way to a file, written by the library that PyDarshan carries.

The library writes each region as it comes, so the order of the calls is that of the log: the names
of all records, then the records module by module.
"""

import functools
import itertools
import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import cffi
import numpy as np
from darshan.backend import cffi_backend
from darshan.discover_darshan import find_utils
from numpy.typing import NDArray

from forebay.trace.darshan_log import SEGMENT, DarshanLog

_ffi = cffi.FFI()
_ffi.include(cffi_backend.ffi)
# What PyDarshan declares is for reading. A name is written from memory that holds the id and, right
# behind it, the characters; of the hash that links them (uthash) only `next` is followed.
_ffi.cdef(
    """
    struct forebay_name {
        void *id_and_characters;
        void *table;
        void *previous;
        void *next;
        void *unused[4];
    };
    struct forebay_module_functions {
        int (*get_record)(void *log, void **record);
        int (*put_record)(void *log, void *record);
    };
    void darshan_log_close(void *log);
    void *darshan_log_create(const char *path, int compression, int partial);
    int darshan_log_put_job(void *log, struct darshan_job *job);
    int darshan_log_put_exe(void *log, char *command);
    int darshan_log_put_mounts(void *log, struct darshan_mnt_info *mounts, int count);
    int darshan_log_put_namehash(void *log, struct forebay_name *first);
    int darshan_log_put_mod(void *log, int module, void *content, int size, int version);
    extern struct forebay_module_functions posix_logutils;
    extern struct forebay_module_functions mpiio_logutils;
    extern struct forebay_module_functions stdio_logutils;
    extern struct forebay_module_functions dxt_posix_logutils;
    extern struct forebay_module_functions dxt_mpiio_logutils;
    """
)
_library = find_utils(_ffi, None)

_ZLIB = 0
# The library compresses into memory of 1 MiB. If that is just full at the end of a region it gives
# up and removes the log; another byte makes room first. So a record's last bytes come one by one.
_ONE_BY_ONE = 16
_NAME_MAX = 4095  # bytes: the library copies a name into so much memory
# The command and the mounts share so much memory, which the library overruns without a word.
_TEXTS_MAX = 3014
_METADATA_MAX = 1000
_COMMAND_MAX = 2800

_NO_TYPE = "unknown"  # of a mount: a log has no place for none
_RECORD_MAX = 4096  # bytes of a record without segments

# In the order of the modules in a log.
_FUNCTIONS = {
    "POSIX": "posix_logutils",
    "MPI-IO": "mpiio_logutils",
    "STDIO": "stdio_logutils",
    "DXT_POSIX": "dxt_posix_logutils",
    "DXT_MPIIO": "dxt_mpiio_logutils",
}
_WORDS = {"POSIX": "POSIX", "MPI-IO": "MPIIO", "STDIO": "STDIO"}

_HEADER = np.dtype(
    [
        ("record", "<u8"),
        ("rank", "<i8"),
        ("shared", "<i8"),
        ("host", "S64"),
        ("writes", "<i8"),
        ("reads", "<i8"),
    ]
)


def _cut(text: bytes, most: int) -> bytes:
    """At most so many bytes, and no part of a character at the end: PyDarshan reads only UTF-8."""
    return text if len(text) <= most else text[:most].decode(errors="ignore").encode()


class _NotWrittenError(Exception):
    """The library could not write a part of the log."""


class DarshanWriter:
    """Creates a log, which must not be there yet, that says of the modules `partial` that they do
    not hold all. Raises OSError where that fails, as a context also for what was put. The library
    speaks of it on standard error, too."""

    def __init__(self, path: Path, partial: Iterable[str] = ()) -> None:
        self._room = _TEXTS_MAX  # for the mounts
        self._errno = 0
        flags = sum(1 << cffi_backend.mod_name_to_idx(module) for module in partial)
        self._log = _library.darshan_log_create(bytes(path), _ZLIB, flags)
        self._path = path
        if self._log == _ffi.NULL:
            raise self._refused(_ffi.errno, "the beginning")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _ffi.errno = 0
        _library.darshan_log_close(self._log)
        if isinstance(error, _NotWrittenError):
            # Where the disk is full, often a part is written and only the rest is refused, here.
            raise self._refused(self._errno or _ffi.errno, str(error)) from error
        if kind is None and not self._path.exists():  # the library removes what it cannot end
            raise self._refused(_ffi.errno, "the end")

    def _refused(self, number: int, what: str) -> OSError:
        why = os.strerror(number) if number else f"Darshan's library cannot write {what}"
        return OSError(number, why, str(self._path))

    def _put_part(self, what: str, function: Callable[..., int], *arguments: object) -> None:
        _ffi.errno = 0
        if function(self._log, *arguments) != 0:
            self._errno = _ffi.errno
            raise _NotWrittenError(what)

    def put_job(
        self,
        processes: int,
        start_ns: int,
        end_ns: int,
        job: tuple[int, int],
        hints: Sequence[str],
    ) -> None:
        """`job`: its id and its user's. Times since 1970. Of the hints, as many as there is room
        for; those that Darshan's tools could not tell apart again are left out."""
        record = _ffi.new("struct darshan_job *")
        record.jobid, record.uid = job
        record.nprocs = processes
        record.start_time_sec, record.start_time_nsec = divmod(start_ns, 1_000_000_000)
        record.end_time_sec, record.end_time_nsec = divmod(end_ns, 1_000_000_000)
        text = "lib_ver=forebay\nh="
        plain = [hint for hint in hints if hint.count("=") == 1 and not set(hint) & set(";\n")]
        room = _METADATA_MAX - len(text) - 1
        sizes = itertools.accumulate(len(hint.encode()) + 1 for hint in plain)
        written = itertools.takewhile(lambda pair: pair[1] <= room, zip(plain, sizes, strict=True))
        record.metadata = f"{text}{';'.join(hint for hint, _ in written)}\n".encode()
        self._put_part("the job", _library.darshan_log_put_job, record)

    def put_command(self, command: str) -> None:
        """On one line: in a log the mounts are the lines behind it."""
        line = command.replace("\n", " ")
        text = _ffi.new("char[]", _cut(line.encode(errors="replace"), _COMMAND_MAX))
        self._room = _TEXTS_MAX - len(_ffi.string(text))
        self._put_part("the command", _library.darshan_log_put_exe, text)

    def put_mounts(self, mounts: Sequence[tuple[str, str]]) -> None:
        """Mount points and types of file systems. Darshan's tools take a file to be on the first
        whose name its own begins with, so the longest come first, and as many
        as there is room for. In a log white space ends a name, so those with some are left out."""
        words = [(point, kind or _NO_TYPE) for point, kind in mounts]
        named = [tuple(word.encode(errors="replace") for word in mount) for mount in words]
        named = [mount for mount in named if all(word.split() == [word] for word in mount)]
        named.sort(key=lambda mount: -len(mount[0]))
        fitting, room = [], self._room
        for mount in named:
            size = sum(len(word) + 1 for word in mount)
            if size <= room:
                fitting.append(mount)
                room -= size
        if not fitting and self._room < _TEXTS_MAX:
            # Without any, the library finds no end of the command, and gives none.
            fitting = [(b"/", _NO_TYPE.encode())]
        listed = _ffi.new("struct darshan_mnt_info[]", max(1, len(fitting)))
        for entry, (point, kind) in zip(listed, fitting, strict=False):
            entry.mnt_path, entry.mnt_type = point, kind
        self._put_part("the mounts", _library.darshan_log_put_mounts, listed, len(fitting))

    def put_names(self, names: Iterable[tuple[int, bytes]]) -> None:
        """The id and the path of each record, without bytes from a NUL on, or beyond 4095."""
        contents = [
            _ffi.from_buffer(
                record.to_bytes(8, "little") + _cut(name.partition(b"\0")[0], _NAME_MAX) + b"\0"
            )
            for record, name in names
        ]
        links = _ffi.new("struct forebay_name[]", max(1, len(contents)))
        for i, content in enumerate(contents):
            links[i].id_and_characters = content
            if i:
                links[i - 1].next = links + i
        first = links if contents else _ffi.NULL
        self._put_part("the names", _library.darshan_log_put_namehash, first)

    def put_counters(
        self,
        module: str,
        records: NDArray[np.uint64],
        ranks: NDArray[np.int64],
        columns: dict[str, NDArray[np.generic]],
    ) -> None:
        """Records of POSIX, MPI-IO or STDIO. Counters that are not in `columns` are 0."""
        word, count = _WORDS[module], len(records)

        def block(names: list[str], kind: str) -> NDArray[np.generic]:
            zeros = np.zeros(count, kind)
            return np.stack([columns.get(name, zeros).astype(kind) for name in names], axis=1)

        parts = (
            records.astype("<u8")[:, None].view("u1"),
            ranks.astype("<i8")[:, None].view("u1"),
            block(cffi_backend.counter_names(word), "<i8").view("u1"),
            block(cffi_backend.counter_names(word, fcnts=True), "<f8").view("u1"),
        )
        for row in np.ascontiguousarray(np.concatenate(parts, axis=1)):
            self._put(module, row.tobytes())

    def put_segments(
        self,
        module: str,
        record: int,
        rank: int,
        host: str,
        writes: NDArray[np.void],
        reads: NDArray[np.void],
    ) -> None:
        """A record of DXT_POSIX or DXT_MPIIO; segments are of `darshan_log.SEGMENT`."""
        header = np.zeros((), _HEADER)
        header["record"], header["rank"] = record, rank
        header["host"] = _cut(host.encode(errors="replace"), 63)
        header["writes"], header["reads"] = len(writes), len(reads)
        content = (
            header.tobytes() + writes.astype(SEGMENT).tobytes() + reads.astype(SEGMENT).tobytes()
        )
        self._put(module, content)

    def _put(self, module: str, record: bytes) -> None:
        index, version = cffi_backend.mod_name_to_idx(module), _versions()[module]
        last = len(record) - _ONE_BY_ONE
        for part in (record[:last], *(record[i : i + 1] for i in range(last, len(record)))):
            arguments = index, _ffi.from_buffer(part), len(part), version
            self._put_part(f"a record of {module}", _library.darshan_log_put_mod, *arguments)

    def put_empty_record(self, module: str) -> None:
        """A record of zeros, of the version that the library has."""
        functions = getattr(_library, _FUNCTIONS[module])
        record = _ffi.new("char[]", _RECORD_MAX)
        self._put_part(f"a record of {module}", functions.put_record, record)


@functools.cache
def _versions() -> dict[str, int]:
    """The version of each module's records that the library writes: it tells in logs alone."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "empty.darshan"
        with DarshanWriter(path) as writer:
            writer.put_job(1, 0, 0, (0, 0), [])
            writer.put_command("")
            writer.put_mounts([])
            writer.put_names([(0, b"")])
            for module in _FUNCTIONS:
                writer.put_empty_record(module)
        log = DarshanLog(path)
        found = {name: module.version for name, module in log.modules().items()}
        log.close()
    return found

"""Darshan logs, read through the library that PyDarshan carries.

PyDarshan's own functions read a segment of DXT at a time, take every failure for the end of a
module, and decode names as UTF-8 whatever they are. So this goes to the library beneath them, with
PyDarshan's declarations of it.

On a damaged log the library may end the process: read logs in a process of their own
(`darshan_import`).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from darshan.backend import cffi_backend
from numpy.typing import NDArray

_ffi = cffi_backend.ffi
_library = cffi_backend.libdutil

_EXE_MAX = 4096  # DARSHAN_EXE_LEN of the library

SEGMENT = np.dtype([("offset", "<i8"), ("length", "<i8"), ("start", "<f8"), ("end", "<f8")])

#: Modules whose records are two arrays of counters: the struct of their record, and the word in the
#: names of the counters.
_COUNTED = {
    "POSIX": ("darshan_posix_file", "POSIX"),
    "MPI-IO": ("darshan_mpiio_file", "MPIIO"),
    "STDIO": ("darshan_stdio_file", "STDIO"),
    "H5F": ("darshan_hdf5_file", "H5F"),
    "H5D": ("darshan_hdf5_dataset", "H5D"),
    "PNETCDF_FILE": ("darshan_pnetcdf_file", "PNETCDF_FILE"),
    "PNETCDF_VAR": ("darshan_pnetcdf_var", "PNETCDF_VAR"),
    "BG/Q": ("darshan_bgq_record", "BGQ"),
    "DFS": ("darshan_dfs_file", "DFS"),
    "DAOS": ("darshan_daos_object", "DAOS"),
}
COUNTED = tuple(_COUNTED)
DXT = ("DXT_POSIX", "DXT_MPIIO")
_IN_A_FILE = ("H5D", "PNETCDF_VAR")


class DamagedLogError(Exception):
    """The library found something wrong."""


@dataclass(frozen=True)
class Module:
    """A part of a log. `partial`: its memory was full, and what came then is not in it."""

    index: int
    version: int
    partial: bool


@dataclass(frozen=True)
class Counters:
    """All records of a module. `ranks` is -1 where the record is of all ranks; `files` are the
    records of the files that H5D's and PNETCDF_VAR's are in."""

    records: NDArray[np.uint64]
    ranks: NDArray[np.int64]
    files: NDArray[np.uint64] | None
    columns: dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Segments:
    """What DXT kept of one file and rank: fields `offset`, `length` in bytes and `start`, `end` in
    seconds after the job's start."""

    record: int
    rank: int
    host: str
    writes: NDArray[np.void]
    reads: NDArray[np.void]


@dataclass(frozen=True)
class Layout:
    """A component of a file's layout on Lustre."""

    record: int
    rank: int
    counters: dict[str, int]
    pool: str
    osts: list[int]


@dataclass(frozen=True)
class Bins:
    """What one rank read and wrote by one module, in bins of equal time."""

    record: int
    rank: int
    width_s: float
    read: NDArray[np.int64]
    written: NDArray[np.int64]


class DarshanLog:
    """An open log. Each module can be read once. Raises DamagedLogError where the library fails."""

    def __init__(self, path: Path) -> None:
        self._handle = _library.darshan_log_open(bytes(path))
        if self._handle == _ffi.NULL:
            raise DamagedLogError("no Darshan log")
        self._log = {"handle": self._handle, "modules": None, "name_records": None}

    def close(self) -> None:
        _library.darshan_log_close(self._handle)

    def job(self) -> dict[str, Any]:
        """uid, jobid, nprocs, start_time_sec and _nsec, run_time (s), log_ver, metadata."""
        record = _ffi.new("struct darshan_job *")
        if _library.darshan_log_get_job(self._handle, record) != 0:
            raise DamagedLogError("the job cannot be read")
        seconds = _ffi.new("double *")
        _library.darshan_log_get_job_runtime(self._handle, record[0], seconds)
        pairs = [line.partition("=") for line in _text(record.metadata).split("\n") if line]
        return {
            "uid": int(record.uid),
            "jobid": int(record.jobid),
            "nprocs": int(record.nprocs),
            "start_time_sec": int(record.start_time_sec),
            "start_time_nsec": int(record.start_time_nsec),
            "run_time": float(seconds[0]),
            # The version of the format stands at the beginning of what the handle points to.
            "log_ver": _text(_ffi.cast("char *", self._handle)),
            "metadata": {key: value for key, _, value in pairs},
        }

    def command(self) -> str:
        """Program and arguments; from long ones the end is missing."""
        text = _ffi.new("char[]", _EXE_MAX + 1)
        if _library.darshan_log_get_exe(self._handle, text) != 0:
            raise DamagedLogError("the command cannot be read")
        return _text(text)

    def mounts(self) -> list[tuple[str, str]]:
        """Mount points and types of file systems."""
        found, count = _ffi.new("struct darshan_mnt_info **"), _ffi.new("int *")
        if _library.darshan_log_get_mounts(self._handle, found, count) != 0:
            raise DamagedLogError("the mounts cannot be read")
        listed = [
            (_text(found[0][i].mnt_path), _text(found[0][i].mnt_type)) for i in range(count[0])
        ]
        if count[0]:
            _library.darshan_free(found[0])
        return listed

    def modules(self) -> dict[str, Module]:
        return {
            name: Module(int(found["idx"]), int(found["ver"]), bool(found["partial_flag"]))
            for name, found in cffi_backend.log_get_modules(self._log).items()
        }

    def names(self) -> dict[int, bytes]:
        """The path, or other name, of each record."""
        found, count = _ffi.new("struct darshan_name_record **"), _ffi.new("int *")
        _library.darshan_log_get_name_records(self._handle, found, count)
        names = {}
        for i in range(count[0]):
            names[int(found[0][i].id)] = bytes(_ffi.string(found[0][i].name))
            _library.darshan_free(found[0][i].name)
        if count[0]:
            _library.darshan_free(found[0])
        return names

    def counters(self, module: str) -> Counters:
        """The records of a module in COUNTED."""
        struct, word = _COUNTED[module]
        integers = cffi_backend.counter_names(word)
        floats = cffi_backend.counter_names(word, fcnts=True)
        rows = []
        for pointer in self._records(module):
            record = _ffi.cast(f"struct {struct} *", pointer)
            rows.append(
                (
                    record.base_rec.id,
                    record.base_rec.rank,
                    record.file_rec_id if module in _IN_A_FILE else 0,
                    np.frombuffer(_ffi.buffer(record.counters), np.int64).copy(),
                    np.frombuffer(_ffi.buffer(record.fcounters), np.float64).copy(),
                )
            )
        columns: dict[str, NDArray[Any]] = {}
        if rows:
            columns |= dict(zip(integers, np.array([row[3] for row in rows]).T, strict=True))
            columns |= dict(zip(floats, np.array([row[4] for row in rows]).T, strict=True))
        return Counters(
            np.array([row[0] for row in rows], np.uint64),
            np.array([row[1] for row in rows], np.int64),
            np.array([row[2] for row in rows], np.uint64) if module in _IN_A_FILE else None,
            columns,
        )

    def segments(self, module: str) -> Iterator[Segments]:
        """The records of a module in DXT."""
        header = _ffi.sizeof("struct dxt_file_record")
        for pointer in self._records(module):
            record = _ffi.cast("struct dxt_file_record *", pointer)
            writes, reads = int(record.write_count), int(record.read_count)
            size = (writes + reads) * SEGMENT.itemsize
            content = _ffi.buffer(_ffi.cast("char *", pointer) + header, size)
            both = np.frombuffer(content, SEGMENT).copy()
            yield Segments(
                int(record.base_rec.id),
                int(record.base_rec.rank),
                _text(record.hostname),
                both[:writes],
                both[writes:],
            )

    def layouts(self) -> Iterator[Layout]:
        """The records of LUSTRE, a component at a time."""
        names = cffi_backend.counter_names("LUSTRE_COMP")
        for pointer in self._records("LUSTRE"):
            record = _ffi.cast("struct darshan_lustre_record *", pointer)
            first = 0
            for i in range(record.num_comps):
                component = record.comps[i]
                counters = dict(zip(names, map(int, component.counters), strict=True))
                count = max(0, counters["LUSTRE_COMP_STRIPE_COUNT"])
                last = min(first + count, int(record.num_stripes))
                yield Layout(
                    int(record.base_rec.id),
                    int(record.base_rec.rank),
                    counters,
                    _text(component.pool_name),
                    [int(record.ost_ids[j]) for j in range(first, last)],
                )
                first = last

    def bins(self) -> Iterator[Bins]:
        """The records of HEATMAP."""
        for pointer in self._records("HEATMAP"):
            record = _ffi.cast("struct darshan_heatmap_record *", pointer)
            size = int(record.nbins) * 8
            yield Bins(
                int(record.base_rec.id),
                int(record.base_rec.rank),
                float(record.bin_width_seconds),
                np.frombuffer(_ffi.buffer(record.read_bins, size), np.int64).copy(),
                np.frombuffer(_ffi.buffer(record.write_bins, size), np.int64).copy(),
            )

    def _records(self, module: str) -> Iterator[Any]:
        """Pointers to the records of a module, each valid until the next."""
        index = self.modules()[module].index
        while True:
            record = _ffi.new("void **")
            outcome = _library.darshan_log_get_record(self._handle, index, record)
            if outcome < 0:
                raise DamagedLogError(f"a record of {module} cannot be read")
            if outcome == 0 or record[0] == _ffi.NULL:
                return
            try:
                yield record[0]
            finally:
                _library.darshan_free(record[0])


def _text(characters: Any) -> str:  # noqa: ANN401  what cffi has is untyped
    return bytes(_ffi.string(characters)).decode(errors="replace")

"""Darshan logs made into trace directories."""

import contextlib
import multiprocessing
import os
import re
import signal
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from forebay import job
from forebay.errors import ForebayError
from forebay.output_paths import require_new_directory
from forebay.trace.directory import Run, TraceWriter, paths, remove_made
from forebay.trace.tables import COUNTERS_PREFIX
from forebay.units import show_count

if TYPE_CHECKING:
    from forebay.trace.darshan_log import Counters, DarshanLog, Module, Segments

# A rank's events of one module: process, file, offset, length, start, duration and whether a write.
_Columns = dict[str, NDArray[Any]]

_STANDARD = (b"<STDIN>", b"<STDOUT>", b"<STDERR>")
_NANOSECONDS = 1e9
# Of DXT_MPIIO; the segments of earlier ones have no offsets.
_VERSION_WITH_OFFSETS = 2


@dataclass(frozen=True)
class Imported:
    """What came out of a log."""

    calls: int
    counters: int  # records of counters
    files: int
    notes: list[str]


def import_log(log: Path, directory: Path) -> Imported:
    """Makes the trace directory of a log, in a process of its own: Darshan's library ends the one
    that it reads some damaged logs in. Raises ForebayError for what is no whole log."""
    if log.is_dir():
        raise ForebayError(f"{log} is a directory", "Name one .darshan log.")
    require_new_directory(directory)
    is_made = not directory.exists()
    try:
        with job.terminate_as_interrupt():
            outcome = _in_a_process(log.absolute(), directory)
    except BrokenProcessPool as error:
        remove_made(directory, is_made)
        raise _damaged(log, "Darshan's library broke down on it") from error
    except KeyboardInterrupt:
        remove_made(directory, is_made)
        raise
    if isinstance(outcome, str):
        # What was written is no trace, also where all of it was before the library complained.
        remove_made(directory, is_made)
        raise _damaged(log, outcome)
    return outcome


def _in_a_process(log: Path, directory: Path) -> "Imported | str":
    """Raises BrokenProcessPool. Of an interrupt the process need not know: it is ended."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        try:
            with _interrupts_held_back():  # while it loads: it inherits this
                future = pool.submit(_import_quietly, log, directory)
            return future.result()
        except KeyboardInterrupt:
            for process in multiprocessing.active_children():
                process.terminate()
            raise


@contextlib.contextmanager
def _interrupts_held_back() -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _damaged(log: Path, why: str) -> ForebayError:
    reason, advice = _of_versions(why) or (why, _NO_WHOLE_LOG)
    return ForebayError(f"{log} cannot be imported: {reason}", advice, exit_code=1)


_NO_WHOLE_LOG = (
    "It is no Darshan log, or a truncated or damaged one; 'darshan-parser' may say more."
)
_NEWER_LIBRARY = "A newer PyDarshan may read it: pip install --upgrade darshan."


def _of_versions(why: str) -> tuple[str, str] | None:
    """Reason and advice where Darshan's library complains of a version that it does not read."""
    log = re.search(r"expected version (\d+)\.(\d+), but got (\d+)\.(\d+)", why)
    if log is not None:
        known, found = log.group(1, 2), log.group(3, 4)
        reason = (
            f"it is of version {'.'.join(found)} of the format, and Darshan's library here reads "
            f"none {{}} {'.'.join(known)}"
        )
        if tuple(map(int, found)) > tuple(map(int, known)):
            return reason.format("beyond"), _NEWER_LIBRARY
        return reason.format("so long before"), "Read it with the Darshan that wrote it."
    module = re.search(r"Invalid (.+?) module version number \(got (\d+)\)", why)
    if module is not None:
        name, version = module.groups()
        return (
            f"Darshan's library here does not know version {version} of its module {name}",
            _NEWER_LIBRARY,
        )
    return None


def _import_quietly(log: Path, directory: Path) -> Imported | str:
    """What came out, or why nothing did. The library tells its errors on standard error alone."""
    from forebay.trace.darshan_log import DamagedLogError

    with tempfile.TemporaryFile() as told:
        os.dup2(told.fileno(), 2)
        reason = ""
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
            imported = import_here(log, directory)
        except DamagedLogError as error:
            reason = str(error)
        told.seek(0)
        lines = told.read().decode(errors="replace").splitlines()
    errors = [line.removeprefix("Error: ") for line in lines if line.startswith("Error:")]
    if reason or errors:
        return ", ".join(dict.fromkeys(text.rstrip(". ") for text in [reason, *errors] if text))
    return imported


def import_here(log_path: Path, directory: Path) -> Imported:
    """As `import_log`, in this process. Raises DamagedLogError, and may not come back."""
    from forebay.trace.darshan_log import DarshanLog

    log = DarshanLog(log_path)
    try:
        with TraceWriter(directory) as writer:
            return _Import(log, log_path, writer).carry_out()
    finally:
        log.close()


class _Import:
    def __init__(self, log: "DarshanLog", log_path: Path, writer: TraceWriter) -> None:
        self._log = log
        self._log_path = log_path
        self._job = log.job()
        self._modules: dict[str, Module] = log.modules()
        self._mounts = log.mounts()
        self._names = log.names()
        self._files = {record: number for number, record in enumerate(self._names)}
        self._stripes: dict[int, tuple[int, int]] = {}
        self._hosts: dict[int, str] = {}
        self._notes: list[str] = []
        self._ranks = max(1, self._job["nprocs"])
        self._counted = 0
        self._calls = 0
        self._last_ns = 0
        self._writer = writer

    def carry_out(self) -> Imported:
        from forebay.trace import darshan_log

        for module in self._modules:
            if module in darshan_log.COUNTED:
                self._add_counters(module)
            elif module == "LUSTRE":
                self._add_layouts()
            elif module == "HEATMAP":
                self._add_bins()
            elif module not in darshan_log.DXT:
                self._notes.append(f"the log's module {module} was left out")
        self._add_calls("DXT_POSIX", "posix", ("read", "write"))
        self._add_calls("DXT_MPIIO", "mpiio", ("MPI_File_read", "MPI_File_write"))
        self._add_processes()
        self._add_files()
        self._writer.finish(self._run())
        return Imported(self._calls, self._counted, len(self._names), self._notes)

    def _met(self, rank: int) -> None:
        """A record is of `rank`, which may be one more than the job has."""
        self._ranks = max(self._ranks, rank + 1)

    def _file(self, record: int) -> int | None:
        return self._files.get(record)

    def _add_counters(self, module: str) -> None:
        counters = self._log.counters(module)
        if len(counters.records) == 0:
            return
        table: dict[str, Any] = self._identity(counters.records, counters.ranks)
        if counters.files is not None:
            table["file_record"] = pa.array(counters.files.view(np.int64))
        table |= {name: pa.array(values) for name, values in counters.columns.items()}
        self._writer.add(_counters_table(module), pa.table(table))
        self._counted += len(counters.records)
        if module == "MPI-IO":
            self._note_hints(counters)

    def _note_hints(self, counters: "Counters") -> None:
        """What the job's metadata has as `h` are no hints of the program, but those that Darshan
        writes its own log with."""
        files = len(np.unique(counters.records[counters.columns["MPIIO_HINTS"] > 0]))
        if files:
            self._notes.append(
                f"{show_count(files)} {'file was' if files == 1 else 'files were'} opened with "
                "hints (MPI_Info): Darshan counts them, and does not say which"
            )

    def _identity(
        self, records: NDArray[np.uint64], ranks: NDArray[np.int64]
    ) -> dict[str, pa.Array]:
        files = [self._file(int(record)) for record in records]
        self._met(int(ranks.max(initial=0)))
        return {
            "process": pa.array(ranks.astype(np.int32), pa.int32(), mask=ranks < 0),
            "file": pa.array(files, pa.int32()),
            "record": pa.array(records.view(np.int64)),
            "rank": pa.array(ranks),
        }

    def _add_layouts(self) -> None:
        layouts = list(self._log.layouts())
        if not layouts:
            return
        for layout in layouts:
            size = layout.counters["LUSTRE_COMP_STRIPE_SIZE"]
            count = layout.counters["LUSTRE_COMP_STRIPE_COUNT"]
            if size > 0 and count > 0:
                self._stripes.setdefault(layout.record, (size, count))
        table: dict[str, Any] = self._identity(
            np.array([layout.record for layout in layouts], np.uint64),
            np.array([layout.rank for layout in layouts], np.int64),
        )
        for name in layouts[0].counters:
            table[name] = pa.array([layout.counters[name] for layout in layouts], pa.int64())
        table["LUSTRE_POOL_NAME"] = pa.array([layout.pool for layout in layouts], pa.string())
        table["LUSTRE_OST_IDS"] = pa.array(
            [layout.osts for layout in layouts], pa.list_(pa.int64())
        )
        self._writer.add(_counters_table("LUSTRE"), pa.table(table))
        self._counted += len(layouts)

    def _add_bins(self) -> None:
        parts = []
        for bins in self._log.bins():
            used = np.flatnonzero((bins.read > 0) | (bins.written > 0))
            width_ns = round(bins.width_s * _NANOSECONDS)
            name = self._names.get(bins.record, b"").decode(errors="replace")
            rank = bins.rank if bins.rank >= 0 else None
            self._met(bins.rank)
            parts.append(
                pa.table(
                    {
                        "process": pa.array([rank] * len(used), pa.int32()),
                        "module": pa.array([name.removeprefix("heatmap:")] * len(used)),
                        "bin": used.astype(np.int32),
                        "start_ns": used * width_ns,
                        "duration_ns": np.full(len(used), width_ns),
                        "read_bytes": bins.read[used],
                        "write_bytes": bins.written[used],
                    }
                )
            )
        if parts:
            self._writer.add("heatmap", pa.concat_tables(parts))

    def _add_calls(self, module: str, name: str, words: tuple[str, str]) -> None:
        if module not in self._modules:
            return
        parts = [part for found in self._log.segments(module) for part in self._parts(found)]
        if not parts:
            return
        columns = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
        order = np.lexsort((columns["start_ns"], columns["process"]))
        columns = {key: values[order] for key, values in columns.items()}
        count = len(order)
        written = columns.pop("write").astype(np.int32)
        length = columns.pop("length")
        table = {
            **columns,
            "file": pa.array(columns["file"], mask=columns["file"] < 0),
            "thread": np.zeros(count, np.int32),
            "call": pa.DictionaryArray.from_arrays(written, pa.array(words)),
            "length": length,
            "result": length,  # DXT has what was transferred
        }
        if module == "DXT_MPIIO" and self._modules[module].version < _VERSION_WITH_OFFSETS:
            del table["offset"]
        self._last_ns = max(self._last_ns, int((table["start_ns"] + table["duration_ns"]).max()))
        self._writer.add(name, pa.table(table))
        self._calls += count

    def _parts(self, found: "Segments") -> Iterator[_Columns]:
        process = max(0, found.rank)
        self._met(process)
        file = self._file(found.record)
        if found.host:
            self._hosts[process] = found.host
        for write, segments in ((True, found.writes), (False, found.reads)):
            count = len(segments)
            start = np.rint(segments["start"] * _NANOSECONDS).astype(np.int64)
            end = np.rint(segments["end"] * _NANOSECONDS).astype(np.int64)
            if count:
                yield {
                    "process": np.full(count, process, np.int32),
                    "file": np.full(count, -1 if file is None else file, np.int32),
                    "offset": segments["offset"],
                    "length": segments["length"],
                    "start_ns": start,
                    "duration_ns": np.maximum(0, end - start),
                    "write": np.full(count, write),
                }

    def _add_processes(self) -> None:
        ranks = self._ranks
        self._writer.add(
            "processes",
            pa.table(
                {
                    "rank": np.arange(ranks, dtype=np.int32),
                    "host": pa.array([self._hosts.get(rank) for rank in range(ranks)], pa.string()),
                }
            ),
        )

    def _add_files(self) -> None:
        # The longest of the mount points that a path begins with is the one it lies under.
        mounts = sorted(self._mounts, key=lambda mount: -len(mount[0]))
        found = [_mount(name, mounts) for name in self._names.values()]
        stripes = [self._stripes.get(record, (None, None)) for record in self._names]
        records = np.array(list(self._names), np.uint64).view(np.int64)
        kinds = ["standard" if name in _STANDARD else None for name in self._names.values()]
        self._writer.add(
            "files",
            pa.table(
                {
                    **paths(self._names.values()),
                    "kind": pa.array(kinds, pa.string()),
                    "mount_point": pa.array([mount and mount[0] for mount in found], pa.string()),
                    "file_system": pa.array([mount and mount[1] for mount in found], pa.string()),
                    "stripe_size": pa.array([size for size, _ in stripes], pa.int64()),
                    "stripe_count": pa.array([count for _, count in stripes], pa.int64()),
                    "record": records,
                }
            ),
        )

    def _run(self) -> Run:
        job = self._job
        metadata: dict[str, str] = job["metadata"]
        return Run(
            origin={
                "kind": "darshan",
                "source": str(self._log_path),
                "tool": f"Darshan {metadata.get('lib_ver', '')}".rstrip(),
                "log_version": job["log_ver"],
            },
            command=[self._log.command()],
            start_unix_ns=job["start_time_sec"] * 1_000_000_000 + job["start_time_nsec"],
            wall_ns=max(round(job["run_time"] * _NANOSECONDS), self._last_ns),
            ranks=job["nprocs"],
            levels={
                "posix": self._level("DXT_POSIX", "POSIX"),
                "mpiio": self._level("DXT_MPIIO", "MPI-IO"),
            },
            losses={name: None for name, module in self._modules.items() if module.partial},
            clock={"source": "darshan"},
            machine={"hosts": sorted(set(self._hosts.values()))},
            file_systems=[{"mount_point": point, "type": kind} for point, kind in self._mounts],
            job={"id": job["jobid"], "uid": job["uid"]},
            notes=self._notes,
        )

    def _level(self, dxt: str, counted: str) -> str:
        if dxt in self._modules:
            return "data"
        return "counters" if counted in self._modules else "none"


def _counters_table(module: str) -> str:
    return COUNTERS_PREFIX + re.sub(r"[^a-z0-9]", "_", module.lower())


def _mount(name: bytes, mounts: list[tuple[str, str]]) -> tuple[str, str] | None:
    path = name.decode(errors="replace")
    for point, kind in mounts:
        if path == point or path.startswith(point.rstrip("/") + "/"):
            return point, kind
    return None

"""Traces made into Darshan logs."""

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import xxhash
from numpy.typing import NDArray

from forebay import output_paths
from forebay.trace import calls, darshan_counters, places, tables
from forebay.trace.calls import Kind
from forebay.trace.darshan_counters import Counted
from forebay.trace.darshan_log import SEGMENT
from forebay.trace.darshan_writer import DarshanWriter
from forebay.trace.directory import Trace
from forebay.trace.places import Owner
from forebay.units import show_count

# A module's table of calls, that of counters if the trace came from Darshan, and who counts calls.
_COUNTED = {
    "POSIX": ("posix", "counters_posix", darshan_counters.posix),
    "MPI-IO": ("mpiio", "counters_mpi_io", darshan_counters.mpiio),
    "STDIO": ("posix", "counters_stdio", darshan_counters.stdio),
}
_DXT = {"DXT_POSIX": "posix", "DXT_MPIIO": "mpiio"}
_KNOWN_TABLES = frozenset({"counters_posix", "counters_mpi_io", "counters_stdio"})


def export(trace: Trace, out: Path) -> list[str]:
    """Writes a log: the counters that the trace has from Darshan or what Darshan would have counted
    of its calls, and the calls that move data as extended traces. Gives what was left out. Raises
    OSError if that fails."""
    partial = _partial(trace)
    with output_paths.unfinished(out) as place:
        with _library_silent(), DarshanWriter(place, partial) as writer:
            export = _Export(trace, writer)
            export.carry_out()
        place.chmod(0o666 & ~_umask())
    others = [n for n in trace.names() if n.startswith(tables.COUNTERS_PREFIX)]
    notes = [f"{name} is left out" for name in others if name not in _KNOWN_TABLES]
    if export.others:
        number = show_count(export.others)
        notes.append(
            f"files of the system and what is no file (directories) are left out: {number}"
        )
    if partial:
        notes.append(
            f"marked as incomplete: {', '.join(partial)}; darshan-parser shows such modules with "
            "--show-incomplete"
        )
    return notes


@contextlib.contextmanager
def _library_silent() -> Iterator[None]:
    """What Darshan's library writes to standard error goes nowhere: what failed is raised."""
    if sys.stderr is None:  # closed before we were started, so that 2 may be any file
        yield
        return
    sys.stderr.flush()
    before = os.dup(2)
    try:
        with Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)


def _partial(trace: Trace) -> list[str]:
    """The modules that lack calls: those of a log that said so, or if a capture could not keep
    some, each that it has, for nobody knows which these were."""
    written = {name: table for name, (table, *_) in _COUNTED.items()} | _DXT
    losses = trace.run.losses
    if trace.run.origin.get("kind") == "darshan":
        return [name for name in written if name in losses]
    return [name for name, table in written.items() if losses and table in trace]


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def _as_darshan(trace: Trace, paths: list[bytes]) -> NDArray[np.bool_]:
    """Which files Darshan has records of: the application's, and of the MPI's those on disks."""
    owner = places.owners(trace)
    in_memory = np.array([*(path.startswith(b"/dev/") for path in paths), True], np.bool_)
    kept: NDArray[np.bool_] = owner == Owner.APPLICATION
    kept |= (owner == Owner.MPI) & ~in_memory
    return kept


def _calls(trace: Trace, name: str, kept: NDArray[np.bool_]) -> pa.Table:
    """Those on files that are `kept`, without the ones that failed, which Darshan does not see."""
    table = trace.table(name)
    error = tables.integers(table, "errno" if name == "posix" else "error", 0)
    return table.filter(pa.array(kept[tables.integers(table, "file")] & (error <= 0)))


class _Export:
    def __init__(self, trace: Trace, writer: DarshanWriter) -> None:
        self._trace = trace
        self._writer = writer
        files = trace.table("files")
        # Not the bytes as they are: PyDarshan reads no log with a name that is no UTF-8.
        self._names = [path.encode() for path in files.column("path").to_pylist()]
        # The ids tell apart what is shown alike.
        exact = files.column("path_bytes").to_pylist()
        given = files.column("record").to_pylist()
        self._records = np.array(
            [
                xxhash.xxh64_intdigest(name if own is None else own)
                if record is None
                else record % (1 << 64)
                for name, own, record in zip(self._names, exact, given, strict=True)
            ],
            np.uint64,
        )
        captured = trace.run.origin.get("kind") == "capture"  # Darshan's own logs have no others
        kept = (
            _as_darshan(trace, self._names)
            if captured
            else np.append(np.ones(len(self._names), np.bool_), False)
        )
        self.others = int(np.count_nonzero(~kept[:-1]))
        self._tables = {name: _calls(trace, name, kept) for name in ("posix", "mpiio")}
        used = [tables.integers(table, "file") for table in self._tables.values()]
        self._used = np.unique(np.concatenate(used)) if captured else np.arange(len(self._names))
        processes = trace.table("processes")
        self._ranks, self._size, self._count = self._numbered(processes.column("rank").to_pylist())
        self._hosts = [host or "" for host in processes.column("host").to_pylist()]

    def _numbered(self, ranks: list[int | None]) -> tuple[NDArray[np.int64], int, int]:
        """Darshan numbers the processes of a job as ranks; those that have none come behind, if
        they did something. Gives the number of each, the ranks of the job, and all together."""
        size = max([self._trace.run.ranks, *(rank + 1 for rank in ranks if rank is not None)])
        count = size
        active = {p for table in self._tables.values() for p in tables.integers(table, "process")}
        numbers = []
        for process, rank in enumerate(ranks):
            numbers.append(count if rank is None else rank)
            count += rank is None and process in active
        return np.array(numbers, np.int64), size, max(1, count)

    def carry_out(self) -> None:
        run, writer = self._trace.run, self._writer
        hints = self._trace.table("hints").to_pylist()
        pairs = dict.fromkeys(f"{hint['key']}={hint['value']}" for hint in hints)
        writer.put_job(
            self._count,
            run.start_unix_ns,
            run.start_unix_ns + run.wall_ns,
            (int(run.job.get("id") or 0), int(run.job.get("uid") or 0)),
            [*pairs],
        )
        writer.put_command(" ".join(run.command))
        writer.put_mounts(
            [(each["mount_point"], each.get("type", "")) for each in run.file_systems]
        )
        writer.put_names(
            (int(self._records[file]), self._names[file]) for file in self._used.tolist()
        )
        for module, (name, counted, count) in _COUNTED.items():
            if counted in self._trace:
                self._put_imported(module, counted)
            elif name in self._trace:
                self._put_counted(module, count(self._tables[name], self._ranks, self._size))
        for module, name in _DXT.items():
            if name in self._trace:
                self._put_segments(module, name)

    def _put_imported(self, module: str, name: str) -> None:
        table = self._trace.table(name)
        columns: dict[str, NDArray[Any]] = {
            column: table.column(column).to_numpy()
            for column in table.column_names
            if column not in ("process", "file", "record", "rank")
        }
        records = tables.integers(table, "record").view(np.uint64)
        self._writer.put_counters(module, records, tables.integers(table, "rank"), columns)

    def _put_counted(self, module: str, counted: Counted) -> None:
        records = self._records[counted.files]
        self._writer.put_counters(module, records, counted.ranks, counted.columns)

    def _put_segments(self, module: str, name: str) -> None:
        table = self._tables[name]
        moves = (calls.kinds(table) <= Kind.WRITE) & ~calls.marked(table, calls.STREAMS)
        table = table.filter(pa.array(moves))
        process, file = tables.integers(table, "process"), tables.integers(table, "file")
        rank = self._ranks[process]
        start = tables.integers(table, "start_ns")
        write = calls.kinds(table) == Kind.WRITE
        # As in a record: writes before reads, each in the order of their start.
        order = np.lexsort((start, ~write, file, rank))
        segments = np.zeros(len(order), SEGMENT)
        segments["offset"] = tables.integers(table, "offset")[order]
        segments["length"] = calls.moved_bytes(table)[order]
        segments["start"] = start[order] / 1e9
        segments["end"] = (start + tables.integers(table, "duration_ns"))[order] / 1e9
        process, rank, file, write = process[order], rank[order], file[order], write[order]
        begins = np.flatnonzero(np.append(True, (np.diff(rank) != 0) | (np.diff(file) != 0)))
        for first, last in zip(begins, np.append(begins[1:], len(order)), strict=True):
            if first == last:
                continue
            reads_begin = first + int(np.count_nonzero(write[first:last]))
            self._writer.put_segments(
                module,
                int(self._records[file[first]]),
                int(rank[first]),
                self._hosts[process[first]],
                segments[first:reads_begin],
                segments[reads_begin:last],
            )

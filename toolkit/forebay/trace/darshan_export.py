"""Traces made into Darshan logs."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import xxhash
from numpy.typing import NDArray

from forebay.errors import ForebayError
from forebay.trace import calls, darshan_counters, tables
from forebay.trace.calls import Kind
from forebay.trace.darshan_counters import Counted
from forebay.trace.darshan_log import SEGMENT
from forebay.trace.darshan_writer import DarshanWriter, LogNotWrittenError
from forebay.trace.directory import Trace

# A module's table of calls, that of counters if the trace came from Darshan, and who counts calls.
_COUNTED = {
    "POSIX": ("posix", "counters_posix", darshan_counters.posix),
    "MPI-IO": ("mpiio", "counters_mpi_io", darshan_counters.mpiio),
}
_DXT = {"DXT_POSIX": "posix", "DXT_MPIIO": "mpiio"}
_KNOWN_TABLES = frozenset({"counters_posix", "counters_mpi_io", "counters_stdio"})


def export(trace: Trace, out: Path) -> list[str]:
    """Writes a log: the counters that the trace has from Darshan or what Darshan would have counted
    of its calls, and the calls that move data as extended traces. Gives what was left out. Raises
    ForebayError if that fails."""
    unfinished = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        with DarshanWriter(unfinished) as writer:
            _Export(trace, writer).carry_out()
        unfinished.chmod(0o666 & ~_umask())
        unfinished.replace(out)
    except LogNotWrittenError as error:
        raise ForebayError(f"{out}: {error}", "Is there room, and a permission?", 1) from error
    finally:
        unfinished.unlink(missing_ok=True)
    others = [n for n in trace.names() if n.startswith(tables.COUNTERS_PREFIX)]
    return [f"{name} is left out" for name in others if name not in _KNOWN_TABLES]


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


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
        processes = trace.table("processes")
        ranks = processes.column("rank").to_pylist()
        # Darshan numbers the processes of a job as ranks; those that have none come behind.
        behind = max((rank for rank in ranks if rank is not None), default=-1) + 1
        self._ranks: list[int] = []
        for rank in ranks:
            self._ranks.append(behind if rank is None else rank)
            behind += rank is None
        self._hosts = [host or "" for host in processes.column("host").to_pylist()]

    def carry_out(self) -> None:
        run, writer = self._trace.run, self._writer
        hints = self._trace.table("hints").to_pylist()
        pairs = dict.fromkeys(f"{hint['key']}={hint['value']}" for hint in hints)
        metadata = {"lib_ver": "forebay", "h": ";".join(pairs).replace("\n", " ")}
        writer.put_job(
            max(1, len(self._ranks), run.ranks),
            run.start_unix_ns,
            run.start_unix_ns + run.wall_ns,
            (int(run.job.get("id") or 0), int(run.job.get("uid") or 0)),
            metadata,
        )
        writer.put_command(" ".join(run.command))
        writer.put_mounts(
            [(each["mount_point"], each.get("type", "")) for each in run.file_systems]
        )
        writer.put_names(zip(self._records.tolist(), self._names, strict=True))
        for module, (name, counted, count) in _COUNTED.items():
            if counted in self._trace:
                self._put_imported(module, counted)
            elif name in self._trace:
                self._put_counted(module, count(self._trace.table(name)))
        if "counters_stdio" in self._trace:
            self._put_imported("STDIO", "counters_stdio")
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
        ranks = np.array(self._ranks, np.int64)[counted.processes]
        self._writer.put_counters(module, self._records[counted.files], ranks, counted.columns)

    def _put_segments(self, module: str, name: str) -> None:
        table = self._trace.table(
            name,
            ["process", "file", "call", "offset", "length", "result", "start_ns", "duration_ns"],
        )
        kind, file = calls.kinds(table), tables.integers(table, "file")
        table = table.take(pa.array(np.flatnonzero((kind <= Kind.WRITE) & (file >= 0))))
        process, file = tables.integers(table, "process"), tables.integers(table, "file")
        start = tables.integers(table, "start_ns")
        write = calls.kinds(table) == Kind.WRITE
        # As in a record: writes before reads, each in the order of their start.
        order = np.lexsort((start, ~write, file, process))
        segments = np.zeros(len(order), SEGMENT)
        segments["offset"] = tables.integers(table, "offset")[order]
        segments["length"] = calls.moved_bytes(table)[order]
        segments["start"] = start[order] / 1e9
        segments["end"] = (start + tables.integers(table, "duration_ns"))[order] / 1e9
        process, file, write = process[order], file[order], write[order]
        begins = np.flatnonzero(np.append(True, (np.diff(process) != 0) | (np.diff(file) != 0)))
        for first, last in zip(begins, np.append(begins[1:], len(order)), strict=True):
            if first == last:
                continue
            reads_begin = first + int(np.count_nonzero(write[first:last]))
            number = int(process[first])
            self._writer.put_segments(
                module,
                int(self._records[file[first]]),
                self._ranks[number],
                self._hosts[number],
                segments[first:reads_begin],
                segments[reads_begin:last],
            )

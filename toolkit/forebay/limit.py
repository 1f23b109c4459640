"""The physical limit of a program's I/O on this machine: the same bytes in the same directories, by
plain large calls from the same number of processes, each with one contiguous part."""

import shutil
import sys
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from forebay import limit_process
from forebay.errors import ForebayError
from forebay.records import Record
from forebay.started_together import StartedTogether
from forebay.units import show_bytes


@dataclass(frozen=True)
class FileLoad:
    """What the program did with one file. Bytes: sums over ranks."""

    directory: Path
    size: int
    write_bytes: int
    read_bytes: int
    processes: int
    sync: bool  # the program's own write time contains a sync


@dataclass(frozen=True)
class LimitSeconds:
    """Seconds of one measurement, all files one after another; None if there was nothing to do."""

    write: float | None
    read: float | None


def loads(records: Iterable[Record]) -> list[FileLoad]:
    """The load that these records (of a run under the engine, whose files still exist) tell."""
    by_path: dict[str, list[Record]] = {}
    for record in records:
        by_path.setdefault(record.path, []).append(record)
    found = []
    for path, openings in by_path.items():
        size = Path(path).stat().st_size if Path(path).is_file() else 0
        write_bytes = sum(r.counters.get("bytes_written", 0) for r in openings)
        read_bytes = sum(r.counters.get("bytes_read", 0) for r in openings)
        wrote = any(r.wrote for r in openings)
        read = any(r.read for r in openings)
        load = FileLoad(
            directory=Path(path).parent,
            size=size,
            write_bytes=(write_bytes or size) if wrote else 0,
            read_bytes=(read_bytes or size) if read else 0,
            processes=max(r.ranks for r in openings),
            sync=any(r.calls.get("sync", 0) > 0 for r in openings),
        )
        if size > 0:
            found.append(load)
    return found


def measure(files: Iterable[FileLoad]) -> LimitSeconds:
    """Writes and reads each load once on a fresh file, which is removed. Raises ForebayError where
    there is no room for it."""
    write: float | None = None
    read: float | None = None
    for load in files:
        free = shutil.disk_usage(load.directory).free
        if free < load.size:
            raise ForebayError(
                f"--limit needs {show_bytes(load.size)} in {load.directory}, "
                f"{show_bytes(free)} are free",
                "Free some space, or measure without --limit.",
                exit_code=1,
            )
        path = load.directory / f".forebay-limit-{uuid.uuid4().hex}"
        try:
            path.touch()
            if load.write_bytes:
                write = (write or 0.0) + _moved(path, load, "write", load.write_bytes)
            if load.read_bytes:
                if load.write_bytes < load.size:  # what is read must be there
                    _moved(path, load, "write", load.size)
                read = (read or 0.0) + _moved(path, load, "read", load.read_bytes)
        finally:
            path.unlink(missing_ok=True)
    return LimitSeconds(write, read)


def parts(size: int, processes: int) -> list[tuple[int, int]]:
    """[0, size) in contiguous (offset, length) parts, one a process, in whole 4 KiB pages but the
    last."""
    page = 4096
    pages = -(-size // page)
    bounds = [min(size, page * (pages * i // processes)) for i in range(processes)] + [size]
    return [(bounds[i], bounds[i + 1] - bounds[i]) for i in range(processes)]


def _moved(path: Path, load: FileLoad, kind: str, total: int) -> float:
    """Seconds of the slowest process for `total` bytes, all started together."""
    commands = []
    for offset, length in parts(load.size, load.processes):
        share = total * length // load.size
        sync = "1" if kind == "write" and load.sync else "0"
        arguments = [str(path), str(offset), str(length), str(share), kind, sync]
        commands.append([sys.executable, limit_process.__file__, *arguments])
    try:
        with StartedTogether(commands) as workers:
            return max(float(answer) for answer in workers.phase())
    except ChildProcessError as error:
        raise ForebayError(
            f"the limit could not be measured in {load.directory}: {error}",
            "Measure without --limit to leave it out.",
            exit_code=1,
        ) from error

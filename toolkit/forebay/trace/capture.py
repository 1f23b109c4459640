"""Spills made into a trace directory."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from forebay import filesystem
from forebay.errors import ForebayError
from forebay.trace import descriptors, spills
from forebay.trace.descriptors import KnownFiles
from forebay.trace.directory import Run, TraceWriter, paths
from forebay.trace.spill_clock import SpillClock
from forebay.trace.spills import Image

SUFFIX = ".spill"
_WITHIN = ["program", "mpi", "forebay"]
_CLOCKS = {0: "monotonic", 1: "tsc", 2: "system counter"}
_CALLS_TRIED = 256
# Their result is an error number.
_RETURN_ERRORS = ("posix_fallocate", "posix_fadvise")
_FLAGS_IN_OFFSET = ("open", "openat", "creat", "fopen", "freopen", "fstatat", "unlinkat", "access")
_WITH_ARGUMENT = (*("lseek", "fseek", "posix_fadvise", "fallocate", "copy_file_range", "sendfile"),)
_WITHOUT_LENGTH = ("lseek", "fseek", "close", "fclose", "fflush", "fsync", "fdatasync", "fstat")


@dataclass
class ProcessImages:
    """A process: its images, one after the other as it became other programs."""

    images: list[Image]

    @property
    def first(self) -> Image:
        return self.images[0]

    @property
    def rank(self) -> int:
        return max(image.process.rank for image in self.images)

    @property
    def said_farewell(self) -> bool:
        return self.images[-1].end is not None or self.images[-1].execs


@dataclass(frozen=True)
class Captured:
    """What came out of the spills."""

    calls: int
    processes: int
    files: int
    lost: int  # calls known to be lost
    complete: bool
    ns_per_call: float  # of the process where it was longest
    share_of_wall: float  # of the thread where it was highest
    stored_bytes: int
    notes: list[str] = field(default_factory=list)


def convert(places: Path, directory: Path, run: Run) -> Captured:
    """Makes the trace directory of the spills in `places`. `run` holds what they do not say. Raises
    ForebayError where there is nothing, or something of a later version."""
    images, notes = _load(places)
    if not images:
        raise ForebayError(
            f"{places} holds no spill of a traced process",
            "Programs that are linked statically or setuid are not traced, nor those that another "
            "host ran without seeing this directory.",
            exit_code=1,
        )
    return _Conversion(images, directory, run, notes).carry_out()


def _load(places: Path) -> tuple[list[Image], list[str]]:
    images, notes = [], []
    for path in sorted(places.glob(f"*{SUFFIX}")):
        image = spills.read(path)
        if image is None:
            notes.append(f"{path.name}: its beginning is not whole, and it was left out")
            continue
        if image.damaged_bytes:
            notes.append(f"{path.name}: {image.damaged_bytes} bytes were not whole")
        if image.missing_pieces:
            notes.append(f"{path.name}: {image.missing_pieces} pieces are missing")
        images.append(image)
    return images, notes


def _processes(images: Iterable[Image]) -> list[ProcessImages]:
    """In order of rank and start."""
    found: dict[tuple[str, int, int], list[Image]] = {}
    for image in sorted(images, key=lambda image: image.process.realtime_ns):
        process = image.process
        key = (process.host, process.pid, process.started_jiffies)
        found.setdefault(key, []).append(image)
    processes = [ProcessImages(images) for images in found.values()]
    without = 1 << 62
    return sorted(
        processes,
        key=lambda p: (p.rank if p.rank >= 0 else without, p.first.process.realtime_ns),
    )


class _Conversion:
    def __init__(self, images: list[Image], directory: Path, run: Run, notes: list[str]) -> None:
        self._processes = _processes(images)
        self._run = run
        self._notes = notes
        self._files = KnownFiles()
        self._writer = TraceWriter(directory)
        start = run.start_unix_ns or min(i.process.realtime_ns for i in images)
        run.start_unix_ns = start
        hosts = {image.process.host for image in images}
        self._clocks = {
            host: SpillClock([i for i in images if i.process.host == host], start) for host in hosts
        }
        self._words: dict[str, int] = {}  # names of calls, by a number each in the whole run
        self._threads: list[tuple[int, int, int, int, int]] = []
        self._ends: list[int] = []
        self._calls = 0
        self._cost_ns: list[float] = []
        self._shares: list[float] = []

    def carry_out(self) -> Captured:
        for number, process in enumerate(self._processes):
            self._add_calls(number, process)
        self._add_processes()
        self._add_threads()
        self._add_files()
        lost = sum(thread[-1] for thread in self._threads)
        images = [image for process in self._processes for image in process.images]
        run = self._run
        run.wall_ns = max([run.wall_ns, *self._ends])
        run.levels = {"posix": "events", "mpiio": "none"}
        run.complete = all(process.said_farewell for process in self._processes) and not any(
            image.damaged_bytes or image.missing_pieces for image in images
        )
        run.losses = {"not kept": lost} if lost else {}
        run.ranks = run.ranks or max(0, *(process.rank + 1 for process in self._processes), 0)
        first = images[0].process
        run.clock = {
            "source": _CLOCKS.get(first.tick_source, "unknown"),
            "ticks_per_second": round(self._clocks[first.host].ticks_per_second),
        }
        run.overhead = {
            "ns_per_call": round(max(self._cost_ns, default=0.0), 1),
            "calls": self._calls,
            "share_of_wall": round(max(self._shares, default=0.0), 6),
        }
        run.machine = {**run.machine, "hosts": sorted(self._clocks)}
        run.notes = [*run.notes, *self._notes]
        self._writer.finish(run)
        return Captured(
            calls=self._calls,
            processes=len(self._processes),
            files=len(self._files.files),
            lost=lost,
            complete=run.complete,
            ns_per_call=run.overhead["ns_per_call"],
            share_of_wall=run.overhead["share_of_wall"],
            stored_bytes=sum(path.stat().st_size for path in self._writer.path.iterdir()),
            notes=self._notes,
        )

    def _add_calls(self, number: int, process: ProcessImages) -> None:
        tids = _threads_of(process)
        parts = [self._columns(number, image, tids) for image in process.images]
        columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        order = np.lexsort((columns["start_ns"], columns["thread"]))
        columns = {name: values[order] for name, values in columns.items()}
        self._calls += len(order)
        clock = self._clocks[process.first.process.host]
        last = [int((columns["start_ns"] + columns["duration_ns"]).max())] if len(order) else []
        self._ends.append(
            max(last + [clock.ns(moment[0]) for i in process.images for moment in i.moments])
        )
        kept = np.bincount(columns["thread"], minlength=len(tids))
        for thread, tid in enumerate(tids):
            lost = sum(i.threads[tid].lost for i in process.images if tid in i.threads)
            self._threads.append((number, thread, tid, int(kept[thread]), lost))
        self._weigh(process, clock)
        self._writer.add("posix", _posix_table(columns, list(self._words)))

    def _weigh(self, process: ProcessImages, clock: SpillClock) -> None:
        """What tracing took of each thread's time."""
        per_second = clock.ticks_per_second
        for image in process.images:
            if image.end is None:
                continue
            cost = image.end.cost_ticks / _CALLS_TRIED
            wall = max(1, image.end.ticks - image.process.ticks)
            if cost:  # a forked child has not tried
                self._cost_ns.append(cost / per_second * 1e9)
            for thread in image.threads.values():
                events = sum(len(part) for part in thread.parts)
                at_start = image.end.start_ticks if thread.tid == image.process.pid else 0
                self._shares.append((events * cost + thread.spill_ticks + at_start) / wall)

    def _columns(self, number: int, image: Image, tids: list[int]) -> dict[str, NDArray[Any]]:
        """The calls of an image, as columns of the table, and `call` as a place in `_names`."""
        threads = list(image.threads.values())
        each = [thread.events() for thread in threads]
        events = np.concatenate([*each, np.empty(0, spills.EVENT)])
        thread = np.repeat([tids.index(t.tid) for t in threads], [len(part) for part in each])
        resolved = descriptors.resolve(image, events, self._files)
        clock = self._clocks[image.process.host]
        start, duration = clock.times(events["begin"], events["duration"])

        def those(names: tuple[str, ...]) -> NDArray[np.bool_]:
            return descriptors.is_one_of(image, events, names)

        result = events["result"].copy()
        errno = np.where(result < 0, -result, 0)
        returned = those(_RETURN_ERRORS)
        errno[returned] = result[returned]
        result[result < 0] = -1
        length = events["length"].copy()
        named = resolved.descriptor != events["descriptor"]  # of an opening, the new one
        length[named | those(_WITHOUT_LENGTH)] = -1
        truncated = those(("truncate",))
        length[truncated] = events["offset"][truncated]
        flags = those(_FLAGS_IN_OFFSET)
        argument = np.where(flags, events["offset"], events["argument"]).astype(np.int64)
        argument[~flags & ~those(_WITH_ARGUMENT)] = -1
        kept = ~those(("is_file", "none")) & (events["call"] < spills.MPI_CALLS_FROM)
        keys = sorted(image.calls) or [0]
        ids = np.array([self._word(image.calls.get(key, "")) for key in keys])
        columns = {
            "process": np.full(len(events), number, np.int64),
            "thread": thread.astype(np.int64),
            "call": ids[np.searchsorted(keys, events["call"]).clip(0, len(keys) - 1)],
            "within": events["within"].astype(np.int64),
            "file": resolved.file,
            "descriptor": resolved.descriptor,
            "offset": resolved.offset,
            "length": length,
            "result": result,
            "errno": errno,
            "argument": argument,
            "start_ns": start,
            "duration_ns": duration,
        }
        return {name: values[kept] for name, values in columns.items()}

    def _word(self, name: str) -> int:
        return self._words.setdefault(name, len(self._words))

    def _add_processes(self) -> None:
        places = {
            (p.first.process.host, p.first.process.pid): number
            for number, p in enumerate(self._processes)
        }
        rows = []
        for number, process in enumerate(self._processes):
            first, last = process.first.process, process.images[-1]
            parent = places.get((first.host, first.parent))
            rows.append(
                {
                    "pid": first.pid,
                    "parent": parent,
                    "rank": process.rank if process.rank >= 0 else None,
                    "host": first.host,
                    "executable": last.process.executable.decode(errors="replace"),
                    "start_ns": self._clocks[first.host].ns(first.ticks),
                    "end_ns": self._ends[number],
                    "ended": "exit" if process.said_farewell else "killed",
                }
            )
        self._writer.add("processes", pa.Table.from_pylist(rows))

    def _add_threads(self) -> None:
        names = ("process", "thread", "tid", "events", "lost")
        columns = zip(*self._threads, strict=True)
        self._writer.add("threads", pa.table(dict(zip(names, map(list, columns), strict=True))))

    def _add_files(self) -> None:
        files = self._files.files
        mounts = filesystem.mounts()
        found = [_mount_of(file.path, mounts) for file in files]
        self._run.file_systems = [
            {"mount_point": mount.point, "type": mount.type, "source": mount.source}
            for mount in dict.fromkeys(mount for mount in found if mount is not None)
        ]
        self._writer.add(
            "files",
            pa.table(
                {
                    **paths(file.path for file in files),
                    "kind": pa.array([file.kind for file in files], pa.string()),
                    "file_system": pa.array([m and m.type for m in found], pa.string()),
                    "mount_point": pa.array([m and m.point for m in found], pa.string()),
                    "device": pa.array([f.device if f.mode else None for f in files], pa.int64()),
                    "inode": pa.array([f.inode if f.mode else None for f in files], pa.int64()),
                    "size_start": pa.array([file.size_start for file in files], pa.int64()),
                    "size_end": pa.array([file.size_end for file in files], pa.int64()),
                }
            ),
        )


def _threads_of(process: ProcessImages) -> list[int]:
    """Their ids in order of appearance."""
    firsts: dict[int, int] = {}
    for image in process.images:
        for thread in image.threads.values():
            begins = [int(part["begin"].min()) for part in thread.parts]
            begin = min(begins, default=1 << 63)
            firsts[thread.tid] = min(begin, firsts.get(thread.tid, begin))
    return sorted(firsts, key=lambda tid: (tid != process.first.process.pid, firsts[tid]))


def _posix_table(columns: dict[str, NDArray[Any]], words: list[str]) -> pa.Table:
    nullable = ("file", "descriptor", "offset", "length", "argument")
    table: dict[str, pa.Array] = {}
    for name, values in columns.items():
        if name == "call":
            table[name] = pa.DictionaryArray.from_arrays(
                values.astype(np.int32), pa.array(words, pa.string())
            )
        elif name == "within":
            table[name] = pa.DictionaryArray.from_arrays(values.astype(np.int32), pa.array(_WITHIN))
        else:
            table[name] = pa.array(values, mask=values < 0 if name in nullable else None)
    return pa.table(table)


def _mount_of(path: bytes, mounts: list[filesystem.Mount]) -> filesystem.Mount | None:
    """By the path alone: the file may be gone."""
    text = os.fsdecode(path)
    best = None
    for mount in mounts:
        inside = text == mount.point or text.startswith(mount.point.rstrip("/") + "/")
        if inside and (best is None or len(mount.point) >= len(best.point)):
            best = mount
    return best

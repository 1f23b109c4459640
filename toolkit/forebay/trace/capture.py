"""Spills made into a trace directory."""

import contextlib
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
from forebay.filesystem import Stripe
from forebay.trace import delays, mpi_calls, posix_calls, spills
from forebay.trace.appends import Writers
from forebay.trace.descriptors import KnownFiles
from forebay.trace.directory import Run, TraceWriter, paths
from forebay.trace.mpi_calls import MpiTables, World, world_of
from forebay.trace.spill_clock import SpillClock
from forebay.trace.spills import Image

SUFFIX = ".spill"
# Types of file systems that tell by an attribute how a file is striped.
_MAY_BE_STRIPED = ("lustre", "fuse.forebay")
_CLOCKS = {0: "monotonic", 1: "tsc", 2: "system counter"}

Columns = dict[str, NDArray[Any]]


@dataclass
class ProcessImages:
    """A process: its images, one after the other as it became other programs."""

    images: list[Image]

    @property
    def first(self) -> Image:
        return self.images[0]

    @property
    def world(self) -> World | None:
        return next((w for image in self.images if (w := world_of(image)) is not None), None)

    @property
    def rank(self) -> int:
        """-1: it has none. The launcher's word holds where the process opened no file by MPI."""
        world = self.world
        return world.rank if world else max(image.process.rank for image in self.images)

    @property
    def ended(self) -> str:
        """As the trace has it (docs/formats/trace-directory.md)."""
        last = self.images[-1]
        return "exit" if last.end is not None else "untraced" if last.execs else "killed"


@dataclass(frozen=True)
class Captured:
    """What came out of the spills."""

    calls: int
    processes: int
    files: int
    lost: int  # calls known to be lost
    complete: bool
    ns_per_call: float | None  # of the process where it was longest; None: of none it is known
    share_of_wall: float | None  # of the run's time, in processes one after the other
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
    with TraceWriter(directory) as writer:
        return _Conversion(images, writer, run, notes).carry_out()


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
    def __init__(
        self, images: list[Image], writer: TraceWriter, run: Run, notes: list[str]
    ) -> None:
        self._processes = _processes(images)
        self._run = run
        self._notes = notes
        self._files = KnownFiles()
        self._writers = Writers(
            (number, image) for number, p in enumerate(self._processes) for image in p.images
        )
        self._writer = writer
        start = run.start_unix_ns or min(i.process.realtime_ns for i in images)
        run.start_unix_ns = start
        hosts = {image.process.host for image in images}
        self._clocks = {
            host: SpillClock([i for i in images if i.process.host == host], start) for host in hosts
        }
        self._words: dict[str, int] = {}  # names of calls, by a number each in the whole run
        self._threads: list[tuple[int, int, int, int, int]] = []
        self._ends: list[int] = []
        self._counts = {"posix": 0, "mpiio": 0}
        self._mpi = MpiTables(self._files)

    def carry_out(self) -> Captured:
        for number, process in enumerate(self._processes):
            self._add_calls(number, process)
        self._add_processes()
        self._add_threads()
        for name, table in self._mpi.tables().items():
            self._writer.add(name, table)
        self._add_files()
        lost = sum(thread[-1] for thread in self._threads)
        images = [image for process in self._processes for image in process.images]
        run = self._run
        run.wall_ns = max([run.wall_ns, *self._ends])
        worlds = [world for process in self._processes if (world := process.world) is not None]
        run.levels = {"posix": "events", "mpiio": "events" if worlds else "none"}
        if worlds:
            run.mpi = {"name": worlds[0].name, "version": worlds[0].version}
            run.ranks = max(world.ranks for world in worlds)
        run.complete = all(process.ended != "killed" for process in self._processes) and not any(
            image.damaged_bytes or image.missing_pieces for image in images
        )
        run.losses = {"not kept": lost} if lost else {}
        run.ranks = run.ranks or max(0, *(process.rank + 1 for process in self._processes), 0)
        first = images[0].process
        run.clock = {
            "source": _CLOCKS.get(first.tick_source, "unknown"),
            "ticks_per_second": round(self._clocks[first.host].ticks_per_second),
        }
        clocks = [self._clocks[image.process.host] for image in images]
        costs = [cost for cost in map(delays.call_ns, images, clocks) if cost]
        spent = [delay for delay in map(delays.delay, images, clocks) if delay]
        # Of a process that was killed nothing tells, and it may be the one that counts.
        is_known = spent and all(process.ended != "killed" for process in self._processes)
        share = delays.one_after_the_other_ns(spent) / max(1, run.wall_ns)
        run.overhead = {
            "ns_per_call": round(max(costs), 1) if costs else None,
            "calls": sum(self._counts.values()),
            "share_of_wall": round(share, 6) if is_known else None,
        }
        run.machine = {**run.machine, "hosts": sorted(self._clocks)}
        untraced = sum(process.ended == "untraced" for process in self._processes)
        if untraced:
            self._notes.append(_went_on(untraced))
        run.notes = [*run.notes, *self._notes]
        self._writer.finish(run)
        return Captured(
            calls=sum(self._counts.values()),
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
        clock = self._clocks[process.first.process.host]
        found: dict[str, list[Columns]] = {"posix": [], "mpiio": []}
        for image in process.images:
            threads = list(image.threads.values())
            each = [thread.events() for thread in threads]
            events = np.concatenate([*each, np.empty(0, spills.EVENT)])
            places = [tids.index(thread.tid) for thread in threads]
            thread = np.repeat(np.array(places, np.int64), [len(part) for part in each])
            arguments = (number, image, events, thread, self._files, self._writers)
            for name, part in (
                ("posix", posix_calls.columns(*arguments)),
                ("mpiio", self._mpi.columns(number, image, events, thread, clock.ns)),
            ):
                found[name].append(self._finished(image, part, events, clock))
        kept = np.zeros(len(tids), np.int64)
        ends = [clock.ns(moment[0]) for image in process.images for moment in image.moments]
        for name, parts in found.items():
            columns = _sorted({key: np.concatenate([p[key] for p in parts]) for key in parts[0]})
            count = len(columns["thread"])
            if count:
                ends.append(int((columns["start_ns"] + columns["duration_ns"]).max()))
            kept += np.bincount(columns["thread"], minlength=len(tids))
            self._counts[name] += count
            as_table = posix_calls.table if name == "posix" else mpi_calls.table
            self._writer.add(name, as_table(columns, list(self._words)))
        self._ends.append(max(ends))
        for thread_number, tid in enumerate(tids):
            lost = sum(i.threads[tid].lost for i in process.images if tid in i.threads)
            self._threads.append((number, thread_number, tid, int(kept[thread_number]), lost))

    def _finished(
        self, image: Image, columns: Columns, events: NDArray[Any], clock: SpillClock
    ) -> Columns:
        """With times, and calls as places in the list of all names."""
        keys = np.array(sorted(image.calls) or [0])
        words = np.array([self._word(image.calls.get(int(key), "")) for key in keys])
        place = columns.pop("place")
        start, duration = clock.times(events["begin"][place], events["duration"][place])
        call = words[np.searchsorted(keys, columns["call"]).clip(0, len(keys) - 1)]
        return {**columns, "call": call, "start_ns": start, "duration_ns": duration}

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
                    "ended": process.ended,
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
        stripes = _stripes([file.path for file in files], found)
        self._run.file_systems = [
            {"mount_point": mount.point, "type": mount.type, "source": mount.source}
            for mount in dict.fromkeys(mount for mount in found if mount is not None)
        ]
        self._keep_devices_of({mount.point for mount in found if mount is not None})
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
                    "stripe_size": pa.array([s and s.size for s in stripes], pa.int64()),
                    "stripe_count": pa.array([s and s.count for s in stripes], pa.int64()),
                }
            ),
        )

    def _keep_devices_of(self, points: set[str]) -> None:
        """Of all devices whose counters were looked at, those below files of the run."""
        storage = self._run.storage
        for device in storage.get("devices", []):
            device["mount_points"] = [p for p in device["mount_points"] if p in points]
        if storage:
            storage["devices"] = [d for d in storage["devices"] if d["mount_points"]]


def _went_on(processes: int) -> str:
    one = "process went on as a program that is not traced, and what it did then"
    several = "processes went on as programs that are not traced, and what they did then"
    return f"{processes} {one if processes == 1 else several} is not in the trace"


def _sorted(columns: Columns) -> Columns:
    order = np.lexsort((columns["start_ns"], columns["thread"]))
    return {name: values[order] for name, values in columns.items()}


def _threads_of(process: ProcessImages) -> list[int]:
    """Their ids in order of appearance."""
    firsts: dict[int, int] = {}
    for image in process.images:
        for thread in image.threads.values():
            begins = [int(part["begin"].min()) for part in thread.parts]
            begin = min(begins, default=1 << 63)
            firsts[thread.tid] = min(begin, firsts.get(thread.tid, begin))
    return sorted(firsts, key=lambda tid: (tid != process.first.process.pid, firsts[tid]))


def _stripes(names: list[bytes], mounts: list[filesystem.Mount | None]) -> list[Stripe | None]:
    """How files are striped; of one that is gone, how its directory has files made."""
    of_directory: dict[bytes, Stripe | None] = {}
    found: list[Stripe | None] = []
    for name, mount in zip(names, mounts, strict=True):
        stripe = None
        if mount is not None and mount.type.startswith(_MAY_BE_STRIPED):
            try:
                stripe = filesystem.told_stripe(name)
            except (FileNotFoundError, ValueError):
                directory = os.path.dirname(name)  # noqa: PTH120 - it is no text
                if directory not in of_directory:
                    with contextlib.suppress(FileNotFoundError, ValueError):
                        of_directory[directory] = filesystem.told_stripe(directory)
                stripe = of_directory.get(directory)
        found.append(stripe)
    return found


def _mount_of(path: bytes, mounts: list[filesystem.Mount]) -> filesystem.Mount | None:
    """By the path alone: the file may be gone."""
    text = os.fsdecode(path)
    best = None
    for mount in mounts:
        inside = text == mount.point or text.startswith(mount.point.rstrip("/") + "/")
        if inside and (best is None or len(mount.point) >= len(best.point)):
            best = mount
    return best

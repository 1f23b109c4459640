"""Measurements, each of which can be run again and again: bytes moved by fio, operations on names,
and copies in memory. (Those of MPI are in mpi_probes.py.)"""

import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from forebay.characterise.system import memory_process, names_process
from forebay.characterise.system.fio import Fio, FioError, FioJob
from forebay.characterise.system.sample import LIMITS, METADATA, Sample, subject
from forebay.characterise.system.workspace import FRESH, Workspace
from forebay.started_together import StartedTogether

SMALL_BYTES = 32 * 1024
_FEW = 50  # files
_MANY = 5000
_NAMES = "names"
_LEFT_IN_CACHE_MOST = 0.02


class ProbeError(Exception):
    """A measurement could not be made; the text says why."""


class Probe(Protocol):
    """One measurement. `scales`: whether a run takes as long as it is told. `spare`: it may be left
    out where time is short, as others are near it."""

    @property
    def label(self) -> str: ...

    @property
    def scales(self) -> bool: ...

    @property
    def spare(self) -> bool: ...

    def run(self, seconds: float, seed: int) -> list[Sample]:
        """One run of some `seconds`. Raises ProbeError."""


@dataclass(frozen=True)
class FioProbe:
    """Reads or writes of one kind. `mode` and `level` as in the system file."""

    fio: Fio
    workspace: Workspace
    level: str
    mode: str
    job: FioJob
    scales: bool = True
    spare: bool = False

    @property
    def label(self) -> str:
        return f"{self.level}: {self.mode} {self.job.operation}"

    def run(self, seconds: float, seed: int) -> list[Sample]:
        job, where = self.job, self.workspace
        try:
            if self.mode == "cold":
                left = where.drop(job.name, job.processes)
                if left > _LEFT_IN_CACHE_MOST:
                    raise ProbeError(
                        f"{100 * left:.0f} % of the file cannot be dropped from the page cache"
                    )
            elif self.mode == "warm" and job.operation == "read":
                for path in where.files(job.name, job.processes):
                    _read_through(path)
            rate = self.fio.rate(job, seconds, seed, where.directory)
        except (FioError, OSError) as error:
            raise ProbeError(str(error)) from error
        finally:
            where.remove_fresh()
        entry = {
            **where.keys(),
            "level": self.level,
            "operation": job.operation,
            "mode": self.mode,
            "size_bytes": job.size_bytes,
            "processes": job.processes,
            "in_flight": job.in_flight,
            "order": "random" if job.random else "sequential",
            "files": "shared" if job.shared and job.processes > 1 else "own",
        }
        return [Sample(subject(LIMITS, entry), rate)]


def _read_through(path: Path) -> None:
    buffer = memoryview(bytearray(1 << 20))
    with path.open("rb", buffering=0) as file:
        while file.readinto(buffer):
            pass


@dataclass(frozen=True)
class NamesProbe:
    """Operations on names and small files, by `processes` in a directory each, and `tar`."""

    workspace: Workspace
    processes: int
    files: int  # of each process
    scales: bool = False
    spare: bool = False

    @property
    def label(self) -> str:
        return "metadata and small files"

    def run(self, seconds: float, seed: int) -> list[Sample]:
        base = self.workspace.directory / _NAMES
        small = min(self.files, self.workspace.bytes // SMALL_BYTES // self.processes)
        commands = [
            [
                sys.executable,
                names_process.__file__,
                f"{_NAMES}/{number}",
                *map(str, (self.files, small, SMALL_BYTES)),
            ]
            for number in range(self.processes)
        ]
        try:
            base.mkdir()
            found = []
            with StartedTogether(commands, self.workspace.directory) as workers:
                for operation in names_process.OPERATIONS:
                    slowest = max(float(answer) for answer in workers.phase())
                    count = small if operation.endswith("small") else self.files
                    found.append(self._sample(operation, count * self.processes / slowest))
            if self.processes == 1 and (program := shutil.which("tar")):
                found.append(self._sample("tar", small / _tar(program, base)))
        except (ChildProcessError, OSError) as error:
            raise ProbeError(str(error)) from error
        finally:
            shutil.rmtree(base, ignore_errors=True)
        return found

    def _sample(self, operation: str, rate: float) -> Sample:
        with_content = operation in ("write small", "read small", "tar")
        entry = {
            **self.workspace.keys(),
            "operation": operation,
            "processes": self.processes,
            "size_bytes": SMALL_BYTES if with_content else 0,
        }
        return Sample(subject(METADATA, entry), rate)


def _tar(program: str, base: Path) -> float:
    """Seconds to put what is in `base` into an archive beside it."""
    start = time.perf_counter()
    done = subprocess.run(
        [program, "-cf", "archive.tar", "0"], cwd=base, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, errors="replace", check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise ProbeError(f"tar: {done.stderr.strip()}")
    return time.perf_counter() - start


def names_probe(workspace: Workspace, processes: int, seconds: float) -> NamesProbe:
    """One that has as many files as its slowest operation does in `seconds`, as far as a few of
    them tell. Raises ProbeError."""
    few = NamesProbe(workspace, processes, _FEW)
    slowest = min(sample.rate for sample in few.run(seconds, 0)) / processes
    most = _MANY
    if workspace.place.free_names is not None:
        most = min(most, workspace.place.free_names // 20 // processes)
    return replace(few, files=max(_FEW, min(most, round(slowest * seconds))))


@dataclass(frozen=True)
class MemoryProbe:
    """Copies in memory, each process its own."""

    processes: int
    bytes: int  # of one buffer
    scales: bool = True
    spare: bool = False

    @property
    def label(self) -> str:
        return "memory"

    def run(self, seconds: float, seed: int) -> list[Sample]:
        command = [sys.executable, memory_process.__file__, str(self.bytes), repr(seconds)]
        try:
            with StartedTogether([command] * self.processes) as workers:
                answers = [answer.split() for answer in workers.phase()]
        except (ChildProcessError, OSError) as error:
            raise ProbeError(str(error)) from error
        # They go on side by side until the time is over.
        rate = sum(int(moved) / float(spent) for moved, spent in answers)
        entry = {
            "level": "memory",
            "operation": "copy",
            "mode": "copy",
            "size_bytes": self.bytes,
            "processes": self.processes,
        }
        return [Sample(subject(LIMITS, entry), rate)]


@dataclass(frozen=True)
class Sizes:
    """Requests that are measured, in bytes: buffered ones, those past the page cache, random ones
    past it, and of several processes."""

    buffered: tuple[int, ...]
    direct: tuple[int, ...]
    random: tuple[int, ...]
    together: tuple[int, ...]


_DEEP = 16  # requests in flight that keep a device busy
_DEEPER = 32  # small ones


def fio_probes(
    fio: Fio, where: Workspace, sizes: Sizes, processes: list[int], cached: bool
) -> list[Probe]:
    """All that fio measures in one place. `cached`: whether the file system differs from memory, so
    that there is a cold and a synced access."""
    found: list[FioProbe] = []
    sequential = {*sizes.buffered, *sizes.direct}
    between = sequential - {max(sequential, default=0), min(sequential, default=0)}

    def add(level: str, mode: str, job: FioJob) -> None:
        count = job.processes
        part = where.bytes // (1 if count == 1 else where.processes)
        if part // job.size_bytes >= _LEAST_REQUESTS:
            sized = replace(job, bytes=part * count)
            spare = count == 1 and not job.random and job.size_bytes in between
            found.append(FioProbe(fio, where, level, mode, sized, spare=spare))

    for operation in ("read", "write"):
        # Servers may acknowledge what they have not written yet, also past the page cache.
        sync = operation == "write"
        if where.direct:
            for size in sizes.direct:
                job = FioJob("shared", operation, size, 0, direct=True, sync=sync)
                add("file system", "direct", job)
                if where.place.device is not None:
                    add("device", "direct", replace(job, in_flight=_DEEP))
            for size in sizes.random:
                job = FioJob("shared", operation, size, 0, random=True, direct=True, sync=sync)
                if where.place.device is not None:
                    add("device", "direct", replace(job, in_flight=_DEEPER))
    for size in sizes.buffered:
        add("file system", "warm", FioJob("shared", "read", size, 0))
        add("file system", "warm", FioJob(FRESH, "write", size, 0, once=True))
        if cached:
            add("file system", "cold", FioJob("shared", "read", size, 0, once=True, drop=True))
            add("file system", "fsync", FioJob(FRESH, "write", size, 0, once=True, sync=True))
    for count in (number for number in processes if number > 1):
        for size in sizes.together:
            for shared in (True, False):
                for mode, job in _together(size, count, shared, cached):
                    add("file system", mode, job)
    return list(found)


_LEAST_REQUESTS = 2  # of each process in a run


def _together(size: int, count: int, shared: bool, cached: bool) -> list[tuple[str, FioJob]]:
    """What several processes do, in one file or each in its own."""
    read = FioJob(
        "shared" if shared else "own", "read", size, 0, count, shared, once=cached, drop=cached
    )
    write = FioJob(FRESH, "write", size, 0, count, shared, once=True, sync=cached)
    return [("cold", read), ("fsync", write)] if cached else [("warm", read), ("warm", write)]

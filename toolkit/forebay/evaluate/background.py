"""What else the machine does: looked at for a moment before and after each run, when the command
itself is not there."""

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

WINDOW_S = 0.05  # five ticks of the slowest kernel clock, 100 Hz
_SECTOR_BYTES = 512  # in diskstats, whatever the device has. [kernel, admin-guide/iostats]
_IDLE, _IO_WAIT = 3, 4  # columns of the line "cpu" of /proc/stat
_GUESTS = 8  # from here on times are in others, too
_READ, _WRITTEN = 5, 9  # columns of sectors in a line of /proc/diskstats


@dataclass(frozen=True)
class Load:
    """Cores that were busy, on average, and bytes per second of all block devices."""

    cores: float
    device_bytes_per_s: float


@dataclass(frozen=True)
class Snapshot:
    """The kernel's counters at one time (seconds)."""

    time_s: float
    ticks: int
    idle_ticks: int
    sectors: int


def snapshot(time_s: float, proc: Path = Path("/proc"), sys: Path = Path("/sys")) -> Snapshot:
    """The counters now. Raises OSError where there is no such kernel."""
    words = (proc / "stat").read_text().split("\n", 1)[0].split()[1:]
    ticks = [int(word) for word in words[:_GUESTS]]
    try:
        devices = {path.name for path in (sys / "block").iterdir() if (path / "device").exists()}
        lines = (proc / "diskstats").read_text().splitlines()
    except OSError:  # a container may hide them
        devices, lines = set(), []
    sectors = 0
    for line in lines:
        columns = line.split()
        if (
            columns[2] in devices
        ):  # whole devices, not their partitions, nor what is stacked on them
            sectors += int(columns[_READ]) + int(columns[_WRITTEN])
    return Snapshot(time_s, sum(ticks), ticks[_IDLE] + ticks[_IO_WAIT], sectors)


def between(first: Snapshot, last: Snapshot, cores: int) -> Load:
    """The load between two snapshots of a machine with that many cores."""
    ticks = last.ticks - first.ticks
    idle = last.idle_ticks - first.idle_ticks
    busy = 1 - idle / ticks if ticks > 0 else 0.0
    seconds = last.time_s - first.time_s
    moved = (last.sectors - first.sectors) * _SECTOR_BYTES
    return Load(max(0.0, busy) * cores, moved / seconds if seconds > 0 else 0.0)


def probe() -> Load | None:
    """The load of the next moment; None where the kernel does not tell."""
    try:
        first = snapshot(time.perf_counter())
        time.sleep(WINDOW_S)
        last = snapshot(time.perf_counter())
    except OSError:
        return None
    return between(first, last, os.cpu_count() or 1)


def busy_share(loads: Iterable[Load | None], cores: int) -> float:
    """The part of the moments in which more than a quarter of the cores was busy with others."""
    known = [load for load in loads if load is not None]
    return sum(load.cores > cores / 4 for load in known) / len(known) if known else 0.0

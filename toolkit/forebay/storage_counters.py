"""What the kernel has counted of storage on this host: for each block device below a file system,
and for this process with all that it has waited for."""

import contextlib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from forebay import block_devices, filesystem
from forebay.filesystem import Mount

_SECTOR_BYTES = 512  # whatever the device has. [kernel, block/stat]
# Columns of /sys/dev/block/*/stat. [kernel, block/stat]
_COLUMNS = {"reads": 0, "read_bytes": 2, "writes": 4, "written_bytes": 6}
_IN_SECTORS = ("read_bytes", "written_bytes")
# Of /proc/self/io, which has the sums of children that were waited for. [proc(5)]
_OF_PROCESSES = {
    "read_bytes": "read_bytes",
    "written_bytes": "write_bytes",
    "cancelled_bytes": "cancelled_write_bytes",
}

Sample = dict[str, Any]


def sample(
    mounts: Iterable[Mount] | None = None, proc: Path = Path("/proc"), sys: Path = Path("/sys")
) -> Sample:
    """The counters now; what the kernel does not tell is left out."""
    devices: dict[str, Any] = {}
    for mount in filesystem.mounts() if mounts is None else mounts:
        number = block_devices.number_of(mount.device, mount.source)
        if number is None:
            continue
        if number not in devices:
            place = sys / "dev" / "block" / number
            with contextlib.suppress(OSError, ValueError, IndexError):
                words = (place / "stat").read_text().split()
                devices[number] = {"name": place.resolve().name, "mount_points": []} | {
                    name: int(words[column]) * (_SECTOR_BYTES if name in _IN_SECTORS else 1)
                    for name, column in _COLUMNS.items()
                }
        if number in devices:
            devices[number]["mount_points"].append(mount.point)
    found: Sample = {"devices": devices}
    with contextlib.suppress(OSError, KeyError, ValueError):
        told = dict(re.findall(r"^(\w+): (\d+)$", (proc / "self/io").read_text(), re.MULTILINE))
        found["processes"] = {name: int(told[key]) for name, key in _OF_PROCESSES.items()}
    with contextlib.suppress(OSError, AttributeError):
        match = re.search(r"^Dirty:\s+(\d+) kB", (proc / "meminfo").read_text(), re.MULTILINE)
        found["dirty_bytes"] = int(match[1]) * 1024 if match else 0
    return found


def between(first: Sample, last: Sample) -> Sample:
    """What was counted from one sample to the other, as run.json has it
    (docs/formats/trace-directory.md)."""
    devices = [
        {"name": device["name"], "mount_points": device["mount_points"]}
        | {name: device[name] - first["devices"][number][name] for name in _COLUMNS}
        for number, device in last["devices"].items()
        if number in first["devices"]
    ]
    found: Sample = {"devices": devices}
    if "processes" in first and "processes" in last:
        found["processes"] = {
            name: last["processes"][name] - first["processes"][name] for name in _OF_PROCESSES
        }
    if "dirty_bytes" in first and "dirty_bytes" in last:
        found["dirty_bytes"] = {"start": first["dirty_bytes"], "end": last["dirty_bytes"]}
    return found

"""The machine a measurement was made on, so that a figure can be read years later."""

import datetime
import os
import platform
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import forebay
from forebay import filesystem
from forebay.records import Record


def describe(command: list[str], records: Iterable[Record], paths: Iterable[str]) -> dict[str, Any]:
    """CPU, cores, memory (bytes), kernel, the MPI versions that the records name, the file system
    of each of `paths`, the date (UTC) and the command."""
    versions = {record.mpi: record.mpi_version for record in records}
    return {
        "cpu": cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": platform.release(),
        "load_average": os.getloadavg()[0],
        "mpi": versions,
        "file_systems": {path: filesystem.mount_of(Path(path)).type for path in paths},
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "forebay": forebay.version(),
        "command": command,
    }


def cpu_model() -> str:
    """The processor's name as the kernel gives it, with the rate of its counter where that is told
    and the name does not: virtual machines give one name to processors that differ by twice."""
    try:
        info = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.machine()
    match = re.search(r"^(?:model name|Model|cpu)\s*:\s*(.+)$", info, re.MULTILINE)
    name = match.group(1) if match else platform.machine()
    # The kernel says twice the rate, on x86.
    rate = re.search(r"^bogomips\s*:\s*(\d+)", info, re.MULTILINE)
    return f"{name}, {int(rate.group(1)) / 2000:.1f} GHz" if rate and "GHz" not in name else name

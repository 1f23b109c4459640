"""Which files of a trace are the application's, and which the system's."""

import re

import numpy as np
from numpy.typing import NDArray

from forebay.trace.directory import Trace

#: Types of file systems that hold no data.
OF_THE_KERNEL = frozenset(
    {
        "bpf",
        "cgroup",
        "cgroup2",
        "configfs",
        "debugfs",
        "devpts",
        "devtmpfs",
        "mqueue",
        "nsfs",
        "proc",
        "securityfs",
        "sysfs",
        "tracefs",
    }
)
# What every program reads as it starts, as Darshan leaves it out too, and the shared memory of the
# MPI libraries.
_OF_THE_SYSTEM = re.compile(
    r"/(?:bin|boot|etc|lib|lib32|lib64|proc|sbin|sys|usr)/"
    r"|/dev/(?!shm/)"
    r"|/dev/shm/(?:ucx_shm|psm|mpich|vader_segment|sm_segment|osc|open_mpi|mpi_shmem|sem\.)"
    r"|<STD"
)


def applications(trace: Trace) -> NDArray[np.bool_]:
    """Of each file in the trace, and of an unknown one at the end, whether it is the application's:
    a file that holds data, and none of the system's."""
    files = trace.table("files", ["path", "kind", "file_system"])
    kept = [
        kind in (None, "file")
        and file_system not in OF_THE_KERNEL
        and _OF_THE_SYSTEM.match(path) is None
        for path, kind, file_system in zip(
            *(files[name].to_pylist() for name in ("path", "kind", "file_system")), strict=True
        )
    ]
    return np.array([*kept, False], np.bool_)

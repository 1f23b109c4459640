"""Which files of a trace are the application's, which the MPI's own, and which the system's."""

import re
from enum import IntEnum
from pathlib import PurePosixPath

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
# What every program reads as it starts, as Darshan leaves it out too.
_OF_THE_SYSTEM = re.compile(
    r"/(?:bin|boot|etc|lib|lib32|lib64|proc|sbin|sys|usr)/|/dev/(?!shm/)|/dev/shm/sem\.|<STD"
)
# Memory that processes of a node share, the directory of an Open MPI job (below TMPDIR or where
# orte_tmpdir_base says), and users' parameters. [Open MPI 4.1, 5.0; PMIx 4; MPICH 4.0]
_OF_MPI = re.compile(
    r"/dev/shm/(?:ucx_shm|psm|mpich|vader_segment|sm_segment|osc|open_mpi|mpi_shmem)"
    r"|.*/(?:ompi|prte)\.[^/]+\.\d+(?:/|$)"
    r"|.*/(?:openmpi-sessions-|pmix_dstor_)[^/]+(?:/|$)"
    r"|.*/\.(?:openmpi|pmix|prte)(?:/|$)"
)
# What an MPI keeps beside a file for the time that it is open: whether the file system has locks,
# and where the shared file pointer stands. The first group is the file. [Open MPI 4.1, common/ompio
# and sharedfp; ROMIO, adio/common/ad_fstype.c]
_BESIDE = (
    re.compile(r"(.+)\.locktest\.\d+"),
    re.compile(r"(.+)\.(?:meta)?data\.\d+"),
    re.compile(r"(.+)-\d+-\d+\.lock(?:edfile)?"),
    re.compile(r"\.(.+)\.shfp\.-?\d+(?:\.-?\d+)?"),
)


class Owner(IntEnum):
    """Whom a file is of."""

    APPLICATION = 0
    MPI = 1
    SYSTEM = 2


def owners(trace: Trace) -> NDArray[np.int8]:
    """The `Owner` of each file in the trace, and of an unknown one at the end."""
    files = trace.table("files", ["path", "kind", "file_system"])
    paths: list[str] = files["path"].to_pylist()
    through_mpi = {
        paths[place]
        for place in set(trace.table("openings", ["file"])["file"].to_pylist())
        if place is not None and 0 <= place < len(paths)
    }
    columns = (paths, files["kind"].to_pylist(), files["file_system"].to_pylist())
    found = [
        _owner(path, kind, file_system, through_mpi)
        for path, kind, file_system in zip(*columns, strict=True)
    ]
    return np.array([*found, Owner.SYSTEM], np.int8)


def _owner(path: str, kind: str | None, file_system: str | None, through_mpi: set[str]) -> Owner:
    if _OF_MPI.match(path) or _stands_beside(path, through_mpi):
        return Owner.MPI
    holds_data = kind in (None, "file") and file_system not in OF_THE_KERNEL
    of_system = not holds_data or _OF_THE_SYSTEM.match(path) is not None
    return Owner.SYSTEM if of_system else Owner.APPLICATION


def _stands_beside(path: str, through_mpi: set[str]) -> bool:
    """Only of a file that was opened through MPI: a program may choose such names itself."""
    if path in through_mpi:
        return False
    whole = PurePosixPath(path)
    matches = (pattern.fullmatch(whole.name) for pattern in _BESIDE)
    return any(match and str(whole.with_name(match.group(1))) in through_mpi for match in matches)


def applications(trace: Trace) -> NDArray[np.bool_]:
    """Of each file in the trace, and of an unknown one at the end, whether it is the application's:
    a file that holds data, none of the system's, and none that an MPI has for itself."""
    own: NDArray[np.bool_] = owners(trace) == Owner.APPLICATION
    return own

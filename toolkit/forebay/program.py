"""What can be told of a program before it runs: which MPI it is linked with, and whether a preload
can reach it."""

import re
import shutil
import stat
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

# Sonames of the MPI libraries and the ABI each stands for. [MPICH ABI initiative; Open MPI 4]
_MPI_SONAMES = {
    "libmpich.so.12": "mpich",
    "libmpi.so.12": "mpich",
    "libmpi.so.40": "openmpi",
    "libmpi_abi.so": "abi",
}
_ELF_MAGIC = b"\x7fELF"
_PT_INTERP = 3


@dataclass(frozen=True)
class Program:
    """One executable file."""

    path: Path
    is_elf: bool
    dynamic: bool  # has a loader, so LD_PRELOAD can act; scripts count as dynamic
    privileged: bool  # setuid, setgid or file capabilities: the loader ignores LD_PRELOAD
    mpi: str | None  # "mpich", "openmpi", "abi", or None if no MPI is linked


def inspect(name: str) -> Program | None:
    """The executable that `name` finds along PATH; None if there is none."""
    found = shutil.which(name)
    if found is None:
        return None
    path = Path(found).resolve()
    mode = path.stat().st_mode
    try:
        with path.open("rb") as file:
            head = file.read(4096)
    except OSError:  # executable but not readable: nothing more can be told
        return Program(path, False, True, bool(mode & (stat.S_ISUID | stat.S_ISGID)), None)
    is_elf = head.startswith(_ELF_MAGIC)
    dynamic = not is_elf or _has_interpreter(head)
    return Program(
        path=path,
        is_elf=is_elf,
        dynamic=dynamic,
        privileged=bool(mode & (stat.S_ISUID | stat.S_ISGID)),
        mpi=_linked_mpi(path) if is_elf and dynamic else None,
    )


def _has_interpreter(head: bytes) -> bool:
    """Whether a 64-bit little-endian ELF header names a loader. Other classes count as dynamic."""
    if len(head) < 64 or head[4:6] != b"\x02\x01":
        return True
    (table,) = struct.unpack_from("<Q", head, 32)
    size, count = struct.unpack_from("<HH", head, 54)
    for i in range(count):
        at = table + i * size
        if at + 4 > len(head):
            return True
        (kind,) = struct.unpack_from("<I", head, at)
        if kind == _PT_INTERP:
            return True
    return False


def _linked_mpi(path: Path) -> str | None:
    try:
        listing = subprocess.run(
            ["ldd", str(path)], capture_output=True, text=True, errors="replace", check=False
        ).stdout
    except OSError:
        return None
    for line in listing.splitlines():
        match = re.match(r"\s*(\S+)", line)
        if match is None:
            continue
        soname = Path(match.group(1)).name
        for known, mpi in _MPI_SONAMES.items():
            if soname == known or (known == "libmpi_abi.so" and soname.startswith(known)):
                return mpi
    return None

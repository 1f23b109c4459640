"""A directory whose file system is measured: what it lies on, and how much may be written there."""

import contextlib
import os
import re
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from forebay import filesystem
from forebay.errors import ForebayError
from forebay.filesystem import Mount, Stripe
from forebay.trace.places import OF_THE_KERNEL
from forebay.units import show_bytes

_IN_MEMORY = frozenset({"tmpfs", "ramfs", "hugetlbfs"})
_FURTHER_PSEUDO = frozenset({"autofs", "binfmt_misc", "efivarfs", "fusectl", "pstore", "rootfs"})
_MIB = 1 << 20
#: A set of files is at most this part of the free space, and of the memory that is available.
FREE_SHARE = 20
MEMORY_SHARE = 16
LEAST_BYTES = 2 * _MIB
_SETS = 3  # of files at a time: one shared, one for each process, one that is being written


@dataclass(frozen=True)
class Device:
    """A block device of this host."""

    name: str
    model: str | None
    rotational: bool | None
    scheduler: str | None


@dataclass(frozen=True)
class Place:
    """`stripe`: of new files; None if nothing tells. `device`: None where none of this host lies
    below."""

    path: Path
    mount: Mount
    total_bytes: int
    free_bytes: int
    free_names: int | None  # inodes; None where they are not counted
    stripe: Stripe | None
    device: Device | None

    @property
    def in_memory(self) -> bool:
        return self.mount.type in _IN_MEMORY

    def as_json(self) -> dict[str, Any]:
        content: dict[str, Any] = {
            "path": str(self.path),
            "mount_point": self.mount.point,
            "type": self.mount.type,
            "source": self.mount.source,
            "total_bytes": self.total_bytes,
            "free_bytes": self.free_bytes,
        }
        if self.stripe is not None:
            content["stripe_count"] = max(0, self.stripe.count)
            content["stripe_size_bytes"] = self.stripe.size
            content["stripe_told_by"] = self.stripe.told_by
        if self.device is not None:
            known = asdict(self.device).items()
            content["device"] = {key: value for key, value in known if value is not None}
        return content


def examine(path: Path) -> Place:
    """Raises ForebayError for what cannot be measured, and says why."""
    place = Path(os.path.realpath(path))
    if not place.exists():
        raise ForebayError(
            f"{path} is not there", "Name a directory of the file system that is to be measured."
        )
    if not place.is_dir():
        raise ForebayError(
            f"{path} is no directory",
            "Name a directory: what is measured are files in it, which are removed at the end.",
        )
    mount = filesystem.mount_of(place)
    if mount.type in OF_THE_KERNEL | _FURTHER_PSEUDO:
        raise ForebayError(
            f"{path} is in {mount.type}, which the kernel makes up: it holds no data",
            "Name a directory of a file system that programs write to.",
        )
    if not os.access(place, os.W_OK | os.X_OK):
        read_only = os.statvfs(place).f_flag & os.ST_RDONLY
        why = "is mounted read-only" if read_only else "is not writable"
        raise ForebayError(f"{path} {why}", "Name a directory of your own: files are written.")
    usage = shutil.disk_usage(place)
    counts = os.statvfs(place)
    found = Place(
        path=place,
        mount=mount,
        total_bytes=usage.total,
        free_bytes=usage.free,
        free_names=counts.f_favail if counts.f_files else None,
        stripe=filesystem.stripe_of(place),
        device=_device(place, mount),
    )
    if most_bytes(found) < LEAST_BYTES:
        least = LEAST_BYTES * (MEMORY_SHARE if found.in_memory else FREE_SHARE)
        raise ForebayError(
            f"{path} has {show_bytes(usage.free)} free; measuring takes a small part of the free "
            f"space, and wants {show_bytes(least)}",
            "Free some space, or name another directory.",
            exit_code=1,
        )
    return found


def most_bytes(place: Place) -> int:
    """Of a set of files, so that neither the file system nor the memory fills."""
    return min(place.free_bytes // FREE_SHARE, available_memory_bytes() // MEMORY_SHARE)


def written_bytes_most(set_bytes: int) -> int:
    """That are in a place at one time, with sets of so many bytes each."""
    return _SETS * set_bytes


def available_memory_bytes(proc: Path = Path("/proc")) -> int:
    """What programs can have without swapping, in this process's control group."""
    found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with contextlib.suppress(OSError):
        text = (proc / "meminfo").read_text()
        if match := re.search(r"^MemAvailable:\s+(\d+) kB", text, re.MULTILINE):
            found = int(match[1]) * 1024
    for limit in ("memory.max", "memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):
            found = min(found, int((Path("/sys/fs/cgroup") / limit).read_text()))
    return found


def _device(path: Path, mount: Mount) -> Device | None:
    """The block device that holds `path`; by the mount's source where the file system's own number
    says nothing, as of btrfs."""
    number = path.stat().st_dev
    entry = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    if not entry.exists() and mount.source.startswith("/dev/"):
        with contextlib.suppress(OSError):
            number = Path(mount.source).stat().st_rdev
            entry = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    if not entry.exists():
        return None
    entry = entry.resolve()
    if (entry / "partition").exists():
        entry = entry.parent
    rotational = _word(entry / "queue" / "rotational")
    scheduler = re.search(r"\[(\S+)\]", _word(entry / "queue" / "scheduler") or "")
    return Device(
        name=entry.name,
        model=_word(entry / "device" / "model"),
        rotational=None if rotational is None else rotational == "1",
        scheduler=scheduler[1] if scheduler else None,
    )


def _word(path: Path) -> str | None:
    try:
        return path.read_text(errors="replace").strip() or None
    except OSError:
        return None

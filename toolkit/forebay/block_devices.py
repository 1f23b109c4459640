"""Block devices: which one a file system is on, and what it is made of."""

import os
import re
import stat
from pathlib import Path

# Not devices of their own: memory, files, other hosts'.
_BORROWED = re.compile(r"(zram|ram|loop|nbd|rbd|drbd)\d+")
# NVMe over fabrics. [kernel, drivers/nvme/host, attribute "transport"]
_FABRICS = frozenset({"tcp", "rdma", "fc", "loop"})
# Directories of /sys/devices that are iSCSI's sessions and ports of Fibre Channel.
_REMOTE = re.compile(r"/(session\d+|rport-[\d:-]+)/")


def number_of(device: str, source: str) -> str | None:
    """MAJOR:MINOR of what a mount is on, by its own number and its source as /proc/self/mountinfo
    names them; None of a network's file system, of one in memory, and of one of FUSE."""
    if device and not device.startswith("0:"):
        return device
    if not source.startswith("/dev/"):
        return None
    try:  # btrfs and others have a number of their own
        status = os.stat(source)  # noqa: PTH116 - not a path of ours
    except OSError:
        return None
    if not stat.S_ISBLK(status.st_mode):
        return None
    return f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"


def below(number: str, sys: Path = Path("/sys")) -> list[Path]:
    """The devices in /sys that a partition, a volume (LVM), a RAID (md) or an encryption (dm-crypt)
    is made of, down to those that are made of no other. None if the kernel does not tell."""
    try:
        entry = (sys / "dev" / "block" / number).resolve(strict=True)
    except OSError:
        return []
    found: dict[Path, None] = {}
    rest = [entry]
    while rest:
        device = rest.pop()
        if (device / "partition").exists():
            device = device.parent
        slaves = device / "slaves"
        parts = sorted(slaves.iterdir()) if slaves.is_dir() else []
        if parts:
            rest += [part.resolve() for part in reversed(parts)]
        else:
            found[device] = None
    return list(found)


def is_local_flash(number: str, sys: Path = Path("/sys")) -> bool:
    """Whether all that it is made of is in this node, keeps what it has without power, and does not
    rotate, as far as the kernel tells."""
    devices = below(number, sys)
    return bool(devices) and all(_is_local_flash(device) for device in devices)


def _is_local_flash(device: Path) -> bool:
    if _BORROWED.fullmatch(device.name) or _REMOTE.search(str(device)):
        return False
    if _word(device / "queue" / "rotational") != "0":
        return False
    attached = device / "device"
    ways = [attached / "transport", *attached.glob("nvme*/transport")]
    return not any(_word(way) in _FABRICS for way in ways)


def _word(path: Path) -> str | None:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return None

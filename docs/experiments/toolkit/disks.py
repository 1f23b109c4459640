"""Volumes of one disk, and of RAID 5: btrfs on files in memory that the kernel treats as disks of a
set bandwidth and of so many operations a second.

btrfs, as some kernels have no other RAID 5. It writes in place (`nodatacow`): a small write then
reads old data and parity first, as in any RAID 5. What it may keep in memory before it writes is
little, so that writers wait for the disks, as where files are larger than memory."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from control_groups import hierarchy_of
from throttled_ext4 import check_loop_devices, do, number_of

BANDWIDTH = 20_000_000  # of each disk, bytes a second
OPERATIONS = 300  # the same, operations a second
SIZE = 256 << 20  # the same, bytes
DIRTY = 4 << 20  # of a volume, bytes that wait in memory

_PROGRAMS = {"losetup": "mount", "mkfs.btrfs": "btrfs-progs", "mount": "mount", "umount": "mount"}
_LIMITS = {"bps": BANDWIDTH, "iops": OPERATIONS}


@contextmanager
def volume(memory: Path, disks: int) -> Iterator[Path]:
    """One of so many disks, mounted for the time; of several the data of one is parity. Raises
    CannotBeDoneError; what was set up by then is taken down."""
    check_loop_devices(_PROGRAMS)
    throttles = hierarchy_of("blkio")
    with ExitStack() as undo:
        place = Path(tempfile.mkdtemp(prefix="forebay-experiment-", dir=memory))
        undo.callback(shutil.rmtree, place)
        devices = [_disk(undo, throttles, place / f"disk-{number}") for number in range(disks)]
        profiles = ["-d", "raid5", "-m", "raid1"] if disks > 1 else ["-d", "single", "-m", "single"]
        do("mkfs.btrfs", "-q", *profiles, *devices)
        mount = place / "mount"
        mount.mkdir()
        # A kernel looks for the other devices of a volume by name only if it is told them.
        others = "".join(f",device={device}" for device in devices)
        do("mount", "-o", f"nodatacow,noatime{others}", devices[0], mount)
        undo.callback(do, "umount", mount)
        _limit_dirty(do("findmnt", "--noheadings", "--output", "UUID", "--mountpoint", mount))
        yield mount


def _disk(undo: ExitStack, throttles: Path, image: Path) -> Path:
    image.touch()
    os.truncate(image, SIZE)
    device = Path(do("losetup", "--find", "--show", image))
    undo.callback(do, "losetup", "--detach", device)
    # Of the root group, to which the threads that write pages back belong.
    number = number_of(device)
    for direction in ("read", "write"):
        for unit, limit in _LIMITS.items():
            file = throttles / f"blkio.throttle.{direction}_{unit}_device"
            file.write_text(f"{number} {limit}")
            undo.callback(file.write_text, f"{number} 0")
    return device


def _limit_dirty(uuid: str) -> None:
    writing = Path("/sys/fs/btrfs", uuid, "bdi")
    (writing / "strict_limit").write_text("1")
    (writing / "max_bytes").write_text(str(DIRTY))

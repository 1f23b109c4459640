"""A disk that is limited in operations and in bandwidth: ext4 in a file, on a loop device that the
kernel throttles for the processes of a control group."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from control_groups import CannotBeDoneError, control_group, entering

OPERATIONS = 300  # reads a second
BANDWIDTH = 200_000_000  # bytes a second

_PROGRAMS = {
    "losetup": "mount",
    "mkfs.ext4": "e2fsprogs",
    "mount": "mount",
    "umount": "mount",
}
_OVERHEAD = 64 << 20  # of the file system, bytes


class ThrottledExt4:
    """Mounted; nothing else reads from it."""

    def __init__(self, mount: Path, device: Path, group: Path) -> None:
        self.mount = mount
        self._queue = Path("/sys/block", device.name, "queue")
        self._number = number_of(device)
        self._group = group

    def set_read_ahead(self, count: int) -> None:
        """How far the kernel reads ahead, in bytes; of files that are opened from now on."""
        (self._queue / "read_ahead_kb").write_text(str(count >> 10))

    def served(self) -> tuple[int, int]:
        """Reads, and bytes, that the device has carried out for the group."""
        operations, count = (
            self._read_of(f"blkio.throttle.{name}") for name in ("io_serviced", "io_service_bytes")
        )
        return operations, count

    def within(self, command: list[str]) -> list[str]:
        """The command, throttled."""
        return entering(self._group, command)

    def _read_of(self, name: str) -> int:
        for line in (self._group / name).read_text().splitlines():
            match line.split():
                case [number, "Read", count] if number == self._number:
                    return int(count)
        return 0


def number_of(device: Path) -> str:
    """The device's number as the kernel writes it."""
    number = device.stat().st_rdev
    return f"{os.major(number)}:{os.minor(number)}"


def do(*words: str | Path) -> str:
    """What this command says. Raises CannotBeDoneError if it fails."""
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CannotBeDoneError(f"{' '.join(map(str, words))}: {done.stderr.strip()}")
    return done.stdout.strip()


def check_loop_devices(programs: Mapping[str, str]) -> None:
    """Raises CannotBeDoneError where these programs cannot set up and throttle a loop device; by
    program the package of Debian that has it."""
    if os.geteuid() != 0:
        raise CannotBeDoneError("only root can mount and throttle a loop device")
    if not Path("/dev/loop-control").exists():
        raise CannotBeDoneError("there are no loop devices here: no /dev/loop-control")
    lacking = {name: package for name, package in programs.items() if shutil.which(name) is None}
    if lacking:
        packages = ", ".join(sorted(set(lacking.values())))
        raise CannotBeDoneError(f"{', '.join(lacking)}: not found; Debian has them in {packages}")


@contextmanager
def throttled_ext4(memory: Path, size: int) -> Iterator[ThrottledExt4]:
    """Up for the time, with room for `size` bytes of files, in a fresh directory below `memory`.
    Raises CannotBeDoneError; what was set up by then is taken down."""
    check_loop_devices(_PROGRAMS)
    with ExitStack() as undo:
        place = Path(tempfile.mkdtemp(prefix="forebay-experiment-", dir=memory))
        undo.callback(shutil.rmtree, place)
        image = place / "image"
        image.touch()
        os.truncate(image, size + size // 16 + _OVERHEAD)
        # Nothing that the file system would write later, at a time of its own.
        later = "lazy_itable_init=0,lazy_journal_init=0"
        do("mkfs.ext4", "-q", "-O", "^has_journal", "-E", later, image)
        device = Path(do("losetup", "--find", "--show", image))
        undo.callback(do, "losetup", "--detach", device)
        mount = place / "mount"
        mount.mkdir()
        do("mount", "-o", "noatime", device, mount)
        undo.callback(do, "umount", mount)
        number = number_of(device)
        group = undo.enter_context(
            control_group(
                "blkio",
                {
                    "blkio.throttle.read_iops_device": f"{number} {OPERATIONS}",
                    "blkio.throttle.read_bps_device": f"{number} {BANDWIDTH}",
                },
            )
        )
        yield ThrottledExt4(mount, device, group)

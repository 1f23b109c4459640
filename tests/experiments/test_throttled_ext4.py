"""Goal: a throttled disk counts what its readers read, and leaves nothing behind, also when a
measurement fails; where there can be none, it says what is missing.

Method: a small one, which needs root, loop devices and control groups of version 1.
"""

import os
import subprocess
from pathlib import Path

import pytest

from control_groups import CannotBeDoneError, control_group
from throttled_ext4 import throttled_ext4


def mounts_below(place: Path) -> list[str]:
    return [
        line for line in Path("/proc/self/mounts").read_text().splitlines() if str(place) in line
    ]


def loops_of(place: Path) -> str:
    told = subprocess.run(["losetup", "--list"], capture_output=True, text=True, check=True)
    return "\n".join(line for line in told.stdout.splitlines() if str(place) in line)


class MeasurementFailedError(Exception):
    """What a disk must survive."""


def read_and_fail(place: Path) -> None:
    """Counts what one reader reads, and then fails; its control group must be gone after that."""
    with throttled_ext4(place, 1 << 20) as disk:
        file = disk.mount / "file"
        file.write_bytes(os.urandom(1 << 20))
        with file.open("rb") as opened:
            os.fsync(opened.fileno())
            os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        before = disk.served()
        done = subprocess.run(disk.within(["cat", str(file)]), capture_output=True, check=True)
        operations, count = (b - a for a, b in zip(before, disk.served(), strict=True))
        assert done.stdout == file.read_bytes()
        assert operations > 0
        assert count >= 1 << 20
        raise MeasurementFailedError


def test_what_its_readers_read_is_counted_and_nothing_is_left_of_it(tmp_path: Path) -> None:
    try:
        with pytest.raises(MeasurementFailedError):
            read_and_fail(tmp_path)
    except CannotBeDoneError as missing:
        pytest.skip(str(missing))
    assert mounts_below(tmp_path) == []
    assert loops_of(tmp_path) == ""
    assert list(tmp_path.iterdir()) == []
    with control_group("blkio", {}) as group:  # There can be another one of that name.
        assert group.exists()


def test_who_is_not_root_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(CannotBeDoneError, match="only root"), throttled_ext4(tmp_path, 1 << 20):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_controller_that_is_not_there_is_named() -> None:
    with pytest.raises(CannotBeDoneError, match="no-such"), control_group("no-such", {}):
        pass

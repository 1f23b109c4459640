"""Goal: `forebay doctor` names storage for write-behind logs that is in this node, keeps what it
has, and can be written; else memory, and says what that loses.

Method: made trees of /sys, as the kernel has them for partitions, volumes, RAIDs, encryption and
devices of other hosts; made lists of places; the command on this machine.
"""

from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import Forebay

from forebay import block_devices, filesystem, log_place
from forebay.filesystem import LocalPath, Mount

GIB = 1 << 30


@dataclass(frozen=True)
class Sys:
    """A tree like /sys."""

    root: Path

    def device(self, number: str, where: str, rotational: str = "0", parts: str = "") -> Path:
        """One of `number`, at `where` below /sys/devices, made of the devices named by `parts`."""
        place = self.root / "devices" / where
        (place / "queue").mkdir(parents=True)
        (place / "queue/rotational").write_text(rotational + "\n")
        (place / "slaves").mkdir()
        for part in parts.split():
            (place / "slaves" / part).symlink_to(next(self.root.glob(f"devices/**/{part}")))
        self._number(number, place)
        return place

    def partition(self, number: str, device: Path, name: str) -> None:
        (device / name).mkdir()
        (device / name / "partition").write_text("1\n")
        self._number(number, device / name)

    def _number(self, number: str, place: Path) -> None:
        link = self.root / "dev/block" / number
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(place)

    def is_local_flash(self, number: str) -> bool:
        return block_devices.is_local_flash(number, self.root)


@pytest.fixture
def sys(tmp_path: Path) -> Sys:
    return Sys(tmp_path / "sys")


def test_a_partition_is_what_its_device_is(sys: Sys) -> None:
    nvme = sys.device("259:0", "pci0000:00/nvme/nvme0/nvme0n1")
    (nvme / "device").mkdir()
    (nvme / "device/transport").write_text("pcie\n")
    sys.partition("259:1", nvme, "nvme0n1p1")
    disk = sys.device("8:0", "pci0000:00/ata1/block/sda", rotational="1")
    sys.partition("8:1", disk, "sda1")
    assert sys.is_local_flash("259:0")
    assert sys.is_local_flash("259:1")
    assert not sys.is_local_flash("8:1")
    assert not sys.is_local_flash("8:17"), "there is none"


def test_a_volume_is_what_lies_below_all_its_layers(sys: Sys) -> None:
    """As LVM on dm-crypt on a RAID of two partitions."""
    for k in range(2):
        nvme = sys.device(f"259:{4 * k}", f"pci0000:0{k}/nvme/nvme{k}/nvme{k}n1")
        sys.partition(f"259:{4 * k + 1}", nvme, f"nvme{k}n1p1")
    sys.device("9:0", "virtual/block/md0", parts="nvme0n1p1 nvme1n1p1")
    sys.device("253:0", "virtual/block/dm-0", parts="md0")
    sys.device("253:1", "virtual/block/dm-1", parts="dm-0")
    assert sys.is_local_flash("253:1")
    assert [device.name for device in block_devices.below("253:1", sys.root)] == [
        "nvme0n1",
        "nvme1n1",
    ]


def test_one_rotating_disk_makes_a_volume_rotate(sys: Sys) -> None:
    sys.device("8:0", "pci0000:00/ata1/block/sda")
    sys.device("8:16", "pci0000:00/ata2/block/sdb", rotational="1")
    sys.device("253:0", "virtual/block/dm-0", parts="sda sdb")
    assert not sys.is_local_flash("253:0")


@pytest.mark.parametrize(
    "where",
    [
        "virtual/block/zram0",
        "virtual/block/loop3",
        "virtual/block/nbd0",
        "platform/host3/session1/target3:0:0/block/sdc",
        "pci0000:00/host1/rport-1:0-0/target1:0:0/block/sdd",
    ],
)
def test_memory_files_and_other_hosts_storage_is_none(sys: Sys, where: str) -> None:
    sys.device("1:0", where)
    assert not sys.is_local_flash("1:0")


@pytest.mark.parametrize("where", ["transport", "nvme3/transport"])
def test_nvme_over_a_network_is_none(sys: Sys, where: str) -> None:
    """As the device says itself, or its subsystem of several paths."""
    told = sys.device("259:0", "virtual/nvme-subsystem/nvme-subsys3/nvme3n1") / "device" / where
    told.parent.mkdir(parents=True)
    told.write_text("tcp\n")
    assert not sys.is_local_flash("259:0")


def test_only_file_systems_of_disks_are_on_flash(sys: Sys) -> None:
    sys.device("259:0", "pci0000:00/nvme/nvme0/nvme0n1")
    for kind, on_flash in (("xfs", True), ("fuseblk", False), ("nfs4", False)):
        mount = Mount("/local", kind, "/dev/nvme0n1", "259:0")
        assert filesystem.is_local_flash(mount, sys.root) == on_flash
    assert not filesystem.is_local_flash(Mount("/dev/shm", "tmpfs", "tmpfs", "0:30"), sys.root)


def place(path: str, free: int = 100 * GIB, *, writable: bool = True, flash: bool = True,
          emptied: bool = False) -> LocalPath:  # fmt: skip
    return LocalPath(path, "xfs", 2 * free, free, writable, flash, emptied)


MEMORY = place("/dev/shm", flash=False)


def test_the_flash_with_the_most_free_space_is_best() -> None:
    found = [
        MEMORY,
        place("/tmp", 900 * GIB, emptied=True),
        place("/", 900 * GIB),
        place("/closed", 900 * GIB, writable=False),
        place("/local/a", 10 * GIB),
        place("/local/b", 20 * GIB),
    ]
    best = log_place.best(found)
    assert best is not None
    assert best.path == "/local/b"
    told = log_place.describe(best, found)
    assert "survives a crash" in told
    assert told.endswith(
        "; export FOREBAY_HINTS='forebay_cache=enable;forebay_cache_path=/local/b'"
    )


def test_without_flash_it_is_memory_and_what_that_loses_is_said() -> None:
    found = [MEMORY, place("/tmp", emptied=True), place("/full", GIB // 2)]
    best = log_place.best(found)
    assert best == MEMORY
    told = log_place.describe(MEMORY, found)
    assert "does not survive a crash of the node" in told
    assert "directory of yours" not in told
    closed = place("/local/nvme", writable=False)
    assert "a directory of yours on /local/nvme would keep it" in log_place.describe(
        MEMORY, [*found, closed]
    )


def test_where_nothing_can_be_written_there_is_no_place() -> None:
    assert log_place.best([place("/dev/shm", writable=False, flash=False)]) is None


def test_doctor_names_the_place_and_the_line_to_copy(forebay: Forebay) -> None:
    places = filesystem.local_paths()
    best = log_place.best(places)
    assert best is not None
    assert log_place.describe(best, places) in forebay("doctor").output

"""Goal: what devices moved during a run is what the kernel's counters grew by, for the devices
below its files, and nothing is made up where the kernel does not tell.

Method: a made /proc and /sys; the page and the terminal of a run that has such counters.
"""

import os
from pathlib import Path

import pytest
from made_runs import MIB, MadeRun

from forebay import filesystem, storage_counters
from forebay.filesystem import Mount
from forebay.report import contents, page

MOUNTS = [
    Mount("/", "ext4", "/dev/vda1", "254:1"),
    Mount("/scratch", "ext4", "/dev/vdb", "254:16"),
    Mount("/scratch/again", "ext4", "/dev/vdb", "254:16"),
    Mount("/dev/shm", "tmpfs", "tmpfs", "0:30"),
    Mount("/pfs", "fuse.forebay-testbed", "forebay-testbed", "0:44"),
    Mount("/missing", "ext4", "/dev/vdz", "254:99"),
]


def write_kernel(root: Path, times: int) -> None:
    """Counters of two devices, `times` as large."""
    for number, name in (("254:1", "vda1"), ("254:16", "vdb")):
        place = root / "sys/devices" / name
        place.mkdir(parents=True, exist_ok=True)
        counted = [7, 1, 80, 9, 5, 1, 4096, 3, 0, 11, 12]
        (place / "stat").write_text(" ".join(str(times * each) for each in counted) + "\n")
        link = root / "sys/dev/block" / number
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.is_symlink():
            link.symlink_to(place)
    (root / "proc/self").mkdir(parents=True, exist_ok=True)
    (root / "proc/self/io").write_text(
        f"rchar: 5\nread_bytes: {times * 4096}\nwrite_bytes: {times * 8192}\n"
        f"cancelled_write_bytes: {times * 512}\n"
    )
    (root / "proc/meminfo").write_text(f"MemTotal: 9 kB\nDirty:   {times * 3} kB\n")


def test_counters_are_what_grew_meanwhile(tmp_path: Path) -> None:
    write_kernel(tmp_path, 1)
    first = storage_counters.sample(MOUNTS, tmp_path / "proc", tmp_path / "sys")
    write_kernel(tmp_path, 4)
    last = storage_counters.sample(MOUNTS, tmp_path / "proc", tmp_path / "sys")
    found = storage_counters.between(first, last)
    counted = {"reads": 21, "read_bytes": 240 * 512, "writes": 15, "written_bytes": 3 * 2 * MIB}
    assert found == {
        "devices": [
            {"name": "vda1", "mount_points": ["/"], **counted},
            {"name": "vdb", "mount_points": ["/scratch", "/scratch/again"], **counted},
        ],
        "processes": {"read_bytes": 12288, "written_bytes": 24576, "cancelled_bytes": 1536},
        "dirty_bytes": {"start": 3072, "end": 12288},
    }


def test_without_such_a_kernel_there_is_nothing(tmp_path: Path) -> None:
    found = storage_counters.sample(MOUNTS, tmp_path / "proc", tmp_path / "sys")
    assert found == {"devices": {}}
    assert storage_counters.between(found, found) == {"devices": []}


def test_this_hosts_processes_are_counted_with_those_waited_for(tmp_path: Path) -> None:
    """A child's bytes are its parent's once it is waited for."""
    if not Path("/proc/self/io").exists() or filesystem.mount_of(tmp_path).type == "tmpfs":
        pytest.skip("the kernel does not count the I/O of processes, or not of memory")
    first = storage_counters.sample([])
    child = os.fork()
    if child == 0:
        (tmp_path / "data").write_bytes(bytes(MIB))
        os._exit(0)
    os.waitpid(child, 0)
    counted = storage_counters.between(first, storage_counters.sample([]))["processes"]
    assert counted["written_bytes"] >= MIB


def test_a_report_shows_the_whole_hosts_devices_as_such(tmp_path: Path) -> None:
    run = MadeRun(tmp_path / "run")
    run.posix("pwrite", 0, 100, MIB, offset=0)
    counted = {"reads": 1, "read_bytes": 4096, "writes": 3, "written_bytes": 2 * MIB}
    run.run = {
        "storage": {
            "host": "node1",
            "devices": [{"name": "vdb", "mount_points": ["/scratch"], **counted}],
            "processes": {"read_bytes": 0, "written_bytes": MIB, "cancelled_bytes": 0},
            "dirty_bytes": {"start": 0, "end": 3 * MIB},
        }
    }
    found = contents.examine(run.trace())
    assert found.funnel.places()["device vdb (/scratch), whole host"].written_bytes == 2 * MIB
    assert found.as_json()["funnel"]["devices"][0]["flow"] == counted
    text = " ".join(page.render(found).split())
    for words in (
        "device vdb (/scratch), whole host",
        "A device&#39;s counters are those of all that node1 did with it during the run",
        "0 B of the whole host before the run, 3.0 MiB after it",
        "took 1.0 MiB to be written to it",
    ):
        assert words in text


def test_a_trace_without_counters_says_so(tmp_path: Path) -> None:
    run = MadeRun(tmp_path / "run")
    run.posix("pwrite", 0, 100, MIB, offset=0)
    found = contents.examine(run.trace()).funnel
    assert found.devices == []
    assert "What went on to devices is not known" in found.notes[0]

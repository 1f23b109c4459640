"""Goal: volumes of emulated disks hold what is written, as slowly as they should, and leave nothing
behind; figures of a traced run come from its report.

Method: one of each kind, which needs root, loop devices, btrfs and control groups of version 1; a
report that is made up here.
"""

import os
import subprocess
from pathlib import Path

import pytest

from control_groups import CannotBeDoneError, hierarchy_of
from disks import OPERATIONS, volume
from machine_time import Stolen
from measuring import MeasuringError
from traced_runs import Figures, figures


class MeasurementFailedError(Exception):
    """What a volume must survive."""


def use_and_fail(place: Path, disks: int) -> tuple[int, int]:
    """What is written can be read; returns how many disks there are, and how many are throttled."""
    content = os.urandom(1 << 20)
    with volume(place, disks) as mount:
        (mount / "file").write_bytes(content)
        subprocess.run(["sync", "--file-system", str(mount)], check=True)
        assert (mount / "file").read_bytes() == content
        own = {
            line.split()[0]
            for line in loops().splitlines()
            if line.split()[-1].startswith(str(place))
        }
        limited = hierarchy_of("blkio") / "blkio.throttle.write_iops_device"
        throttled = [line.split() for line in limited.read_text().splitlines()]
        counted = len(own), sum(number in own and int(n) == OPERATIONS for number, n in throttled)
        if disks == 1:
            raise MeasurementFailedError
    return counted


def loops() -> str:
    words = ["losetup", "--list", "--noheadings", "--output", "MAJ:MIN,BACK-FILE"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def test_raid_of_emulated_disks_holds_what_is_written(tmp_path: Path) -> None:
    try:
        assert use_and_fail(tmp_path, 3) == (3, 3)
    except CannotBeDoneError as missing:
        pytest.skip(str(missing))
    assert list(tmp_path.iterdir()) == []
    assert str(tmp_path) not in loops()


def test_a_failed_measurement_leaves_no_disk(tmp_path: Path) -> None:
    try:
        with pytest.raises(MeasurementFailedError):
            use_and_fail(tmp_path, 1)
    except CannotBeDoneError as missing:
        pytest.skip(str(missing))
    assert list(tmp_path.iterdir()) == []
    assert str(tmp_path) not in loops()


def flow(reads: int, writes: int, size: int) -> dict[str, int]:
    return {
        "reads": reads,
        "writes": writes,
        "read_bytes": reads * size,
        "written_bytes": writes * size,
    }


def test_figures_are_means_of_the_processes() -> None:
    report = {
        "command": ["program"],
        "budget": {
            "source": "calls",
            "processes": 4,
            "process_seconds": 8.0,
            "io_share": 0.5,
            "seconds": {"compute": 4.0, "read": 1.0, "write": 2.0, "metadata": 0.0, "mpi": 1.0},
        },
        "funnel": {"mpi": flow(10, 20, 100), "below": flow(1, 2, 1000)},
    }
    found = figures(report)
    assert isinstance(found, Figures)
    assert (found.run_s, found.io_s, found.share) == (2.0, 1.0, 0.5)
    assert (found.calls, found.operations, found.bytes) == (30, 3, 3000)
    assert (found.rate, found.operations_per_s) == (3000.0, 3.0)
    report["funnel"] = {"mpi": None, "below": None}
    with pytest.raises(MeasuringError, match="no calls of MPI-IO"):
        figures(report)


def test_what_the_host_took_is_counted_from_the_beginning(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    stat.write_text("cpu 100 0 100 800 0 0 0 50 7 7\ncpu0 0\n")
    stolen = Stolen(stat)
    stat.write_text("cpu 150 0 110 820 0 0 0 70 9 9\ncpu0 0\n")
    assert stolen.share() == pytest.approx(0.2)

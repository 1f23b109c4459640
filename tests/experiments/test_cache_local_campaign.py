"""Goal: docs/experiments/collective/cache-local.md says what the results say, by the stated rules.

Method: the page from results that are made up here, read back as a table. Nothing is measured.
"""

from pathlib import Path
from typing import Any

import pytest

import cache_local_page
import cache_local_runs
import campaign
import results
from cache_case import NEVER, OFF, ON, STOCK, SYNCED
from cache_local_runs import FIO_FILES, FIO_LOGS
from local_runs import Task
from measuring import MeasuringError, Tools

HERE = Path(campaign.__file__).resolve().parent
MIB = 2**20


def series(seconds: float, exposed: float = 0.0, recovery_s: float = 0.0) -> dict[str, Any]:
    """Four files of 256 MiB that took so long each."""
    return {
        "bytes": [256 * MIB] * 4,
        "seconds": [seconds] * 4,
        "late": [0.0] * 3 + [exposed],
        "absorbed": [256 * MIB] * 4,
        "log_bytes": [257 * MIB] * 4,
        "recovery_s": recovery_s,
    }


def document(
    *, recovery_s: float, fio: dict[str, float], rounds: int = 5, identical: bool = True
) -> dict[str, Any]:
    sides = {
        STOCK: series(0.5),
        SYNCED: series(2.0),
        OFF: series(0.5),
        ON: series(0.25, exposed=0.75),
        NEVER: series(0.25, recovery_s=recovery_s),
    }
    return {
        "runs": {mode: [one] * rounds for mode, one in sides.items()},
        "beside": {device: [rate * MIB] * rounds for device, rate in fio.items()},
        "identical": identical,
        "sleeping": True,
        "file_system": "ext4",
        "environment": {"mpi": {"mpich": "MPICH Version:\t4.0.2"}},
    }


def page_of(directory: Path, found: dict[str, Any], place: str = "disk") -> tuple[str, Any, Any]:
    """The page of one result, and the row of it in each of its tables."""
    path = directory / "results" / f"mpich-cache-local-{place}" / "block3d-memory.json"
    results.store(path, found)
    page = cache_local_page.write(directory, campaign.load(HERE / "campaign.toml")).read_text()
    rows = [line.strip("| ").split(" | ") for line in page.splitlines()]
    bandwidths, logs = (row[2:] for row in rows if row[:2] == ["block3d", "memory"])
    return page, bandwidths, logs


def test_the_stock_mpi_stands_beside_the_cache_with_and_without_a_sync(tmp_path: Path) -> None:
    # 1 GiB in 4 x 0.5 s, 4 x 2 s and 4 x 0.25 s; 0.75 s more until the last file is durable.
    found = document(recovery_s=2.0, fio={FIO_FILES: 512.0, FIO_LOGS: 2048.0})
    page, row, _ = page_of(tmp_path, found)
    assert row == [
        "512.0 MiB/s",
        "128.0 MiB/s",
        "512.0 MiB/s",
        "1.0 GiB/s",
        "1.0 GiB/s",
        "2.00 [2.00, 2.00]",
        "585.1 MiB/s",
        "4.57 [4.57, 4.57]",
        "yes",
    ]
    assert "files on a local disk (ext4)" in page
    assert "Ranks sleep while they wait" in page
    assert "](cache-local-mpich-disk.svg)" in page
    picture = (tmp_path / "cache-local-mpich-disk.svg").read_text()
    assert all(f">{text}</text>" in picture for text in ("block3d", "memory", "stock, synced"))


@pytest.mark.parametrize(
    ("fio", "part", "verdict"),
    [
        ({FIO_FILES: 640.0, FIO_LOGS: 2048.0}, "0.80 [0.80, 0.80]", "met"),
        ({FIO_FILES: 2048.0, FIO_LOGS: 640.0}, "0.80 [0.80, 0.80]", "met"),
        ({FIO_FILES: 640.0}, "0.80 [0.80, 0.80]", "met"),
        ({FIO_FILES: 1024.0, FIO_LOGS: 1024.0}, "0.50 [0.50, 0.50]", "**missed**"),
    ],
)
def test_a_recovery_is_held_against_fio_on_the_slower_device(
    tmp_path: Path, fio: dict[str, float], part: str, verdict: str
) -> None:
    _, _, row = page_of(tmp_path, document(recovery_s=2.0, fio=fio))
    assert row[6:10] == ["1.0 GiB at 512.0 MiB/s", part, "0.8", verdict]
    assert row[10:] == ["100 %", "0.39 %", "met"]


def test_a_recovery_is_of_what_was_in_logs(tmp_path: Path) -> None:
    found = document(recovery_s=2.0, fio={FIO_FILES: 512.0})
    given_up = {"absorbed": [256 * MIB, 0, 0, 0], "log_bytes": [257 * MIB, 0, 0, 0]}
    for mode in (ON, NEVER):
        found["runs"][mode] = [one | given_up for one in found["runs"][mode]]
    _, _, row = page_of(tmp_path, found)
    assert row[6:11] == [
        "256.0 MiB at 128.0 MiB/s",
        "0.25 [0.25, 0.25]",
        "0.8",
        "**missed**",
        "25 %",
    ]


def test_a_flush_has_a_bar_where_the_place_has_one(tmp_path: Path) -> None:
    # 256 MiB in 0.25 s + 0.75 s.
    found = document(recovery_s=2.0, fio={FIO_FILES: 300.0, FIO_LOGS: 2048.0})
    page, _, row = page_of(tmp_path, found)
    assert row[2:6] == ["256.0 MiB/s", "0.85 [0.85, 0.85]", "-", "-"]
    assert "3 claims: 3 met." in page
    other = tmp_path / "other"
    page, _, row = page_of(other, found, "distributed")
    assert row[2:6] == ["256.0 MiB/s", "0.85 [0.85, 0.85]", "0.8", "met"]
    assert "4 claims: 4 met." in page


def test_other_bytes_and_few_rounds_support_no_claim(tmp_path: Path) -> None:
    fio = {FIO_FILES: 512.0, FIO_LOGS: 2048.0}
    page, row, _ = page_of(tmp_path, document(recovery_s=2.0, fio=fio, identical=False))
    assert row[-1] == "**NO**"
    assert "3 claims: 3 missed." in page
    page, _, _ = page_of(tmp_path, document(recovery_s=2.0, fio=fio, rounds=4))
    assert "3 claims: 2 met, 1 too few pairs." in page


def test_a_place_that_is_not_known_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fio.require", lambda: None)
    described = campaign.load(HERE / "campaign.toml")
    task = Task(described, Tools(tmp_path, tmp_path), tmp_path, [], 5, 1.0, print)
    with pytest.raises(MeasuringError, match="no place 'tape'; there are disk, distributed"):
        cache_local_runs.measure(task, tmp_path, tmp_path, ["tape"])

"""Goal: docs/experiments/collective/cache.md says what the results say, by the stated rules.

Method: the page from results that are made up here, read back as a table. Nothing is measured.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import cache_case
import cache_page
import cache_picture
import cache_runs
import campaign
import measuring
import results
from cache_case import NEVER, OFF, ON, STOCK
from local_runs import Task
from measuring import MeasuringError, Tools

HERE = Path(campaign.__file__).resolve().parent
KIB = 1024
MIB = 1024 * KIB


def runs(seconds: float, exposed: float = 0.0) -> list[dict[str, Any]]:
    """Five runs of four files of 16 MiB that took so long each."""
    one = {
        "bytes": [16 * MIB] * 4,
        "seconds": [seconds] * 4,
        "late": [0.0] * 3 + [exposed],
        "absorbed": [16 * MIB] * 4,
        "log_bytes": [16 * MIB + 64 * KIB] * 4,
        "recovery_s": 5.0,
    }
    return [one] * 5


def document(
    on: float, exposed: float, *, identical: bool = True, sleeping: bool = True
) -> dict[str, Any]:
    sides = {STOCK: runs(1.0), OFF: runs(1.0), ON: runs(on, exposed), NEVER: runs(0.05)}
    return {
        "runs": sides,
        "identical": identical,
        "sleeping": sleeping,
        "environment": {"mpi": {"mpich": "MPICH Version:\t4.0.2"}},
    }


@pytest.fixture
def curves(monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, list[float]]]:
    """What would be drawn, by the picture's name."""
    found: dict[str, dict[str, list[float]]] = {}

    def keep(
        path: Path,
        _title: str,
        _axis: str,
        _marks: list[str],
        drawn: dict[str, list[float]],
        _published: dict[str, list[float]],
    ) -> None:
        found[path.name] = drawn

    monkeypatch.setattr(cache_picture, "draw", keep)
    return found


def rows_of(page: Path, aggregators: str, buffer: str) -> list[list[str]]:
    """Its row in the table of bandwidths and in that of its logs."""
    rows = [line.strip("| ").split(" | ") for line in page.read_text().splitlines()]
    return [row for row in rows if row[:2] == [aggregators, buffer]]


def test_a_hidden_flush_counts_against_the_stock_mpi(
    tmp_path: Path, curves: dict[str, dict[str, list[float]]]
) -> None:
    base = tmp_path / "results" / "mpich-cache-memory"
    results.store(base / "block3d-8-1MiB.json", document(0.05, 1.0))
    results.store(base / "block3d-4-1MiB.json", document(0.1, 1.0))
    results.store(base / "block3d-8-64KiB.json", document(0.1, 1.0))
    results.store(base / "block3d-8-256KiB.json", document(0.05, 1.0, identical=False))
    page = cache_page.write(tmp_path, campaign.load(HERE / "campaign.toml"))
    row, _ = rows_of(page, "8", "1MiB")
    assert row[2] == "16.0 MiB/s"
    assert row[4] == "320.0 MiB/s"
    assert row[6] == "20.0 [20.0, 20.0]"
    assert row[9:] == ["met", "yes"]
    assert rows_of(page, "4", "1MiB")[0][9] == "-"
    assert rows_of(page, "8", "64KiB")[0][9] == "**missed**"
    assert rows_of(page, "8", "256KiB")[0][9:] == ["**missed**", "**NO**"]
    assert "15 claims: 10 met, 5 missed." in page.read_text()
    assert curves["cache-mpich-memory-block3d.svg"]["stock"] == [16 * MIB] * 4


@pytest.mark.parametrize(
    ("exposed", "part", "verdict"), [(1.0, "100 %", "met"), (1.3, "80 %", "**missed**")]
)
def test_the_bound_is_the_files_to_the_cache_and_the_last_one_to_the_servers(
    tmp_path: Path,
    curves: dict[str, dict[str, list[float]]],
    exposed: float,
    part: str,
    verdict: str,
) -> None:
    # 4 x 0.05 s to the cache, 16 MiB at 16 MiB/s to the servers: 64 MiB in 1.2 s at best.
    base = tmp_path / "results" / "mpich-cache-memory"
    results.store(base / "segments-1-64KiB.json", document(0.05, exposed))
    page = cache_page.write(tmp_path, campaign.load(HERE / "campaign.toml"))
    row, _ = rows_of(page, "1", "64KiB")
    assert row[8:10] == [part, verdict]
    assert len(curves) == 1


def test_flush_recovery_and_overhead_are_held_against_the_servers(
    tmp_path: Path, curves: dict[str, dict[str, list[float]]]
) -> None:
    # 16 MiB in 1.05 s; 64 MiB in 5 s; 64 KiB beside 16 MiB. The servers move 16 MiB/s.
    base = tmp_path / "results" / "mpich-cache-memory"
    results.store(base / "segments-1-64KiB.json", document(0.05, 1.0))
    page = cache_page.write(tmp_path, campaign.load(HERE / "campaign.toml"))
    _, row = rows_of(page, "1", "64KiB")
    assert row[3:5] == ["95 %", "met"]
    assert row[5:8] == ["12.8 MiB/s", "80 %", "met"]
    assert row[8:] == ["0.39 %", "met"]
    assert len(curves) == 1


def test_a_wait_for_an_earlier_file_is_not_hidden(
    tmp_path: Path, curves: dict[str, dict[str, list[float]]]
) -> None:
    base = tmp_path / "results" / "mpich-cache-memory"
    slow = document(0.05, 1.0)
    slow["runs"][ON] = [one | {"late": [0.0, 0.6, 0.0, 1.0]} for one in slow["runs"][ON]]
    results.store(base / "block3d-8-1MiB.json", slow)
    page = cache_page.write(tmp_path, campaign.load(HERE / "campaign.toml"))
    row, _ = rows_of(page, "8", "1MiB")
    assert row[4] == "80.0 MiB/s"
    assert row[7] == "35.6 MiB/s"
    assert len(curves) == 1


def test_with_a_slow_device_the_fewest_aggregators_are_no_worse_than_stock(
    tmp_path: Path, curves: dict[str, dict[str, list[float]]]
) -> None:
    base = tmp_path / "results" / "openmpi-cache-slow"
    results.store(base / "checkpoint-1-1MiB.json", document(1.0, 0.0))
    results.store(base / "segments-1-1MiB.json", document(1.2, 0.0))
    results.store(base / "checkpoint-2-1MiB.json", document(1.2, 0.0))
    page = cache_page.write(tmp_path, campaign.load(HERE / "campaign.toml"))
    checkpoint, _, segments, _ = rows_of(page, "1", "1MiB")
    assert checkpoint[9] == "met"
    assert segments[9] == "**missed**"
    assert rows_of(page, "2", "1MiB")[0][9] == "-"
    assert len(curves) == 2


def test_a_stock_mpi_that_writes_other_bytes_is_named(
    tmp_path: Path, curves: dict[str, dict[str, list[float]]]
) -> None:
    base = tmp_path / "results" / "openmpi-cache-memory"
    found = document(0.05, 0.0) | {"stock_identical": False}
    results.store(base / "checkpoint-8-1MiB.json", found)
    page = cache_page.write(tmp_path, campaign.load(HERE / "campaign.toml"))
    row, _ = rows_of(page, "8", "1MiB")
    assert row[9:] == ["met", "but for stock"]
    assert len(curves) == 1


def test_without_results_nothing_is_claimed(tmp_path: Path) -> None:
    page = cache_page.write(tmp_path, campaign.load(HERE / "campaign.toml"))
    assert "Nothing has been measured yet." in page.read_text()


def test_the_same_curves_give_the_same_picture(tmp_path: Path) -> None:
    drawn = {"a": [1.0, 2.0], "b": [3.0, 4.0], "c": [1.0, 1.0], "d": [9.0, 9.0]}
    for name in ("one.svg", "two.svg"):
        cache_picture.draw(tmp_path / name, "title", "axis", ["1", "2"], drawn, {"e": [2.0, 4.0]})
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()


def test_ranks_that_slept_while_they_waited_are_told_of(
    tmp_path: Path, curves: dict[str, dict[str, list[float]]]
) -> None:
    case = tmp_path / "results" / "mpich-cache-memory" / "block3d-8-1MiB.json"
    for sleeping in (True, False):
        results.store(case, document(0.05, 1.0, sleeping=sleeping))
        page = cache_page.write(tmp_path, campaign.load(HERE / "campaign.toml"))
        assert ("Ranks sleep while they wait" in page.read_text()) == sleeping


def test_only_ranks_that_poll_on_too_few_cores_sleep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    described = campaign.load(HERE / "campaign.toml")
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(4)))
    library = tmp_path / "libsleep_while_polling.so"
    monkeypatch.setattr(measuring, "SLEEPING", library)
    with pytest.raises(MeasuringError, match="make build"):
        cache_case.sleeping(described.mpis["mpich"], 5)
    library.touch()
    assert cache_case.sleeping(described.mpis["mpich"], 5) == library
    assert cache_case.sleeping(described.mpis["mpich"], 4) is None
    assert cache_case.sleeping(described.mpis["openmpi"], 5) is None


# Yields as often as a rank that finds nothing to do. Prints how often it went to sleep meanwhile.
_YIELDING = """
import ctypes, os, resource
ctypes.CDLL(None).ucp_worker_progress
before = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
for _ in range(130):
    os.sched_yield()
print(resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw - before)
"""


def test_ranks_that_poll_sleep_by_what_is_built() -> None:
    yielding = subprocess.run(
        [sys.executable, "-c", _YIELDING],
        env=os.environ | {"LD_PRELOAD": str(measuring.SLEEPING)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(yielding.stdout) >= 100


def test_a_part_of_the_grid_that_there_is_not_is_named(tmp_path: Path) -> None:
    described = campaign.load(HERE / "campaign.toml")
    nothing = Tools(tmp_path / "forebay", tmp_path / "workloads")
    task = Task(described, nothing, tmp_path, [], pairs=5, timeout_s=1, say=print)
    with pytest.raises(MeasuringError, match="no number of aggregators '3'; there are 1, 2, 4, 8"):
        cache_runs.measure(task, tmp_path, cache_runs.Part([], [3], []))
    with pytest.raises(MeasuringError, match="no buffer '64KiB'; there are 1MiB"):
        cache_runs.measure(task, tmp_path, cache_runs.Part(["slow"], [], ["64KiB"]))

"""Goal: docs/experiments/collective/log.md says what the results say, by the stated rules.

Method: the page from results that are made up here, read back as a table. Nothing is measured.
"""

from pathlib import Path
from typing import Any

import pytest

import campaign
import log_page
import log_runs
import results
from local_runs import Task
from log_runs import FIO, LOG, OFF, ON, ONE_BUFFER
from measuring import MeasuringError, Tools

HERE = Path(campaign.__file__).resolve().parent
GIB = 2**30


def document(taken_in: float, rounds: int = 5) -> dict[str, Any]:
    """So many GiB/s taken in, where fio writes 4, or 8 from one buffer."""
    rates = {OFF: GIB, ON: GIB / 2, LOG: taken_in * GIB, FIO: 4.0 * GIB, ONE_BUFFER: 8.0 * GIB}
    return {
        "bytes": GIB // 2,
        "bytes_per_s": {side: [rate] * rounds for side, rate in rates.items()},
        "environment": {"mpi": {"mpich": "MPICH Version:\t4.0.2"}},
    }


def rows_of(page: Path, workload: str) -> list[list[str]]:
    rows = [line.strip("| ").split(" | ") for line in page.read_text().splitlines()]
    return [row for row in rows if row[0] == workload]


@pytest.mark.parametrize(
    ("taken_in", "rounds", "part", "verdict"),
    [
        (3.2, 5, "0.80 [0.80, 0.80]", "met"),
        (3.0, 5, "0.75 [0.75, 0.75]", "**missed**"),
        (4.0, 4, "1.00 [1.00, 1.00]", "**too few pairs**"),
    ],
)
def test_what_is_taken_in_is_compared_with_fio_from_memory(
    tmp_path: Path, taken_in: float, rounds: int, part: str, verdict: str
) -> None:
    stored = tmp_path / "results" / "mpich-ext4" / "log-segments.json"
    results.store(stored, document(taken_in, rounds))
    page = log_page.write(tmp_path, campaign.load(HERE / "campaign.toml"))
    (row,) = rows_of(page, "segments")
    assert row[2:] == [
        "512.0 MiB",
        "1.0 GiB/s",
        "512.0 MiB/s",
        f"{taken_in:.1f} GiB/s",
        "4.0 GiB/s",
        "8.0 GiB/s",
        part,
        "0.8",
        verdict,
    ]
    (missing,) = rows_of(page, "block3d")
    assert missing[2] == "not measured"
    assert "logs on ext4" in page.read_text()


def test_without_fio_it_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    described = campaign.load(HERE / "campaign.toml")
    task = Task(described, Tools(tmp_path, tmp_path), tmp_path, [], 5, 1.0, print)
    with pytest.raises(MeasuringError, match="apt-get install fio"):
        log_runs.measure(task, [tmp_path])

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
from log_runs import FIO, FIO_DURABLE, LOG, LOG_CALLS, OFF, ON, ONE_BUFFER
from measuring import MeasuringError, Tools

HERE = Path(campaign.__file__).resolve().parent
GIB = 2**30


def document(taken_in: float, rounds: int = 5) -> dict[str, Any]:
    """So many GiB/s taken in, where fio writes 4, or 8 from one buffer; 1.5 until durable, beside
    2 by fio."""
    rates = {
        OFF: GIB,
        ON: GIB / 2,
        LOG: 1.5 * GIB,
        LOG_CALLS: taken_in * GIB,
        FIO: 4.0 * GIB,
        ONE_BUFFER: 8.0 * GIB,
        FIO_DURABLE: 2.0 * GIB,
    }
    return {
        "bytes": GIB // 2,
        "bytes_per_s": {side: [rate] * rounds for side, rate in rates.items()},
        "environment": {"mpi": {"mpich": "MPICH Version:\t4.0.2"}},
    }


def rows_of(page: Path, workload: str) -> list[list[str]]:
    """The one that begins with the workload, and those that go on with it."""
    rows: list[list[str]] = []
    for line in page.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0] == workload or (rows and cells[0] == "" and len(cells) > 1):
            rows.append(cells)
        elif rows:
            break
    return rows


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
    in_calls, durable = rows_of(page, "segments")
    assert in_calls[2:6] == ["512.0 MiB", "1.0 GiB/s", "512.0 MiB/s", "8.0 GiB/s"]
    taken = f"{taken_in:.1f} GiB/s"
    assert in_calls[6:] == ["in calls", taken, "4.0 GiB/s", part, "0.8", verdict]
    assert durable[6:10] == ["durable", "1.5 GiB/s", "2.0 GiB/s", "0.75 [0.75, 0.75]"]
    assert durable[11] == ("**missed**" if rounds == 5 else "**too few pairs**")
    (missing,) = rows_of(page, "block3d")
    assert missing[2] == "not measured"
    assert "logs on ext4" in page.read_text()


def test_without_fio_it_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    described = campaign.load(HERE / "campaign.toml")
    task = Task(described, Tools(tmp_path, tmp_path), tmp_path, [], 5, 1.0, print)
    with pytest.raises(MeasuringError, match="apt-get install fio"):
        log_runs.measure(task, [tmp_path])

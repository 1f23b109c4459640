"""Goal: campaigns of several hours show in one system file, and in a report, that a shared
storage is slower while others use it; noise within a campaign shows nothing.

Method: made-up samples of a quiet and a busy campaign.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from made_runs import MIB, MadeRun
from rich.console import Console

from forebay import contention, system_file
from forebay.characterise.system import results, system_report
from forebay.characterise.system.results import Results
from forebay.characterise.system.sample import LIMITS, METADATA, Sample, subject
from forebay.report import contents, page, terminal

PLACE = {"path": "/scratch/me", "mount_point": "/scratch", "type": "lustre"}
COLD = {"level": "file system", "path": "/scratch/me", "operation": "read", "mode": "cold",
        "size_bytes": MIB}  # fmt: skip
MEMORY = {"level": "memory", "operation": "copy", "mode": "copy", "size_bytes": MIB}
CREATE = {"path": "/scratch/me", "operation": "create"}
QUIET, BUSY = (1000e6, 1010e6, 990e6, 1005e6), (300e6, 350e6, 280e6, 310e6)


def campaign(start: str) -> dict[str, Any]:
    return {"start": start, "host": "node1", "mode": "quick", "rounds": 4}


def added(document: dict[str, Any] | None, start: str, cold: tuple[float, ...]) -> dict[str, Any]:
    """The file with one campaign more, in which memory and names are as ever."""
    found = Results(document)
    for number, rate in enumerate(cold):
        found.add(Sample(subject(LIMITS, COLD), rate), 10.0 * number)
        found.add(Sample(subject(LIMITS, MEMORY), 8e9 * (1 + number / 4)), 10.0 * number)
        found.add(Sample(subject(METADATA, CREATE), 5000.0 + number), 10.0 * number)
    return found.document("node1", campaign(start), [PLACE])


@pytest.fixture
def merged(tmp_path: Path) -> Path:
    """A quiet campaign at 10:05, a busy one at 14:05 of the same day."""
    first = added(None, "2026-03-02T10:05:00+01:00", QUIET)
    path = tmp_path / "system.json"
    results.write(added(first, "2026-03-02T14:05:00+01:00", BUSY), path)
    return path


def printed(tmp_path: Path, show: Any) -> str:  # noqa: ANN401
    console = Console(record=True, width=220, file=(tmp_path / "shown").open("w"))
    show(console)
    return console.export_text()


def test_a_merged_file_has_the_range_of_each_campaign(merged: Path, tmp_path: Path) -> None:
    document = json.loads(merged.read_text())
    (cold,) = (entry for entry in document[LIMITS] if entry["mode"] == "cold")
    assert cold["by_campaign"] == [
        {"campaign": 0, "start": "2026-03-02T10:05:00+01:00", "median": 1002.5e6, "least": 990e6,
         "most": 1010e6},
        {"campaign": 1, "start": "2026-03-02T14:05:00+01:00", "median": 305e6, "least": 280e6,
         "most": 350e6},
    ]  # fmt: skip
    assert cold["bytes_per_second"]["low"] <= 305e6
    assert cold["bytes_per_second"]["high"] >= 990e6
    shown = printed(tmp_path, lambda console: system_report.show(console, document))
    line = next(line for line in shown.splitlines() if "10:05" in line and "read" in line)
    assert line.strip() == (
        "/scratch/me file system cold read of 1.0 MiB: 10:05 956.1 MiB/s, 14:05 290.9 MiB/s (3.3 "
        "times)"
    )
    assert not any("memory" in line and "10:05" in line for line in shown.splitlines())


def test_a_report_says_how_a_limit_moved(merged: Path, tmp_path: Path) -> None:
    run = MadeRun(tmp_path / "t", files=["/scratch/me/data"])
    for turn in range(10):
        run.posix("read", 100 * turn, 20, MIB, offset=turn * MIB)
    report = contents.examine(run.trace(), system_file.load(merged))
    assert report.ladder is not None
    (step,) = report.ladder.steps
    assert step.limit is not None
    words = "10:05 956.1 MiB/s, 14:05 290.9 MiB/s"
    assert step.limit.moved == words
    shown = printed(tmp_path, lambda console: terminal.show(console, report))
    assert f"contention: the limit of file system, read (cold) was {words}" in shown
    assert f"contention: {words}" in page.render(report)
    told = json.loads(json.dumps(report.as_json()))["ladder"]["steps"][0]["limit"]
    assert [rate["median"] for rate in told["by_campaign"]] == [1002.5e6, 305e6]


@pytest.mark.parametrize("others", [QUIET, (700e6, 1002e6, 650e6, 800e6)])
def test_noise_is_no_contention(tmp_path: Path, others: tuple[float, ...]) -> None:
    """What overlaps with the samples of another campaign could as well be of that."""
    document = added(added(None, "2026-03-02T10:05:00+01:00", QUIET), "x", others)
    shown = printed(tmp_path, lambda console: system_report.show(console, document))
    assert "Contention" not in shown


def test_hours_of_several_days_have_their_date() -> None:
    document = added(
        added(None, "2026-03-02T23:05:00+01:00", QUIET), "2026-03-03T09:30:00+01:00", BUSY
    )
    (cold,) = (entry for entry in document[LIMITS] if entry["mode"] == "cold")
    rates = contention.by_campaign(cold, document["campaigns"])
    assert contention.hours(rates) == ["2026-03-02 23:05", "2026-03-03 09:30"]
    assert contention.hours(contention.by_campaign(cold, [])) == ["campaign 1", "campaign 2"]

"""Goal: the page under docs/experiments/prefetch says what the results say.

Method: results that are made up here, the page read back. Nothing is measured.
"""

import json
from pathlib import Path
from typing import Any

import analysis_page
from analysis_runs import CASES

NEEDED = 648_869_000  # bytes; 1.62 s at 400 MB/s


def leave(output: Path, kind: str, number: int, seconds: dict[str, float]) -> None:
    """One round: `seconds` of some cases, 20 of all others."""
    runs: list[dict[str, Any]] = []
    for case in CASES:
        run: dict[str, Any] = {
            "case": case.name,
            "bytes": NEEDED,
            "reads": 2627,
            "seconds": seconds.get(case.name, 20.0),
            "seconds_in_reads": seconds.get(case.name, 20.0)
            - (2.627 if kind == "compute-bound" else 0.4),
            "requests": 2500,
            "bytes_served": NEEDED,
        }
        if case.intent is not None:
            run["prefetch"] = [{"memory_peak": 8 << 20}]
        runs.append(run)
    (output / "results").mkdir(exist_ok=True)
    (output / "results" / f"{kind.replace('/', '')}-{number}.json").write_text(
        json.dumps(
            {
                "kind": kind,
                "date": "2026-11-21T23:00:00+00:00",
                "kernel": "6.18",
                "cores": 2,
                "load_average": 0.5,
                "commit": "abcdef0",
                "compute_seconds": 0.001 if kind == "compute-bound" else 0.0,
                "runs": runs,
            }
        )
    )


def rows(page: str) -> dict[str, list[str]]:
    """The tables' rows by their first cell; of several the last."""
    found = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in page.splitlines()
        if line.startswith("| ")
    ]
    return {row[0]: row[1:] for row in found}


def test_medians_are_judged_by_the_bars(tmp_path: Path) -> None:
    for number, time in enumerate((1.70, 1.72, 1.75, 1.80, 2.90)):
        leave(
            tmp_path,
            "I/O-bound",
            number,
            {analysis_page.EXACT: time, analysis_page.WRONG: 22.2, analysis_page.REFERENCE: 20.0},
        )
    page = analysis_page.write(tmp_path).read_text()
    table = rows(page)
    assert table[analysis_page.EXACT][0] == "1.75 [1.70, 2.90]"
    assert table["time / what nobody can beat"] == ["1.15", "1.08", "met"]
    assert table["wrong extents / no hints"] == ["1.1", "1.11", "missed"]
    assert table["memory / 8 MiB"] == ["1", "1.00", "met"]
    assert "Without hints it takes 11.4 times as long" in page
    assert "analysis.svg" in page
    assert "requests at the server" in (tmp_path / "analysis.svg").read_text()


def test_computing_is_what_nobody_can_beat_where_there_is_more_of_it(tmp_path: Path) -> None:
    leave(tmp_path, "compute-bound", 0, {analysis_page.EXACT: 2.627})
    table = rows(analysis_page.write(tmp_path).read_text())
    assert table["time / what nobody can beat"] == ["1.15", "1.00", "met, by fewer than 5 rounds"]


def test_a_page_without_results_has_no_table_and_no_picture(tmp_path: Path) -> None:
    assert rows(analysis_page.write(tmp_path).read_text()) == {}
    assert not (tmp_path / "analysis.svg").exists()

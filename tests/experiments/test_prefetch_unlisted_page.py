"""Goal: the page of calls that are not read ahead says what the results say.

Method: results that are made up here, the page read back. Nothing is measured.
"""

import json
from pathlib import Path

import unlisted_page


def leave(output: Path, rounds: int) -> None:
    (output / "results").mkdir()
    for number in range(rounds):
        document = {
            "date": "2026-11-24T10:00:00+00:00",
            "kernel": "6.18",
            "cores": 2,
            "load_average": 0.5,
            "commit": "abcdef0",
            "calls": {
                "pread": {"libc_ns": 100.0, "added_ns": 4.0 + number},
                "dup_close": {"libc_ns": 200.0, "added_ns": 30.0},
            },
        }
        (output / "results" / f"unlisted-{number}.json").write_text(json.dumps(document))


def test_each_call_is_judged_by_its_median(tmp_path: Path) -> None:
    leave(tmp_path, 5)
    page = unlisted_page.write(tmp_path).read_text()
    assert "| pread | 100.0 [100.0, 100.0] | 6.0 [4.0, 8.0] | met |" in page
    assert "| dup and close | 200.0 [200.0, 200.0] | 30.0 [30.0, 30.0] | missed |" in page
    assert "Rounds: 5" in page


def test_few_rounds_are_no_verdict_and_none_no_table(tmp_path: Path) -> None:
    assert "not measured yet" in unlisted_page.write(tmp_path).read_text()
    leave(tmp_path, 2)
    assert "met, by fewer than 5 rounds" in unlisted_page.write(tmp_path).read_text()

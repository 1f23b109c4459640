"""Goal: the page of `forebay configure` says what the rounds say, and which of them count is one
rule for all pairs.

Method: results that are made up here, the page read back. Nothing is measured.
"""

from pathlib import Path
from typing import Any

import pytest
from read_page import parts

import configure_page
import results
import rounds
import toolkit_pages
from configure_pairs import PAIRS
from configure_planted import FAULTS
from configure_runs import DEFAULT, PROPOSED

QUIET, LOUD = 0.01, 0.2


def leave(output: Path, pair: str, distances: list[float], stolen: float = QUIET) -> None:
    """Rounds with the proposal at these times the best, which takes a second."""
    before = len(list((output / "results").glob(f"configure-{pair}-*.json")))
    for number, distance in enumerate(distances, start=before):
        ways = {DEFAULT: ({}, 2.0), PROPOSED: ({"aggregators": "2"}, distance)}
        ways["grid 1"] = ({"aggregators": "1"}, 1.0)
        document: dict[str, Any] = {
            "stolen_share": stolen,
            "environment": {},
            "identical": True,
            "not_ended": [{"settings": {"cache": "enable"}, "how": "exit status 1"}],
            "configure": {"stopped": "runs", "feasible": 9, "runs": [{}] * 30},
            "grid": [{"settings": {}, "seconds": [2.0]}],
            "final": [
                {
                    "name": name,
                    "settings": settings,
                    "runs": [{"wall": seconds, "mpiio": seconds / 2}] * 7,
                }
                for name, (settings, seconds) in ways.items()
            ],
        }
        path = output / "results" / f"configure-{pair}-{number}.json"
        results.store(path, document, toolkit_pages.SCRIPT)


def page(output: Path) -> str:
    return configure_page.write(output).read_text()


def row(text: str, pair: str, line: int) -> list[str]:
    """The cells of one of the lines of a pair."""
    lines = [each.strip("|").split("|") for each in text.splitlines() if f"| *{pair}* |" in each]
    return [each.strip() for each in lines[line]]


# Of a pair's lines: what it is, how it stands, and its rounds.
STANDS, FIRST_ROUND = 1, 2


def test_a_pair_stands_by_the_median_of_its_rounds(tmp_path: Path) -> None:
    for pair in PAIRS:
        leave(tmp_path, pair.name, [1.02, 1.30, 1.08])
    text = page(tmp_path)
    cells = row(text, "rows", STANDS)
    assert cells[1] == "3 of 3"
    assert cells[2:5] == ["2.00 [2.00, 2.00]", "1.08 [1.02, 1.30]", "1.00 [1.00, 1.00]"]
    assert cells[5] == "1.08 [1.02, 1.30]"
    assert cells[7].startswith("1.85 [")
    assert cells[-2:] == ["2 of 3", "within 10 %"]
    assert "in 5 of 5: **met**. Of the rounds that count, in 10 of 15." in text
    assert "The default is as near by itself in 0: there a search" in text
    assert row(text, "rows", FIRST_ROUND + 1)[-3:] == ["**1.300**", "1", "1.0 %"]


def test_a_median_that_is_far_is_missed(tmp_path: Path) -> None:
    for number, pair in enumerate(PAIRS):
        leave(tmp_path, pair.name, [1.2, 1.3, 1.0] if number < 2 else [1.0])
    text = page(tmp_path)
    assert row(text, PAIRS[0].name, STANDS)[-2:] == ["1 of 3", "**missed**"]
    assert "in 3 of 5: **missed**. Of the rounds that count, in 5 of 9." in text


@pytest.mark.parametrize("pair", [pair.name for pair in PAIRS])
@pytest.mark.parametrize("distance", [1.0, 1.5])
def test_rounds_of_a_busy_host_are_shown_and_do_not_count(
    tmp_path: Path, pair: str, distance: float
) -> None:
    """Of whichever pair, and whatever came of them."""
    leave(tmp_path, pair, [distance], stolen=LOUD)
    text = page(tmp_path)
    assert row(text, pair, STANDS)[1:3] == ["0 of 1", "-"]
    assert row(text, pair, STANDS)[-1] == "**no round counts**"
    assert row(text, pair, FIRST_ROUND)[-1] == "**20.0 %: does not count**"
    assert "Of the rounds that count, in 0 of 0" in text
    leave(tmp_path, pair, [1.05])
    text = page(tmp_path)
    assert row(text, pair, STANDS)[1] == "1 of 2"
    assert row(text, pair, STANDS)[5] == "1.05 [1.05, 1.05]"


def test_what_decides_is_written_on_the_page(tmp_path: Path) -> None:
    text = page(tmp_path)
    assert "Within a round nothing is left out" in text
    assert "unless the host took more than 8 %" in " ".join(text.split())
    assert parts(text)["Known best"]["*rows*"][-1].startswith("Rows of 512 bytes")
    assert text.count("Not measured.") == 2


def leave_planted(
    output: Path, claimed: bool = False, missed: str = "", stolen: float = QUIET
) -> None:
    """A round in which a gain is claimed, or a fault is not found."""
    verdict = "improved" if claimed else "no detectable gain"
    quiet = {
        "ceiling": {"io_share": 0.011},
        "stopped": "ceiling",
        "runs": 0,
        "best": None,
        "verdicts": {"cache": {"verdict": verdict, "low": None, "high": 0.05, "blocks": 9}},
    }
    finding = {"title": "Found", "seconds": 0.5, "confidence": "low"}
    faults = [
        {
            "key": fault.key,
            "run_s": 2.0,
            "without_s": 0.25 if fault.without else None,
            "findings": [finding | {"key": "else" if fault.key == missed else fault.key}],
        }
        for fault in FAULTS
    ]
    number = len(list((output / "results").glob("planted-*.json")))
    document = {"stolen_share": stolen, "environment": {}, "quiet": quiet, "faults": faults}
    results.store(output / "results" / f"planted-{number}.json", document, toolkit_pages.SCRIPT)


def test_what_is_planted_is_to_be_told_in_every_round_that_counts(tmp_path: Path) -> None:
    leave_planted(tmp_path)
    leave_planted(tmp_path, claimed=True, missed=FAULTS[0].key, stolen=LOUD)
    text = page(tmp_path)
    assert "No gain is claimed in 1 of the 1 rounds that count: **met**." in text
    assert "All that was planted is found in 1 of the 1 rounds that count: **met**." in text
    assert "| **cache** | **20.0 %: does not count** |" in text
    assert f"| {FAULTS[0].title} | **not found** |" in text
    assert "| 500.0 ms of 2.00 s | 250.0 ms | low |" in text
    leave_planted(tmp_path, claimed=True)
    leave_planted(tmp_path, missed=FAULTS[1].key)
    text = page(tmp_path)
    assert "No gain is claimed in 2 of the 3 rounds that count: **missed**." in text
    assert "All that was planted is found in 2 of the 3 rounds that count: **missed**." in text


def test_rounds_are_all_there_where_one_was_taken_away(tmp_path: Path) -> None:
    leave_planted(tmp_path)
    leave_planted(tmp_path, claimed=True)
    rounds.path_of(tmp_path, "planted", 0).unlink()
    assert rounds.numbers(tmp_path, "planted") == [1]
    assert rounds.next_number(tmp_path, "planted") == 2
    assert "No gain is claimed in 0 of the 1 rounds that count: **missed**." in page(tmp_path)


def test_no_round_that_counts_meets_nothing(tmp_path: Path) -> None:
    leave_planted(tmp_path, stolen=LOUD)
    assert page(tmp_path).count("in 0 of the 0 rounds that count: **missed**") == 2

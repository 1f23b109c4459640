"""Goal: the page of [METHOD]'s experiment says what the results say, and no more than every round
shows.

Method: results that are made up here, the page read back. Nothing is measured.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import methodology_figures
import methodology_page
import results
import toolkit_pages
from methodology_figures import Turn, collect, sentences, turns
from methodology_runs import (
    BT_IO,
    COLLECTIVE,
    INDEPENDENT,
    MADBENCH,
    PLACES,
    PROCESSES,
    Case,
    Program,
    bt_operations,
    cases_of,
)
from results import Result

Times = Callable[[Case, int], float]
"""I/O time of a case in a round."""

COMPUTING_S = 1.0


def leave(output: Path, program: Program, io_s: Times, rounds: int = 5) -> None:
    """Rounds in which the processes compute for a second; independent I/O makes 100 times as many
    operations."""
    for number in range(rounds):
        runs: list[dict[str, Any]] = []
        for case in cases_of(program):
            spent = io_s(case, number)
            runs.append(
                {
                    "case": case.name,
                    "processes": case.processes,
                    "run_s": spent + COMPUTING_S,
                    "io_s": spent,
                    "share": spent / (spent + COMPUTING_S),
                    "calls": 160,
                    "operations": 8200 if case.way is INDEPENDENT else 82,
                    "bytes": 22_000_000,
                    "by_kind_s": {"write": spent},
                }
            )
        path = output / "results" / f"methodology-{program.name}-{number}.json"
        document = {"stolen_share": 0.01, "runs": runs, "environment": {"mpi": {}}}
        results.store(path, document, toolkit_pages.SCRIPT)


def found(output: Path, program: Program) -> methodology_figures.Found:
    return collect(program, toolkit_pages.stored_rounds(output, f"methodology-{program.name}"))


def turn(output: Path, place: int = 0) -> Turn:
    return turns(found(output, BT_IO))[place]


def by_way(independent: float, collective: float) -> Times:
    """The same in every round, but for a little."""
    return lambda case, number: (
        (independent if case.way is INDEPENDENT else collective) * (1 + number / 100)
    )


def test_from_nine_tenths_to_three_tenths_is_reproduced(tmp_path: Path) -> None:
    leave(tmp_path, BT_IO, by_way(9.0, 9.0 / 21))
    made = turn(tmp_path)
    assert made.verdict == "reproduced"
    assert made.of_published == pytest.approx(0.3)
    page = methodology_page.write(tmp_path).read_text()
    row = "| 4, local, one disk | 90 % [90, 90] | 30 % [30, 31] | 21.0 [21.0, 21.0] | 30 % |"
    assert f"{row} reproduced |" in page
    assert "From most of the time to a minority: in 8 of 8." in page
    assert "a ratio of 21: in 8 of 8." in page


@pytest.mark.parametrize(
    ("independent", "collective", "why"),
    [
        (9.0, 1.2, "collective I/O is not always less than half"),
        (0.99, 0.1, "independent I/O is not always more than half"),
    ],
)
def test_what_one_round_contradicts_is_not_reproduced(
    tmp_path: Path, independent: float, collective: float, why: str
) -> None:
    leave(tmp_path, BT_IO, by_way(independent, collective))
    assert turn(tmp_path).verdict == f"not reproduced: {why}"


def test_four_rounds_show_nothing(tmp_path: Path) -> None:
    leave(tmp_path, BT_IO, by_way(9.0, 0.1), rounds=4)
    assert turn(tmp_path).verdict == "too few rounds"
    page = methodology_page.write(tmp_path).read_text()
    assert "in 0 of 8 cases, shorter in 0" in page


def test_raid_that_helps_only_small_operations_is_as_published(tmp_path: Path) -> None:
    def times(case: Case, number: int) -> float:
        helped = case.way is INDEPENDENT and "RAID" in case.place.name
        return 1.0 + 0.01 * number if helped else 2.0 - 0.01 * number

    leave(tmp_path, BT_IO, times)
    page = methodology_page.write(tmp_path).read_text()
    raid = page.split("### RAID 5")[1].split("### The network")[0]
    assert "not as published" not in raid
    assert raid.count("| as published |") == 4
    assert raid.count("| not contradicted |") == 4
    assert "longer with one disk than with RAID 5 in 4 of 8 cases, shorter in 0" in raid


def test_raid_that_helps_collective_writes_is_not_as_published(tmp_path: Path) -> None:
    def times(case: Case, number: int) -> float:
        return 1.0 if "RAID" in case.place.name else 2.0 + 0.01 * number

    leave(tmp_path, BT_IO, times)
    page = methodology_page.write(tmp_path).read_text()
    assert page.count("| not as published |") == 4
    assert page.count("| as published |") == 4


def test_an_order_is_told_only_where_no_rounds_overlap(tmp_path: Path) -> None:
    def times(case: Case, number: int) -> float:
        best = case.place is PLACES[1] and case.way is COLLECTIVE
        return (1.0 if best else 4.0) + number

    leave(tmp_path, BT_IO, times)
    first = sentences(found(tmp_path, BT_IO), PROCESSES[0])
    assert first[0] == "**Run time**: no two configurations are told apart by every round."
    leave(tmp_path, BT_IO, lambda case, number: times(case, 0))
    first = sentences(found(tmp_path, BT_IO), PROCESSES[0])
    assert first[0].startswith(
        "**Run time**: shortest with *local, RAID 5, collective* (2.00 s), longest with"
    )
    assert first[0].endswith("2.50 times as long.")


def test_operations_that_mislead_are_named(tmp_path: Path) -> None:
    leave(tmp_path, BT_IO, by_way(9.0, 0.5))
    told = sentences(found(tmp_path, BT_IO), PROCESSES[1])
    assert "82 with collective, 8,200 with independent, 100 times as many" in told[2]
    assert told[4].startswith("**IOPs**: highest with *local, one disk, independent*")
    assert "who chooses by this figure alone, chooses wrongly" in told[4]


def test_madbench_has_no_published_share(tmp_path: Path) -> None:
    leave(tmp_path, MADBENCH, by_way(1.0, 1.0))
    page = methodology_page.write(tmp_path).read_text()
    assert "### A file of each process" in page
    assert "as published" not in page
    assert "From most of the time" not in page
    assert (tmp_path / "methodology-outofcore.svg").is_file()


def test_without_results_nothing_is_claimed(tmp_path: Path) -> None:
    page = methodology_page.write(tmp_path).read_text()
    assert page.count("Not measured.") == 2
    assert "reproduced" not in page


def test_a_host_that_took_much_is_told() -> None:
    calm, robbed = (Result({"stolen_share": share, "experiment": {}}) for share in (0.01, 0.21))
    assert "in 1 of 2 rounds more than 8 %" in toolkit_pages.stolen_text([calm, robbed])
    assert "more than" not in toolkit_pages.stolen_text([calm])


def test_class_w_takes_the_operations_that_nas_gives() -> None:
    """Of all 200 steps 7.72 Gflop, as NPB's own result files have it."""
    assert bt_operations(24, 200) == pytest.approx(7.72e9, rel=0.001)
    assert BT_IO.compute_s(4) == pytest.approx(0.965, abs=0.001)

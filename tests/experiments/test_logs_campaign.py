"""Goal: the campaign of Darshan's logs finds them, tells those that fail and goes on, and its page
says what the results say.

Method: one real log by the real command; a stand-in for the command that fails; results that are
made up here.
"""

import sys
from pathlib import Path
from typing import Any

import pytest

import logs_page
import logs_runs
import results
import toolkit_pages
from measuring import Tools

FOREBAY = Path(sys.executable).with_name("forebay")
NAME = "tests/input/sample-dxt-simple.darshan"


def log(name: str, share: float | None = 0.5, **others: object) -> dict[str, Any]:
    return {
        "log": f"input/{name}.darshan",
        "digest": name,
        "format": "3.21",
        "tool": "Darshan 3.2.1",
        "levels": {"posix": "data", "mpiio": "counters"},
        "modules": ["posix", "mpi_io"],
        "partial": [],
        "processes": 4,
        "files": 7,
        "records": 9,
        "calls": 1234,
        "io_share": share,
        "findings": [],
        "lines": 0,
        "import_s": 0.5,
        "report_s": 1.5,
    } | others


def page(output: Path, *logs: dict[str, Any]) -> dict[str, list[str]]:
    """The table's rows by the log's name."""
    document = {"package": "PyDarshan 3.5.0", "logs": list(logs), "stolen_share": 0.01}
    results.store(output / "results" / "logs-0.json", document, toolkit_pages.SCRIPT)
    lines = logs_page.write(output).read_text().splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| `")]
    return {row[0]: row[1:] for row in rows} | {"verdicts": [x for x in lines if x[:2] == "- "]}


def test_a_log_is_measured_by_the_command() -> None:
    known = dict(logs_runs.sample_logs())
    found = logs_runs.measure_round(Tools(FOREBAY, Path()), [(NAME, known[NAME])])
    (one,) = found["logs"]
    assert "error" not in one
    assert (one["format"], one["processes"], one["calls"], one["files"]) == ("3.21", 16, 3, 18)
    assert one["levels"] == {"posix": "data", "mpiio": "data"}
    assert 0.04 < one["io_share"] < 0.05


def test_logs_of_another_directory_are_told_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "more" / "below").mkdir(parents=True)
    (tmp_path / "more" / "below" / "a.darshan").touch()
    known = dict(logs_runs.sample_logs([tmp_path / "more"]))
    assert known["more/below/a.darshan"] == tmp_path / "more" / "below" / "a.darshan"
    assert known[NAME].is_file()


def test_a_log_that_fails_is_told_and_the_others_go_on(tmp_path: Path) -> None:
    command = tmp_path / "command"
    command.write_text('#!/bin/sh\necho "$2 is damaged"; exit 1\n')
    command.chmod(0o755)
    (tmp_path / "a").write_text("a")
    logs = [("first", tmp_path / "a"), ("second", tmp_path / "a")]
    found = logs_runs.measure_round(Tools(command, tmp_path), logs)["logs"]
    assert [one["log"] for one in found] == ["first", "second"]
    assert found[0]["error"].endswith("ended with status 1: first is damaged")
    rows = page(tmp_path, log("fine"), log("bad", error="it is damaged"))
    assert "**failed**" in rows["`input/bad`"]
    assert "**missed**" in rows["verdicts"][0]
    assert rows["verdicts"][-1] == "- `input/bad`: it is damaged"


@pytest.mark.parametrize(("findings", "verdict"), [([], "met"), (["Small writes"], "**missed**")])
def test_advice_where_there_is_little_io_is_told(
    tmp_path: Path, findings: list[str], verdict: str
) -> None:
    rows = page(
        tmp_path, log("much", findings=["Openings"]), log("little", 0.002, findings=findings)
    )
    assert rows["verdicts"][0].endswith("2 of 2 times, 2 different logs: met.")
    assert rows["verdicts"][1].startswith("- With less than 1 % of I/O: 1 times;")
    assert rows["verdicts"][1].endswith(f"{verdict}.")


def test_a_log_is_told_with_what_it_holds(tmp_path: Path) -> None:
    rows = page(
        tmp_path,
        log("a"),
        log("b", levels={"posix": "counters", "mpiio": "none"}, calls=0, partial=["POSIX"]),
        log("c", digest="a"),
    )
    assert rows["`input/a`"][2:] == [
        "DXT (posix): posix, mpi_io", "4", "7", "9", "1 234", "50 %", "none that calls show",
        "0.50", "1.50",
    ]  # fmt: skip
    assert rows["`input/b`"][2] == "counters alone: posix, mpi_io; incomplete: POSIX"
    assert rows["`input/b`"][8] == "none: sums alone"
    assert "`input/c`, the same as `input/a`" in rows


def test_without_results_it_says_so(tmp_path: Path) -> None:
    assert "Not measured." in logs_page.write(tmp_path).read_text()

"""Other people's tests: how an outcome is counted, what a second try keeps, and what the page says.
The programs are shell commands; no MPI is started."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

import page
from outcomes import Comparison, Outcome, SuiteRun, load
from suites import Mpi, Program


@dataclass(frozen=True)
class NoMpi(Mpi):
    """Starts a program by itself, once."""

    def launch(self, ranks: int) -> list[str]:
        return ["env"]


def comparison(tmp_path: Path, seconds_max: int = 60) -> Comparison:
    return Comparison(NoMpi("mpich"), Path("forebay.so"), [], seconds_max, tmp_path)


def shell(tmp_path: Path, script: str, **rest: str) -> Program:
    return Program("suite/program", 2, ["sh", "-c", script], tmp_path, **rest)  # type: ignore[arg-type]


UNDER_FOREBAY = 'case "$LD_PRELOAD" in *forebay.so*) true;; *) false;; esac'


@pytest.mark.parametrize(
    ("script", "stock", "forebay", "verdict"),
    [
        ("exit 0", "ok", "ok", "ok on both"),
        ("exit 3", "exit 3", "exit 3", "fails on both"),
        (f"if {UNDER_FOREBAY}; then exit 0; fi; exit 1", "exit 1", "ok", "better"),
        (f"if {UNDER_FOREBAY}; then exit 4; fi", "ok", "exit 4", "worse"),
    ],
)
def test_an_outcome_is_counted_by_its_two_sides(
    tmp_path: Path, script: str, stock: str, forebay: str, verdict: str
) -> None:
    outcome = comparison(tmp_path).outcome(shell(tmp_path, script))
    assert (outcome.stock, outcome.forebay, outcome.verdict) == (stock, forebay, verdict)


def test_a_second_try_that_is_good_does_not_hide_the_first(tmp_path: Path) -> None:
    script = f"if {UNDER_FOREBAY} && [ ! -e tried ]; then touch tried; exit 9; fi"
    outcome = comparison(tmp_path).outcome(shell(tmp_path, script))
    assert outcome.forebay == "exit 9, then ok"
    assert outcome.verdict == "worse"


def test_a_program_must_say_that_it_passed_and_leave_a_good_file(tmp_path: Path) -> None:
    good = shell(tmp_path, "echo No Errors", passes="no errors", check="true")
    silent = shell(tmp_path, "echo Found 1 error", passes="no errors")
    wrong = shell(tmp_path, "echo No Errors", passes="no errors", check="test -e missing")
    outcomes = [comparison(tmp_path).outcome(test).stock for test in (good, silent, wrong)]
    assert outcomes == ["ok", "fails", "check fails"]


def test_a_program_that_does_not_end_is_ended(tmp_path: Path) -> None:
    outcome = comparison(tmp_path, seconds_max=1).outcome(shell(tmp_path, "exec sleep 600"))
    assert outcome.verdict == "fails on both"
    assert outcome.stock == "over time"


def test_the_page_counts_and_gives_reasons(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = SuiteRun(
        "romio", "mpich", "4.0.2", "mpich 4.0.2-3", "abc", "2026-01-01", 2, 9, True, {}, 4
    )
    run.add(Outcome("romio/simple", 2, "exit 1", "exit 1"))
    run.add(Outcome("romio/simple", 2, "ok", "ok"))
    run.add(Outcome("romio/excl", 2, "ok", "exit 1"))
    run.add(Outcome("romio/perf", 2, "over time", "ok"))
    run.save(tmp_path / "results")
    assert load(tmp_path / "results" / "mpich-romio.json") == run

    remarks = tmp_path / "remarks.toml"
    remarks.write_text('[[remark]]\nprogram = "romio/e*"\nwhy = "on\\npurpose"\n')
    monkeypatch.setattr(page, "REMARKS", remarks)
    page.write(tmp_path / "page.md", tmp_path / "results")
    text = (tmp_path / "page.md").read_text()
    row = "| ROMIO's tests | mpich 4.0.2-3 | MPICH | abc | 2026-01-01 | 3 of 4 | 1 | 0 | 1 | 1 |"
    assert row in text
    assert "| `romio/excl` | MPICH | 2 | ok | exit 1 | on purpose |" in text
    assert "| `romio/perf` | MPICH | 2 | over time | ok | not looked into |" in text
    assert "--mpi mpich --ranks-max 2 --seconds 9 --sleep-while-polling romio" in text

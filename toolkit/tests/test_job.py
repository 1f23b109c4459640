"""One execution of a command that is captured and timed: with a time-out it is timed as well as
without, and ended when it is due."""

import os
import time

import pytest

from forebay.job import run_captured
from forebay.launcher import Launch


def launch(script: str) -> Launch:
    return Launch(["sh", "-c", script], dict(os.environ))


def test_the_end_of_a_run_with_a_time_out_is_not_looked_for_now_and_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who looks now and then sleeps in between, and tells a time that is too long by half a
    sleep: no sleep is allowed here."""

    def refuse(seconds: float) -> None:
        pytest.fail(f"slept for {seconds} s")

    monkeypatch.setattr(time, "sleep", refuse)
    outcome = run_captured(launch("sleep 0.05; echo done; exit 3"), timeout_s=60)
    assert (outcome.exit_code, outcome.output_tail, outcome.timed_out) == (3, "done\n", False)


def test_what_does_not_end_in_time_is_ended() -> None:
    outcome = run_captured(launch("echo begun; sleep 60"), timeout_s=0.5)
    assert outcome.timed_out
    assert outcome.output_tail == "begun\n"
    assert outcome.exit_code != 0

"""Goal: the runs that the campaign of `forebay configure` makes by itself meet what the command's
own runs meet, and its page says how it was measured.

Method: a program that writes its environment down, started by a stand-in for a launcher.
"""

import os
import random
from pathlib import Path
from typing import cast

import pytest

import measuring
from campaign import Mpi
from configure_pairs import MEMORY, Pair
from configure_runs import TIMEOUT_S, Case, Timed
from forebay import native
from forebay.configure.workload import Workload
from forebay.report.budget import Budget
from forebay.trace.directory import Trace
from measuring import MeasuringError, Tools
from results import Result
from toolkit_pages import stolen_text

NOTHING_OF_IT = Workload(cast(Trace, None), cast(Budget, None), 0.0, [], [], ranks=1, nodes=1)


def script(path: Path, *lines: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["#!/bin/sh", *lines]) + "\n")
    path.chmod(0o755)
    return path


def variables_of_a_run(directory: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What a program finds in its environment that the grid runs."""
    monkeypatch.setattr(native, "preload_library", lambda: directory / "nothing.so")
    launcher = script(directory / "start", "shift 2", 'exec "$@"')
    script(directory / "programs" / "mpi" / "tells", 'env > "$1"')
    files = directory / "files"
    files.mkdir()
    tools = Tools(Path("forebay"), directory / "programs")
    pair = Pair("told", "tells", (), MEMORY, "", ranks=1)
    mpi = Mpi("mpi", "a stand-in", [str(launcher)])
    timed = Timed(Case(tools, mpi, pair, {MEMORY.name: files}, directory), NOTHING_OF_IT)
    timed.grid([{}], random.Random(1))
    lines = (files / "told").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)


def test_runs_of_the_grid_may_be_started_as_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Open MPI refuses that unless told twice, and nobody exports these for a campaign."""
    twice = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")
    for name in twice:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    met = variables_of_a_run(tmp_path, monkeypatch)
    assert [met[name] for name in twice] == ["1", "1"]
    assert not any(name in os.environ for name in twice)


def test_runs_of_the_grid_inherit_nothing_that_changes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOREBAY_HINTS", "cb_nodes=7")
    monkeypatch.setenv("OMPI_MCA_io", "ompio")
    met = variables_of_a_run(tmp_path, monkeypatch)
    assert "cb_nodes=7" not in met.get("FOREBAY_HINTS", "")
    assert met.get("OMPI_MCA_io") != "ompio"
    assert os.environ["FOREBAY_HINTS"] == "cb_nodes=7"


def failing(directory: Path, monkeypatch: pytest.MonkeyPatch, on: str) -> Timed:
    """Runs of a program that fails where its environment has a line with this word."""
    monkeypatch.setattr(native, "preload_library", lambda: directory / "nothing.so")
    launcher = script(directory / "start", "shift 2", 'exec "$@"')
    fails = f'if env | grep -q "{on}"; then echo broken >&2; exit 3; fi'
    script(directory / "programs" / "mpi" / "fails", fails, 'echo done > "$1"')
    files = directory / "files"
    files.mkdir()
    pair = Pair("made", "fails", (), MEMORY, "", ranks=1)
    mpi = Mpi("mpi", "a stand-in", [str(launcher)])
    tools = Tools(Path("forebay"), directory / "programs")
    return Timed(Case(tools, mpi, pair, {MEMORY.name: files}, directory), NOTHING_OF_IT)


def test_a_candidate_that_fails_counts_as_one_that_takes_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    timed = failing(tmp_path, monkeypatch, on="^VARIANT=bad")
    bad = {"VARIANT": "bad"}
    grid = timed.grid([{}, bad], random.Random(1))
    assert [one["settings"] for one in grid] == [{}, bad]
    assert set(grid[1]["seconds"]) == {TIMEOUT_S}
    assert max(grid[0]["seconds"]) < TIMEOUT_S
    assert [one["settings"] for one in timed.not_ended] == len(grid[1]["seconds"]) * [bad]
    assert timed.identical


def test_a_default_that_fails_ends_the_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    timed = failing(tmp_path, monkeypatch, on="^PATH=")
    with pytest.raises(MeasuringError, match=r"(?s)the default: .*broken"):
        timed.grid([{}], random.Random(1))


def test_the_command_is_ended_after_its_time(tmp_path: Path) -> None:
    command = script(tmp_path / "forebay", "exec sleep 1000")
    with pytest.raises(MeasuringError, match=r"trace took more than 0\.5 s"):
        measuring.forebay(Tools(command, tmp_path), ["trace"], timeout_s=0.5)


def test_the_command_may_end_with_the_statuses_that_are_named(tmp_path: Path) -> None:
    command = script(tmp_path / "forebay", "echo said; echo wrong >&2; exit 4")
    tools = Tools(command, tmp_path)
    assert measuring.forebay(tools, ["configure"], (0, 4)).split() == ["said", "wrong"]
    with pytest.raises(MeasuringError, match="configure ended with status 4:\nsaid\nwrong"):
        measuring.forebay(tools, ["configure"])


@pytest.mark.parametrize(("awake", "told"), [(0, None), (2, "kept awake in 2 of 3 rounds")])
def test_a_page_says_which_rounds_were_kept_awake(awake: int, told: str | None) -> None:
    rounds = [
        Result({"stolen_share": 0.01, "experiment": {"kept_awake": number < awake}})
        for number in range(3)
    ]
    text = stolen_text(rounds)
    assert ("awake" in text) == (told is not None)
    assert (told or "1.0 to 1.0 %") in text

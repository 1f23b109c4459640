"""`forebay evaluate`: the verdict that fits what a stand-in program does, and when it stops."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import TIMEOUT_S, Forebay, read_json

from forebay import bounded_file, watched_places
from forebay.comparison import FileCheck
from forebay.configurations import BUILT_IN
from forebay.evaluate import traced_run
from forebay.evaluate.evaluation import Evaluation
from forebay.evaluate.in_force import Setting, State
from forebay.evaluate.traced_run import TracedRun
from forebay.evaluate.verdict import Plan
from forebay.timed_runs import TimedRuns, Way

CONFIGURATIONS = """
version = 1

[configuration.best]
hints = { cb_nodes = 2 }
environment = { FAKE_SPEED = "3" }

[configuration.same]
hints = { cb_nodes = 1 }
"""


@pytest.fixture
def configurations(tmp_path: Path) -> None:
    (tmp_path / "configurations.toml").write_text(CONFIGURATIONS)


@pytest.mark.usefixtures("configurations")
def test_what_is_faster_is_shown_to_be(
    forebay: Forebay, program: list[str], tmp_path: Path
) -> None:
    answer = forebay(
        "evaluate", "--configs", "best,same,default", "--time", "write", "--seed", "5",
        "--json", "e.json", "--", *program, "out.dat", "--obey",
    )  # fmt: skip
    assert answer.code == 0, answer.output + answer.errors
    assert "best: improved, +50 % against default, 95 % interval" in answer.output
    assert "same: no detectable gain over default, smallest detectable" in answer.output
    assert "shuffled by seed 5" in answer.output
    content = read_json(tmp_path / "e.json")
    best, same = content["verdicts"]["best"], content["verdicts"]["same"]
    assert (best["verdict"], same["verdict"]) == ("improved", "no detectable gain")
    assert best["low"] < best["gain"] < best["high"]
    assert best["gain"] == pytest.approx(0.5)
    assert content["reference"] == "default"
    assert content["settings"]["best"][0]["state"] == "in force"
    assert all(check["identical"] for check in content["files"]["best"])
    blocks = [run["block"] for run in content["runs"]]
    assert blocks == sorted(blocks)
    assert len(content["runs"]) < 3 * content["blocks_max"]  # it stopped when it was certain
    assert {"cores", "device_bytes_per_s"} == set(content["runs"][0]["before"])
    orders = {tuple(r["configuration"] for r in content["runs"] if r["block"] == b) for b in blocks}
    assert len(orders) > 1


@pytest.mark.usefixtures("configurations")
def test_a_setting_that_does_not_hold_ends_it_before_it_begins(
    forebay: Forebay, program: list[str], tmp_path: Path
) -> None:
    """Without --obey the stand-in's record holds another value."""
    answer = forebay("evaluate", "--json", "e.json", "--", *program, "out.dat")
    assert answer.code == 0, answer.output + answer.errors
    assert "best: setting did not take effect" in answer.output
    assert "cb_nodes: asked 2, observed cb_nodes=2" in answer.output
    content = read_json(tmp_path / "e.json")
    assert content["verdicts"]["best"]["verdict"] == "setting did not take effect"
    assert content["runs"] == []


def evaluated_stock(forebay: Forebay, program: list[str], *words: str) -> dict[str, Any]:
    """One block of the MPI with a hint against the MPI without."""
    Path("configurations.toml").write_text(
        'version = 1\n[configuration.hinted]\nengine = "mpi"\nhints = { cb_nodes = 4 }\n'
    )
    answer = forebay(
        "evaluate", "--configs", "hinted,stock", "-n", "1", "--json", "e.json",
        "--", *program, "out.dat", "--obey", *words,
    )  # fmt: skip
    assert answer.code == 0, answer.output + answer.errors
    assert "hinted: too noisy" in answer.output
    content = read_json(Path("e.json"))
    (setting,) = content["settings"]["hinted"]
    assert (setting["state"], setting["observed"]) == ("not recorded", [])
    reason = setting["reason"]
    assert f"hinted: not proven that cb_nodes took effect: {reason}" in content["notes"]
    assert reason in answer.output
    return content


def test_without_what_traces_the_mpis_hints_are_not_proven(
    forebay: Forebay, program: list[str]
) -> None:
    content = evaluated_stock(forebay, program)
    assert content["settings"]["hinted"][0]["reason"] == "libforebay-trace.so is not installed"
    assert len(content["runs"]) == 2


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--fail-traced"], "the traced run ended with exit status 5"),
        ([], "holds no spill of a traced process"),
    ],
)
def test_a_traced_run_that_shows_nothing_stops_nothing(
    forebay: Forebay,
    environ: dict[str, str],
    program: list[str],
    tmp_path: Path,
    words: list[str],
    reason: str,
) -> None:
    """The library that traces is a harmless one, too, and leaves nothing."""
    fake = Path(environ["FOREBAY_LIBRARY_DIR"])
    shutil.copytree(fake, tmp_path / "lib")
    shutil.copy(fake / "libforebay.so", tmp_path / "lib" / "libforebay-trace.so")
    environ["FOREBAY_LIBRARY_DIR"] = str(tmp_path / "lib")
    content = evaluated_stock(forebay, program, *words)
    assert reason in content["settings"]["hinted"][0]["reason"]


def test_few_blocks_are_too_noisy(forebay: Forebay, program: list[str]) -> None:
    answer = forebay(
        "evaluate", "--configs", "default,stock", "--against", "stock", "-n", "2",
        "--", *program, "out.dat",
    )  # fmt: skip
    assert answer.code == 0, answer.output + answer.errors
    assert "default: too noisy" in answer.output


def test_a_command_that_fails_is_named_with_its_last_words(
    forebay: Forebay, program: list[str]
) -> None:
    answer = forebay("evaluate", "--configs", "default,stock", "--", *program, "o", "--fail-engine")
    assert answer.code == 3
    assert "exit status 3 in configuration 'default'" in answer.output
    assert "cannot find input.nml" in answer.output


def test_output_of_another_size_each_time_stops_it(
    forebay: Forebay, program: list[str], tmp_path: Path
) -> None:
    answer = forebay(
        "evaluate", "--configs", "stock,default", "--json", "e.json",
        "--", *program, "o", "--grow", "--size", "10",
    )  # fmt: skip
    assert answer.code == 3
    assert "not of the same size twice" in answer.output
    assert "/o: 11 bytes after one run of 'default', 12 bytes after another" in answer.output
    content = read_json(tmp_path / "e.json")
    assert content["verdicts"] == {"stock": None}
    assert content["runs"] == []


def growing(place: Path) -> list[str]:
    """Writes one byte more each time, into a directory that only a script knows."""
    script = Path("grow.sh")
    script.write_text(f"echo >> {place}/count; cat {place}/count > {place}/out")
    return ["sh", str(script)]


def test_output_that_nobody_saw_is_told(forebay: Forebay, tmp_path: Path) -> None:
    place = tmp_path / "there"
    place.mkdir()
    words = ["evaluate", "--configs", "stock,default", "-n", "1", "--json", "e.json"]
    answer = forebay(*words, "--", *growing(place))
    assert answer.code == 0, answer.output + answer.errors
    unseen = "no file that the command writes was seen, or --ignore leaves all out"
    assert unseen in answer.output
    assert any(note.startswith(unseen) for note in read_json(tmp_path / "e.json")["notes"])
    answer = forebay(*words, "--", "sh", "-c", "echo a > result")
    assert answer.code == 0
    assert unseen not in answer.output
    assert unseen in forebay(*words, "--ignore", "r*", "--", "sh", "-c", "echo a > result").output


def test_output_that_a_traced_run_shows_is_compared(
    forebay: Forebay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In place of a trace, which needs the library that traces: what would be read from it."""
    place = tmp_path / "there"
    place.mkdir()
    written = [str(place / name) for name in ("count", "out", "gone")]

    def traced(runs: TimedRuns, way: Way, hints: dict[str, str]) -> TracedRun:
        runs.reset()
        run = runs.run(way)
        settings = [Setting(k, v, (), State.NOT_RECORDED, "made up") for k, v in hints.items()]
        return TracedRun(settings, run.side, written, run.files)

    monkeypatch.setattr(traced_run, "settings", traced)
    (tmp_path / "configurations.toml").write_text(
        'version = 1\n[configuration.hinted]\nengine = "mpi"\nhints = { cb_nodes = 4 }\n'
    )
    words = ["evaluate", "--configs", "hinted,stock", "-n", "2", "--json", "e.json"]
    answer = forebay(*words, "--ignore", "count", "--", *growing(place))
    assert answer.code == 3
    assert f"{place}/out: 4 bytes after one run of 'hinted', " in answer.output
    notes = read_json(tmp_path / "e.json")["notes"]
    shown = f"the traced run of 'hinted' wrote elsewhere, too: {place}/count, {place}/out; compared"
    assert any(note.startswith(shown) for note in notes), notes
    assert not any(note.startswith("no file that the command writes") for note in notes)
    answer = forebay(*words, "--prepare", f"rm -f {place}/*", "--", *growing(place))
    assert answer.code == 0, answer.output + answer.errors
    (count, out) = read_json(tmp_path / "e.json")["files"]["hinted"]
    assert (count["path"], out["path"]) == (f"{place}/count", f"{place}/out")
    assert out["identical"] is True


def test_a_configuration_that_leaves_other_bytes_is_not_judged(
    forebay: Forebay, program: list[str], tmp_path: Path
) -> None:
    answer = forebay("evaluate", "--configs", "default,stock", "--against", "stock", "--json",
                     "e.json", "--", *program, "o", "--differ")  # fmt: skip
    assert answer.code == 1
    assert f"default: {tmp_path}/o DIFFERS from what stock leaves" in answer.output
    assert read_json(tmp_path / "e.json")["verdicts"] == {"default": None}


def check(path: str, reference: str | None, candidate: str | None, mpi: bool) -> FileCheck:
    return FileCheck(path, 1, reference, candidate, identical=False, mpi=mpi)


def test_files_that_come_and_go_beside_a_run_do_not_count() -> None:
    result = Evaluation(
        ["true"], [BUILT_IN["default"], BUILT_IN["stock"]], "stock", "wall", Plan(), 1
    )
    own, foreign = check("both", "a", "b", mpi=False), check("foreign", None, "b", mpi=False)
    gone = check("gone", "a", None, mpi=True)
    result.files["default"] = [own, foreign, gone]
    assert result.differing("default") == [own, gone]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--timeout", "nan", "--", "true"], "write a number"),
        (["--alpha", "nan", "--", "true"], "write a number"),
        (["--least-gain", "inf", "--", "true"], "write a number"),
        (["--aa", "--", "true"], "--aa runs no command"),
    ],
)
def test_what_means_nothing_is_refused(forebay: Forebay, words: list[str], why: str) -> None:
    answer = forebay("evaluate", *words)
    assert answer.code == 2
    assert why in answer.errors


def test_programs_without_mpi_are_timed_as_a_whole(forebay: Forebay, tmp_path: Path) -> None:
    words = ["--configs", "default,stock", "-n", "1"]
    answer = forebay("evaluate", *words, "--", "sh", "-c", "echo a > result")
    assert answer.code == 0, answer.output + answer.errors
    assert "no MPI file was seen" in answer.output
    answer = forebay("evaluate", *words, "--time", "write", "--", "true")
    assert answer.code == 2
    assert "makes no calls of MPI-IO" in answer.errors


def test_files_that_stay_from_run_to_run_are_named(
    forebay: Forebay, program: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files without MPI are not removed, and a directory of many is not looked through."""
    script = f"{shlex.join(program)} out.dat; for n in 1 2 3 4 5; do echo > o$n.log; done"
    words = ["evaluate", "--json", "e.json", "--configs", "default,stock", "-n", "1"]
    assert forebay(*words, "--", "sh", "-c", script).code == 0
    notes = read_json(tmp_path / "e.json")["notes"]
    names = ", ".join(str(tmp_path / f"o{n}.log") for n in range(1, 5))
    stays = f"written without MPI, and not removed between runs: {names} and 1 more; "
    assert any(note.startswith(stays) for note in notes), notes
    forebay(*words, "--prepare", "rm -f o*.log", "--", "sh", "-c", script)
    assert not any("without MPI" in note for note in read_json(tmp_path / "e.json")["notes"])
    monkeypatch.setattr(watched_places, "MOST_ENTRIES", 2)
    forebay(*words, "--", "sh", "-c", script)
    crowded = f"{tmp_path} holds more than "
    assert any(n.startswith(crowded) for n in read_json(tmp_path / "e.json")["notes"])


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--", "true"], "no configuration is called 'best'"),
        (["--configs", "default", "--", "true"], "nothing to compare"),
        (["--configs", "default,stock"], "there is no command"),
        (["--configs", "default,stock", "--against", "best", "--", "true"], "is not in --configs"),
    ],
)
def test_wrong_usage_says_what_to_do(forebay: Forebay, words: list[str], complaint: str) -> None:
    answer = forebay("evaluate", *words)
    assert answer.code == 2
    assert complaint in answer.errors


def test_files_without_an_end_are_refused(
    forebay: Forebay, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_file, "BYTES_MOST", 1 << 20)
    answer = forebay("evaluate", "--file", "/dev/zero", "--", "true")
    assert answer.code == 2
    assert "/dev/zero is too large" in answer.errors
    answer = forebay("report", "/dev/zero")
    assert answer.code == 1
    assert "/dev/zero is no JSON: it has more than 1.0 MiB" in answer.errors


@pytest.mark.usefixtures("configurations")
def test_lines_that_cannot_be_written_are_told_with_what_to_do(forebay: Forebay) -> None:
    answer = forebay("apply", "best", "--format", "sh", "--write", "nowhere/best.sh")
    assert answer.code == 2
    assert "Make it first: mkdir -p nowhere" in answer.errors


def test_the_self_test_counts_false_claims(forebay: Forebay, tmp_path: Path) -> None:
    words = ["evaluate", "--aa", "--campaigns", "200", "--seed", "11", "--json", "aa.json"]
    answer = forebay(*words)
    assert answer.code == 0, answer.errors
    content = read_json(tmp_path / "aa.json")
    assert content["campaigns"] == 200
    assert content["false_claim_rate"] <= 0.05
    assert content["false_claim_rate"] == content["false_claims"] / 200
    assert sum(content["verdicts"].values()) == 200
    assert "of 200 campaigns without a difference claimed one" in answer.output


def test_an_interrupt_tells_what_there_is(environ: dict[str, str], tmp_path: Path) -> None:
    """The sixth run (after the warm-up and one block) opens a pipe and waits; then we interrupt."""
    os.mkfifo(tmp_path / "pipe")
    script = (
        'echo x >> count; if [ "$(wc -l < count)" -ge 6 ]; then echo hang > pipe; sleep 1000; fi'
    )
    command = [sys.executable, "-m", "forebay", "evaluate", "--configs", "default,stock"]
    command += ["--ignore", "count", "--json", "e.json"]
    with subprocess.Popen(
        [*command, "--", "sh", "-c", script], env=environ, cwd=tmp_path, stdout=subprocess.PIPE,
        text=True,
    ) as running:  # fmt: skip
        with (tmp_path / "pipe").open() as pipe:
            assert pipe.readline() == "hang\n"
        running.terminate()
        output, _ = running.communicate(timeout=TIMEOUT_S)
    assert running.returncode == 130
    assert "interrupted" in output
    content = read_json(tmp_path / "e.json")
    assert content["interrupted"] is True
    assert content["verdicts"]["stock"]["blocks"] == 1

"""`forebay configure`: what it finds for a stand-in program whose best settings are known, what it
refuses, and how it goes on.

Method: a made-up trace of collective writes; the stand-in's write takes a time that depends on the
hints alone, so that every search has one right answer.
"""

import os
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from conftest import TIMEOUT_S, Forebay, read_json
from made_runs import MIB, MadeRun
from rich.console import Console

from forebay import written_files
from forebay.comparison import Side
from forebay.configure import search
from forebay.configure.factors import Variable
from forebay.evaluate import traced_run
from forebay.evaluate.in_force import Setting
from forebay.evaluate.in_force import State as Held
from forebay.evaluate.traced_run import TracedRun
from forebay.timed_runs import TimedRuns, Way

WORDS = ["--time", "write", "--json", "s.json", "--constraint", "cache=disable"]
WORDS += ["--constraint", "engine=forebay"]


def traced(tmp_path: Path, io_ms: int = 600, **run: object) -> Path:
    """4 ranks that write 64 MiB together, for `io_ms` of a second."""
    made = MadeRun(tmp_path / "job.trace", processes=4, ranks=4, run=run)
    for rank in range(4):
        for turn in range(4):
            made.mpi(
                "write_at_all", 200 + turn * io_ms / 4, io_ms / 4, 4 * MIB,
                process=rank, offset=(4 * turn + rank) * 4 * MIB, collective=True,
            )  # fmt: skip
    return made.trace().path


def best_of(path: Path) -> dict[str, str]:
    with path.open("rb") as file:
        hints: dict[str, str] = tomllib.load(file)["configuration"]["best"]["hints"]
    return hints


def test_the_best_settings_are_found_and_told_how_to_prove(
    forebay: Forebay, program: list[str], tmp_path: Path
) -> None:
    command = [*program, "out.dat", "--obey", "--best", "cb_nodes=2", "--best",
               "cb_buffer_size=4194304"]  # fmt: skip
    answer = forebay("configure", traced(tmp_path), *WORDS, "--max-runs", "24", "--", *command)
    assert answer.code == 0, answer.output + answer.errors
    assert "I/O is 60 % of the time; best possible 2.50 times" in answer.output
    hints = best_of(tmp_path / "configurations.toml")
    assert hints["cb_nodes"] == "2"
    assert hints["cb_buffer_size"] == "4194304"
    assert "forebay evaluate --configs best,default --time write -- " in answer.output
    assert "no proof" in answer.output
    content = read_json(tmp_path / "s.json")
    assert [run["number"] for run in content["runs"]] == list(range(1, len(content["runs"]) + 1))
    assert content["runs"][0]["why"] == "warm-up"
    assert content["best"] == content["ranking"][0]["configuration"]
    assert {run["state"] for run in content["runs"]} == {"measured"}
    assert not (tmp_path / "out.dat").exists()  # what a search writes is of no use
    proof = forebay(
        "evaluate", "--time", "write", "-n", "8", "--json", "proof.json", "--", *command
    )
    assert "best: improved" in proof.output, proof.output + proof.errors
    told = forebay("report", ".", "--json", "told.json")
    assert told.code == 0, told.errors
    assert "'best' is shown to be faster than 'default'" in told.output
    report = read_json(tmp_path / "told.json")
    assert report["claimed"] is True
    assert report["runs"] == len(content["runs"])
    assert report["best"] == content["best"]
    assert "<td>cb_buffer_size</td>" in (tmp_path / "report.html").read_text()


def test_names_that_are_no_utf_8_are_searched_and_reported(
    forebay: Forebay, program: list[str], tmp_path: Path
) -> None:
    """A file of configurations is UTF-8: what it tells of the command is replaced there."""
    place = tmp_path / os.fsdecode(b"d\xff")
    place.mkdir()
    words = [*WORDS, "--max-runs", "12", "--seed", "5", "--history", place / "configure.sqlite"]
    command = [*program, place / os.fsdecode(b"out\xfe"), "--obey", "--best", "cb_nodes=1"]
    answer = forebay("configure", traced(place), *words, "--", *command)
    assert answer.code == 0, answer.output + answer.errors
    assert best_of(tmp_path / "configurations.toml")["cb_nodes"] == "1"
    told = forebay("report", place, "-o", place / "r.html", "--json", "told.json")
    assert told.code == 0, told.errors
    assert read_json(tmp_path / "told.json")["runs"] == 12
    other = forebay("configure", place / "job.trace", *words, "--", *command, "--size", "9")
    assert other.code == 2
    assert "is of another search" in other.errors
    bad = forebay("configure", place / "job.trace", "--variable", f"A=1,{place}", "--", *command)
    assert bad.code == 2
    assert "is no UTF-8" in bad.errors


def test_little_io_ends_it_before_anything_is_run(
    forebay: Forebay, program: list[str], tmp_path: Path
) -> None:
    trace = traced(tmp_path, io_ms=30)
    answer = forebay("configure", trace, "--json", "s.json", "--", *program, "out.dat")
    assert answer.code == 4, answer.output + answer.errors
    assert "I/O is 3 % of the time; best possible 1.03 times: stop." in answer.output
    content = read_json(tmp_path / "s.json")
    assert content["stopped"] == "ceiling"
    assert content["runs"] == []
    assert not (tmp_path / "configurations.toml").exists()
    assert not (tmp_path / "configure.sqlite").exists()


def test_where_nothing_helps_nothing_is_proposed(
    forebay: Forebay, program: list[str], tmp_path: Path
) -> None:
    words = [*WORDS, "--max-runs", "8"]
    answer = forebay("configure", traced(tmp_path), *words, "--", *program, "out.dat", "--obey")
    assert answer.code == 4, answer.output + answer.errors
    assert "Nothing that was tried looks 5 % faster than default" in answer.output
    content = read_json(tmp_path / "s.json")
    assert content["best"] is None
    assert not any("without MPI" in note for note in content["notes"])
    assert not (tmp_path / "configurations.toml").exists()


def test_files_without_mpi_that_stay_from_run_to_run_are_named(
    forebay: Forebay, program: list[str], tmp_path: Path
) -> None:
    words = [*WORDS, "--max-runs", "4"]
    script = f"{shlex.join(program)} out.dat --obey; echo done > o.log"
    forebay("configure", traced(tmp_path), *words, "--", "sh", "-c", script)
    notes = read_json(tmp_path / "s.json")["notes"]
    stays = f"written without MPI, and not removed between runs: {tmp_path / 'o.log'}; "
    assert [note.startswith(stays) for note in notes].count(True) == 1


def test_what_fails_differs_or_does_not_hold_is_recorded_and_avoided(
    forebay: Forebay, program: list[str], tmp_path: Path
) -> None:
    """Faster by each of three settings, none of which can be used."""
    bad = ["cb_nodes=1", "cb_nodes=2", "cb_buffer_size=1048576"]
    command = [*program, "out.dat", "--obey", "--fail-with", bad[0], "--differ-with", bad[1]]
    command += ["--deaf", "romio_cb_write", "--best", "romio_cb_write=enable", "--best", bad[2]]
    answer = forebay("configure", traced(tmp_path), *WORDS, "--max-runs", "24", "--", *command)
    assert answer.code == 0, answer.output + answer.errors
    content = read_json(tmp_path / "s.json")
    by_state: dict[str, list[dict[str, Any]]] = {}
    for run in content["runs"]:
        by_state.setdefault(run["state"], []).append(run)
    assert all("no space left" in run["reason"] for run in by_state.get("failed", []))
    assert all("other bytes in" in run["reason"] for run in by_state.get("other files", []))
    assert by_state["not in force"]
    for run in by_state["not in force"]:
        asked = run["settings"]["collective"]
        assert f"romio_cb_write: asked {asked}, observed otherwise" in run["reason"]
    hints = best_of(tmp_path / "configurations.toml")
    assert f"cb_buffer_size={hints['cb_buffer_size']}" == bad[2]
    assert "romio_cb_write" not in hints
    assert hints.get("cb_nodes") not in ("1", "2")


def test_a_killed_search_goes_on(
    forebay: Forebay, program: list[str], environ: dict[str, str], tmp_path: Path
) -> None:
    """The stand-in kills the command that started it, in the 5th run; --ignore is for its count."""
    trace = traced(tmp_path)
    words = ["configure", str(trace), *WORDS, "--max-runs", "9", "--ignore", "runs", "--prepare",
             "rm -f out.dat", "--", *program, "out.dat", "--obey", "--kill-at", "5"]  # fmt: skip
    killed = subprocess.run(
        [sys.executable, "-m", "forebay", *words], cwd=tmp_path, env=environ, check=False,
        capture_output=True, stdin=subprocess.DEVNULL, timeout=TIMEOUT_S,
    )  # fmt: skip
    assert killed.returncode == -9, killed.stderr
    answer = forebay(*words)
    assert answer.code in (0, 4), answer.output + answer.errors
    runs = read_json(tmp_path / "s.json")["runs"]
    assert [run["state"] for run in runs[:5]] == ["measured"] * 4 + ["interrupted"]
    assert runs[4]["reason"] == "the search was killed"
    assert [run["why"] for run in runs].count("warm-up") == 2
    assert len(runs) == 10  # 9 that count
    as_before = forebay(*words)
    assert "the runs are used up" in as_before.output
    assert read_json(tmp_path / "s.json")["runs"] == runs  # and no warm-up for nothing
    more = forebay(*(word if word != "9" else "11" for word in words))
    assert len(read_json(tmp_path / "s.json")["runs"]) > 10, more.errors
    other = forebay(*words, "--read")
    assert other.code == 2
    assert "configure.sqlite is of another search (command:" in other.errors


def test_files_that_a_killed_search_left_are_named_and_not_removed(
    forebay: Forebay, program: list[str], environ: dict[str, str], tmp_path: Path
) -> None:
    words = ["configure", str(traced(tmp_path)), *WORDS, "--max-runs", "9", "--ignore", "runs",
             "--", *program, "out.dat", "--obey", "--kill-at", "4"]  # fmt: skip
    subprocess.run(
        [sys.executable, "-m", "forebay", *words], cwd=tmp_path, env=environ, check=False,
        capture_output=True, stdin=subprocess.DEVNULL, timeout=TIMEOUT_S,
    )  # fmt: skip
    (tmp_path / "out.dat").write_text("mine by now")
    answer = forebay(*words)
    assert answer.code == 2
    assert f"rm '{tmp_path}/out.dat'" in answer.errors
    assert (tmp_path / "out.dat").read_text() == "mine by now"


def test_an_interrupt_tells_what_there_is(environ: dict[str, str], tmp_path: Path) -> None:
    """The fourth run opens a pipe and waits; then we interrupt."""
    os.mkfifo(tmp_path / "pipe")
    script = (
        'echo x >> count; if [ "$(wc -l < count)" -ge 4 ]; then echo hang > pipe; sleep 1000; fi'
    )
    command = [sys.executable, "-m", "forebay", "configure", str(traced(tmp_path)), "--json",
               "s.json", "--ignore", "count", "--", "sh", "-c", script]  # fmt: skip
    with subprocess.Popen(
        command, env=environ, cwd=tmp_path, stdout=subprocess.PIPE, text=True
    ) as running:
        with (tmp_path / "pipe").open() as pipe:
            assert pipe.readline() == "hang\n"
        running.terminate()
        output, _ = running.communicate(timeout=TIMEOUT_S)
    assert running.returncode == 130
    assert "the same command goes on" in output
    content = read_json(tmp_path / "s.json")
    assert content["stopped"] == "interrupted"
    assert content["runs"][-1]["state"] == "interrupted"


def test_a_command_that_fails_or_varies_ends_it(
    forebay: Forebay, program: list[str], tmp_path: Path
) -> None:
    trace = traced(tmp_path)
    answer = forebay("configure", trace, *WORDS, "--", *program, "out.dat", "--fail")
    assert answer.code == 3
    assert "cannot find input.nml" in answer.output
    varying = forebay("configure", trace, *WORDS, "--again", "--", *program, "o", "--grow")
    assert varying.code == 3, varying.output
    assert "is not the same twice" in varying.output
    assert "after one run of 'default'" in varying.output


def test_a_candidate_that_does_not_start_is_given_up_and_the_search_goes_on(
    forebay: Forebay, tmp_path: Path
) -> None:
    """Under a variable that takes the program away, as PATH does. There is nothing else to choose,
    so it is tried however long the other runs take."""
    (tmp_path / "bin").mkdir()
    tool = tmp_path / "bin" / "forebay-test-tool"
    tool.write_text("#!/bin/sh\necho done > out.dat\n")
    tool.chmod(0o755)
    usual = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    made = MadeRun(tmp_path / "job.trace")
    made.posix("pwrite", 0, 600, MIB, offset=0)
    answer = forebay(
        "configure", made.trace().path, "--json", "s.json", "--max-runs", "12", "--seed", "1",
        "--variable", f"PATH=/nowhere,{usual}", "--", "forebay-test-tool",
        PATH=usual,
    )  # fmt: skip
    assert answer.code in (0, 4), answer.output + answer.errors
    runs = read_json(tmp_path / "s.json")["runs"]
    failed = [run for run in runs if run["state"] == "failed"]
    assert failed
    assert {run["settings"]["PATH"] for run in failed} == {"/nowhere"}
    assert all("forebay-test-tool" in run["reason"] for run in failed)
    assert runs[-1]["state"] == "measured"


def test_a_system_file_of_another_machine_is_warned_of(
    forebay: Forebay, program: list[str], tmp_path: Path
) -> None:
    system = Path(__file__).parent / "reports" / "system.json"
    trace = traced(tmp_path, machine={"hosts": ["node7"]})
    words = ["--system", system, *WORDS, "--max-runs", "3"]
    answer = forebay("configure", trace, *words, "--", *program, "out.dat", "--obey")
    assert answer.code in (0, 4), answer.errors
    assert "was measured on node1, and the traced run was on node7" in answer.output
    content = read_json(tmp_path / "s.json")
    assert content["system"]["host"] == "node1"
    predicted = {run["predicted"] for run in content["runs"]}
    assert None not in predicted


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--constraint", "stripes<=4"], "there is no factor 'stripes'"),
        (["--constraint", "aggregators>64"], "leaves no value of aggregators"),
        (["--constraint", "aggregators>64"], "There are: 4, 1, 2."),
        (["--constraint", "buffer_size<=1"], "There are: 512.0 KiB, 1.0 MiB, 4.0 MiB"),
        (["--max-runs", "0"], "is not in the range x>=3"),
        (["--timeout", "0"], "Invalid value for '--timeout'"),
        (["--timeout", "-1"], "Invalid value for '--timeout'"),
        (["--timeout", "inf"], "Invalid value for '--timeout'"),
        (["--budget", "2"], "is no duration"),
        (["--variable", "OWN=1"], "names no variable"),
    ],
)
def test_wrong_usage_says_what_to_do(
    forebay: Forebay, tmp_path: Path, words: list[str], complaint: str
) -> None:
    answer = forebay("configure", traced(tmp_path), *words, "--", "true")
    assert answer.code == 2
    assert complaint in answer.errors


def test_where_results_cannot_be_written_nothing_is_run(
    forebay: Forebay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda _path, mode: mode != os.W_OK)
    answer = forebay("configure", traced(tmp_path), "--", "touch", "run")
    assert answer.code == 2
    assert "is not writable" in answer.errors
    assert not (tmp_path / "run").exists()


def test_a_file_that_is_no_search_is_not_removed(forebay: Forebay, tmp_path: Path) -> None:
    own = tmp_path / "results.csv"
    own.write_text("precious")
    answer = forebay("configure", traced(tmp_path), "--history", own, "--again", "--", "true")
    assert answer.code == 2
    assert "is no search history" in answer.errors
    assert own.read_text() == "precious"


def test_configurations_that_are_the_users_are_not_overwritten(
    forebay: Forebay, tmp_path: Path
) -> None:
    own = tmp_path / "configurations.toml"
    own.write_text("version = 1\n[configuration.best]\nhints = { cb_nodes = 2 }\n")
    answer = forebay("configure", traced(tmp_path), "--", "true")
    assert answer.code == 2
    assert "not from a search" in answer.errors
    assert "cb_nodes = 2" in own.read_text()


def test_stock_hints_are_tried_where_forebay_is_not_to_be_used(
    forebay: Forebay, program: list[str], tmp_path: Path
) -> None:
    trace = traced(tmp_path)
    words = [*WORDS[:4], "--constraint", "engine=mpi", "--max-runs", "6"]
    answer = forebay("configure", trace, *words, "--", *program, "out.dat")
    assert answer.code == 4, answer.output + answer.errors
    content = read_json(tmp_path / "s.json")
    assert content["reference"] == "stock"
    assert {each["engine"] for each in content["configurations"].values()} == {"mpi"}
    assert not any("cache" in run["settings"] for run in content["runs"])


@pytest.mark.parametrize("rule", ["collective=enable", "aggregators>=2"])
def test_the_mpi_alone_is_not_tried_where_it_breaks_a_constraint(
    forebay: Forebay, program: list[str], tmp_path: Path, rule: str
) -> None:
    words = [*WORDS[:6], "--constraint", rule, "--max-runs", "6"]
    answer = forebay("configure", traced(tmp_path), *words, "--", *program, "out.dat")
    assert answer.code in (0, 4), answer.output + answer.errors
    content = read_json(tmp_path / "s.json")
    assert f"stock does not keep {rule}: it is not tried" in content["notes"]
    assert not any(run["settings"].get("engine") == "mpi" for run in content["runs"])


NODES, BUFFER = "OMPI_MCA_io_ompio_num_aggregators", "OMPI_MCA_io_ompio_bytes_per_agg"


def searched_stock(
    forebay: Forebay, program: list[str], tmp_path: Path, *words: str
) -> tuple[dict[str, Any], str]:
    """Twice as fast by a number of aggregators, and again by a size of buffers."""
    options = [*WORDS[:4], "--constraint", "engine=mpi", "--constraint", "collective=automatic"]
    command = [*program, "out.dat", "--obey", "--best", f"{NODES}=2"]
    command += ["--best", f"{BUFFER}=1048576"]
    trace = tmp_path / "job.trace"
    if not trace.is_dir():
        traced(tmp_path)
    answer = forebay("configure", trace, *options, "--max-runs", "26", *words, "--", *command)
    assert answer.code == 0, answer.output + answer.errors
    return read_json(tmp_path / "s.json"), answer.output


def traces(monkeypatch: pytest.MonkeyPatch, vain: dict[str, str]) -> list[dict[str, str]]:
    """Traced runs are made up: all hints hold but those of `vain`. Returns what each asked for."""
    asked: list[dict[str, str]] = []

    def settings(
        runs: TimedRuns, way: Way, hints: dict[str, str], timeout_s: float | None
    ) -> TracedRun:
        assert way.stock
        runs.reset()
        asked.append(hints)
        found = [
            Setting(key, value, ("1",), Held.NOT_IN_FORCE)
            if vain.get(key) == value
            else Setting(key, value, (value,), Held.IN_FORCE)
            for key, value in hints.items()
        ]
        return TracedRun(found, Side(timeout_s or 1.0, None, None, None, None, 0))

    monkeypatch.setattr(traced_run, "settings", settings)
    return asked


def test_hints_of_the_mpi_that_are_proposed_are_proven_by_a_traced_run(
    forebay: Forebay, program: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = traces(monkeypatch, {})
    content, output = searched_stock(forebay, program, tmp_path)
    best = content["configurations"][content["best"]]["hints"]
    assert (best["cb_nodes"], best["cb_buffer_size"]) == ("2", "1048576")
    assert "not proven" not in output
    runs = [run for run in content["runs"] if run["why"] == "traced"]
    assert [run["state"] for run in runs] == ["measured"] * len(asked)
    assert {run["seconds"] for run in runs} == {None}  # what is traced is not timed
    told = [(key, value) for hints in asked for key, value in hints.items()]
    assert len(told) == len(set(told))  # nothing is asked twice
    assert set(best.items()) <= set(told)
    assert len(content["runs"]) <= 26


def test_hints_that_traced_runs_disprove_are_given_up(
    forebay: Forebay, program: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What looks faster by a hint that did not take effect is no setting to propose."""
    traces(monkeypatch, {"cb_nodes": "2"})
    content, output = searched_stock(forebay, program, tmp_path)
    best = content["configurations"][content["best"]]["hints"]
    assert best["cb_buffer_size"] == "1048576"
    assert best.get("cb_nodes") != "2"
    vain = [run for run in content["runs"] if run["state"] == "not in force"]
    assert [run["why"] for run in vain] == ["traced"]
    assert vain[0]["reason"] == "cb_nodes: asked 2, observed 1"
    assert f"{vain[0]['configuration']}: not in force: cb_nodes: asked 2" in output
    ranked = {each["configuration"] for each in content["ranking"]}
    settings = {run["configuration"]: run["settings"] for run in content["runs"]}
    assert not any(settings[name].get("aggregators") == "2" for name in ranked)
    after = [run for run in content["runs"] if run["number"] > vain[0]["number"]]
    assert not any(run["settings"].get("aggregators") == "2" for run in after)
    more, _ = searched_stock(forebay, program, tmp_path, "--max-runs", "28")
    known = len(content["runs"])
    assert not any(r["settings"].get("aggregators") == "2" for r in more["runs"][known:])


def test_where_nothing_can_be_traced_what_is_proposed_is_said_to_be_unproven(
    forebay: Forebay, program: list[str], tmp_path: Path
) -> None:
    content, output = searched_stock(forebay, program, tmp_path)
    tried = [run for run in content["runs"] if run["why"] == "traced"]
    reason = "libforebay-trace.so is not installed"
    assert [(run["state"], run["reason"]) for run in tried] == [("failed", reason)]
    assert f"{content['best']}: not proven that " in output
    assert reason in output


def test_a_variable_of_the_program_is_tried(
    forebay: Forebay, program: list[str], tmp_path: Path
) -> None:
    """FAKE_SPEED is the stand-in's own."""
    words = [*WORDS, "--constraint", "collective=automatic", "--max-runs", "12"]
    words += ["--variable", "FAKE_SPEED=1,8"]
    answer = forebay("configure", traced(tmp_path), *words, "--", *program, "out.dat", "--obey")
    assert answer.code == 0, answer.output + answer.errors
    with (tmp_path / "configurations.toml").open("rb") as file:
        best = tomllib.load(file)["configuration"]["best"]
    assert best["environment"] == {"FAKE_SPEED": "8"}
    assert "not proven that FAKE_SPEED took effect: a variable of the program" in answer.output


def test_directories_that_a_variable_names_are_left_as_they_were(
    program: list[str], environ: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a file system that does not tell when a file was made, as most parallel ones: what runs
    make there is known by what was there before them."""
    monkeypatch.setattr(written_files, "_LOCAL_CLOCK", frozenset())
    for name in ("FOREBAY_LIBRARY_DIR", "PATH"):
        monkeypatch.setenv(name, environ[name])
    places = [tmp_path / "usual", tmp_path / "one", tmp_path / "other"]
    for place in places:
        place.mkdir()
        (place / "mine").write_text("precious")
    script = f'exec {shlex.join(program)} "${{WHERE:-{places[0]}}}/out.dat" --obey'
    options = search.ConfigureOptions(
        command=["sh", "-c", script],
        trace=traced(tmp_path),
        history=tmp_path / "h.sqlite",
        seed=1,
        variables=[Variable("WHERE", tuple(map(str, places[1:])))],
        runs_max=6,
        quantity="write",
    )
    found = search.Searcher(options, Console(stderr=True)).run()
    assert {run.settings.get("WHERE") for run in found.runs} & set(map(str, places[1:]))
    left = [[file.name for file in place.iterdir()] for place in places[1:]]
    assert left == [["mine"]] * 2
    kept = [note for note in found.notes if "was there before" in note]
    assert not any(str(place) in note for note in kept for place in places[1:])

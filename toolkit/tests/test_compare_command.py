"""`forebay compare`: identical files or not, ratios from pairs, and what fails is told apart."""

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import TIMEOUT_S, Forebay, read_json
from hypothesis import given
from hypothesis import strategies as st

from forebay.compare import orders


def test_identical_files_and_the_ratio_of_the_timed_calls(
    forebay: Forebay, program: list[str], tmp_path: Path
) -> None:
    answer = forebay("compare", "-n", "5", "--json", "c.json", "--", *program, "out.dat", "--read")
    content = read_json(tmp_path / "c.json")
    assert answer.code == 0, answer.errors
    assert content["identical"] is True
    (file,) = content["files"]
    assert file["path"] == str(tmp_path / "out.dat")
    assert file["bytes"] == 100_000
    assert file["hash_stock"] == file["hash_forebay"]
    for kind in ("write", "read"):
        ratio = content["ratio"][kind]
        assert (ratio["median"], ratio["low"], ratio["high"]) == (2.0, 2.0, 2.0)
    assert content["ratio"]["wall"]["median"] > 0
    assert len(content["pairs"]) == 5
    assert content["pairs"][0]["stock"]["write"] == pytest.approx(0.125)
    assert content["storage"]["stock"]["write_calls"] == 100
    assert content["storage"]["forebay"]["write_calls"] == 1
    assert content["environment"]["mpi"] == {"mpich": "fake 1.0"}
    assert "byte-identical" in answer.output
    assert "2.00x faster" in answer.output


def test_a_program_that_reads_nothing_has_no_ratio_for_reading(
    forebay: Forebay, program: list[str], tmp_path: Path
) -> None:
    forebay("compare", "-n", "1", "--json", "c.json", "--", *program, "out.dat")
    assert read_json(tmp_path / "c.json")["ratio"]["read"] is None


def test_equal_times_are_no_detectable_difference(forebay: Forebay, program: list[str]) -> None:
    answer = forebay("compare", "-n", "5", "--", *program, "out.dat", "--speed", "1")
    line = next(line for line in answer.output.splitlines() if line.startswith("MPI-IO write"))
    assert "no detectable difference" in line


def test_differing_bytes_fail_the_comparison(
    forebay: Forebay, program: list[str], tmp_path: Path
) -> None:
    answer = forebay("compare", "-n", "1", "--json", "c.json", "--", *program, "o", "--differ")
    assert answer.code == 1
    assert "DIFFERS" in answer.output
    content = read_json(tmp_path / "c.json")
    assert content["identical"] is False
    assert content["files"][0]["identical"] is False
    assert content["files"][0]["hash_stock"] != content["files"][0]["hash_forebay"]


def beside(program: list[str], script: str) -> list[str]:
    """A command that writes `o` through MPI, and then does what `script` says."""
    return ["sh", "-c", f"{shlex.join(program)} o; {script}"]


def test_files_written_without_mpi_are_compared_too(
    forebay: Forebay, program: list[str], tmp_path: Path
) -> None:
    command = beside(program, "mkdir -p new/deep; echo a > new/deep/result; echo b > result")
    answer = forebay("compare", "-n", "1", "--json", "c.json", "--", *command)
    assert answer.code == 0, answer.output
    assert "3 written files are byte-identical (97.7 KiB), 2 of them written without MPI" in (
        answer.output
    )
    assert [(file["path"], file["mpi"]) for file in read_json(tmp_path / "c.json")["files"]] == [
        (f"{tmp_path}/o", True),
        (f"{tmp_path}/new/deep/result", False),
        (f"{tmp_path}/result", False),
    ]


@pytest.mark.parametrize("ignored", [[], ["--ignore", "sum*"], ["--ignore", "./summary"]])
def test_one_that_differs_under_forebay_alone_is_named_unless_ignored(
    forebay: Forebay, program: list[str], tmp_path: Path, ignored: list[str]
) -> None:
    command = beside(program, "echo $FOREBAY_MODE > summary")
    answer = forebay("compare", "-n", "2", *ignored, "--", *command)
    assert answer.code == (0 if ignored else 1)
    assert (f"{tmp_path}/summary (written without MPI): DIFFERS" in answer.output) != bool(ignored)
    assert "1 written file is byte-identical" in answer.output


def test_a_log_that_differs_by_itself_is_named_and_does_not_count(
    forebay: Forebay, program: list[str], tmp_path: Path
) -> None:
    answer = forebay("compare", "-n", "1", "--", *beside(program, "echo line >> run.log"))
    assert answer.code == 0, answer.output
    expected = "run.log (written without MPI): not compared, the stock MPI's runs differ"
    assert f"{tmp_path}/{expected}" in answer.output


def test_names_that_are_no_utf_8_are_shown_as_they_are(
    environ: dict[str, str], program: list[str], tmp_path: Path
) -> None:
    """In a locale of UTF-8, Python's own output refuses them."""
    name = os.fsencode(tmp_path) + b"/out\xfe"
    Path(os.fsdecode(name)).touch()
    words = [sys.executable, "-m", "forebay", "compare", "-n", "1", "--report", "r", "--"]
    words += [*program, name]
    answer = subprocess.run(
        words, env=environ | {"PYTHONIOENCODING": "utf-8:strict"}, cwd=tmp_path,
        capture_output=True, stdin=subprocess.DEVNULL, timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    assert name + b" was there before" in answer.stdout
    assert "/out?" in (tmp_path / "r" / "report.md").read_text()


def test_a_failure_under_forebay_alone_is_ours(
    forebay: Forebay, program: list[str], tmp_path: Path
) -> None:
    answer = forebay("compare", "--json", "c.json", "--", *program, "o", "--fail-engine")
    assert answer.code == 1
    assert "under Forebay, though not without" in answer.output
    assert "cannot find input.nml" in answer.output
    content = read_json(tmp_path / "c.json")
    assert content["identical"] is False
    assert content["failure"]["side"] == "forebay"
    assert content["failure"]["exit"] == 3


def test_a_command_that_fails_by_itself_is_told_apart(forebay: Forebay, program: list[str]) -> None:
    answer = forebay("compare", "--", *program, "o", "--fail")
    assert answer.code == 3
    assert "without Forebay" in answer.output
    assert "cannot find input.nml" in answer.output


def test_each_run_starts_without_the_files_of_the_last(
    forebay: Forebay, program: list[str], tmp_path: Path
) -> None:
    """A program that appends writes the same file every time only if it starts from nothing."""
    answer = forebay("compare", "-n", "2", "--", *program, "new.dat", "--append")
    assert answer.code == 0, answer.output
    assert (tmp_path / "new.dat").stat().st_size == 100_000


def test_a_file_that_was_there_is_never_removed_and_needs_prepare(
    forebay: Forebay, program: list[str], tmp_path: Path
) -> None:
    (tmp_path / "log").write_bytes(b"precious")
    answer = forebay("compare", "-n", "1", "--", *program, "log", "--append")
    assert answer.code == 1
    assert "--prepare" in answer.output
    assert (tmp_path / "log").read_bytes().startswith(b"precious")


def test_prepare_resets_an_input_that_is_modified(
    forebay: Forebay, program: list[str], tmp_path: Path
) -> None:
    (tmp_path / "start").write_bytes(b"state")
    answer = forebay(
        "compare", "-n", "2", "--prepare", "cp start log", "--", *program, "log", "--append"
    )
    assert answer.code == 0, answer.output
    assert "was there before" not in answer.output


def test_a_failing_prepare_is_reported(forebay: Forebay, program: list[str]) -> None:
    answer = forebay("compare", "--prepare", "echo no disk >&2; exit 4", "--", *program, "o")
    assert answer.code == 2
    assert "status 4" in answer.errors
    assert "no disk" in answer.errors


def test_what_ends_a_campaign_in_the_middle_leaves_the_pairs_before_it(
    forebay: Forebay, program: list[str], tmp_path: Path
) -> None:
    """--prepare works four times (the warm-up and one pair), then fails."""
    prepare = "echo x >> count; test $(wc -l < count) -le 4"
    answer = forebay(
        "compare", "-n", "5", "--prepare", prepare, "--json", "c.json", "--", *program, "o"
    )
    assert answer.code == 1
    assert "broken off after 1 whole pairs" in answer.output
    content = read_json(tmp_path / "c.json")
    assert "ended with status 1" in content["broken_off"]
    assert len(content["pairs"]) == 1


def test_without_records_the_reasons_are_given(forebay: Forebay, program: list[str]) -> None:
    answer = forebay("compare", "-n", "1", "--", *program, "o", "--no-record")
    assert answer.code == 0
    assert "no MPI file was seen" in answer.output


def test_the_limit_is_measured_beside_the_pairs(
    forebay: Forebay, program: list[str], tmp_path: Path
) -> None:
    answer = forebay("compare", "-n", "2", "--limit", "--json", "c.json", "--", *program, "o")
    assert answer.code == 0, answer.errors
    limit = read_json(tmp_path / "c.json")["limit"]
    assert limit["read"] is None
    assert limit["write"]["seconds"] > 0
    assert limit["write"]["forebay"]["median"] > limit["write"]["stock"]["median"]
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"o", "c.json", "runtime"}


def test_the_report_has_the_table_and_the_picture(
    forebay: Forebay, program: list[str], tmp_path: Path
) -> None:
    forebay("compare", "-n", "2", "--report", "rep", "--", *program, "o")
    text = (tmp_path / "rep" / "report.md").read_text()
    assert "| MPI-IO write |" in text
    assert "](ratios.svg)" in text
    assert (tmp_path / "rep" / "ratios.svg").read_text().count("<use") >= 4


def test_hints_for_the_stock_mpi_reach_it_alone(forebay: Forebay, tmp_path: Path) -> None:
    script = 'echo "$FOREBAY_MODE ${ROMIO_HINTS:+$(cat $ROMIO_HINTS)} $FOREBAY_HINTS" >> log'
    forebay(
        "compare", "-n", "1", "--stock-hints", "cb_nodes=4", "--hint", "cb_nodes=2",
        "--", "sh", "-c", script,
    )  # fmt: skip
    lines = (tmp_path / "log").read_text().splitlines()
    assert sorted(set(lines)) == ["engine  cb_nodes=2", "observe cb_nodes 4 "]


@given(st.integers(1, 50), st.integers())
def test_the_order_is_shuffled_by_the_seed_and_balanced(pairs: int, seed: int) -> None:
    found = orders(pairs, seed)
    assert found == orders(pairs, seed)
    assert all(sorted(order) == ["forebay", "stock"] for order in found)
    assert abs(2 * sum(order[0] == "stock" for order in found) - pairs) == pairs % 2


def test_the_order_of_the_runs_is_that_of_the_pairs(
    forebay: Forebay, program: list[str], tmp_path: Path
) -> None:
    forebay("compare", "-n", "2", "--seed", "3", "--json", "c.json", "--", *program, "o")
    found = [pair["order"] for pair in read_json(tmp_path / "c.json")["pairs"]]
    assert found == orders(2, 3)


def test_a_run_that_takes_too_long_is_ended(forebay: Forebay) -> None:
    answer = forebay("compare", "--timeout", "0.2", "--", "sleep", "1000")
    assert answer.code == 3
    assert "did not end in time" in answer.output


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_prints_what_there_is_so_far(
    number: signal.Signals, environ: dict[str, str], tmp_path: Path
) -> None:
    """The fifth run (after the warm-up and one pair) opens a pipe and waits; then we interrupt."""
    os.mkfifo(tmp_path / "pipe")
    script = (
        'echo x >> count; if [ "$(wc -l < count)" -ge 5 ]; then echo hang > pipe; sleep 1000; fi'
    )
    command = [sys.executable, "-m", "forebay", "compare", "-n", "9", "--json", "c.json"]
    with subprocess.Popen(
        [*command, "--", "sh", "-c", script], env=environ, cwd=tmp_path, stdout=subprocess.PIPE,
        text=True,
    ) as running:  # fmt: skip
        with (tmp_path / "pipe").open() as pipe:
            assert pipe.readline() == "hang\n"
        running.send_signal(number)
        output, _ = running.communicate(timeout=TIMEOUT_S)
    assert running.returncode == 130
    assert "interrupted after 1 whole pairs" in output
    content = read_json(tmp_path / "c.json")
    assert content["interrupted"] is True
    assert len(content["pairs"]) == 1

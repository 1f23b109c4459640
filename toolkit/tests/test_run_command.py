"""`forebay run`: the program's own behaviour is untouched, and the summary tells what it did."""

import os
import pty
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import TIMEOUT_S, TOOLKIT, Forebay, read_json

from forebay.errors import ForebayError
from forebay.exit_status import describe
from forebay.launcher import Dialect
from forebay.page_watch import watched
from forebay.records import Records
from forebay.run import remarks


def test_the_programs_output_is_untouched_and_the_summary_goes_to_stderr(
    forebay: Forebay, program: list[str]
) -> None:
    answer = forebay("run", "--", *program, "out.dat")
    assert answer.code == 0
    assert answer.output == "the program's own output\n"
    assert "out.dat" in answer.errors
    assert "2.00x" in answer.errors
    assert "shared file pointer (3 calls)" in answer.errors
    assert "cb_nodes=banana" in answer.errors
    assert "failed: write 8 bytes at 0 to o: no space [left] (1 call)" in answer.errors
    assert "\x1b[" not in answer.errors


def test_json_has_the_same_and_the_records(
    forebay: Forebay, program: list[str], tmp_path: Path
) -> None:
    forebay("run", "--hint", "cb_nodes=2", "--json", "r.json", "--", *program, "out.dat")
    content = read_json(tmp_path / "r.json")
    (file,) = content["files"]
    assert content["exit"] == 0
    assert file["amplification"]["write"] == 2.0
    assert file["hints"]["cb_nodes"] == "cb_nodes=2"
    assert file["failures"] == {"write 8 bytes at 0 to o: no space [left]": 1}
    assert content["records"][0]["path"] == str(tmp_path / "out.dat")


def test_an_option_that_lacks_its_file_does_not_take_what_stands_before_the_command(
    forebay: Forebay, program: list[str], tmp_path: Path
) -> None:
    for words in (("run", "--json"), ("trace", "-o"), ("compare", "--report")):
        answer = forebay(*words, "--", *program, "out.dat")
        assert answer.code == 2
        assert "lacks its name" in answer.errors
    assert not (tmp_path / "--").exists()


def test_observing_leaves_the_io_to_the_mpi(
    forebay: Forebay, program: list[str], tmp_path: Path
) -> None:
    forebay("run", "--observe", "--json", "r.json", "--", *program, "out.dat")
    content = read_json(tmp_path / "r.json")
    assert content["mode"] == "observe"
    assert content["files"][0]["bytes_asked"] is None


@pytest.mark.parametrize(
    ("script", "code"), [("exit 7", 7), ("kill -9 $$", 137), ("kill -TERM $$", 143)]
)
def test_the_exit_status_is_the_commands(forebay: Forebay, script: str, code: int) -> None:
    assert forebay("run", "--", "sh", "-c", script).code == code


def test_hints_and_intent_reach_the_program_after_inherited_ones(
    forebay: Forebay, tmp_path: Path
) -> None:
    (tmp_path / "intent.toml").write_text("")
    script = 'echo "$FOREBAY_HINTS|$FOREBAY_INTENT|$FOREBAY_RANKS_PER_NODE|$FOREBAY_MODE"'
    answer = forebay(
        "run", "--hint", "b=2", "--hint", "c=3;d=4", "--intent", "intent.toml",
        "--ranks-per-node", "2", "--", "sh", "-c", script,
        FOREBAY_HINTS="a=1",
    )  # fmt: skip
    assert answer.output == f"a=1;b=2;c=3;d=4|{tmp_path}/intent.toml|2|engine\n"


def test_pages_without_a_task_are_an_error(forebay: Forebay) -> None:
    answer = forebay("run", "--pages", "--", "true")
    assert answer.code == 2
    assert "--pages has nothing to do" in answer.errors


def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """A shell script in the place of what sees pages in the kernel."""
    watcher = tmp_path / "forebay-pages"
    watcher.write_text(f"#!/bin/sh\n{script}\n")
    watcher.chmod(0o755)
    monkeypatch.setattr("forebay.native.pages_program", lambda: watcher)


def test_pages_that_cannot_be_seen_are_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, monkeypatch, "echo 'mount tracefs (which takes root)' >&2\nexit 1")
    with pytest.raises(ForebayError, match="mount tracefs"), watched(tmp_path, None):
        pytest.fail("it went on")


def test_what_the_kernel_had_no_room_for_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, monkeypatch, """echo ready\ncat\necho '{"lost": 3, "unnamed": 1}'""")
    with watched(tmp_path, None) as lines:
        assert lines == []
    assert len(lines) == 2
    assert "no room for at least 3 reads" in lines[0]
    assert "1 files were open before the run" in lines[1]


def test_a_watcher_that_dies_in_the_midst_of_a_run_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, monkeypatch, "echo ready\necho no memory >&2\nexec >&- 2>&-\nkill -9 $$")
    with watched(tmp_path, None) as lines:
        pass
    assert lines == [
        "forebay: no memory",
        "forebay: what was seen in the kernel is lost: forebay-pages broke off",
    ]


def test_a_run_without_a_record_says_why_that_may_be(forebay: Forebay) -> None:
    answer = forebay("run", "--", "true")
    assert answer.code == 0
    assert "no MPI file was seen" in answer.errors
    assert "forebay doctor" in answer.errors


@pytest.mark.parametrize(
    ("script", "how"),
    [("kill -9 $$", "137 (SIGKILL) before"), ("exit 9", "9 before"), ("exit 200", "200 before")],
)
def test_a_command_that_ends_before_it_closes_a_file_says_how(
    forebay: Forebay, script: str, how: str
) -> None:
    answer = forebay("run", "--", "sh", "-c", script)
    assert f"ended with exit status {how} it closed an MPI file" in answer.errors
    assert "possible reasons" not in answer.errors


def test_the_signals_number_alone_is_told_for_mpichs_launcher() -> None:
    assert describe(9, Dialect.HYDRA).startswith("exit status 9 (or SIGKILL")
    assert describe(1, Dialect.HYDRA) == "exit status 1"
    assert describe(9, Dialect.OPENMPI) == "exit status 9"


def test_a_command_that_fails_after_a_file_says_what_is_missing(
    forebay: Forebay, program: list[str]
) -> None:
    script = f"{shlex.join(program)} o; kill -SEGV $$"
    answer = forebay("run", "--", "sh", "-c", script)
    assert "/o  2 ranks" in answer.errors
    assert "exit status 139 (SIGSEGV). Files that were open then are missing" in answer.errors


def test_a_full_standard_error_keeps_the_commands_status(
    environ: dict[str, str], tmp_path: Path
) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "forebay", "run", "--", "sh", "-c", "exit 7"],
            cwd=tmp_path, env=environ, stderr=full, check=False, timeout=TIMEOUT_S,
        )  # fmt: skip
    assert done.returncode == 7


def test_a_full_standard_output_is_told_in_words(environ: dict[str, str], tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "forebay", "testbed", "status"],
            cwd=tmp_path, env=environ, stdout=full, stderr=subprocess.PIPE, text=True,
            check=False, timeout=TIMEOUT_S,
        )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == (
        "forebay: No space left on device\n"
        "Free some space (or ask for your quota), or name another place.\n"
    )


def test_a_working_directory_that_is_gone_is_told(environ: dict[str, str], tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    line = f"rmdir '{gone}'; exec '{sys.executable}' -m forebay doctor"
    done = subprocess.run(
        ["sh", "-c", line], cwd=gone, env=environ, capture_output=True, text=True, check=False,
        timeout=TIMEOUT_S,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == ("forebay: the working directory is gone\nGo to one that is there.\n")


def test_a_standard_output_that_is_closed_is_no_matter(
    environ: dict[str, str], tmp_path: Path
) -> None:
    line = f"exec '{sys.executable}' -m forebay testbed status >&-"
    done = subprocess.run(
        ["sh", "-c", line], cwd=tmp_path, env=environ, stderr=subprocess.PIPE, text=True,
        check=False, timeout=TIMEOUT_S,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_no_room_for_records_is_named() -> None:
    """On a file system that cannot hold anything, as /proc is for disk_usage."""
    assert shutil.disk_usage("/proc").free == 0
    found = Records([], [])
    lines = remarks(["true"], Dialect.DIRECT, 0, found, Path("/proc"))
    assert lines[0] == "forebay: no record of a file was left: /proc has 0 B free"


def test_a_static_program_is_named_as_the_reason(forebay: Forebay, tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    (tmp_path / "a.c").write_text("int main(void) { return 0; }\n")
    built = subprocess.run([compiler, "-static", "-o", "a", "a.c"], cwd=tmp_path, check=False)
    if built.returncode != 0:
        pytest.skip("no static C library")
    assert "linked statically" in forebay("run", "--", "./a").errors


def test_a_torn_record_is_reported(forebay: Forebay, program: list[str]) -> None:
    assert "checksum" in forebay("run", "--", *program, "out.dat", "--torn").errors


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["run", "--", "no-such-program"], "not an executable"),
        (["run", "--hint", "banana", "--", "true"], "key=value"),
        (["run", "--mpi", "banana", "--", "true"], "auto, mpich or openmpi"),
        (["run", "--json", "no/such/place", "--", "true"], "mkdir -p no/such"),
        (["run", "--json", ".", "--", "true"], "is a directory"),
        (["compare", "--report", "/dev/null/report", "--", "true"], "no directory"),
        (["run", "--", "mpiexec.of-no-mpi", "-n", "2", "true"], "forebay doctor"),
        (["run", "--", "[/red]"], "'[/red]' is not an executable"),
    ],
)
def test_wrong_usage_says_what_to_write(forebay: Forebay, words: list[str], expected: str) -> None:
    answer = forebay(*words)
    assert answer.code in (2, 127)
    assert expected in answer.errors


def test_a_result_that_cannot_be_written_keeps_the_commands_status(
    forebay: Forebay, tmp_path: Path
) -> None:
    (tmp_path / "full.json").symlink_to("/dev/full")
    for script, code in (("exit 7", 7), ("exit 0", 1)):
        answer = forebay("run", "--json", "full.json", "--", "sh", "-c", script)
        assert answer.code == code
        assert "no result was written" in answer.errors
        assert "No space left" in answer.errors


def test_a_missing_library_says_how_to_get_it(forebay: Forebay, tmp_path: Path) -> None:
    answer = forebay("run", "--", "true", FOREBAY_LIBRARY_DIR=str(tmp_path))
    if answer.code == 0:
        pytest.skip("the package is installed with its library")
    assert answer.code == 2
    assert "make build" in answer.errors


# Says "ready", names each signal it gets, and ends on SIGTERM with status 42. A signal may come in
# the middle of a print.
LISTENER = """
import os, signal, sys
def told(number, frame):
    os.write(1, signal.Signals(number).name.encode() + b"\\n")
    if number == signal.SIGTERM:
        sys.exit(42)
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
    signal.signal(number, told)
os.write(1, b"ready\\n")
while True:
    signal.pause()
"""


@pytest.mark.parametrize(("name", "number"), [("PIPE", 13), ("XFSZ", 25)])
def test_signals_that_python_ignores_end_the_command(
    forebay: Forebay, name: str, number: int
) -> None:
    answer = forebay("run", "-q", "--", "sh", "-c", f"kill -{name} $$; echo goes on")
    assert (answer.code, answer.output) == (128 + number, "")


def test_signals_are_forwarded_to_the_command(environ: dict[str, str], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "forebay", "run", "-q", "--", sys.executable, "-c", LISTENER]
    with subprocess.Popen(
        command, env=environ, cwd=tmp_path, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "ready\n"
        for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP, signal.SIGINT):
            running.send_signal(number)
            assert running.stdout.readline() == f"{number.name}\n"
        running.send_signal(signal.SIGTERM)
        assert running.stdout.readline() == "SIGTERM\n"
        assert running.wait(TIMEOUT_S) == 42


def test_ctrl_c_at_the_terminal_reaches_the_command_once(
    environ: dict[str, str], tmp_path: Path
) -> None:
    """The terminal interrupts the whole foreground group, so forwarding would double it. A SIGTERM
    sent to us alone comes after, and ends the listener: what it printed before is all it got."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        words = [sys.executable, "-m", "forebay", "run", "-q", "--", sys.executable, "-c", LISTENER]
        os.execvpe(words[0], words, environ)
    with os.fdopen(terminal, "rb", buffering=0) as screen:
        seen = b""
        while b"ready" not in seen:
            seen += screen.read(100)
        os.write(terminal, b"\x03")
        while b"SIGINT" not in seen:
            seen += screen.read(100)
        os.kill(pid, signal.SIGTERM)
        while True:
            try:
                more = screen.read(100)
            except OSError:  # a terminal without processes: EIO
                break
            if not more:
                break
            seen += more
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 42
    assert seen.count(b"SIGINT") == 1


CACHE_VERBS = [f"cache {verb}" for verb in ("ls", "verify", "recover", "flush", "drop", "watch")]


@pytest.mark.parametrize(
    "verb", ["run", "compare", "doctor", "testbed up", "testbed status", *CACHE_VERBS]
)
def test_help_shows_an_example(forebay: Forebay, verb: str) -> None:
    answer = forebay(*verb.split(), "--help")
    assert answer.code == 0
    assert f"forebay {verb}" in answer.output.split("Example")[1]


def test_nothing_has_threads_before_the_command_runs() -> None:
    """A signal that `forebay run` waits for could come to such a thread, and be lost there."""
    script = "import os, forebay.cli, forebay.run; print(len(os.listdir('/proc/self/task')))"
    done = subprocess.run([sys.executable, "-c", script], env={"PYTHONPATH": str(TOOLKIT)},
                          capture_output=True, text=True, check=True)  # fmt: skip
    assert done.stdout == "1\n"

"""What the tests of the command share: a stand-in for the library that is preloaded, and a way to
run the command as a user does, in a directory of its own."""

import ctypes
import ctypes.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from made_logs import Left, native_directory, none_left

from forebay import cli

if TYPE_CHECKING:
    from playwright.sync_api import Browser

TOOLKIT = Path(__file__).resolve().parent.parent
FAKE_PROGRAM = Path(__file__).with_name("fake_program.py")
TIMEOUT_S = 240  # ends what hangs; a busy machine may be slow

# What a shell runs in the background ignores interrupts, and so would all that is started here.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@dataclass(frozen=True)
class Answer:
    """How one `forebay` command line ended."""

    code: int
    output: str
    errors: str


# Not handed on to the command. Unbuffered output fails where users' output does not.
OF_THE_USER = ("FOREBAY_", "LD_PRELOAD", "PYTHONUNBUFFERED")


@pytest.fixture(scope="session")
def fake_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a harmless shared object in place of what is preloaded, beside one with what
    tells mistakes in intent files, if that was built."""
    name = ctypes.util.find_library("m")
    assert name is not None
    ctypes.CDLL(name)
    maps = Path("/proc/self/maps").read_text()
    match = re.search(r"(/\S*/libm[.-]\S*)", maps)
    assert match is not None
    directory = tmp_path_factory.mktemp("native") / "lib"
    directory.mkdir()
    built = native_directory()
    if built is not None:
        tools = directory.with_name("bin")
        tools.mkdir()
        (tools / "forebay-intent").symlink_to(built / "forebay-intent")
    for library in ("libforebay.so", "libforebay-posix.so"):
        shutil.copy(match.group(1), directory / library)
    return directory


def clean_environ(library: Path, runtime: Path) -> dict[str, str]:
    """The environment of the command: our source tree, `library`, nothing of the user's."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(OF_THE_USER)}
    runtime.mkdir()
    return {
        **kept,
        "PYTHONPATH": str(TOOLKIT),
        "FOREBAY_LIBRARY_DIR": str(library),
        "XDG_RUNTIME_DIR": str(runtime),
    }


@pytest.fixture
def environ(fake_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """That of most tests, with the fake library, in an empty directory."""
    monkeypatch.chdir(tmp_path)
    return clean_environ(fake_library, tmp_path / "runtime")


Forebay = Callable[..., Answer]


def forebay_in(directory: Path, environ: dict[str, str], timeout_s: float = TIMEOUT_S) -> Forebay:
    """What runs `forebay WORDS...` in `directory` as a user does."""

    def run(*words: str | Path, **variables: str) -> Answer:
        done = subprocess.run(
            [sys.executable, "-m", "forebay", *map(str, words)],
            cwd=directory,
            env={**environ, **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    return run


# They give the terminal to a command and wait for its signals with all threads of a process.
OF_A_PROCESS = ("run", "trace")


@pytest.fixture
def forebay_process(environ: dict[str, str], tmp_path: Path) -> Forebay:
    """Runs `forebay WORDS...` in an empty directory, in a process of its own."""
    return forebay_in(tmp_path, environ)


@pytest.fixture
def forebay(
    environ: dict[str, str],
    forebay_process: Forebay,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Forebay:
    """Runs `forebay WORDS...` in an empty directory, in this process where that can be: what it
    loads is loaded once for all tests, not for each line."""

    def run(*words: str | Path, **variables: str) -> Answer:
        if words[0] in OF_A_PROCESS:
            return forebay_process(*words, **variables)
        capfd.readouterr()
        with monkeypatch.context() as patch:
            for name in set(os.environ) - set(environ):
                patch.delenv(name)
            for name, value in (environ | variables).items():
                patch.setenv(name, value)
            patch.setattr(sys, "argv", ["forebay", *map(str, words)])
            patch.setattr(tempfile, "tempdir", None)  # looked up once in a process, as a rule
            code = 0
            try:
                cli.main()
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else int(end.code is not None)
        captured = capfd.readouterr()
        return Answer(code, captured.out, captured.err)

    return run


@pytest.fixture
def left(environ: dict[str, str], tmp_path: Path) -> Left:
    """No log yet; in the environment of made_logs.environ_with_tool."""
    return none_left(environ, tmp_path)


@pytest.fixture
def program() -> list[str]:
    """The stand-in for an MPI program, without its arguments."""
    return [sys.executable, str(FAKE_PROGRAM)]


def result_of(answer: Answer) -> dict[str, Any]:
    """What the command printed as JSON."""
    content = json.loads(answer.output)
    assert isinstance(content, dict)
    return content


def read_json(path: Path) -> dict[str, Any]:
    content = json.loads(path.read_text())
    assert isinstance(content, dict)
    return content


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    """Chromium, as people read pages in it."""
    sync_api = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed (make venv)"
    )
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("there is no Chromium (packages of packaging/apt.txt: make deps)")
    with sync_api.sync_playwright() as play:
        started = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield started
        started.close()


class Launchers:
    """The real launchers of this machine."""

    hydra = shutil.which("mpiexec.mpich") or shutil.which("mpiexec.hydra")
    openmpi = shutil.which("mpiexec.openmpi")


def allowing_root() -> dict[str, str]:
    """Open MPI refuses to start as root unless told twice; CI containers run as root."""
    return {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

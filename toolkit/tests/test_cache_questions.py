"""Goal: what `forebay cache` asks on a terminal is answered as a person answers, and nothing is
lost or written but by the answer that says so.

Method: the real command on a pseudo-terminal, which is typed at once it has asked.
"""

import fcntl
import os
import pty
import re
import select
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import pytest
from conftest import TIMEOUT_S, Forebay
from made_logs import BLOCK, Left, environ_with_tool

END_OF_INPUT = "\x04"  # Ctrl-D
INTERRUPT = "\x03"  # Ctrl-C

WHAT_TO_DO = "or stop? (drop, replay, stop) [stop]: "
WHETHER = "Lose them? [y/N]: "


class Terminal:
    """One command line that has a terminal for itself."""

    def __init__(self, words: list[str], environ: dict[str, str], kind: str = "dumb") -> None:
        self._ours, theirs = pty.openpty()
        self._said = ""
        self._command = subprocess.Popen(
            words,
            env=environ | {"TERM": kind, "COLUMNS": "200"},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            # Signals of its keys go to who has it as the controlling terminal.
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(theirs)

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _where: TracebackType | None,
    ) -> None:
        if self._ours >= 0:
            self.hang_up()
        self._command.kill()
        self._command.wait()

    def _more(self, again: str = "") -> bool:
        """False once the command has closed the terminal. `again` is typed as long as nothing
        comes."""
        deadline = time.monotonic() + TIMEOUT_S
        while not select.select([self._ours], [], [], 1)[0]:
            assert time.monotonic() < deadline, f"nothing comes after: {self._said}"
            os.write(self._ours, again.encode())
        try:
            text = os.read(self._ours, 4096)
        except OSError:  # Linux's way to say that nobody has it open any more
            return False
        self._said += text.decode()
        return bool(text)

    def answer(self, question: str, keys: str) -> None:
        """Types once the question stands there, which it has to do anew for each answer."""
        while question not in self._said:
            assert self._more(), f"it does not ask: {self._said}"
        self._said = self._said.partition(question)[2]
        os.write(self._ours, keys.encode())

    def hang_up(self) -> None:
        os.close(self._ours)
        self._ours = -1

    def end(self, again: str = "") -> tuple[int, str]:
        """Its exit status, and what it said since the last answer."""
        while self._ours >= 0 and self._more(again):
            pass
        return self._command.wait(TIMEOUT_S), self._said


@pytest.fixture
def environ(environ: dict[str, str], tmp_path: Path) -> dict[str, str]:
    return environ_with_tool(environ, tmp_path)


@pytest.fixture
def recovering(left: Left, environ: dict[str, str]) -> Iterator[Terminal]:
    """`recover` of a log whose program died in the middle of an access of four blocks."""
    left.leave("--committed-blocks", "6")
    words = [sys.executable, "-m", "forebay", "cache", "recover", str(left.file)]
    with Terminal(words, environ) as terminal:
        yield terminal


@pytest.fixture
def dropping(left: Left, environ: dict[str, str]) -> Iterator[Terminal]:
    """`drop` of a log whose program died after it had finished all accesses."""
    left.leave("--committed-blocks", "10")
    words = [sys.executable, "-m", "forebay", "cache", "drop", str(left.file)]
    with Terminal(words, environ) as terminal:
        yield terminal


def again_if_lost(keys: str) -> str:
    """An interrupt just before Python waits for a line is noticed with the next key."""
    return keys if keys == INTERRUPT else ""


def expect_nothing_changed(forebay: Forebay, left: Left, blocks: int) -> None:
    """And what is there can still be recovered."""
    assert left.file.read_bytes() == b""
    assert left.logs() == ["log-0"]
    assert left.notices.exists()
    assert forebay("cache", "recover", "--incomplete", "drop", left.file).code == 0
    assert left.file.read_bytes() == left.data[: blocks * BLOCK]


@pytest.mark.parametrize(("choice", "blocks"), [("drop", 6), ("replay", 10)])
def test_an_unfinished_access_is_dealt_with_as_answered(
    recovering: Terminal, left: Left, choice: str, blocks: int
) -> None:
    recovering.answer(WHAT_TO_DO, choice + "\n")
    code, said = recovering.end()
    assert code == 0, said
    assert left.file.read_bytes() == left.data[: blocks * BLOCK]
    assert left.logs() == []
    assert not left.notices.exists()


@pytest.mark.parametrize("keys", ["stop\n", "\n", END_OF_INPUT, INTERRUPT])
def test_nothing_is_recovered_without_an_answer(
    recovering: Terminal, forebay: Forebay, left: Left, keys: str
) -> None:
    recovering.answer(WHAT_TO_DO, keys)
    code, said = recovering.end(again_if_lost(keys))
    assert code != 0, said
    assert "Traceback" not in said
    expect_nothing_changed(forebay, left, 6)


@pytest.mark.parametrize("nonsense", ["yes", "d", "drop replay", "\x1b[A"])
def test_an_answer_that_is_none_is_asked_for_again(
    recovering: Terminal, forebay: Forebay, left: Left, nonsense: str
) -> None:
    recovering.answer(WHAT_TO_DO, nonsense + "\n")
    recovering.answer(WHAT_TO_DO, "stop\n")
    code, said = recovering.end()
    assert code == 1, said
    expect_nothing_changed(forebay, left, 6)


def test_a_terminal_that_goes_away_answers_nothing(
    recovering: Terminal, forebay: Forebay, left: Left
) -> None:
    recovering.answer(WHAT_TO_DO, "dr")
    recovering.hang_up()
    code, _ = recovering.end()
    assert code != 0
    expect_nothing_changed(forebay, left, 6)


def test_who_has_said_it_before_is_not_asked(left: Left, environ: dict[str, str]) -> None:
    left.leave("--committed-blocks", "6")
    words = [sys.executable, "-m", "forebay", "cache", "recover", "--incomplete", "replay"]
    with Terminal([*words, str(left.file)], environ) as terminal:
        code, said = terminal.end()
    assert code == 0
    assert WHAT_TO_DO not in said
    assert left.file.read_bytes() == left.data


@pytest.mark.parametrize(
    ("verb", "phase", "done"), [("verify", "check", "left: "), ("recover", "replay", " written ")]
)
def test_a_terminal_shows_how_far_it_is(
    left: Left, environ: dict[str, str], verb: str, phase: str, done: str
) -> None:
    left.leave("--committed-blocks", "10")
    words = [sys.executable, "-m", "forebay", "cache", verb, str(left.file)]
    with Terminal(words, environ, "xterm-256color") as terminal:
        code, said = terminal.end()
    assert code == 0, said
    assert phase in said
    assert re.search(r"\d/\d+\.\d [KM]iB", said), said
    assert done in said


@pytest.mark.parametrize("yes", ["y", "yes"])
def test_logs_are_dropped_when_that_is_answered(dropping: Terminal, left: Left, yes: str) -> None:
    dropping.answer(WHETHER, yes + "\n")
    code, said = dropping.end()
    assert code == 0, said
    assert left.logs() == []
    assert not left.notices.exists()
    assert left.file.read_bytes() == b""


@pytest.mark.parametrize("keys", ["n\n", "no\n", "\n", END_OF_INPUT, INTERRUPT])
def test_no_log_is_dropped_without_a_yes(
    dropping: Terminal, forebay: Forebay, left: Left, keys: str
) -> None:
    dropping.answer(WHETHER, keys)
    code, said = dropping.end(again_if_lost(keys))
    assert code != 0, said
    assert "Traceback" not in said
    expect_nothing_changed(forebay, left, 10)


@pytest.mark.parametrize("nonsense", ["maybe", "\x1b[A"])
def test_a_yes_that_is_none_is_asked_for_again(
    dropping: Terminal, forebay: Forebay, left: Left, nonsense: str
) -> None:
    dropping.answer(WHETHER, nonsense + "\n")
    dropping.answer(WHETHER, "n\n")
    code, said = dropping.end()
    assert code == 1, said
    expect_nothing_changed(forebay, left, 10)


def test_a_terminal_that_goes_away_says_no_yes(
    dropping: Terminal, forebay: Forebay, left: Left
) -> None:
    dropping.answer(WHETHER, "y")
    dropping.hang_up()
    code, _ = dropping.end()
    assert code != 0
    expect_nothing_changed(forebay, left, 10)

"""Goal: a recovery that is killed, wherever that is, loses nothing: the next one finishes it, and
the one after that has nothing to do.

Method: the real command, whose tool ends itself at its nth call that changes a file or a name, for
every n. What programs had left is put back before each.
"""

import dataclasses
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import Answer, Forebay
from made_logs import (
    BLOCK,
    SUPERBLOCK,
    USER_DIRECTORY,
    Left,
    environ_with_tool,
    leave_newer,
    leave_nodes,
    spoil,
)

MOST_CALLS = 300  # more are no test of a small recovery any more


@pytest.fixture
def environ(environ: dict[str, str], tmp_path: Path) -> dict[str, str]:
    return environ_with_tool(environ, tmp_path)


@dataclass(frozen=True)
class Scenario:
    """What programs left, as it was, and what the file holds once it is recovered."""

    left: Left
    expected: bytes
    options: tuple[str, ...]
    directories: list[Path]
    saved: Path

    def put_back(self) -> None:
        """The file stays the same: logs know it by its inode."""
        for path, copy in (
            (self.left.local, self.saved / "local"),
            (self.left.notices, self.saved / "notices"),
        ):
            shutil.rmtree(path, ignore_errors=True)
            shutil.copytree(copy, path)
        self.left.file.write_bytes(b"")

    def logs_left(self) -> list[Path]:
        return [log for local in self.directories for log in (local / USER_DIRECTORY).iterdir()]


def scenario(
    left: Left, expected: bytes, *options: str, directories: list[Path] | None = None
) -> Scenario:
    saved = left.local.with_name("saved")
    shutil.copytree(left.local, saved / "local")
    shutil.copytree(left.notices, saved / "notices")
    return Scenario(left, expected, options, directories or [left.local], saved)


def two_logs(left: Left) -> Scenario:
    """The second rank wrote over all of the first one's: neither is to be replayed alone."""
    newer = random.Random(2).randbytes(len(left.data))
    left.leave("--committed-blocks", "10", "--rank", "0", "--log", "log-0")
    second = dataclasses.replace(left, data=newer)
    second.leave("--committed-blocks", "10", "--rank", "1", "--log", "log-1")
    return scenario(left, newer)


def an_unfinished_access(left: Left) -> Scenario:
    left.leave("--committed-blocks", "6")
    return scenario(left, left.data[: 6 * BLOCK], "--incomplete", "drop")


def two_programs(left: Left) -> Scenario:
    left.leave("--committed-blocks", "10")
    return scenario(left, leave_newer(left), "--overtaken", "replay")


def lost_nodes(left: Left) -> Scenario:
    nodes = leave_nodes(left)
    nodes.lose("member-0", "parity-1")
    return scenario(left, left.data, directories=nodes.left())


def a_damaged_log(left: Left) -> Scenario:
    nodes = leave_nodes(left)
    spoil(nodes.local("member-1") / USER_DIRECTORY / "log-1", SUPERBLOCK + BLOCK // 2, b"damage")
    return scenario(left, left.data, directories=nodes.left())


def killed_everywhere(forebay: Forebay, case: Scenario) -> Iterator[tuple[str, Answer]]:
    """Where each recovery was killed, and what it said. Ends where one was not."""
    preload = case.left.native / "forebay-killed-at-call.so"
    for number in range(MOST_CALLS):
        case.put_back()
        answer = forebay(
            "cache", "recover", *case.options, *case.directories,
            LD_PRELOAD=str(preload), FOREBAY_TEST_KILLED_AT=str(number),
        )  # fmt: skip
        if answer.code == 0:
            assert number > 10
            return
        yield f"killed at call {number}", answer
    pytest.fail("the recovery never ends")


@pytest.mark.parametrize(
    "make",
    [two_logs, an_unfinished_access, two_programs, lost_nodes, a_damaged_log],
)
def test_a_recovery_that_is_killed_is_finished_by_the_next(
    forebay: Forebay, left: Left, make: Callable[[Left], Scenario]
) -> None:
    case = make(left)
    for where, killed in killed_everywhere(forebay, case):
        assert (killed.code, killed.output) == (1, ""), where
        assert "ended with status -9" in killed.errors, where
        assert "Nothing is lost: run the command again." in killed.errors, where
        again = forebay("cache", "recover", *case.options, *case.directories)
        assert again.code == 0, (where, again)
        assert left.file.read_bytes() == case.expected, where
        assert case.logs_left() == [], where
        # Where the last log was gone already, only the file leads to its notices.
        by_file = forebay("cache", "recover", left.file)
        assert by_file.code == 0, (where, by_file)
        assert not left.notices.exists(), where
        third = forebay("cache", "recover", left.file, *case.directories)
        assert (third.code, third.output) == (0, "there is nothing to recover\n"), where
        assert left.file.read_bytes() == case.expected, where


def test_a_killed_recovery_keeps_what_rebuilds_the_lost_log(forebay: Forebay, left: Left) -> None:
    nodes = leave_nodes(left, "--host", "node17")
    nodes.lose("member-1")
    case = scenario(left, left.data, "--partial", directories=nodes.left())
    for where, killed in killed_everywhere(forebay, case):
        assert killed.code == 1, where
        again = forebay("cache", "recover", *case.options, *case.directories)
        assert again.code == 0, (where, again)
        last = forebay("cache", "recover", "--lost", "node17", *case.directories)
        assert last.code == 0, (where, last)
        assert left.file.read_bytes() == case.expected, where
        assert case.logs_left() == [], where
        assert not left.notices.exists(), where


def test_a_killed_recovery_into_another_file_goes_on_further(
    forebay: Forebay, left: Left, tmp_path: Path
) -> None:
    new = tmp_path / "new"
    left.leave("--committed-blocks", "10")
    case = scenario(left, left.data, "--into", str(new), str(left.file))
    refusals = 0
    for where, killed in killed_everywhere(forebay, case):
        assert killed.code == 1, where
        again = forebay("cache", "recover", *case.options, *case.directories)
        if again.code != 0:
            refusals += 1
            assert "say --further" in again.output, (where, again)
            again = forebay("cache", "recover", "--further", *case.options, *case.directories)
            assert again.code == 0, (where, again)
        assert new.read_bytes() == case.expected, where
        assert case.logs_left() == [], where
        assert not left.notices.exists(), where
        new.unlink()
    assert refusals > 0

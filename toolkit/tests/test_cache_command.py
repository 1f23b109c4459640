"""`forebay cache`: logs that a killed program left are listed, judged, brought to the file or
dropped, and nothing is lost without being asked for."""

import dataclasses
import fcntl
import json
import random
import signal
import struct
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from conftest import Forebay, result_of
from made_logs import (
    BLOCK,
    USER_DIRECTORY,
    Left,
    environ_with_tool,
    leave_newer,
    mark_overtaken,
)


@pytest.fixture
def environ(environ: dict[str, str], tmp_path: Path) -> dict[str, str]:
    return environ_with_tool(environ, tmp_path)


@pytest.fixture
def finished(left: Left) -> Left:
    """Its program died after it had finished all accesses."""
    left.leave("--committed-blocks", "10")
    return left


@pytest.fixture
def unfinished(left: Left) -> Left:
    """Its program died in the middle of an access of four blocks."""
    left.leave("--committed-blocks", "6")
    return left


@pytest.fixture
def held(left: Left) -> Iterator[Left]:
    """Its program still runs."""
    source = left.local / "data"
    source.write_bytes(left.data)
    with subprocess.Popen(
        [str(left.native / "forebay-leave-log"), "--local", str(left.local), "--file",
         str(left.file), "--data", str(source), "--block", str(BLOCK),
         "--committed-blocks", "10", "--hold"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as program:  # fmt: skip
        assert program.stdout is not None
        assert program.stdout.readline() == b"holding\n"
        yield left


def segment_of(left: Left) -> Path:
    (segment,) = (left.local / USER_DIRECTORY / "log-0").glob("segment-*")
    return segment


def damage(left: Left) -> None:
    """Flips a bit of the first payload."""
    segment = segment_of(left)
    content = bytearray(segment.read_bytes())
    content[content.index(left.data[:64])] ^= 1
    segment.write_bytes(content)


def test_no_logs_are_said_to_be_none(forebay: Forebay, left: Left) -> None:
    assert "there are no write-behind logs" in forebay("cache", "ls", left.local).output
    assert result_of(forebay("cache", "ls", "--json", left.local)) == {
        "logs": [], "missing": [], "problems": [],
    }  # fmt: skip


def test_a_log_is_listed_with_what_is_in_no_file(forebay: Forebay, finished: Left) -> None:
    answer = forebay("cache", "ls", finished.local)
    assert answer.code == 0
    assert "left" in answer.output
    assert "97.7 KiB" in answer.output
    assert str(finished.file) in answer.output
    (log,) = result_of(forebay("cache", "ls", "--json", finished.local))["logs"]
    assert log["state"] == "left"
    assert log["file"] == str(finished.file)
    assert log["job"] == "4711"
    assert log["complete_bytes"] == len(finished.data)


def test_the_file_itself_leads_to_its_logs(forebay: Forebay, finished: Left) -> None:
    (log,) = result_of(forebay("cache", "ls", "--json", finished.file))["logs"]
    assert log["name"] == "log-0"
    other = finished.file.with_name("other")
    assert result_of(forebay("cache", "ls", "--json", other))["logs"] == []


def test_a_log_is_found_once_however_its_directory_is_named(
    forebay: Forebay, finished: Left, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(finished.local)
    found = result_of(forebay("cache", "ls", "--json", "link", "local", finished.file))["logs"]
    assert [log["name"] for log in found] == ["log-0"]


def test_recover_brings_every_byte_to_the_file(forebay: Forebay, finished: Left) -> None:
    answer = forebay("cache", "recover", finished.file)
    assert answer.code == 0, answer.errors
    assert "recovered" in answer.output
    assert finished.file.read_bytes() == finished.data
    assert finished.logs() == []
    assert not finished.notices.exists()
    again = forebay("cache", "recover", finished.local)
    assert again.code == 0
    assert "nothing to recover" in again.output


def test_flush_is_recover(forebay: Forebay, finished: Left) -> None:
    result = result_of(forebay("cache", "flush", "--json", finished.local))
    (entry,) = result["files"]
    assert entry["state"] == "recovered"
    assert entry["written_bytes"] == len(finished.data)
    assert finished.file.read_bytes() == finished.data


def test_an_access_that_was_not_finished_is_asked_about(forebay: Forebay, unfinished: Left) -> None:
    answer = forebay("cache", "recover", unfinished.local)
    assert answer.code == 1
    assert "--incomplete drop" in answer.errors
    assert str(unfinished.file) in answer.errors
    assert unfinished.file.read_bytes() == b""
    assert unfinished.logs() == ["log-0"]


@pytest.mark.parametrize(
    ("choice", "blocks", "done"), [("drop", 6, "dropped"), ("replay", 10, "replayed")]
)
def test_it_is_dropped_or_replayed_as_told_and_reported(
    forebay: Forebay, unfinished: Left, choice: str, blocks: int, done: str
) -> None:
    answer = forebay("cache", "recover", "--incomplete", choice, unfinished.local)
    assert answer.code == 0, answer.errors
    assert unfinished.file.read_bytes() == unfinished.data[: blocks * BLOCK]
    assert f"39.1 KiB of an access that was not finished were {done}" in answer.output
    for other in {"dropped", "replayed"} - {done}:
        assert f"were {other}" not in answer.output


@pytest.mark.parametrize(
    ("choice", "field"), [("drop", "dropped_bytes"), ("replay", "replayed_incomplete_bytes")]
)
def test_what_became_of_it_is_in_figures(
    forebay: Forebay, unfinished: Left, choice: str, field: str
) -> None:
    answer = forebay("cache", "recover", "--json", "--incomplete", choice, unfinished.local)
    (entry,) = result_of(answer)["files"]
    for name in ("dropped_bytes", "replayed_incomplete_bytes"):
        assert entry[name] == (4 * BLOCK if name == field else 0)


def test_several_logs_of_one_file_are_recovered_together(forebay: Forebay, left: Left) -> None:
    left.leave("--committed-blocks", "10", "--rank", "0", "--log", "log-0")
    left.leave("--committed-blocks", "10", "--rank", "1", "--log", "log-1")
    (entry,) = result_of(forebay("cache", "recover", "--json", left.local))["files"]
    assert entry["logs"] == 2
    assert left.file.read_bytes() == left.data


def test_two_jobs_and_two_files_of_one_name_are_kept_apart(
    forebay: Forebay, left: Left, tmp_path: Path
) -> None:
    """Both jobs' logs are in one directory of the node; one file is named, then recovered."""
    both = []
    for number, (directory, job) in enumerate((("a", "17"), ("b", "18"))):
        (tmp_path / directory).mkdir()
        data = random.Random(10 + number).randbytes(10 * BLOCK)
        one = dataclasses.replace(left, file=tmp_path / directory / "x", data=data)
        one.leave("--committed-blocks", "10", "--job", job, "--log", f"log-{number}")
        both.append(one)
    first, second = both
    found = result_of(forebay("cache", "ls", "--json", left.local))["logs"]
    assert sorted((log["job"], log["file"]) for log in found) == [
        ("17", str(first.file)),
        ("18", str(second.file)),
    ]

    (entry,) = result_of(forebay("cache", "recover", "--json", first.file))["files"]
    assert (entry["file"], entry["logs"]) == (str(first.file), 1)
    assert first.file.read_bytes() == first.data
    assert second.file.read_bytes() == b""
    assert not first.notices.exists()
    assert second.notices.exists()
    (log,) = result_of(forebay("cache", "ls", "--json", left.local))["logs"]
    assert (log["job"], log["file"], log["state"]) == ("18", str(second.file), "left")
    assert log["complete_bytes"] == len(second.data)

    assert forebay("cache", "recover", left.local).code == 0
    assert second.file.read_bytes() == second.data
    assert first.file.read_bytes() == first.data
    assert left.logs() == []


def test_logs_of_a_file_in_another_directory_are_found(
    forebay: Forebay, left: Left, tmp_path: Path
) -> None:
    left.leave("--committed-blocks", "10", "--rank", "0", "--log", "log-0")
    (tmp_path / "second").mkdir(mode=0o700)
    second = Left(left.native, tmp_path / "second", left.file, left.data)
    second.leave("--committed-blocks", "10", "--rank", "1", "--log", "log-1")
    (entry,) = result_of(forebay("cache", "recover", "--json", left.local))["files"]
    assert entry["logs"] == 2
    assert second.logs() == []


def test_a_file_with_a_log_on_another_node_is_left(forebay: Forebay, left: Left) -> None:
    left.leave("--committed-blocks", "10", "--rank", "0", "--log", "log-0")
    left.leave("--committed-blocks", "10", "--rank", "1", "--log", "log-1")
    away = left.local / USER_DIRECTORY / "log-1"
    away.rename(left.local / "elsewhere")
    answer = forebay("cache", "recover", left.local)
    assert answer.code == 1
    assert "--partial" in answer.output
    assert left.file.read_bytes() == b""
    assert "lost" in forebay("cache", "ls", left.local).output
    assert forebay("cache", "verify", left.local).code == 1
    assert forebay("cache", "recover", "--partial", left.local).code == 0
    assert left.file.read_bytes() == left.data


def test_damage_is_named_and_nothing_is_touched(forebay: Forebay, finished: Left) -> None:
    damage(finished)
    verified = forebay("cache", "verify", finished.local)
    assert verified.code == 1
    assert "10000 bytes at 0 of the file are damaged" in verified.output
    answer = forebay("cache", "recover", finished.local)
    assert answer.code == 1
    assert "damaged" in answer.output
    assert finished.file.read_bytes() == b""
    skipped = forebay("cache", "recover", "--skip-damage", finished.local)
    assert skipped.code == 0
    assert "skipped" in skipped.output
    assert finished.file.read_bytes() == bytes(BLOCK) + finished.data[BLOCK:]


def test_a_sound_log_is_verified(forebay: Forebay, finished: Left) -> None:
    assert forebay("cache", "verify", finished.local).code == 0


def test_what_was_verified_so_far_is_told_of_all_that_is_stored(
    forebay: Forebay, finished: Left
) -> None:
    (log,) = result_of(forebay("cache", "ls", "--json", finished.local))["logs"]
    tool = [finished.native / "forebay-cache", "verify", "--directory", finished.local]
    said = subprocess.run(tool, check=True, capture_output=True, text=True).stdout
    *steps, result = map(json.loads, said.splitlines())
    assert result["event"] == "result"
    assert steps
    for step in steps:
        assert (step["phase"], step["all_bytes"]) == ("check", log["stored_bytes"])
        assert 0 < step["done_bytes"] <= log["stored_bytes"]


def test_a_log_of_another_version_is_refused_by_its_number(
    forebay: Forebay, finished: Left
) -> None:
    segment = segment_of(finished)
    content = bytearray(segment.read_bytes())
    content[8] = 3
    segment.write_bytes(content)
    answer = forebay("cache", "recover", finished.local)
    assert answer.code == 1
    assert "version 3" in answer.output
    assert finished.logs() == ["log-0"]


def test_what_a_running_program_writes_is_left_to_it(forebay: Forebay, held: Left) -> None:
    (log,) = result_of(forebay("cache", "ls", "--json", held.local))["logs"]
    assert log["state"] == "writing"
    assert log["progress"]["dirty_bytes"] == len(held.data)
    assert forebay("cache", "recover", held.file).code == 1
    answer = forebay("cache", "recover", "--json", held.local)
    (entry,) = result_of(answer)["files"]
    assert (answer.code, entry["state"]) == (0, "in use"), "as an epilog meets another job's"
    assert forebay("cache", "drop", "--yes", held.file).code == 1
    assert held.file.read_bytes() == b""
    assert held.logs() == ["log-0"]


def test_storage_that_a_program_keeps_for_its_next_logs_holds_nothing(
    forebay: Forebay, left: Left
) -> None:
    spare = left.local / USER_DIRECTORY / "spare-1-0123456789abcdef"
    spare.parent.mkdir(mode=0o700)
    spare.mkdir(mode=0o700)
    for name in ("blank-0", "lock"):
        (spare / name).touch(mode=0o600)
    with (spare / "lock").open("r+b") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        (log,) = result_of(forebay("cache", "ls", "--json", left.local))["logs"]
        assert (log["state"], log["file"]) == ("spare", None)
        refused = forebay("cache", "drop", "--yes", left.local)
        assert (refused.code, "writes" in refused.errors) == (1, False)
        assert left.logs() == [spare.name]
    (log,) = result_of(forebay("cache", "ls", "--json", left.local))["logs"]
    assert log["state"] == "empty", "its program was killed"
    assert forebay("cache", "drop", "--yes", left.local).code == 0
    assert left.logs() == []


def test_watch_shows_running_programs_and_ends_with_them(
    forebay: Forebay, held: Left, tmp_path: Path
) -> None:
    answer = forebay("cache", "watch", "--json", "--count", "2", "--interval", "0.1", held.local)
    lines = [json.loads(line) for line in answer.output.splitlines()]
    assert [look["logs"][0]["dirty_bytes"] for look in lines] == [len(held.data)] * 2
    shown = forebay("cache", "watch", "--count", "1", held.local)
    assert "97.7 KiB" in shown.output
    (tmp_path / "none").mkdir()
    assert "no running program" in forebay("cache", "watch", tmp_path / "none").output


def test_a_file_that_is_gone_is_recovered_into_another(
    forebay: Forebay, finished: Left, tmp_path: Path
) -> None:
    finished.file.unlink()
    answer = forebay("cache", "recover", finished.local)
    assert answer.code == 1
    assert "--into" in answer.output
    answer = forebay("cache", "recover", "--into", tmp_path / "new", finished.file)
    assert answer.code == 0, answer.output + answer.errors
    assert (tmp_path / "new").read_bytes() == finished.data
    assert not finished.notices.exists()


def test_a_file_that_holds_something_is_recovered_into_only_further(
    forebay: Forebay, finished: Left, tmp_path: Path
) -> None:
    finished.file.unlink()
    other = tmp_path / "results"
    other.write_text("of another program")
    answer = forebay("cache", "recover", "--into", other, finished.file)
    assert answer.code == 1, answer.output
    assert "is there already, and holds 18 bytes" in answer.output + answer.errors
    assert "--further" in answer.output
    assert other.read_text() == "of another program"
    assert finished.logs() == ["log-0"]

    nothing = forebay("cache", "recover", "--into", "/dev/null", "--further", finished.file)
    assert nothing.code == 1
    assert finished.logs() == ["log-0"]

    # As an interrupted recovery leaves it.
    other.write_bytes(finished.data[:18])
    answer = forebay("cache", "recover", "--into", other, "--further", finished.file)
    assert answer.code == 0, answer.output + answer.errors
    assert other.read_bytes() == finished.data
    assert finished.logs() == []


def test_files_of_one_name_are_not_recovered_into_one_other(
    forebay: Forebay, finished: Left, tmp_path: Path
) -> None:
    finished.file.rename(tmp_path / "first")  # Its inode stays in use.
    finished.file.touch()
    second = dataclasses.replace(finished, data=finished.data[::-1])
    now = int(time.time())
    second.leave("--log", "log-1", "--committed-blocks", "10", "--made", str(now + 60))
    finished.file.unlink()
    answer = forebay("cache", "recover", "--json", "--into", tmp_path / "one", finished.file)
    assert answer.code == 1
    states = sorted(entry["state"] for entry in result_of(answer)["files"])
    assert states == ["another", "recovered"]
    assert (tmp_path / "one").read_bytes() == finished.data
    assert finished.logs() == ["log-1"]
    answer = forebay("cache", "recover", "--into", tmp_path / "two", finished.file)
    assert answer.code == 0, answer.output + answer.errors
    assert (tmp_path / "two").read_bytes() == second.data


def test_logs_of_a_directory_that_is_gone_are_recovered_into_another_file(
    forebay: Forebay, left: Left, tmp_path: Path
) -> None:
    """Several, of which none may be replayed again without the others."""
    (tmp_path / "run").mkdir()
    gone = dataclasses.replace(left, file=tmp_path / "run" / "out.dat")
    gone.file.touch()
    for log in ("log-0", "log-1"):
        gone.leave("--log", log, "--committed-blocks", "10")
    (tmp_path / "run").rename(tmp_path / "run.crashed")
    answer = forebay("cache", "recover", "--into", tmp_path / "new", gone.file)
    assert answer.code == 0, answer.output + answer.errors
    assert (tmp_path / "new").read_bytes() == left.data
    assert gone.logs() == []
    assert not (tmp_path / ".new.forebay-dirty").exists()
    moved = tmp_path / "run.crashed" / "out.dat"
    assert "lost" in forebay("cache", "ls", moved).output
    assert forebay("cache", "drop", "--yes", moved).code == 0
    assert not moved.with_name(".out.dat.forebay-dirty").exists()


def test_an_empty_file_is_recovered_into(forebay: Forebay, finished: Left, tmp_path: Path) -> None:
    finished.file.unlink()
    (tmp_path / "new").touch()
    answer = forebay("cache", "recover", "--into", tmp_path / "new", finished.file)
    assert answer.code == 0, answer.output + answer.errors
    assert (tmp_path / "new").read_bytes() == finished.data


def test_further_is_about_another_file(forebay: Forebay, finished: Left) -> None:
    answer = forebay("cache", "recover", "--further", finished.file)
    assert answer.code != 0
    assert "--into" in answer.errors


def test_a_file_that_was_replaced_is_not_written(forebay: Forebay, finished: Left) -> None:
    new = finished.file.with_name("new")
    new.write_text("newer")
    new.rename(finished.file)
    answer = forebay("cache", "recover", finished.local)
    assert answer.code == 1
    assert finished.file.read_text() == "newer"


def test_drop_wants_to_be_told_what_and_asks(forebay: Forebay, finished: Left) -> None:
    unsaid = forebay("cache", "drop")
    assert unsaid.code == 2
    assert "--all" in unsaid.errors
    asked = forebay("cache", "drop", finished.file)
    assert asked.code == 1
    assert "97.7 KiB that are in no file" in asked.errors
    assert finished.logs() == ["log-0"]


def test_drop_removes_logs_and_notices(forebay: Forebay, finished: Left) -> None:
    answer = forebay("cache", "drop", "--yes", finished.file)
    assert answer.code == 0, answer.errors
    assert finished.logs() == []
    assert not finished.notices.exists()
    assert finished.file.read_bytes() == b""


def test_logs_that_others_wrote_past_are_replayed_only_if_told_to(
    forebay: Forebay, finished: Left
) -> None:
    newer = leave_newer(finished)
    answer = forebay("cache", "recover", finished.file)
    assert answer.code == 1
    assert "--overtaken replay" in answer.output
    assert finished.file.read_bytes() == b""
    assert finished.logs() == ["log-0", "log-1"]

    answer = forebay("cache", "recover", "--json", "--overtaken", "replay", finished.file)
    assert answer.code == 0, answer.output
    (entry,) = result_of(answer)["files"]
    assert entry["logs"] == 2
    assert entry["written_bytes"] == 20 * BLOCK
    assert finished.file.read_bytes() == newer, "the newest wins"
    assert finished.logs() == []
    assert not finished.notices.exists()


def test_logs_that_others_wrote_past_can_be_given_up(forebay: Forebay, finished: Left) -> None:
    newer = leave_newer(finished)
    answer = forebay("cache", "recover", "--json", "--overtaken", "drop", finished.file)
    assert answer.code == 0, answer.output
    (entry,) = result_of(answer)["files"]
    assert entry["written_bytes"] == 10 * BLOCK
    assert finished.file.read_bytes() == newer
    assert finished.logs() == []
    assert not finished.notices.exists()


@contextmanager
def held_for_writing(file: Path) -> Iterator[None]:
    """Nobody gets it opened to write meanwhile, by a lease of the kernel's."""
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)  # It tells that somebody tries.
    with file.open("rb") as opened:
        try:
            fcntl.fcntl(opened, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        except OSError as error:
            pytest.skip(f"no leases here: {error}")
        try:
            yield
        finally:
            fcntl.fcntl(opened, fcntl.F_SETLEASE, fcntl.F_UNLCK)
            signal.signal(signal.SIGIO, before)


def lock_of(log: Path) -> int:
    """The kind of lock that somebody else has (docs/formats/write-behind-log.md)."""
    get_open_file_lock, kinds = 36, "hhqqi"  # F_OFD_GETLK, struct flock
    with (log / "lock").open("r+b") as opened:
        asked = struct.pack(kinds, fcntl.F_WRLCK, 0, 0, 0, 0)
        found = fcntl.fcntl(opened, get_open_file_lock, asked)
    return int(struct.unpack(kinds, found)[0])


def test_a_program_that_opens_the_file_to_write_ends_its_recovery(
    forebay: Forebay, finished: Left
) -> None:
    log = finished.local / USER_DIRECTORY / "log-0"
    with ThreadPoolExecutor(1) as other:
        with held_for_writing(finished.file):
            recovery = other.submit(forebay, "cache", "recover", finished.file)
            end = time.monotonic() + 60
            while lock_of(log) != fcntl.F_RDLCK and time.monotonic() < end:
                pass
            mark_overtaken(finished)
        answer = recovery.result()
    assert answer.code == 1
    assert "a program has opened the file to write meanwhile" in answer.output
    assert finished.file.read_bytes() == b""
    assert finished.logs() == ["log-0"]
    assert lock_of(log) == fcntl.F_UNLCK


def test_dropping_overtaken_logs_takes_the_mark_away(forebay: Forebay, finished: Left) -> None:
    leave_newer(finished)
    assert forebay("cache", "drop", "--yes", finished.file).code == 0
    assert not finished.notices.exists()


def test_drop_forgets_a_log_that_the_node_has_lost(forebay: Forebay, finished: Left) -> None:
    (finished.local / USER_DIRECTORY / "log-0").rename(finished.local / "lost")
    answer = forebay("cache", "drop", "--yes", finished.file)
    assert answer.code == 0, answer.output + answer.errors
    assert not finished.notices.exists()


def test_a_log_whose_directory_may_not_be_looked_at_is_not_lost(
    forebay: Forebay, finished: Left
) -> None:
    """As that of another user is, or one that others may read."""
    (finished.local / USER_DIRECTORY).chmod(0o755)
    seen = forebay("cache", "ls", "--json", finished.file)
    (notice,) = result_of(seen)["missing"]
    assert notice["state"] == "unseen"
    assert "could not be looked for" in forebay("cache", "ls", finished.file).output
    assert forebay("cache", "drop", "--yes", finished.file).code == 1
    assert finished.notices.exists()
    recovered = forebay("cache", "recover", finished.file)
    assert recovered.code == 1
    assert "not to be seen" in recovered.output
    (finished.local / USER_DIRECTORY).chmod(0o700)
    assert forebay("cache", "recover", finished.file).code == 0
    assert finished.file.read_bytes() == finished.data


def test_drop_takes_no_more_than_was_named(forebay: Forebay, left: Left) -> None:
    left.leave("--committed-blocks", "10", "--rank", "0", "--log", "log-0")
    left.leave("--committed-blocks", "10", "--rank", "1", "--log", "log-1")
    assert forebay("cache", "drop", "--yes", "--log", "log-1", left.local).code == 0
    assert left.logs() == ["log-0"]


def test_a_log_of_nobody_can_only_be_dropped_by_name(forebay: Forebay, finished: Left) -> None:
    segment = segment_of(finished)
    content = bytearray(segment.read_bytes())
    content[30:200] = bytes(170)
    segment.write_bytes(content)
    listed = forebay("cache", "ls", finished.local)
    assert "unreadable" in listed.output
    answer = forebay("cache", "recover", finished.local)
    assert answer.code == 1
    assert finished.logs() == ["log-0"]
    assert forebay("cache", "drop", "--yes", "--log", "log-0", finished.local).code == 0
    assert finished.logs() == []


def test_a_directory_open_to_others_is_not_looked_at(forebay: Forebay, finished: Left) -> None:
    (finished.local / USER_DIRECTORY).chmod(0o755)
    answer = forebay("cache", "ls", finished.local)
    assert "not looked at" in answer.output
    assert forebay("cache", "recover", finished.local).code == 1
    assert finished.file.read_bytes() == b""


def test_the_native_part_that_is_missing_is_named(forebay: Forebay, left: Left) -> None:
    answer = forebay("cache", "ls", FOREBAY_LIBRARY_DIR=str(left.local))
    if answer.code == 0:
        pytest.skip("the package is installed with its native parts")
    assert "forebay-cache is not installed" in answer.errors

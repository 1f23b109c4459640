"""`forebay cache` with logs that protect each other: what is lost, cannot be read, or is damaged is
made again, and nothing that could make it again is removed before."""

import os
import shlex
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import Forebay, result_of
from made_logs import (
    BLOCK,
    SUPERBLOCK,
    USER_DIRECTORY,
    Left,
    Nodes,
    environ_with_tool,
    leave_nodes,
    spoil,
)


@pytest.fixture
def environ(environ: dict[str, str], tmp_path: Path) -> dict[str, str]:
    return environ_with_tool(environ, tmp_path)


def logs_left(nodes: Nodes) -> list[str]:
    """Of all nodes that are left."""
    return sorted(log.name for local in nodes.left() for log in (local / USER_DIRECTORY).iterdir())


def without(nodes: Nodes, member: int) -> bytes:
    """What the file holds where the blocks of `member`, none of them the last, are missing."""
    content = bytearray(nodes.data)
    for start in range(member * BLOCK, len(content), nodes.members * BLOCK):
        content[start : start + BLOCK] = bytes(len(content[start : start + BLOCK]))
    return bytes(content)


@pytest.mark.parametrize(
    "lost",
    [(), ("member-1",), ("member-0", "member-2"), ("member-0", "parity-0"), ("parity-1",)],
)
def test_logs_of_lost_nodes_are_rebuilt_from_parity(
    forebay: Forebay, left: Left, lost: tuple[str, ...]
) -> None:
    nodes = leave_nodes(left)
    nodes.lose(*lost)
    answer = forebay("cache", "recover", "--json", *nodes.left())
    assert answer.code == 0, answer.output
    (entry,) = result_of(answer)["files"]
    members = [name for name in lost if name.startswith("member")]
    assert entry["rebuilt_logs"] == len(members)
    assert (entry["rebuilt_bytes"] > 0) == bool(members)
    assert nodes.file.read_bytes() == nodes.data
    assert not left.notices.exists()
    for local in nodes.left():
        assert list((local / USER_DIRECTORY).iterdir()) == []


def test_more_lost_nodes_than_parity_are_said_to_be_too_many(forebay: Forebay, left: Left) -> None:
    nodes = leave_nodes(left)
    nodes.lose("member-0", "member-1", "parity-1")
    answer = forebay("cache", "recover", "--json", *nodes.left())
    assert answer.code == 1
    (entry,) = result_of(answer)["files"]
    assert entry["state"] == "failed"
    assert "2 logs are not there (log-0, log-1), and 1 parity pieces are" in entry["error"]
    assert nodes.file.read_bytes() == b""
    assert left.notices.exists()


def test_a_log_on_another_node_is_rebuilt_only_if_that_is_said_to_be_lost(
    forebay: Forebay, left: Left
) -> None:
    nodes = leave_nodes(left, "--host", "node17")
    nodes.lose("member-1")
    answer = forebay("cache", "recover", *nodes.left())
    assert answer.code == 1
    assert "--lost NODE" in answer.output
    assert nodes.file.read_bytes() == b""
    answer = forebay("cache", "recover", "--lost", "node17", *nodes.left())
    assert answer.code == 0
    assert "1 of the logs were lost or damaged, and rebuilt" in answer.output
    assert nodes.file.read_bytes() == nodes.data


def test_a_log_of_a_file_whose_name_is_no_utf8_is_missed_as_any_other(
    forebay: Forebay, left: Left
) -> None:
    file = left.file.with_name(os.fsdecode(b"out \xff.dat"))
    file.touch()
    nodes = leave_nodes(replace(left, file=file), "--host", "node17")
    nodes.lose("member-1")
    answer = forebay("cache", "recover", *nodes.left())
    assert (answer.code, "--lost NODE" in answer.output) == (1, True), answer.output
    assert file.read_bytes() == b""
    answer = forebay("cache", "recover", "--lost", "node17", *nodes.left())
    assert answer.code == 0, answer.output
    assert file.read_bytes() == nodes.data


def test_parity_is_listed_as_what_it_is(forebay: Forebay, left: Left) -> None:
    nodes = leave_nodes(left)
    found = result_of(forebay("cache", "ls", "--json", nodes.local("parity-0")))["logs"]
    (parity,) = [log for log in found if log["purpose"] == "protection"]
    assert parity["state"] == "protects"
    assert len(found) == 1 + nodes.members, "notices lead to the members"
    assert forebay("cache", "verify", *nodes.left()).code == 0
    assert "protects: parity of logs" in forebay("cache", "ls", *nodes.left()).output


def test_dropping_the_logs_of_a_file_drops_its_parity(forebay: Forebay, left: Left) -> None:
    nodes = leave_nodes(left)
    assert forebay("cache", "drop", "--yes", *nodes.left()).code == 0
    for local in nodes.left():
        assert list((local / USER_DIRECTORY).iterdir()) == []


def test_what_rebuilds_a_lost_log_outlives_a_recovery_without_it(
    forebay: Forebay, left: Left
) -> None:
    nodes = leave_nodes(left, "--host", "node17")
    nodes.lose("member-1")
    answer = forebay("cache", "recover", "--json", "--partial", *nodes.left())
    assert answer.code == 0, answer.output
    (entry,) = result_of(answer)["files"]
    assert (entry["logs"], entry["kept_logs"]) == (4, 4)
    assert nodes.file.read_bytes() == without(nodes, 1)
    assert logs_left(nodes) == ["log-0", "log-2", "parity-0", "parity-1"]
    kept_in = [str(local / USER_DIRECTORY) for local in nodes.left()]
    assert entry["kept_in"] == kept_in
    assert [(log["name"], log["host"]) for log in entry["kept_for"]] == [("log-1", "node17")]
    told = forebay("cache", "recover", "--partial", *nodes.left())
    assert f"4 of the logs stay, in {', '.join(kept_in)}: log-1 of node17 may" in told.output
    assert entry["next_command"] in told.output
    assert entry["lost_command"] in told.output

    # Somebody goes on with the file: what it has of the others' logs is not written again.
    newer = bytes(BLOCK)
    with nodes.file.open("r+b") as file:
        file.write(newer)
    program, *words = shlex.split(entry["lost_command"])
    answer = forebay(*words)
    assert (program, answer.code) == ("forebay", 0), answer.output
    assert nodes.file.read_bytes() == newer + nodes.data[BLOCK:]
    assert logs_left(nodes) == []
    assert not left.notices.exists()


def test_logs_that_were_kept_are_removed_by_the_command_that_is_named(
    forebay: Forebay, left: Left
) -> None:
    nodes = leave_nodes(left, "--host", "node17")
    aside = nodes.local("member-1").rename(left.local.with_name("member-1"))
    first = forebay("cache", "recover", "--partial", "--json", *nodes.left())
    (entry,) = result_of(first)["files"]
    assert entry["kept_logs"] == 4
    assert forebay("cache", "recover", "--partial", aside).code == 0
    answer = forebay(*shlex.split(entry["next_command"])[1:])
    assert answer.code == 0, answer.output
    assert nodes.file.read_bytes() == nodes.data
    assert logs_left(nodes) == []


def test_nodes_recover_one_by_one_and_the_last_one_takes_what_nobody_needs(
    forebay: Forebay, left: Left
) -> None:
    nodes = leave_nodes(left, "--host", "node17")
    every = nodes.left()
    for local in every:
        answer = forebay("cache", "recover", "--partial", local)
        assert answer.code == 0, answer.output
    assert nodes.file.read_bytes() == nodes.data
    assert not left.notices.exists()
    assert logs_left(nodes) == ["log-0", "log-1"], "the others knew that all is in the file"
    # And also where nobody has the file any more.
    assert forebay("cache", "recover", every[0]).code == 0
    nodes.file.unlink()
    assert forebay("cache", "recover", every[1]).code == 0
    assert logs_left(nodes) == []


@pytest.mark.parametrize("member", [1, 2])
def test_nodes_that_recover_one_by_one_leave_what_rebuilds_the_lost_one(
    forebay: Forebay, left: Left, member: int
) -> None:
    nodes = leave_nodes(left, "--host", "node17")
    nodes.lose(f"member-{member}", "parity-1")
    for local in nodes.left():
        answer = forebay("cache", "recover", "--partial", local)
        assert answer.code == 0, answer.output
    assert nodes.file.read_bytes() == without(nodes, member)
    assert forebay("cache", "recover", "--lost", "all", *nodes.left()).code == 0
    assert nodes.file.read_bytes() == nodes.data
    assert logs_left(nodes) == []


def test_what_rebuilds_a_lost_log_stays_while_its_file_system_is_not_there(
    forebay: Forebay, left: Left
) -> None:
    place = left.file.parent / "mounted"
    place.mkdir()
    file = place / left.file.name
    nodes = leave_nodes(replace(left, file=file), "--host", "node17")
    nodes.lose("member-1")
    assert forebay("cache", "recover", "--partial", *nodes.left()).code == 0
    kept = logs_left(nodes)
    assert kept
    aside = place.rename(place.with_name("not mounted"))
    assert forebay("cache", "recover", *nodes.left()).code == 1
    assert logs_left(nodes) == kept
    aside.rename(place)
    assert forebay("cache", "recover", "--lost", "all", *nodes.left()).code == 0
    assert nodes.file.read_bytes() == nodes.data


def test_a_lost_log_that_nothing_here_rebuilds_is_named(forebay: Forebay, left: Left) -> None:
    nodes = leave_nodes(left, "--host", "node17")
    answer = forebay("cache", "recover", "--lost", "log-1", nodes.local("member-0"))
    assert answer.code == 1
    assert "the log log-1 of node17 is lost, and nothing was found that rebuilds it" in (
        answer.output
    )
    assert nodes.file.read_bytes() == b""


UNREADABLE = [(30, bytes(170)), (0, bytes(SUPERBLOCK)), (0, bytes(SUPERBLOCK + BLOCK // 2))]


@pytest.mark.parametrize(("start", "content"), UNREADABLE)
def test_a_log_that_cannot_be_read_is_rebuilt(
    forebay: Forebay, left: Left, start: int, content: bytes
) -> None:
    nodes = leave_nodes(left)
    spoil(nodes.local("member-0") / USER_DIRECTORY / "log-0", start, content)
    nodes.lose("parity-1")
    answer = forebay("cache", "recover", "--json", *nodes.left())
    assert answer.code == 0, answer.output
    (entry,) = result_of(answer)["files"]
    assert (entry["state"], entry["rebuilt_logs"]) == ("recovered", 1)
    assert nodes.file.read_bytes() == nodes.data
    assert logs_left(nodes) == []
    assert not left.notices.exists()


def test_a_log_whose_files_are_gone_is_rebuilt(forebay: Forebay, left: Left) -> None:
    nodes = leave_nodes(left)
    for segment in (nodes.local("member-2") / USER_DIRECTORY / "log-2").glob("segment-*"):
        segment.unlink()
    answer = forebay("cache", "recover", *nodes.left())
    assert answer.code == 0, answer.output
    assert nodes.file.read_bytes() == nodes.data
    assert logs_left(nodes) == []


def test_a_damaged_log_is_repaired_before_anything_of_it_is_skipped(
    forebay: Forebay, left: Left
) -> None:
    nodes = leave_nodes(left)
    spoil(nodes.local("member-0") / USER_DIRECTORY / "log-0", SUPERBLOCK + BLOCK // 2, b"damage")
    nodes.lose("member-1")
    answer = forebay("cache", "recover", "--json", "--skip-damage", *nodes.left())
    assert answer.code == 0, answer.output
    (entry,) = result_of(answer)["files"]
    assert (entry["rebuilt_logs"], entry["damage"]) == (2, [])
    assert nodes.file.read_bytes() == nodes.data
    assert logs_left(nodes) == []


def test_damage_that_cannot_be_repaired_is_named(forebay: Forebay, left: Left) -> None:
    nodes = leave_nodes(left)
    spoil(nodes.local("member-0") / USER_DIRECTORY / "log-0", SUPERBLOCK + BLOCK // 2, b"damage")
    nodes.lose("member-1", "parity-1")
    answer = forebay("cache", "recover", *nodes.left())
    assert answer.code == 1
    assert "log-0 does not hold what it did" in answer.output
    assert nodes.file.read_bytes() == b""
    assert forebay("cache", "recover", "--skip-damage", *nodes.left()).code == 0


@pytest.mark.parametrize(("start", "content"), UNREADABLE)
def test_a_log_that_cannot_be_read_is_asked_about(
    forebay: Forebay, left: Left, start: int, content: bytes
) -> None:
    left.leave("--committed-blocks", "10", "--rank", "0", "--log", "log-0")
    left.leave("--committed-blocks", "10", "--rank", "1", "--log", "log-1")
    spoil(left.local / USER_DIRECTORY / "log-0", start, content)
    answer = forebay("cache", "recover", left.local)
    assert answer.code == 1
    assert "cannot be read" in answer.output
    assert "--partial" in answer.output
    assert left.file.read_bytes() == b""
    assert left.logs() == ["log-0", "log-1"]

    partly = forebay("cache", "recover", "--partial", left.local)
    assert partly.code == 1, "there is still a log that nothing was done with"
    assert left.file.read_bytes() == left.data
    assert left.logs() == ["log-0"]
    alone = forebay("cache", "recover", "--partial", left.file)
    assert (alone.code, "cannot be read" in alone.output) == (1, True)
    assert left.logs() == ["log-0"]
    assert left.notices.exists()
    assert forebay("cache", "drop", "--yes", left.file).code == 0
    assert left.logs() == []
    assert not left.notices.exists()


def test_a_log_of_zeros_is_none_that_holds_nothing(forebay: Forebay, left: Left) -> None:
    left.leave("--committed-blocks", "10")
    spoil(left.local / USER_DIRECTORY / "log-0", 0, bytes(SUPERBLOCK))
    assert "unreadable" in forebay("cache", "ls", left.local).output
    assert forebay("cache", "recover", left.local).code == 1
    assert left.logs() == ["log-0"]


def cut_superblock(log: Path, keep: int = 100) -> None:
    """As a node leaves a log that crashes when it is begun: the device got the first bytes."""
    (segment,) = log.glob("segment-*")
    segment.write_bytes(segment.read_bytes()[:keep].ljust(segment.stat().st_size, b"\0"))


def test_a_log_that_was_only_begun_keeps_no_other_from_recovery(
    forebay: Forebay, left: Left
) -> None:
    left.leave("--committed-blocks", "10", "--rank", "0", "--log", "log-0")
    left.leave("--committed-blocks", "10", "--rank", "1", "--log", "log-1")
    begun = left.local / USER_DIRECTORY / "log-0"
    cut_superblock(begun)
    assert "begun: its node crashed" in forebay("cache", "ls", left.local).output
    answer = forebay("cache", "recover", left.file)
    assert answer.code == 0, answer.output
    assert f"{begun} was only begun when its node crashed" in answer.output
    assert left.file.read_bytes() == left.data
    assert left.logs() == []
    assert not left.notices.exists()


def test_a_log_that_was_only_begun_is_asked_about_where_others_may_have_more_of_it(
    forebay: Forebay, left: Left
) -> None:
    nodes = leave_nodes(left)
    cut_superblock(nodes.local("member-0") / USER_DIRECTORY / "log-0")
    members = [nodes.local(f"member-{i}") for i in range(nodes.members)]
    answer = forebay("cache", "recover", "--skip-damage", *members)
    assert answer.code == 1
    assert "cannot be read" in answer.output
    assert "--partial" in answer.output
    assert nodes.file.read_bytes() == b""


def test_a_protected_log_that_was_only_begun_is_rebuilt(forebay: Forebay, left: Left) -> None:
    nodes = leave_nodes(left)
    cut_superblock(nodes.local("member-0") / USER_DIRECTORY / "log-0")
    answer = forebay("cache", "recover", *nodes.left())
    assert answer.code == 0, answer.output
    assert nodes.file.read_bytes() == nodes.data
    assert logs_left(nodes) == []


def test_a_log_of_nobody_that_was_only_begun_is_removed(forebay: Forebay, left: Left) -> None:
    left.leave("--committed-blocks", "10")
    shutil.rmtree(left.notices)
    cut_superblock(left.local / USER_DIRECTORY / "log-0")
    answer = forebay("cache", "recover", left.local)
    assert answer.code == 0, answer.output
    assert left.logs() == []

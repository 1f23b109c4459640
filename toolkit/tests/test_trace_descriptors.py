"""Which file is behind a descriptor, and where it stands.

Method: a made-up process opens directories and files beside them in shuffled order; where each file
is, is kept along by the simplest of means. Others append to a file, alone or not, and read by
streams.
"""

import os
import random
from pathlib import Path

from made_spills import CHDIR, DUP, FGETS, HERE, READ, WRITE, WRITE_ON, MadeProcess

from forebay.trace import capture
from forebay.trace.directory import Run, Trace


def test_names_are_beside_what_the_directory_is_at_that_moment(tmp_path: Path) -> None:
    spills = tmp_path / "spills"
    spills.mkdir()
    made = MadeProcess(spills).begin()
    chance = random.Random(1)
    directories: dict[int, str] = {HERE: "/run1"}
    expected: list[str] = []
    for turn in range(600):
        at_s = 0.001 * (turn + 1)
        step = chance.randrange(8)
        number = chance.randrange(10, 14)
        known = chance.choice(list(directories))
        if step == 0:
            directories[number] = f"/data/{turn}"
            made.open(directories[number], at_s, descriptor=number)
            expected.append(directories[number])
        elif step == 1 and known != HERE:
            made.call(DUP, at_s, result=number, descriptor=known)
            directories[number] = directories[known]
        elif step == 2:
            key = made.name(f"/work/{turn}")
            made.call(CHDIR, at_s, length=key - (1 << 64) if key >> 63 else key)
            directories[HERE] = f"/work/{turn}"
        else:
            made.open(f"f{turn}", at_s, descriptor=20 + turn % 5, directory=known)
            expected.append(f"{directories[known]}/f{turn}")
    made.end(1.0)
    capture.convert(spills, tmp_path / "trace", Run())
    trace = Trace(tmp_path / "trace")
    names = trace.table("files").column("path").to_pylist()
    rows = [row for row in trace.table("posix").to_pylist() if row["call"] == "open"]
    assert [names[row["file"]] for row in rows] == expected


APPENDING = os.O_WRONLY | os.O_APPEND
POSITION, UNKNOWN = -1, -2


def offsets(spills: Path) -> list[tuple[str, int | None]]:
    """The calls that move data, in the order of processes and time."""
    capture.convert(spills, spills / "trace", Run())
    rows = Trace(spills / "trace").table("posix").to_pylist()
    return [(row["call"], row["offset"]) for row in rows if row["call"] != "open"]


def test_where_one_process_alone_appends_is_known(tmp_path: Path) -> None:
    made = MadeProcess(tmp_path).begin()
    made.open("log", 0.1, flags=APPENDING, size=1000)
    made.call(WRITE_ON, 0.2, result=10, offset=POSITION)
    made.call(WRITE_ON, 0.3, result=20, offset=POSITION)
    made.call(WRITE, 0.4, result=5, offset=0)  # the kernel appends that, too
    made.call(WRITE_ON, 0.5, result=20, offset=POSITION)
    made.end(1.0)
    told = [("write", 1000), ("write", 1010), ("pwrite", 1030), ("write", 1035)]
    assert offsets(tmp_path) == told


def test_where_several_processes_append_is_not_known(tmp_path: Path) -> None:
    for pid in (1, 2):
        made = MadeProcess(tmp_path, pid=pid).begin()
        made.open("log", 0.1, flags=APPENDING, size=1000)
        made.call(WRITE_ON, 0.2 * pid, result=10, offset=POSITION)
        made.call(WRITE_ON, 0.3 * pid, result=10, offset=POSITION)
        made.end(1.0)
    assert offsets(tmp_path) == [("write", None)] * 4


def test_an_append_after_another_descriptor_wrote_is_not_known(tmp_path: Path) -> None:
    made = MadeProcess(tmp_path).begin()
    made.open("log", 0.1, flags=APPENDING, size=1000)
    made.open("log", 0.2, descriptor=4, flags=os.O_RDWR, size=1000)
    made.call(WRITE_ON, 0.3, result=10, offset=POSITION)
    made.call(WRITE, 0.4, result=10, descriptor=4, offset=5000)
    made.call(WRITE_ON, 0.5, result=10, offset=POSITION)
    made.end(1.0)
    assert offsets(tmp_path) == [("write", 1000), ("pwrite", 5000), ("write", None)]


def test_what_is_opened_for_appending_is_read_from_its_beginning(tmp_path: Path) -> None:
    made = MadeProcess(tmp_path).begin()
    made.open("log", 0.1, flags=os.O_RDWR | os.O_APPEND, size=1000)
    made.call(READ, 0.2, result=100, offset=POSITION)
    made.call(WRITE_ON, 0.3, result=10, offset=POSITION)
    made.call(READ, 0.4, result=0, offset=POSITION)
    made.end(1.0)
    assert offsets(tmp_path) == [("read", 0), ("write", 1000), ("read", 1010)]


def test_a_stream_that_was_moved_unseen_stands_where_it_says(tmp_path: Path) -> None:
    made = MadeProcess(tmp_path).begin()
    made.open("text", 0.1, size=9000)
    for at_s, offset in ((0.2, POSITION), (0.3, POSITION), (0.4, 700), (0.5, POSITION)):
        made.call(FGETS, at_s, result=10, offset=offset)
    made.call(FGETS, 0.6, result=10, offset=UNKNOWN)
    made.call(FGETS, 0.7, result=10, offset=POSITION)
    made.end(1.0)
    told = [offset for _, offset in offsets(tmp_path)]
    assert told == [0, 10, 700, 710, None, None]


def test_a_descriptor_is_not_where_its_stream_is(tmp_path: Path) -> None:
    """That has read ahead into its buffer."""
    made = MadeProcess(tmp_path).begin()
    made.open("text", 0.1, size=9000)
    made.call(READ, 0.2, result=8, offset=POSITION)
    made.call(FGETS, 0.3, result=10, offset=POSITION)
    made.call(READ, 0.4, result=8, offset=POSITION)
    made.end(1.0)
    assert offsets(tmp_path) == [("read", 0), ("fgets", 8), ("read", None)]

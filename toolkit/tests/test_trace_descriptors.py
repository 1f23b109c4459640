"""Which file is behind a descriptor: names beside directories whose descriptors come and go.

Method: a made-up process opens directories and files beside them in shuffled order; where each file
is, is kept along by the simplest of means.
"""

import random
from pathlib import Path

from made_spills import CHDIR, DUP, HERE, MadeProcess

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

"""Goal: what was stored through a mapping is read as it was stored, also in memory (tmpfs), where
no time of the file tells of it, and on FUSE, where none does before the page is written out.

Method: a script maps sparse files by descriptors that it had before, and stores here and there;
when the files have settled it opens one after the other for reading alone, reads so far that it is
read ahead, and stores again before each read, first where it has just read. In a directory, in
shared memory, and on a testbed with a page cache, if there may be one: more must have been served
of each file there than was read behind later stores. These are several files since the first of
those stores ends what is served of a file. Once without O_DIRECT, and with all that was stored
still in the page cache alone, from where it is read ahead then.

usage: stores_check.py LIBRARY uring|threads [FUSE_PROBE TESTBEDFS]
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import forbidden
from preloaded import Preloaded, evict, testbed, total, wait_until_settled

FILES = 8
SIZE = 4 << 20
STEP = 1 << 16
#: Up to there it is read before. The last piece of it lies apart from those that were stored to
#: until then: what the kernel has kept around these is not read ahead.
READ = SIZE // 2 - STEP
#: Where it is stored to later: in what was just read, in what comes soon, and far from there.
LATER = [READ - STEP, SIZE // 2, SIZE - STEP]
INTENT = f"""
[[file]]
path = "stored*"
willneed = [[0, 0]]
block = {STEP}
"""

STORES = f"""
import mmap, os, sys
paths = sys.argv[1:]
views = [mmap.mmap(os.open(path, os.O_RDWR), {SIZE}) for path in paths]
for view in views:
    for at in range(0, {SIZE}, {4 * STEP}):
        view[at] = 1
print("stored", flush=True)
sys.stdin.readline()
for path, view in zip(paths, views):
    reader = os.open(path, os.O_RDONLY)
    for at in range(0, {READ}, {STEP}):
        if os.pread(reader, 1, at) != (b"\\0" if at % {4 * STEP} else b"\\1"):
            print("other bytes at", at, "of", path)
    for at in {LATER}:
        for byte in (2, 3):
            view[at] = byte
            if os.pread(reader, 1, at)[0] != byte:
                print("an old byte at", at, "of", path)
    os.close(reader)
"""


def stored_in(
    directory: Path, preloaded: Preloaded, before: Sequence[str] = (), is_evicted: bool = True
) -> list[str]:
    """What was not as it was stored in files there, by a program after the words `before`."""
    files = [directory / f"stored{number}" for number in range(FILES)]
    for file in files:
        with file.open("wb") as made:
            made.truncate(SIZE)
    command = [*before, sys.executable, "-c", STORES, *map(str, files)]
    with preloaded.start(command) as program:
        assert program.stdout is not None
        program.stdout.readline()
        for file in files if is_evicted else []:
            evict(file)
        wait_until_settled(directory)
        said, _ = program.communicate("go on\n")
    status = [] if program.returncode == 0 else [f"status {program.returncode}"]
    return [f"{directory}: {line}" for line in said.splitlines() + status]


def stored_undirected(directory: Path, preloaded: Preloaded) -> list[str]:
    """The same where nothing is written out before it is read ahead. The program may be faster than
    that, so that it is not said how much is served."""
    before = forbidden.NOT_DIRECT
    if subprocess.run([*before, "true"], capture_output=True, check=False).returncode != 0:
        print("not without O_DIRECT: it cannot be forbidden")
        return []
    directory.mkdir()
    failures = stored_in(directory, preloaded, before, is_evicted=False)
    served = total(preloaded.take_records(), "reads_served")
    print(f"without O_DIRECT: {served} reads were served")
    return failures


def stored_on_fuse(preloaded: Preloaded, fuse_probe: str, testbedfs: str) -> list[str]:
    """The same on FUSE, or that the files were not read ahead there."""
    kernel = tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2])
    if kernel < (6, 16):
        print("not on FUSE: this kernel does not wait until its server has what was stored")
        return []
    probed = subprocess.run([fuse_probe], capture_output=True, text=True, check=False)
    if probed.returncode != 0:
        print(f"not on FUSE: {probed.stdout.strip()}")
        return []
    backing = preloaded.directory / "backing"
    backing.mkdir()
    with testbed(testbedfs, backing, ["--page-cache"]) as mount:
        failures = stored_in(mount, preloaded)
    # The openings that store have records, too, which tell of no reads.
    reads = [record for record in preloaded.take_records() if record["reads"]]
    served = [total([record], "reads_served") for record in reads]
    print(f"on FUSE: {served} reads were served")
    behind_stores = 2 * len(LATER)
    if len(served) != FILES or min(served) <= behind_stores:
        failures.append("on FUSE: not each file was read ahead before later stores")
    return failures


def main() -> int:
    library, queue, *fuse = sys.argv[1:]
    failures = []
    with tempfile.TemporaryDirectory(dir=".", prefix="posix-stores-") as name:
        preloaded = Preloaded(library, queue, Path(name).resolve(), INTENT)
        directory = Path(name).resolve() / "files"
        directory.mkdir()
        failures += stored_in(directory, preloaded)
        with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="posix-stores-") as memory:
            failures += stored_in(Path(memory), preloaded)
        if not preloaded.take_records():
            failures.append("no record tells of reads")
        failures += stored_undirected(Path(name).resolve() / "undirected", preloaded)
        if fuse:
            failures += stored_on_fuse(preloaded, *fuse)
        else:
            print("not on FUSE: the testbed is not built")
    print("\n".join(failures) or "all as it was stored")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

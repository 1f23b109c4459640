"""Goal: what was stored through a mapping is read as it was stored, also in memory (tmpfs), where
no time of the file tells of it.

Method: a script maps a sparse file by a descriptor that it had before, and stores here and there;
when the file has settled it opens it for reading alone, reads so far that it is read ahead, and
stores again before each read. In a directory, and in shared memory.

usage: stores_check.py LIBRARY uring|threads
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from preloaded import Preloaded, evict, wait_until_settled

SIZE = 4 << 20
STEP = 1 << 16
INTENT = f"""
[[file]]
path = "stored"
willneed = [[0, 0]]
block = {STEP}
"""

STORES = f"""
import mmap, os, sys
writer = os.open(sys.argv[1], os.O_RDWR)
shown = mmap.mmap(writer, {SIZE})
for at in range(0, {SIZE}, {4 * STEP}):
    shown[at] = 1
print("stored", flush=True)
sys.stdin.readline()
reader = os.open(sys.argv[1], os.O_RDONLY)
for at in range(0, {SIZE // 2}, {STEP}):
    if os.pread(reader, 1, at) != (b"\\0" if at % {4 * STEP} else b"\\1"):
        print("other bytes at", at)
for at in range({SIZE // 2}, {SIZE}, {4 * STEP}):
    for byte in (2, 3):
        shown[at] = byte
        if os.pread(reader, 1, at)[0] != byte:
            print("an old byte at", at)
"""


def stored_in(directory: Path, preloaded: Preloaded) -> list[str]:
    """What was not as it was stored in a file there."""
    file = directory / "stored"
    with file.open("wb") as made:
        made.truncate(SIZE)
    with subprocess.Popen(
        [sys.executable, "-c", STORES, str(file)],
        env=preloaded.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stdout is not None
        program.stdout.readline()
        evict(file)
        wait_until_settled(directory)
        said, _ = program.communicate("go on\n")
    status = [] if program.returncode == 0 else [f"status {program.returncode}"]
    return [f"{directory}: {line}" for line in said.splitlines() + status]


def main() -> int:
    library, queue = sys.argv[1:3]
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
    print("\n".join(failures) or "all as it was stored")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

"""Goal: a program keeps the record locks (fcntl, lockf) that it has on files that are read ahead: a
process loses all that it has on a file when it closes any descriptor of it, ours too.

Method: a script sets a lock in one way or another, and goes on with the file so that what reads
ahead opens and closes it; a child of it asks each time whether the lock is there. It must print the
same as without the library, whose records say that the file was read ahead.

usage: locks_check.py LIBRARY uring|threads
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from preloaded import Preloaded, evict, make_file, total, wait_until_settled

SIZE = 4_000_000
INTENT = '[[file]]\npath = "events"\nwillneed = [[0, 0]]\nbudget = "1MiB"\n'

BEGIN = """
import ctypes, fcntl, mmap, os, sys, zlib

def tell(what):
    read, write = os.pipe()
    if os.fork() == 0:
        other = os.open("events", os.O_RDWR)
        try:
            fcntl.lockf(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.write(write, b"not locked")
        except OSError:
            os.write(write, b"locked")
        os._exit(0)
    os.wait()
    print(what, os.read(read, 20))

def read(descriptor, begin):
    for at in range(begin, begin + 1_000_000, 100_000):
        print(zlib.crc32(os.pread(descriptor, 100_000, at)))
"""
#: Reads before and after a lock, and shows the file in memory then, which ends what was read ahead.
SHOWN = """
file = os.open("events", os.O_RDONLY)
read(file, 0)
fcntl.lockf(file, fcntl.LOCK_SH)
tell("set")
read(file, 1_000_000)
shown = mmap.mmap(file, 0, prot=mmap.PROT_READ)
tell("shown")
print(zlib.crc32(shown[2_000_000:3_000_000]))
tell("read")
fcntl.lockf(file, fcntl.LOCK_UN)
tell("taken back")
os.close(file)
tell("closed")
"""
#: Opens a file that it has locked by another descriptor.
OPENED = """
first = os.open("events", os.O_RDONLY)
read(first, 0)
writer = os.open("events", os.O_RDWR)
{lock}
tell("set")
file = os.open("events", os.O_RDONLY)
tell("opened")
read(file, 0)
tell("read")
"""
#: A lock outlives an `exec`, and so it must the next opening.
AFTER_EXEC = (
    BEGIN
    + """
tell("executed")
file = os.open("events", os.O_RDONLY)
tell("opened")
read(file, 0)
tell("read")
"""
)
EXECUTED = f"""
file = os.open("events", os.O_RDONLY)
os.set_inheritable(file, True)
read(file, 0)
fcntl.lockf(file, fcntl.LOCK_SH)
tell("set")
sys.stdout.flush()
os.execv(sys.executable, [sys.executable, "-c", {AFTER_EXEC!r}])
"""
CASES = {
    "shown": SHOWN,
    "opened, by fcntl": OPENED.format(lock="fcntl.lockf(writer, fcntl.LOCK_EX)"),
    "opened, by lockf": OPENED.format(lock="ctypes.CDLL(None).lockf(writer, os.F_LOCK, 0)"),
    "executed": EXECUTED,
}


def main() -> int:
    library, queue = sys.argv[1:3]
    failures = []
    with tempfile.TemporaryDirectory(dir=".", prefix="posix-locks-") as name:
        directory = Path(name).resolve()
        make_file(directory / "events", SIZE, 1)
        preloaded = Preloaded(library, queue, directory, INTENT)
        wait_until_settled(directory)
        for case, script in CASES.items():
            command = [sys.executable, "-c", BEGIN + script]
            plain = preloaded.run(command, with_library=False)
            emptied = evict(directory / "events")
            answer = preloaded.run(command)
            served = total(preloaded.take_records(), "bytes_served")
            if answer != plain or plain[0] != 0:
                failures.append(f"{case}: {plain} without the library, {answer} with it")
            if emptied and served == 0:
                failures.append(f"{case}: nothing was served")
    print("\n".join(failures) or "all locks are kept")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

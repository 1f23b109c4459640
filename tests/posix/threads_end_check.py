"""Goal: a program that ends with its last thread does, though threads of ours read ahead of it; and
one that confines itself (seccomp) is not ended by a call that it does not make; and one that takes
namespaces or descriptors of its own (unshare), or a lease of its file, gets them, which the kernel
refuses to several threads or openings.

Method: the programs `last_thread` and `confined`, and a script, with a file that is declared: each
must print the same as without the library, whose record says that the file was read ahead before.

usage: threads_end_check.py LIBRARY uring|threads LAST_THREAD CONFINED
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from preloaded import Preloaded, evict, make_file, total, wait_until_settled

INTENT = '[[file]]\npath = "events"\nwillneed = [[0, 0]]\nbudget = "1MiB"\npolicy = "{}"\n'
LEFT_OUT = 77
UNSHARES = """
import ctypes, os, sys, zlib
file = os.open(sys.argv[1], os.O_RDONLY)
print(zlib.crc32(os.read(file, 1_000_000)))
libc = ctypes.CDLL(None, use_errno=True)
new_user = 0x10000000
print(libc.unshare(new_user), ctypes.get_errno())
print(zlib.crc32(os.read(file, 1_000_000)))
"""
#: A thread with descriptors of its own, in which a number may be another file.
UNSHARES_FILES = """
import ctypes, os, sys, threading, zlib
file = os.open(sys.argv[1], os.O_RDONLY)
print(zlib.crc32(os.read(file, 1_000_000)))
def alone():
    print(ctypes.CDLL(None).unshare(0x400))
    numbers = [os.dup(1) for _ in range(150)]
    os.close(file)
    other = os.open(sys.argv[1], os.O_RDONLY)
    print(other == file, zlib.crc32(os.read(other, 1_000_000)))
    for number in numbers:
        os.close(number)
    print(zlib.crc32(os.read(other, 1_000_000)))
thread = threading.Thread(target=alone)
thread.start()
thread.join()
print(zlib.crc32(os.read(file, 1_000_000)))
file = os.open(sys.argv[1], os.O_RDONLY)
print(zlib.crc32(os.read(file, 1_000_000)))
"""
#: Which the kernel refuses where somebody else has the file open.
LEASES = """
import fcntl, os, sys, zlib
file = os.open(sys.argv[1], os.O_RDONLY)
print(zlib.crc32(os.read(file, 1_000_000)))
print(fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK), fcntl.fcntl(file, fcntl.F_GETLEASE))
print(zlib.crc32(os.read(file, 1_000_000)))
"""


def main() -> int:
    library, queue, *programs = sys.argv[1:5]
    failures = []
    with tempfile.TemporaryDirectory(dir=".", prefix="posix-threads-end-") as name:
        directory = Path(name).resolve()
        make_file(directory / "events", 4_000_000, 1)
        wait_until_settled(directory)
        for policy in ("auto", "page-cache"):
            preloaded = Preloaded(library, queue, directory / policy, INTENT.format(policy))
            last_thread, confined = (str(Path(program).absolute()) for program in programs)
            events = str(directory / "events")
            for command in (
                [last_thread, events],
                [last_thread, events, "cancel"],
                [confined, events],
                [sys.executable, "-c", UNSHARES, events],
                [sys.executable, "-c", UNSHARES_FILES, events],
                [sys.executable, "-c", LEASES, events],
            ):
                plain = preloaded.run(command, with_library=False)
                if plain[0] == LEFT_OUT:
                    continue
                emptied = evict(directory / "events")
                answer = preloaded.run(command)
                records = preloaded.take_records()
                if answer != plain:
                    failures.append(f"{command}, {policy}: {plain}, and {answer} with the library")
                must_serve = emptied and policy == "auto"
                if not records or (must_serve and total(records, "bytes_served") == 0):
                    failures.append(f"{command}, {policy}: {records}")
    print("\n".join(failures) or "all ended by themselves")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

"""Goal: what a program may have is all its own: it has as many descriptors as its limit allows, and
one that may make no files is not ended by the records of what was read ahead.

Method: with a low limit (RLIMIT_NOFILE) a script opens declared files in each way until there is no
more; it must come as far as without the library. `cat` copies a declared file with RLIMIT_FSIZE of
0.

usage: limits_check.py LIBRARY uring|threads
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from preloaded import Preloaded, make_file, total, wait_until_settled

FILES = 100
SIZE = 20_000
INTENT = '[[file]]\npath = "*.dat"\nwillneed = [[0, 0]]\n'

#: Opens files by `make`, behind some that are read ahead, and tells how many there were, and why no
#: more.
OPENS = """
import ctypes, errno, fcntl, itertools, os
libc = ctypes.CDLL(None, use_errno=True)
libc.fopen.restype = ctypes.c_void_p

def fopen(name):
    if not libc.fopen(name.encode(), b"r"):
        raise OSError(ctypes.get_errno(), "fopen")

ways = {
    "open": lambda name: os.open(name, os.O_RDONLY),
    "dup": lambda name: os.dup(0),
    "fcntl": lambda name: fcntl.fcntl(0, fcntl.F_DUPFD, 3),
    "fopen": fopen,
}
for way, make in ways.items():
    if os.fork() != 0:
        os.wait()
        continue
    kept = [os.open(f"{number}.dat", os.O_RDONLY) for number in range(30)]
    for file in kept:
        os.read(file, 1000)
    for count in itertools.count():
        try:
            make(f"{count % 100}.dat")
        except OSError as error:
            print(way, count, errno.errorcode[error.errno], [os.read(file, 9) for file in kept])
            break
    for file in kept:  # There is room for a record then.
        os.close(file)
    os._exit(0)
"""


def main() -> int:
    library, queue = sys.argv[1:3]
    failures = []
    with tempfile.TemporaryDirectory(dir=".", prefix="posix-limits-") as name:
        directory = Path(name).resolve()
        for number in range(FILES):
            make_file(directory / f"{number}.dat", SIZE, number)
        preloaded = Preloaded(library, queue, directory, INTENT)
        wait_until_settled(directory)
        for limit, command in (
            ("ulimit -n 256", [sys.executable, "-u", "-c", OPENS]),
            ("ulimit -f 0", ["cat", "7.dat"]),
        ):
            limited = ["sh", "-c", f'{limit} && exec "$@"', "sh", *command]
            plain = preloaded.run(limited, with_library=False)
            answer = preloaded.run(limited)
            if answer != plain or plain[0] != 0:
                failures.append(f"{limit}: {plain} without the library, {answer} with it")
            records = preloaded.take_records()
            if limit == "ulimit -n 256" and total(records, "reads") == 0:
                failures.append(f"{limit}: no record tells of reads")
    print("\n".join(failures) or "all is the program's own")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

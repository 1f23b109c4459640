"""One process of the metadata measurement: operations on names and small files in a directory.

Run as a script: DIRECTORY FILES SMALL_FILES SMALL_BYTES, as one of those that start together
(started_together.py). It makes DIRECTORY and has a phase for each of OPERATIONS, which it answers
with its seconds. It leaves the small files there. It imports nothing of the package, so it starts
from anywhere. A call takes Python some microsecond beside what the file system does; by pathlib it
would be several.
"""

import ctypes
import os
import sys
import time

OPERATIONS = ("create", "stat", "unlink", "write small", "read small")


def _create(names: list[str]) -> None:
    for name in names:
        os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def _stat(names: list[str]) -> None:
    for name in names:
        os.stat(name)  # noqa: PTH116


def _unlink(names: list[str]) -> None:
    for name in names:
        os.unlink(name)  # noqa: PTH108


def _write(names: list[str], content: memoryview, size: int) -> None:
    for number, name in enumerate(names):
        descriptor = os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        at = number * 509 % (len(content) - size + 1)  # no two alike
        os.write(descriptor, content[at : at + size])
        os.close(descriptor)


def _read(names: list[str], size: int) -> None:
    for name in names:
        descriptor = os.open(name, os.O_RDONLY)
        os.read(descriptor, size)
        os.close(descriptor)


def drop_from_page_cache(directory: str, names: list[str]) -> None:
    """So that they come from the file system again."""
    descriptor = os.open(directory, os.O_RDONLY)
    ctypes.CDLL(None).syncfs(descriptor)
    os.close(descriptor)
    for name in names:
        descriptor = os.open(name, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def main(directory: str, files: int, small_files: int, size: int) -> None:
    os.mkdir(directory)  # noqa: PTH102
    content = memoryview(os.urandom(2 * size))
    names = [f"{directory}/{number}" for number in range(files)]
    small = [f"{directory}/small.{number}" for number in range(small_files)]
    work = {
        "create": lambda: _create(names),
        "stat": lambda: _stat(names),
        "unlink": lambda: _unlink(names),
        "write small": lambda: _write(small, content, size),
        "read small": lambda: _read(small, size),
    }
    for operation in OPERATIONS:
        if operation == "read small":
            drop_from_page_cache(directory, small)
        print("ready", flush=True)
        begin_at = float(sys.stdin.readline())
        while (start := time.perf_counter()) < begin_at:
            pass
        work[operation]()
        print(time.perf_counter() - start, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))

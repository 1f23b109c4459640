"""Goal: what another process writes over a file while it is read ahead is read as it was written,
however it was written, and however the file is read ahead.

Method: a program reads half of a declared file, by one opening, by one of several that it closes
before the next, or together with a second process. Then a part of the other half, which has been
fetched by now, gets other bytes: by pwrite, copy_file_range, a hole, or a mapping, from here, where
nothing is preloaded. Size and name stay as they were. What the program reads then must be what is
there. Records must say that reads were served before, that more than the first half was fetched, by
one for both processes, and that it ended since the file was changed.

usage: overwritten_check.py LIBRARY uring|threads
"""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path

from preloaded import Preloaded, evict, make_file, total, wait_until_settled

SIZE = 4 << 20
STEP = 1 << 16
HALF = SIZE // 2
#: What gets other bytes: what is read next.
PART = 2 * STEP
INTENT = f"""
[[file]]
path = "*.dat"
willneed = [[0, 0]]
block = {STEP}
budget = {16 * STEP}
"""
READING = f"""
import os, sys, zlib
path, opens_again = sys.argv[1], sys.argv[2] == "opened again"

def say(word):
    print(word, flush=True)
    sys.stdin.readline()

def read(first, end):
    found = 0
    for at in range(first, end, {STEP}):
        found = zlib.crc32(os.pread(file, {STEP}, at), found)
    return found

if opens_again:  # What is fetched by the next opening stays when that is closed.
    file = os.open(path, os.O_RDONLY)
    read(0, {STEP})
    os.close(file)
file = os.open(path, os.O_RDONLY)
say("open")
before = read(0, {HALF})
if opens_again:
    os.close(file)
say("read")
if opens_again:
    file = os.open(path, os.O_RDONLY)
say((before, read({HALF}, {SIZE})))
"""


def by_pwrite(file: int) -> None:
    os.pwrite(file, bytes(PART), HALF)


def by_copying(file: int) -> None:
    with tempfile.TemporaryFile(dir=".") as source:
        source.write(b"\1" * PART)
        source.flush()
        assert os.copy_file_range(source.fileno(), file, PART, 0, HALF) == PART


def by_a_hole(file: int) -> None:
    where = ["--offset", str(HALF), "--length", str(PART), f"/dev/fd/{file}"]
    command = ["fallocate", "--punch-hole", *where]
    done = subprocess.run(command, pass_fds=[file], capture_output=True, check=False)
    if done.returncode != 0:  # Not every file system has them.
        print("no holes here")
        by_pwrite(file)


def by_a_mapping(file: int) -> None:
    with mmap.mmap(file, SIZE) as view:
        view[HALF : HALF + PART] = b"\2" * PART


WRITES: dict[str, Callable[[int], None]] = {
    "pwrite": by_pwrite,
    "copied": by_copying,
    "hole": by_a_hole,
    "mapped": by_a_mapping,
}
#: Processes that read, by how they do.
READERS = {"once": 1, "opened again": 1, "together": 2}


def check(preloaded: Preloaded, how: str, written: str, file: Path, tries: int = 5) -> list[str]:
    """What is wrong. Bytes must be right each time, and in one of the tries it must show."""
    emptied = evict(file)
    command = [sys.executable, "-c", READING, str(file), how]
    readers = [preloaded.start(command) for _ in range(READERS[how])]

    def all_say() -> list[str]:
        said = []
        for reader in readers:
            assert reader.stdout is not None
            said.append(reader.stdout.readline().strip())
        return said

    def go_on() -> None:
        for reader in readers:
            assert reader.stdin is not None
            reader.stdin.write("go on\n")
            reader.stdin.flush()

    all_say()
    go_on()
    all_say()
    before = file.read_bytes()[:HALF]
    descriptor = os.open(file, os.O_RDWR)
    WRITES[written](descriptor)
    os.close(descriptor)
    go_on()
    expected = str((zlib.crc32(before), zlib.crc32(file.read_bytes()[HALF:])))
    failures = [
        f"{how}, {written}: {said} in place of {expected}" for said in all_say() if said != expected
    ]
    for reader in readers:
        reader.communicate("go on\n")
    records = preloaded.take_records()
    served = total(records, "reads_served")
    print(f"{how}, {written}: {served} reads were served")
    fetched = total(records, "bytes_fetched")
    ended = sum(record["stopped"] == "the file was changed" for record in records)
    # One that the other has left behind has pieces fetched once more, by whoever fetches for both.
    is_shared = any(record["reads_served"] and not record["requests"] for record in records)
    is_shown = served >= HALF // STEP // 2 and fetched >= HALF + PART
    is_shown = is_shown and (is_shared or len(readers) == 1)
    if emptied and not (is_shown and ended == len(readers)):
        if not failures and tries > 1:  # On a busy machine too little is fetched at times.
            wait_until_settled(file.parent)
            return check(preloaded, how, written, file, tries - 1)
        failures.append(f"{how}, {written}: that is not what it should show: {records}")
    return failures


def main() -> int:
    library, queue = sys.argv[1:3]
    failures = []
    with tempfile.TemporaryDirectory(dir=".", prefix="posix-overwritten-") as name:
        directory = Path(name).resolve()
        preloaded = Preloaded(library, queue, directory / "runs", INTENT)
        cases = [(how, written) for how in READERS for written in WRITES]
        for number in range(len(cases)):
            make_file(directory / f"{number}.dat", SIZE, number)
        wait_until_settled(directory)
        for number, (how, written) in enumerate(cases):
            failures += check(preloaded, how, written, directory / f"{number}.dat")
    print("\n".join(failures) or "all as it was written")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

"""Goal: what a program reads more than once comes from the page cache in the end, as it would
without the library; and a program that opens its file for reads in no order, of which all of the
file is declared, has little fetched in vain. Whose reads are not seen (C
streams) is not taken for such a one, and who says how the file is to be read has it read so each
time.

Method: passes over a file that is in no cache, by one opening or one for each, and reads at random
places, by an opening each, with and without the library. The records tell what was fetched, of
which there must be no more than some times the file; and the file must be in the page cache then,
which what is fetched past it does not bring there.

usage: again_check.py LIBRARY uring|threads
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from preloaded import (
    BY_STREAMS,
    Preloaded,
    evict,
    make_file,
    resident_bytes,
    total,
    wait_until_settled,
)

SIZE = 24 << 20
STEP = 100_000
PASSES = 6
READS = 600
#: For programs that are told what to read.
PIECES = str([[offset, STEP] for offset in range(0, SIZE, STEP)])

BY_ONE = f"""
import os, sys, zlib
file = os.open(sys.argv[1], os.O_RDONLY)
sum = 0
for _ in range({PASSES}):
    for offset in range(0, {SIZE}, {STEP}):
        sum = zlib.crc32(os.pread(file, {STEP}, offset), sum)
print(sum)
"""

BY_ONE_EACH = f"""
import os, sys, zlib
sum = 0
for _ in range({PASSES}):
    file = os.open(sys.argv[1], os.O_RDONLY)
    while part := os.read(file, {STEP}):
        sum = zlib.crc32(part, sum)
    os.close(file)
print(sum)
"""

IN_NO_ORDER = f"""
import os, random, sys, zlib
places = random.Random(5)
sum = 0
for _ in range({READS}):
    file = os.open(sys.argv[1], os.O_RDONLY)
    for _ in range(2):
        place = places.randrange({SIZE} - 9000)
        sum = zlib.crc32(os.pread(file, 9000, place), sum)
    os.close(file)
print(sum)
"""

#: The programs, and how many times the file may be fetched: twice before it is known that it is
#: read again, and then into the page cache; and what is fetched in vain until that is known.
CASES = {
    "one opening": (BY_ONE, 3.0),
    "an opening each": (BY_ONE_EACH, 3.5),
    "in no order": (IN_NO_ORDER, 4.0),
    "streams": (BY_STREAMS, 1.4),
    "page-cache": (BY_ONE, PASSES + 0.1),
}
#: Of them, those whose file is in the page cache then.
STAY = ("one opening", "an opening each")


def check(preloaded: Preloaded, how: str, file: Path) -> list[str]:
    """What is wrong."""
    program, most = CASES[how]
    command = [sys.executable, "-c", program, str(file), PIECES]
    plain = preloaded.run(command, with_library=False)
    emptied = evict(file)
    answer = preloaded.run(command)
    there = resident_bytes(file)
    records = preloaded.take_records()
    fetched = total(records, "bytes_fetched")
    print(f"{how}: fetched {fetched / SIZE:.2f} of the file, {there / SIZE:.2f} stayed")
    failures = []
    if answer != plain or not plain[1]:
        failures.append(f"{how}: {answer} in place of {plain}")
    # What only the page cache serves the program may be quicker to read on a busy machine.
    least = 0 if how in ("streams", "page-cache") else SIZE / 10
    if emptied and not least <= fetched <= most * SIZE:
        failures.append(f"{how}: that is not what it should fetch: {records}")
    looked_after = fetched + total(records, "bytes_resident")
    if emptied and how == "page-cache" and looked_after < 2.5 * SIZE:
        failures.append(f"{how}: more than one pass is not looked after: {records}")
    if emptied and how in STAY and there < SIZE * 0.9:
        failures.append(f"{how}: it is not in the page cache: {records}")
    return failures


def main() -> int:
    library, queue = sys.argv[1:3]
    failures = []
    with tempfile.TemporaryDirectory(dir=".", prefix="posix-again-") as name:
        directory = Path(name).resolve()
        intent = '[[file]]\npath = "*.dat"\nwillneed = [[0, 0]]\n'
        intent += '[[file]]\npath = "page-cache.dat"\npolicy = "page-cache"\n'
        preloaded = Preloaded(library, queue, directory / "runs", intent)
        files = {how: directory / f"{how}.dat" for how in CASES}
        for number, file in enumerate(files.values()):
            make_file(file, SIZE, number)
        wait_until_settled(directory)
        for how, file in files.items():
            failures += check(preloaded, how, file)
    print("\n".join(failures) or "all as without the library")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

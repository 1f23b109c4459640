"""Goal: C streams and mappings of files that are read ahead show what they show without Forebay,
and what is declared for them is in the page cache before they ask.

Method: for each seed a pair of equal files, one of which the intent file names; random_streams
makes the same random calls on both and compares. Then one reader by a mapping and one by a stream,
of a file that is in no cache: the records must say that what the budget holds was brought there, at
least, and nothing twice. A failure prints its seed; --seed N repeats it.

usage: streams_check.py LIBRARY uring|threads PROGRAM [--seed N]
"""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path

from preloaded import Preloaded, evict, make_file, total, wait_until_settled

SEEDS = 8
CALLS = 300
SIZE = 4_000_000
WHOLE = """
[[file]]
path = "whole.dat"
willneed = [[0, 0]]
budget = "1MiB"
"""

#: Waits, if it may, until what the budget holds is there: else it might be done before it begins.
WAIT = """
import sys
sys.path.insert(0, sys.argv[1])
from preloaded import wait_until_resident
def wait():
    if sys.argv[2] == "wait":
        wait_until_resident("other name.dat", 900_000)
"""

MAPPED = """
import mmap, zlib
with open("whole.dat", "rb") as file:
    view = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
wait()
sum = 0
for offset in range(0, len(view), 65536):
    sum = zlib.crc32(view[offset:offset + 65536], sum)
print(sum)
"""

#: All its pages are there at once, and are to stay: their kilobytes, after long enough.
POPULATED = """
import mmap, zlib
with open("whole.dat", "rb") as file:
    flags = mmap.MAP_SHARED | mmap.MAP_POPULATE
    view = mmap.mmap(file.fileno(), 0, flags=flags, prot=mmap.PROT_READ)
zlib.crc32(bytes(200_000_000))
lines = open("/proc/self/smaps").read().partition("/whole.dat")[2].splitlines()
print(next(line.split()[1] for line in lines if line.startswith("Rss:")))
"""

#: By fopen, fread and getline of the C library.
STREAMED = """
import ctypes, zlib
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
libc.fread.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_void_p]
libc.fclose.argtypes = [ctypes.c_void_p]
stream = libc.fopen(b"whole.dat", b"r")
wait()
into = ctypes.create_string_buffer(5_000_000)
got = libc.fread(into, 1, 5_000_000, stream)
libc.fclose(stream)
print(got, zlib.crc32(into.raw[:got]))
"""


def intent_of(seed: int) -> str:
    """What is declared for the file of this seed."""
    draw = random.Random(seed)
    pairs = [[draw.randrange(2 * SIZE), draw.randrange(400_000)] for _ in range(40)]
    declared = [[0, 0]] if seed % 2 == 0 else pairs
    budget = draw.choice(["20KiB", "64KiB", "1MiB", "8MiB"])
    return f'[[file]]\npath = "managed{seed}.dat"\nwillneed = {declared}\nbudget = "{budget}"\n'


def main() -> int:
    library, queue = sys.argv[1:3]
    program = str(Path(sys.argv[3]).absolute())
    seeds = [int(sys.argv[5])] if "--seed" in sys.argv else list(range(SEEDS))
    failures = []
    with tempfile.TemporaryDirectory(dir=".", prefix="posix-streams-") as name:
        directory = Path(name).resolve()
        whole = directory / "whole.dat"
        make_file(whole, SIZE, 99)
        (directory / "other name.dat").hardlink_to(whole)  # Which nothing is declared for.
        for seed in seeds:
            content = make_file(directory / f"managed{seed}.dat", SIZE, seed)
            (directory / f"model{seed}.dat").write_bytes(content)
        intent = WHOLE + "".join(intent_of(seed) for seed in seeds)
        preloaded = Preloaded(library, queue, directory, intent)
        wait_until_settled(directory)
        for seed in seeds:
            evict(directory / f"managed{seed}.dat")
            command = [program, str(seed), str(CALLS), f"managed{seed}.dat", f"model{seed}.dat"]
            code, _, errors = preloaded.run(command)
            if code != 0:
                failures.append(f"seed {seed}: status {code}: {errors.decode(errors='replace')}")
        preloaded.take_records()
        for kind, script in (("mapping", MAPPED), ("stream", STREAMED)):
            command = [sys.executable, "-c", WAIT + script, str(Path(__file__).parent)]
            plain = preloaded.run([*command, "go on"], with_library=False)
            emptied = evict(whole)
            answer = preloaded.run([*command, "wait" if emptied else "go on"])
            records = preloaded.take_records()
            fetched, there = total(records, "bytes_fetched"), total(records, "bytes_resident")
            print(f"{kind}: {fetched} bytes brought into the page cache, {there} were there")
            if answer != plain:
                failures.append(f"{kind}: {plain} without the library, {answer} with it")
            if emptied and not 900_000 <= fetched <= SIZE + 4096:
                failures.append(f"{kind}: {fetched} bytes of {SIZE} were brought: {records}")
        populated = preloaded.run([sys.executable, "-c", POPULATED])
        if int(populated[1]) < SIZE // 1024:
            failures.append(f"populated: {populated} kB of {SIZE} bytes are left")
    print("\n".join(failures) or f"{len(seeds)} seeds, all the same")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

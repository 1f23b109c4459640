"""Goal: a program that opens its file for each piece that it reads of it is read ahead as if it had
kept it open, by descriptors and by C streams; wrong declarations cost it little, right ones that it
comes to late are of use, enormous ones are of what the file holds; and it sees what it changed in
between. It may read several parts at a time, in threads, and several such programs fetch each part
once. A child has for each of its parent's openings one of its own.

Method: a hundred pieces, an opening for each, with and without the library. There are few records,
as it was one opening for Forebay; they tell how many it was, and what was fetched for them.

usage: reopened_check.py LIBRARY uring|threads
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from preloaded import BY_STREAMS, Preloaded, evict, make_file, total, wait_until_settled

SIZE = 12_000_000
PIECE = 40_000
PIECES = [[offset, PIECE] for offset in range(20_000, SIZE - PIECE, 120_000)]
BETWEEN = [[offset + PIECE + 20_000, PIECE] for offset, _ in PIECES]

BY_DESCRIPTORS = """
import ast, os, sys, zlib
sum = 0
for offset, length in ast.literal_eval(sys.argv[2]):
    file = os.open(sys.argv[1], os.O_RDONLY)
    os.lseek(file, offset, os.SEEK_SET)
    sum = zlib.crc32(os.read(file, length), sum)
    os.close(file)
print(sum)
"""

CHANGES = """
import os, sys
def read(offset):
    file = os.open(sys.argv[1], os.O_RDONLY)
    found = os.pread(file, 40_000, offset)
    os.close(file)
    return found
for offset in range(20_000, 1_000_000, 120_000):
    read(offset)
writer = os.open(sys.argv[1], os.O_WRONLY)
os.pwrite(writer, b"new bytes", 1_100_000)
os.close(writer)
print(read(1_100_000)[:20])
"""

#: Threads that each read a third of the pieces, in each of some processes that go along together.
THREADS = 3
BY_PARTS = f"""
import multiprocessing, os, sys, threading, zlib
pieces, parts = {PIECES}, {THREADS}
share = -(-len(pieces) // parts)
fork = multiprocessing.get_context("fork")
processes = int(sys.argv[2])
meetings = [fork.Barrier(processes) for _ in range(parts)]
sums = fork.Array("Q", parts * processes)
def read(number, part):
    sum = 0
    for place, (offset, length) in enumerate(pieces[part * share : (part + 1) * share]):
        if place % 4 == 0:
            meetings[part].wait()
        file = os.open(sys.argv[1], os.O_RDONLY)
        sum = zlib.crc32(os.pread(file, length, offset), sum)
        os.close(file)
    sums[parts * number + part] = sum
def read_all(number):
    readers = [threading.Thread(target=read, args=(number, part)) for part in range(parts)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
others = [fork.Process(target=read_all, args=(number,)) for number in range(1, processes)]
for other in others:
    other.start()
read_all(0)
for other in others:
    other.join()
print(list(sums))
"""

#: What it is comes first, by an opening of its own.
LOOKS_FIRST = """
import os, sys, zlib
file = os.open(sys.argv[1], os.O_RDONLY)
os.read(file, 8)
os.close(file)
file = os.open(sys.argv[1], os.O_RDONLY)
sum = 0
for offset in range(4096, 4_000_000, 40_000):
    sum = zlib.crc32(os.pread(file, 40_000, offset), sum)
print(sum)
"""

#: Two files of one section, none of which is read before.
FORKS = f"""
import os, sys, zlib
def reopened(name):
    os.close(os.open(name, os.O_RDONLY))
    return os.open(name, os.O_RDONLY)
files = [reopened(name) for name in sys.argv[1:]]
if os.fork() > 0:
    os.wait()
    sys.exit()
sums = [0, 0]
for offset, length in {PIECES}:
    for i, file in enumerate(files):
        sums[i] = zlib.crc32(os.pread(file, length, offset), sums[i])
print(sums)
"""
PAIR = ["pair-1.dat", "pair-2.dat"]

#: Of each file.
DECLARED: dict[str, list[list[int]]] = {
    "right.dat": PIECES,
    "wrong.dat": BETWEEN,
    "changed.dat": PIECES,
    "late.dat": PIECES,
    "paged.dat": PIECES,
    "enormous.dat": [[4096, (1 << 63) - 1]],
    "pair-*.dat": PIECES,
}

Answer = tuple[int, bytes, bytes]


def intent() -> str:
    """Of these files."""
    return "".join(
        f'[[file]]\npath = "{name}"\nwillneed = {extents}\nbudget = "1MiB"\n'
        + ('policy = "page-cache"\n' if name == "paged.dat" else "")
        for name, extents in DECLARED.items()
    )


def both_ways(
    preloaded: Preloaded, command: list[str], *files: str
) -> tuple[Answer, Answer, bool, list[dict[str, object]]]:
    """What a program answers without the library and with it; whether the page cache had nothing of
    its `files` before that, and what the records say."""
    plain = preloaded.run(command, with_library=False)
    emptied = all(evict(preloaded.directory / file) for file in files)
    return plain, preloaded.run(command), emptied, preloaded.take_records()


def main() -> int:
    library, queue = sys.argv[1:3]
    failures = []
    with tempfile.TemporaryDirectory(dir=".", prefix="posix-reopened-") as name:
        directory = Path(name).resolve()
        files = [file for file in DECLARED if "*" not in file] + PAIR
        for seed, file in enumerate(files):
            make_file(directory / file, SIZE, seed)
        preloaded = Preloaded(library, queue, directory, intent())
        wait_until_settled(directory)
        for way, script in (("descriptors", BY_DESCRIPTORS), ("streams", BY_STREAMS)):
            for file in ("right.dat", "wrong.dat"):
                command = [sys.executable, "-c", script, file, str(PIECES)]
                plain, answer, emptied, records = both_ways(preloaded, command, file)
                fetched, served = total(records, "bytes_fetched"), total(records, "bytes_served")
                print(f"{way}, {file}: {len(records)} records, {fetched} fetched, {served} served")
                if total(records, "openings") != len(PIECES):
                    failures.append(f"{way}, {file}: not all openings are told: {records}")
                if answer != plain:
                    failures.append(f"{way}, {file}: {plain} without the library, {answer} with it")
                needed = PIECE * len(PIECES)
                if emptied and file == "right.dat":
                    # One that is not kept, since most programs open a file once; then one for all.
                    if len(records) > 3:
                        failures.append(f"{way}: {len(records)} records")
                    if way == "descriptors" and served < needed * 3 // 4:
                        failures.append(f"{way}: {served} bytes of {needed} were served")
                if emptied and file == "wrong.dat" and fetched > needed * 3 // 4:
                    failures.append(f"{way}: {fetched} wrong bytes were fetched")
        command = [sys.executable, "-c", BY_DESCRIPTORS, "late.dat", str(BETWEEN + PIECES)]
        plain, answer, emptied, records = both_ways(preloaded, command, "late.dat")
        served = total(records, "bytes_served")
        print(f"declared pieces after others: {served} served")
        if answer != plain or total(records, "openings") != len(BETWEEN + PIECES):
            failures.append(f"late: {plain} without the library, {answer} with it: {records}")
        if emptied and served < PIECE * len(PIECES) * 3 // 4:
            failures.append(f"late: {served} bytes were served: {records}")
        for processes in (1, 4):
            command = [sys.executable, "-c", BY_PARTS, "right.dat", str(processes)]
            plain, answer, emptied, records = both_ways(preloaded, command, "right.dat")
            fetched, served = total(records, "bytes_fetched"), total(records, "bytes_served")
            print(f"{processes} processes by parts: {fetched} fetched, {served} served")
            if answer != plain:
                failures.append(f"by parts: {plain} without the library, {answer} with it")
            needed = PIECE * len(PIECES)
            # Each for itself would fetch as much as all are served.
            if emptied and (fetched > 3 * needed or served < processes * needed // 2):
                failures.append(f"by parts: {fetched} fetched, {served} served: {records}")
        command = [sys.executable, "-c", BY_PARTS, "paged.dat", "1"]
        plain, answer, emptied, records = both_ways(preloaded, command, "paged.dat")
        fetched, given_up = total(records, "bytes_fetched"), total(records, "plans_given_up")
        print(f"by the page cache: {fetched} fetched")
        if answer != plain:
            failures.append(f"page cache: {plain} without the library, {answer} with it")
        # Each part goes on with what was brought for it.
        needed = PIECE * len(PIECES)
        if given_up > 0 or (emptied and not 0 < fetched < 2 * needed):
            failures.append(f"page cache: {fetched} fetched, {given_up} given up: {records}")
        command = [sys.executable, "-c", LOOKS_FIRST, "enormous.dat"]
        plain, answer, emptied, records = both_ways(preloaded, command, "enormous.dat")
        print(f"enormous.dat: {total(records, 'bytes_served')} served")
        if answer != plain or (emptied and total(records, "bytes_served") == 0):
            failures.append(f"enormous: {plain} without the library, {answer} with it: {records}")
        command = [sys.executable, "-c", FORKS, *PAIR]
        plain, answer, emptied, records = both_ways(preloaded, command, *PAIR)
        for file in PAIR:
            of_file = [it for it in records if it["path"] == str(directory / file)]
            served = total(of_file, "bytes_served")
            print(f"in a child, {file}: {served} served")
            if answer != plain or (emptied and served == 0):
                failures.append(f"child: {plain} without the library, {answer} with it: {records}")
        content = (directory / "changed.dat").read_bytes()
        _, output, errors = preloaded.run([sys.executable, "-c", CHANGES, "changed.dat"])
        if output != f"{b'new bytes' + content[1_100_009:1_100_020]!r}\n".encode():
            failures.append(f"stale bytes: {output!r} {errors!r}")
    print("\n".join(failures) or "as if it had stayed open")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

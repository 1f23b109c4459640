"""Goal: what is read ahead through the page cache takes no more of it than the budget, and what was
there before stays.

Method: a program reads a file of many budgets piece by piece, and after each the page cache is
asked what it has of the file (cachestat): where nothing can be opened with O_DIRECT, which a filter
forbids (seccomp), so that memory of the process is filled through the page cache; and where that is
the way, where the program reads a piece when it is there. Before, somebody else reads another part
of the file. Left out (77) where the page cache cannot be emptied, or nothing be forbidden.

usage: budget_check.py LIBRARY uring|threads
"""

from __future__ import annotations

import os
import sys
import tempfile
import zlib
from pathlib import Path

import forbidden
from preloaded import (
    Preloaded,
    evict,
    make_file,
    resident_bytes,
    start_reader,
    wait_until_resident,
    wait_until_settled,
)

SKIPPED = 77
MIB = 1 << 20
SIZE, BUDGET, PIECE = 24 * MIB, MIB, 98_304
#: What somebody else reads, and nothing is declared of.
OTHERS = (18 * MIB, 2 * MIB)
READ = range(0, 16 * MIB, PIECE)
#: The program's own first reads, which were not served, and the kernel's read-ahead of them.
UNSERVED = MIB

ATTEMPTS = 3
GONE = "what somebody else had read is gone"


def check(preloaded: Preloaded, content: bytes, before: list[str]) -> list[str]:
    """What is wrong."""
    data = preloaded.directory / "events"
    if not evict(data):
        return ["left out"]
    with data.open("rb", buffering=0) as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
        os.pread(file.fileno(), OTHERS[1], OTHERS[0])
    failures = []
    peak = 0
    with start_reader(preloaded, *before) as reader:
        assert reader.stdin is not None
        assert reader.stdout is not None
        for at in READ:
            if not before and not wait_until_resident(data, PIECE, at, PIECE):
                failures.append(f"what lies at {at} is not brought")
            reader.stdin.write(f"{at} {PIECE}\n")
            reader.stdin.flush()
            answer = reader.stdout.readline()
            if not answer:
                return ["left out"]
            if int(answer) != zlib.crc32(content[at : at + PIECE]):
                failures.append(f"wrong bytes at {at}")
            peak = max(peak, resident_bytes(data) - OTHERS[1])
        reader.stdin.close()
    records = preloaded.take_records()
    print(f"{peak} bytes in the page cache at most, {records}")
    if len(records) != 1:
        return [*failures, f"{len(records)} records"]
    record = records[0]
    if peak > BUDGET + UNSERVED:
        failures.append(f"{peak} bytes in the page cache, for a budget of {BUDGET}: {record}")
    if resident_bytes(data, *OTHERS) < OTHERS[1]:
        failures.append(GONE)
    if not 0 < int(str(record["memory_peak"])) <= BUDGET:
        failures.append(f"memory of {record['memory_peak']} bytes")
    if resident_bytes(data) - OTHERS[1] > UNSERVED:
        failures.append(f"{resident_bytes(data) - OTHERS[1]} bytes stay in the page cache")
    return failures


def main() -> int:
    library, queue = sys.argv[1:3]
    pairs = [[at, PIECE] for at in READ]
    declared = f'[[file]]\npath = "events"\nwillneed = {pairs}\nbudget = {BUDGET}\ngap = 0\n'
    failures = []
    with tempfile.TemporaryDirectory(dir=".", prefix="posix-budget-") as name:
        directory = Path(name).resolve()
        content = make_file(directory / "events", SIZE, 5)
        wait_until_settled(directory)
        ways = {
            "memory": ("", forbidden.NOT_DIRECT),
            "page cache": ('policy = "page-cache"\n', []),
        }
        for way, (policy, before) in ways.items():
            preloaded = Preloaded(library, queue, directory / way, declared + policy)
            (directory / way / "events").symlink_to(directory / "events")
            # A kernel that is short of memory takes pages too, now and then. We would each time.
            for _ in range(ATTEMPTS):
                found = check(preloaded, content, before)
                if GONE not in found:
                    break
            if found == ["left out"]:
                print(f"{way} is left out: the kernel does not allow it")
                return SKIPPED
            failures += [f"{way}: {failure}" for failure in found]
    print("\n".join(failures) or "all within the budget")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

"""Goal: whatever becomes of the threads and the queue that read ahead, the program has the right
bytes and its own signals, and ends.

Method: a program is forbidden system calls, by seccomp, before it opens its file or when it has
read some of it: those that make threads, those of io_uring, or both; it blocks all signals; it
closes all other descriptors, also where the kernel may not do so by one call, or all of them behind
the library's back; or it forks, with and without the handlers of forks, and the child reads on,
from the position or by offsets. It must print the same as without the library, whose records say
what was served.

usage: helper_check.py LIBRARY uring|threads
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from preloaded import TOLD_READS, Preloaded, evict, make_file, total, wait_until_settled

SIZE = 6_000_000
PIECE = 60_000
READS = [f"read {PIECE}"] * (SIZE // PIECE // 2)
READS_BY_OFFSET = [f"pread {at} {PIECE}" for at in range(0, SIZE // 2, PIECE)]
THREADS = "forbid clone clone3"
RING = "forbid io_uring_setup"
RING_AT_WORK = "forbid io_uring_enter"
CLOSE_RANGE = "forbid close_range"
OPEN = "open file.dat"
#: Also where we are, or have been.
ALL_NUMBERS = "open_many 300"

#: What the program does, and whether some of its reads must have been served, by io_uring and by
#: threads; None: that is a matter of time.
CASES: dict[str, tuple[list[str], bool | None, bool | None]] = {
    "no thread": ([THREADS, OPEN, *READS], False, False),
    "no ring": ([RING, OPEN, *READS], True, True),
    "neither": ([RING, THREADS, OPEN, *READS], False, False),
    "a ring that cannot be used": ([RING_AT_WORK, OPEN, *READS], True, True),
    "a ring that breaks": ([OPEN, *READS, RING_AT_WORK, *READS], True, True),
    "a file after the ring broke": (
        ["open outside.dat", RING_AT_WORK, OPEN, READS[0], OPEN, *READS],
        True,
        True,
    ),
    "no more threads": (["open outside.dat", THREADS, OPEN, *READS], True, False),
    "blocked signals": (["block_signals", OPEN, *READS], True, True),
    "closed all others": ([OPEN, *READS[1:], "closefrom", ALL_NUMBERS, *READS], True, True),
    "closed all others, one by one": (
        [CLOSE_RANGE, OPEN, *READS[1:], "closefrom", ALL_NUMBERS, *READS],
        True,
        True,
    ),
    "closed descriptors": ([OPEN, *READS[1:], "close_behind 3", OPEN, *READS], None, None),
    "closed descriptors, and an end of all threads": (
        [OPEN, *READS, *READS, "idle", "close_behind 3", "unshare", OPEN, *READS],
        None,
        None,
    ),
    "a child": ([OPEN, *READS, f"fork {len(READS)}", *READS, *READS], True, True),
    "a child past all handlers": (
        [OPEN, *READS, f"fork_past_handlers {len(READS)}", *READS, *READS],
        True,
        True,
    ),
    "a child that reads by offset": (
        [OPEN, f"fork {len(READS_BY_OFFSET) + 2}", *READS_BY_OFFSET, READS[0], "close", READS[0]],
        None,
        None,
    ),
    "a child of a child that reads by offset": (
        [
            OPEN,
            f"fork {len(READS_BY_OFFSET) + 6}",
            *READS_BY_OFFSET[:5],
            f"fork {len(READS_BY_OFFSET[5:]) + 1}",
            *READS_BY_OFFSET[5:],
            "close",
        ],
        None,
        None,
    ),
    "a child with a file of its own": (
        [OPEN, *READS, f"fork {len(READS) + 1}", OPEN, *READS, *READS],
        True,
        True,
    ),
}
#: Where the page cache serves the child, since the parent has the file open, too: its reads are in
#: a record.
IN_COMPANY = {"a child that reads by offset", "a child of a child that reads by offset"}
POLICIES = {"own memory": "", "page cache": 'policy = "page-cache"\n'}


def main() -> int:
    library, queue = sys.argv[1:3]
    failures = []
    with tempfile.TemporaryDirectory(dir=".", prefix="posix-helper-") as name:
        directory = Path(name).resolve()
        for seed, file in enumerate(("file.dat", "outside.dat")):
            make_file(directory / file, SIZE, seed)
        wait_until_settled(directory)
        for policy, words in POLICIES.items():
            intent = (
                f'[[file]]\npath = "file.dat"\nwillneed = [[0, 0]]\n'
                f'block = "64KiB"\nbudget = "1MiB"\n{words}\n'
                f'[[file]]\npath = "outside.dat"\nwillneed = [[{2 * SIZE}, 1]]\n{words}'
            )
            preloaded = Preloaded(library, queue, directory / policy, intent)
            for file in ("file.dat", "outside.dat"):
                (directory / policy / file).symlink_to(directory / file)
            for case, (calls, *must_serve) in CASES.items():
                told = "\n".join(["signals", *calls, "signals"])
                plain = preloaded.run(TOLD_READS, with_library=False, told=told)
                if b"cannot be forbidden" in plain[1]:
                    print(f"{case} is left out: no libseccomp, or the kernel does not allow it")
                    continue
                emptied = evict(directory / "file.dat")
                answer = preloaded.run(TOLD_READS, told=told)
                records = preloaded.take_records()
                served = total(records, "bytes_served")
                print(f"{case}, {policy}: {served} bytes served")
                if answer != plain:
                    pairs = zip(plain[1].splitlines(), answer[1].splitlines(), strict=False)
                    failures.append(
                        f"{case}, {policy}: status {plain[0]} and {answer[0]}, {answer[2]!r}, "
                        f"{[pair for pair in pairs if pair[0] != pair[1]]}"
                    )
                must = must_serve[queue == "threads"]
                if emptied and policy == "own memory" and must not in (None, served > 0):
                    failures.append(f"{case}: {served} bytes served, {records}")
                followed = total(records, "reads") >= len(READS_BY_OFFSET) - 8
                if case in IN_COMPANY and policy == "own memory" and not followed:
                    failures.append(f"{case}: its reads were not followed: {records}")
    print("\n".join(failures) or "all as it should be")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

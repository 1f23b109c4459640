"""Goal: whatever a program does with files that are read ahead, it sees what plain POSIX shows it.

Method: for each seed some pairs of equal files, one of each pair named by the intent file;
random_calls makes the same random calls on both and compares. What is written to is not served for
a while, hence several files, programs that write little or much, and some that wait in between.
Intents differ by seed: the whole file, extents that are right and wrong, nothing but a size of
memory, and by memory, by the page cache or by advice to the kernel; some wish for enormous blocks.
Some seeds run once more in company: another process reads the files, so that what is declared goes
to memory that processes share; and all of them while their reads are written down. A failure
prints its seed; --seed N repeats it.

usage: random_calls_check.py LIBRARY uring|threads PROGRAM [--seed N]
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from preloaded import Preloaded, evict, make_file, total, wait_until_settled

SEEDS = 12
CALLS = 500
FILES = 5
SIZE = 4_000_000
#: Of 100 openings of a seed, those for writing.
WRITERS = [0, 5, 25, 60]
#: Of these something is declared, and by whom it is read is left open.
IN_COMPANY = [0, 1, 6, 7, 10]
#: Of these all that has a size is as large as can be written.
ENORMOUS = [3, 9, 10, 11]
COMPANION = f"""
import os, select, sys
files = [os.open(name, os.O_RDONLY) for name in sys.argv[1:]]
print("open", flush=True)
at = 0
while not select.select([sys.stdin], [], [], 0.001)[0]:
    for file in files:
        os.pread(file, 65536, at)
    at = (at + 65536) % {SIZE}
"""


@contextmanager
def company(preloaded: Preloaded, files: list[str]) -> Iterator[None]:
    """Another process reads them meanwhile, from the beginning to the end again and again."""
    with preloaded.start([sys.executable, "-c", COMPANION, *files]) as companion:
        assert companion.stdout is not None
        companion.stdout.readline()
        yield
        companion.communicate()


def intent_of(seed: int) -> str:
    """What is declared for the file of this seed."""
    lines = ["", "[[file]]", f'path = "managed{seed}-*.dat"']
    draw = random.Random(seed)
    if seed % 3 == 0:
        lines.append("willneed = [[0, 0]]")
    elif seed % 3 == 1:
        pairs = [[draw.randrange(2 * SIZE), draw.randrange(400_000)] for _ in range(40)]
        lines.append(f"willneed = {pairs}")
    if seed % 5 == 4:
        lines.append('policy = "page-cache"')
    if seed % 5 == 3:
        lines.append('policy = "mercury"')
    if seed in ENORMOUS:
        most = 2**63 - 1
        return "\n".join([*lines, f"budget = {most}", f"block = {most}", f"gap = {most}"])
    lines.append(f'budget = "{draw.choice(["64KiB", "1MiB", "4MiB"])}"')
    lines.append(f'block = "{draw.choice(["4KiB", "16KiB", "100KiB"])}"')
    return "\n".join(lines)


def main() -> int:
    library, queue, program = (
        str(Path(word).absolute()) if "/" in word else word for word in sys.argv[1:4]
    )
    seeds = [int(sys.argv[5])] if "--seed" in sys.argv else list(range(SEEDS))
    failures = 0
    served = served_in_company = 0
    with tempfile.TemporaryDirectory(dir=".", prefix="posix-random-") as name:
        directory = Path(name).resolve()
        names = {seed: [f"managed{seed}-{n}.dat" for n in range(FILES)] for seed in seeds}
        for seed, files in names.items():
            for n, file in enumerate(files):
                content = make_file(directory / file, SIZE, seed * FILES + n)
                (directory / f"{file}.model").write_bytes(content)
        intent = "\n".join(intent_of(seed) for seed in seeds)
        preloaded = Preloaded(library, queue, directory, intent)
        emptied = [evict(directory / file) for files in names.values() for file in files]
        wait_until_settled(directory)
        for seed in seeds:
            settling = "settling" if seed % 4 == 2 else "at-once"
            shape = [str(seed), str(CALLS), str(WRITERS[seed % len(WRITERS)]), settling]
            command = [program, *shape, *names[seed]]
            code, _, errors = preloaded.run(command)
            served += total(preloaded.take_records(), "bytes_served")
            if code != 0:
                failures += 1
                print(f"seed {seed}: status {code}: {errors.decode(errors='replace')}")
        emptied += [evict(directory / file) for files in names.values() for file in files]
        wait_until_settled(directory)
        for seed in set(seeds) & set(IN_COMPANY):
            shape = [str(seed), str(CALLS), str(WRITERS[seed % len(WRITERS)]), "at-once"]
            with company(preloaded, names[seed]):
                code, _, errors = preloaded.run([program, *shape, *names[seed]])
            served_in_company += total(preloaded.take_records(), "bytes_served")
            if code != 0:
                failures += 1
                print(f"seed {seed} in company: status {code}: {errors.decode(errors='replace')}")
        preloaded.environment["FOREBAY_RECORD_READS"] = "1"
        for seed in seeds:
            shape = [str(seed), str(CALLS), str(WRITERS[seed % len(WRITERS)]), "at-once"]
            code, _, errors = preloaded.run([program, *shape, *names[seed]])
            if code != 0:
                failures += 1
                print(f"seed {seed} written down: status {code}: {errors.decode(errors='replace')}")
        if not any(preloaded.records.glob("*.trace")):
            failures += 1
            print("nothing was written down")
        # Its children end by _exit.
        for path in (directory / file for files in names.values() for file in files):
            status = path.stat()
            of_readers = f"forebay-*-{os.geteuid()}-{status.st_dev:x}-{status.st_ino:x}-*"
            for left in Path("/dev/shm").glob(of_readers):
                left.unlink()
    print(f"{len(seeds)} seeds, {served} bytes served, in company {served_in_company}")
    is_all = len(seeds) == SEEDS  # One alone may leave all to the kernel.
    if is_all and all(emptied) and 0 in (served, served_in_company):
        print("nothing was served")
        return 1
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

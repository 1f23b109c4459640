"""Goal: the processes of a node that read one file fetch each byte once, and one that is killed
holds the others up in nothing.

Method: four processes of the analysis workload over one file that is in no cache, declared to be
read through the page cache; they read for a second, which is long beside what one may begin later
than another on a machine that has much to do. The bytes that they say they brought there must be
those declared, once. Then the same, with one of them killed on its way: the others must be right.
Without a word on how they should be read, whoever meets another reader goes to the page cache, too:
a second process at once, the first one when it reads next.

usage: one_fetch_check.py LIBRARY uring|threads PROGRAM
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from preloaded import Preloaded, evict, total, wait_until_settled

PROCESSES = 4
OPTIONS = ["--size", "24MiB", "--reads", "120", "--mean", "80KiB", "--backward", "7"]
UNIT = 4096


#: Opens the file, and reads of it when it is told to.
HOLDER = """
import os, sys
file = os.open("events", os.O_RDONLY)
print("open", flush=True)
for offset in map(int, sys.stdin.readline().split()):
    os.pread(file, 4096, offset)
"""


def hold(preloaded: Preloaded) -> subprocess.Popen[str]:
    """A process that has the file open."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER],
        cwd=preloaded.directory,
        env=preloaded.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    holder.stdout.readline()
    return holder


def without_a_word(preloaded: Preloaded, command: list[str], pairs: list[list[int]]) -> list[str]:
    """What is wrong where the intent leaves the choice."""
    evict(preloaded.directory / "events")
    first = hold(preloaded)
    code, _, errors = preloaded.run(command)
    met = preloaded.take_records()
    second = hold(preloaded)
    first.communicate(" ".join(str(offset) for offset, _ in pairs) + "\n")
    moved = preloaded.take_records()
    second.communicate("\n")
    alone, private = preloaded.run(command), preloaded.take_records()
    failures = []
    if code != 0 or first.returncode != 0 or alone[0] != 0:
        failures.append(f"status {code} {first.returncode} {alone[0]}: {errors!r}")
    if total(met, "memory_peak") > 0 or total(met, "reads") == 0:
        failures.append(f"it met another, and went on by itself: {met}")
    if not any(record["memory_peak"] == 0 and record["reads"] for record in moved):
        failures.append(f"another came, and it went on by itself: {moved}")
    if total(private, "memory_peak") == 0:
        failures.append(f"nobody else was there, and it did not go by itself: {private}")
    return failures


def start(preloaded: Preloaded, command: list[str]) -> list[subprocess.Popen[bytes]]:
    return [
        subprocess.Popen(
            command,
            cwd=preloaded.directory,
            env=preloaded.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        for _ in range(PROCESSES)
    ]


def main() -> int:
    library, queue = sys.argv[1:3]
    program = str(Path(sys.argv[3]).absolute())
    failures = []
    with tempfile.TemporaryDirectory(dir=".", prefix="posix-one-fetch-") as name:
        directory = Path(name).resolve()
        preloaded = Preloaded(library, queue, directory, "")
        command = [program, *OPTIONS, "--compute-us", "8000", "events"]
        for made in (["--create"], ["--intent", "reads.toml"]):
            preloaded.run([*command, *made], with_library=False)
        declared = (directory / "reads.toml").read_text()
        pairs = tomllib.loads(declared)["file"][0]["willneed"]
        (directory / "intent.toml").write_text(
            f'[[file]]\npath = "events"\npolicy = "page-cache"\nbudget = "4MiB"\n'
            f"willneed = {json.dumps(pairs)}\n"
        )
        wait_until_settled(directory)

        emptied = evict(directory / "events")
        codes = [(p.communicate()[1], p.returncode) for p in start(preloaded, command)]
        records = preloaded.take_records()
        fetched = total(records, "bytes_fetched")
        needed = sum(length for _, length in pairs)
        print(f"{PROCESSES} processes: {needed} bytes needed, {fetched} fetched")
        failures += [f"status {code}: {errors!r}" for errors, code in codes if code != 0]
        if len(records) != PROCESSES:
            failures.append(f"{len(records)} records")
        if emptied and not needed <= fetched <= needed * 1.05 + 2 * UNIT * len(pairs):
            failures.append(f"{fetched} bytes were fetched of {needed}")

        evict(directory / "events")
        processes = start(preloaded, command)
        processes[0].kill()
        codes = [(p.communicate()[1], p.returncode) for p in processes]
        failures += [f"status {code}: {errors!r}" for errors, code in codes[1:] if code != 0]
        if emptied:
            preloaded.take_records()
            intent = (directory / "intent.toml").read_text()
            (directory / "intent.toml").write_text(intent.replace('policy = "page-cache"\n', ""))
            failures += without_a_word(preloaded, command, pairs)
    print("\n".join(failures) or "all as it should be")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

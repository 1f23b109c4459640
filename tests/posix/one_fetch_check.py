"""Goal: the processes of a node that read one file fetch each byte once, and one that is killed
holds the others up in nothing.

Method: four processes have one file open that is in no cache, declared to be read through the page
cache, with a budget for all of it. When it is there they read it, and the bytes that they say they
brought must be those declared, once; none between them, since it is measured times that choose a
gap. Then three processes of the analysis workload, beside one that is killed when it has the file
open and has read some of it: the three must be right.
Without a word on how they should be read, and where there is no memory that they could share (they
may make no files as long as that), whoever meets another reader goes to the page cache, too: a
second process at once, the first one when it reads next.

usage: one_fetch_check.py LIBRARY uring|threads PROGRAM
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import tomllib
import zlib
from pathlib import Path

from preloaded import Preloaded, evict, start_reader, total, wait_until_resident, wait_until_settled

PROCESSES = 4
READ_BEFORE_KILLED = 5
OPTIONS = ["--size", "24MiB", "--reads", "120", "--mean", "80KiB", "--backward", "7"]
PAGE = 4096
BUDGET = 64 << 20  # of each process as much as all of them may count, bytes of others too
#: Enough for what readers tell each other, too little for what they share (512 bytes each).
LIMITED = ["sh", "-c", 'ulimit -f 2000; exec "$@"', "sh"]


def answers_to(preloaded: Preloaded, pairs: list[list[int]]) -> list[str]:
    """What a reader says of them."""
    content = (preloaded.directory / "events").read_bytes()
    return [f"{zlib.crc32(content[offset : offset + length])}\n" for offset, length in pairs]


def one_fetch(preloaded: Preloaded, pairs: list[list[int]]) -> list[str]:
    """What is wrong with what processes fetch and read."""
    file = preloaded.directory / "events"
    expected = answers_to(preloaded, pairs)
    pages = {n for at, length in pairs for n in range(at // PAGE, -(-(at + length) // PAGE))}
    emptied = evict(file)
    processes = [start_reader(preloaded) for _ in range(PROCESSES)]
    failures = []
    for offset, length in pairs if emptied else []:
        begin, end = offset // PAGE * PAGE, -(-(offset + length) // PAGE) * PAGE
        if not wait_until_resident(file, end - begin, begin, end - begin):
            failures.append(f"{length} bytes at {offset} did not come")
            break
    lines = "".join(f"{offset} {length}\n" for offset, length in pairs)
    answers = [process.communicate(lines)[0] for process in processes]
    if any(answer != "".join(expected) for answer in answers):
        failures.append("other bytes were read")
    records = preloaded.take_records()
    if len(records) != PROCESSES:
        failures.append(f"{len(records)} records")
    fetched = total(records, "bytes_fetched")
    needed = (len(pages) - 1) * PAGE  # one was read to see whether the page cache keeps it
    # Who is taken off the processor for longer than its turn lasts counts what another asks for.
    if emptied and not needed <= fetched <= needed * 1.05:
        failures.append(f"{fetched} bytes were fetched, not {needed}: {records}")
    return failures


def without_a_word(preloaded: Preloaded, command: list[str], pairs: list[list[int]]) -> list[str]:
    """What is wrong where the intent leaves the choice."""
    command = [*LIMITED, *command]
    evict(preloaded.directory / "events")
    first = start_reader(preloaded, *LIMITED)
    # By one opening, and by a second one when it has emptied the cache by a first.
    ends = [preloaded.run([*command, *words]) for words in ([], ["--cold"])]
    met = preloaded.take_records()
    second = start_reader(preloaded, *LIMITED)
    first.communicate("".join(f"{offset} {PAGE}\n" for offset, _ in pairs))
    moved = preloaded.take_records()
    second.communicate()
    alone, private = preloaded.run(command), preloaded.take_records()
    failures = []
    if first.returncode != 0 or any(code != 0 for code, _, _ in [*ends, alone]):
        failures.append(f"status {first.returncode}, {[*ends, alone]}")
    # Only requests into memory of a process are timed.
    if any(record["latency_seconds"] for record in met) or total(met, "reads") == 0:
        failures.append(f"it met another, and went on by itself: {met}")
    if not any(record["latency_seconds"] == 0 and record["reads"] for record in moved):
        failures.append(f"another came, and it went on by itself: {moved}")
    if not any(record["latency_seconds"] for record in private):
        failures.append(f"nobody else was there, and it did not go by itself: {private}")
    return failures


def beside_a_killed_one(
    preloaded: Preloaded, command: list[str], pairs: list[list[int]]
) -> list[str]:
    """What is wrong with processes of which one is killed on its way."""
    with start_reader(preloaded) as killed:
        others = [
            subprocess.Popen(
                command,
                cwd=preloaded.directory,
                env=preloaded.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            )
            for _ in range(PROCESSES - 1)
        ]
        assert killed.stdin is not None
        assert killed.stdout is not None
        answers = []
        for offset, length in pairs[:READ_BEFORE_KILLED]:
            killed.stdin.write(f"{offset} {length}\n")
            killed.stdin.flush()
            answers.append(killed.stdout.readline())
        killed.kill()
    ends = [(other.communicate()[1], other.returncode) for other in others]
    failures = [f"status {code}: {errors!r}" for errors, code in ends if code != 0]
    if answers != answers_to(preloaded, pairs[:READ_BEFORE_KILLED]):
        failures.append(f"who was killed had read other bytes, or none: {answers}")
    return failures


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
            f'[[file]]\npath = "events"\npolicy = "page-cache"\nbudget = {BUDGET}\ngap = 0\n'
            f"willneed = {json.dumps(pairs)}\n"
        )
        wait_until_settled(directory)

        failures += one_fetch(preloaded, pairs)
        emptied = evict(directory / "events")
        failures += beside_a_killed_one(preloaded, command, pairs)
        if emptied:
            preloaded.take_records()
            intent = (directory / "intent.toml").read_text()
            free = intent.replace('policy = "page-cache"\n', "")
            # The second one begins with what lies outside the file.
            for willneed in (json.dumps(pairs), "[[1000000000, 5], [0, 0]]"):
                (directory / "intent.toml").write_text(free.replace(json.dumps(pairs), willneed))
                failures += [
                    f"{willneed[:40]}: {failure}"
                    for failure in without_a_word(preloaded, command, pairs)
                ]
    print("\n".join(failures) or "all as it should be")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

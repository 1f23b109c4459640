"""Goal: what a program reads by std::ifstream is written down, and when that is declared it is in
the page cache before the next run reads it, which raises no doubt about the plan.

Method: a program that seeks and reads pieces of a file, out of order. Its trace has the pieces in
their order, with no more around them than the stream's buffer takes. A run with the trace as intent
waits until the piece that it reads first is there, and reads the same bytes.

usage: file_streams_check.py LIBRARY uring|threads PROGRAM
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from preloaded import Preloaded, evict, make_file, wait_until_resident, wait_until_settled

PIECES, STEP, LENGTH = 24, 300_000, 100_000
BUDGET = 1 << 20
BUFFER = 16_384  # bytes; more than a stream has
PLACES = [(PIECES - 1) * STEP, *(n * STEP for n in range(PIECES - 1))]


def wrong_trace(extents: list[list[int]]) -> list[str]:
    """The pieces lie in it, in their order, and little more."""
    missing = []
    rest = list(extents)
    for place in PLACES:
        while rest and not rest[0][0] <= place < sum(rest[0]):
            rest.pop(0)
        if not rest or sum(rest[0]) < place + LENGTH:
            missing.append(f"{place} is not in its place in {extents}")
    amount = sum(length for _, length in extents)
    if amount > PIECES * (LENGTH + BUFFER):
        missing.append(f"{amount} bytes are too many: {extents}")
    return missing


def read(preloaded: Preloaded, command: list[str], is_brought: bool = False) -> str:
    """What the program prints; if `is_brought`, once the first piece is in the page cache."""
    with preloaded.start(command) as program:
        assert program.stdout is not None
        program.stdout.readline()
        if is_brought and not wait_until_resident(
            preloaded.directory / "data", LENGTH, PLACES[0], LENGTH
        ):
            program.kill()
            return "nothing is brought"
        return program.communicate("go on\n")[0]


def main() -> int:
    library, queue = sys.argv[1:3]
    program = str(Path(sys.argv[3]).absolute())
    failures = []
    with tempfile.TemporaryDirectory(dir=".", prefix="posix-file-streams-") as name:
        directory = Path(name).resolve()
        content = make_file(directory / "data", PIECES * STEP, 1)
        expected = f"{sum(sum(content[at : at + LENGTH]) for at in PLACES)}\n"
        command = [program, "data", *map(str, (PIECES, STEP, LENGTH))]
        preloaded = Preloaded(library, queue, directory, "")
        preloaded.environment["FOREBAY_RECORD_READS"] = "1"
        if read(preloaded, command) != expected:
            failures.append("recorded: other bytes")
        (trace,) = preloaded.records.glob("*.trace")
        extents = json.loads(trace.read_bytes())["extents"]
        failures += wrong_trace(extents)

        del preloaded.environment["FOREBAY_RECORD_READS"]
        intent = f"[[file]]\npath = 'data'\nbudget = {BUDGET}\nwillneed = {extents}\n"
        (directory / "intent.toml").write_text(intent)
        wait_until_settled(directory)
        is_brought = evict(directory / "data")
        if read(preloaded, command, is_brought) != expected:
            failures.append("read ahead: other bytes")
        (record,) = preloaded.take_records()
        print(f"{len(extents)} extents recorded, {record['bytes_fetched']} bytes fetched")
        if record["plans_given_up"] != 0 or record["stopped"] != "":
            failures.append(f"what was read is what was declared: {record}")
    print("\n".join(failures) or "all as it was read")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

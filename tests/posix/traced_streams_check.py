"""Goal: a trace says of each call by a C stream where its bytes begin and how many they are, also
between calls of single characters, which are not traced each, and after calls that nothing returned
from; and calls by several threads at a time are told once each.

Method: traced_streams makes random calls and says where each began by ftell(); the rows of a trace
of it must say the same. Calls of single characters that follow each other count as one on both
sides. A failure prints its seed; --seed N repeats it.

usage: traced_streams_check.py TOOLKIT LIBRARY PROGRAM [--seed N]
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

SKIPPED = 77
SEEDS = 24
CALLS = 400
CHARACTERS = ("fgetc", "fputc")
READS = ("fread", "fgets", "getline", "getdelim", "fscanf")
MOVES = (*CHARACTERS, *READS, "fwrite", "fputs", "fprintf")

Call = tuple[str, int | None, int]


def rows_of(
    library: str, program: str, how: str, directory: Path
) -> tuple[str, list[dict[str, Any]]]:
    """What the program said, and the rows of its file in the order of time."""
    from forebay.trace import capture
    from forebay.trace.directory import Run, Trace

    spills, file = directory / "spills", directory / "file"
    spills.mkdir(parents=True)
    environment = os.environ | {"LD_PRELOAD": library, "FOREBAY_TRACE_DIR": str(spills)}
    command = [program, how, str(CALLS), str(file)]
    said = subprocess.run(
        command, env=environment, check=True, timeout=60, capture_output=True, text=True
    )
    capture.convert(spills, directory / "trace", Run())
    trace = Trace(directory / "trace")
    paths = trace.table("files")["path"].to_pylist()
    rows = [r for r in trace.table("posix").to_pylist() if r["file"] == paths.index(str(file))]
    return said.stdout, sorted(rows, key=lambda row: row["start_ns"])


def joined(calls: list[Call]) -> list[Call]:
    """With single characters that follow each other as one call, and without those of none."""
    found: list[Call] = []
    for name, offset, moved in calls:
        if name in CHARACTERS and moved == 0:
            continue
        if name in CHARACTERS and found and found[-1][0] == name:
            _, before, number = found[-1]
            if before is not None and before + number == offset:
                found[-1] = (name, before, number + moved)
                continue
        found.append((name, offset, moved))
    return found


def told_as_made(library: str, program: str, how: str, directory: Path) -> bool:
    said, rows = rows_of(library, program, how, directory)
    wanted = []
    for line in said.splitlines():
        name, offset, moved = line.split()
        wanted.append((name, int(offset), int(moved)))
    told = [
        (row["call"], row["offset"], 0 if row["call"] == "fseek" else max(0, row["result"]))
        for row in rows
        if row["call"] in (*MOVES, "fseek")
    ]
    wanted, told = joined(wanted), joined(told)
    for place, (a, b) in enumerate(zip(wanted, told, strict=False)):
        if a != b:
            print(f"seed {how}, call {place}: {a} was made, {b} is told", file=sys.stderr)
            return False
    if len(wanted) != len(told):
        print(f"seed {how}: {len(wanted)} calls, {len(told)} told", file=sys.stderr)
    return len(wanted) == len(told)


def calls_at_once(library: str, program: str, directory: Path) -> bool:
    _, rows = rows_of(library, program, "threads", directory)
    told = [row for row in rows if row["call"] in MOVES]
    size = (directory / "file").stat().st_size
    is_right = (
        len(told) == 4 * CALLS
        and {row["call"] for row in told} == {"fprintf"}
        and sum(row["result"] for row in told) == size
    )
    if not is_right:
        print(f"{len(told)} calls for {4 * CALLS} of threads", file=sys.stderr)
    return is_right


def main() -> int:
    toolkit, library, program = sys.argv[1:4]
    sys.path.insert(0, toolkit)
    try:
        import pyarrow  # noqa: F401
        import xxhash  # noqa: F401
    except ImportError as error:
        print(f"skipped: {error}")
        return SKIPPED
    ways = [*(str(seed) for seed in range(SEEDS)), "cancelled", "jumps"]
    if sys.argv[4:5] == ["--seed"]:
        ways = [sys.argv[5]]
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place)
        if not all(told_as_made(library, program, how, directory / how) for how in ways):
            return 1
        return 0 if calls_at_once(library, program, directory / "threads") else 1


if __name__ == "__main__":
    sys.exit(main())

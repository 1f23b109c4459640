"""Goal: the analysis workload checks what it reads, and declares exactly the bytes that it reads.

Method: a small file. Declared with gaps of several sizes; read alone; damaged; under the library
with the intent that the program wrote itself, whose extents must be all that is fetched, but for
the rounding to 4 KiB.

usage: analysis_check.py LIBRARY uring|threads PROGRAM
"""

from __future__ import annotations

import itertools
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

from preloaded import Preloaded, evict, wait_until_settled

OPTIONS = ["--size", "8MiB", "--reads", "60", "--mean", "50KiB", "--backward", "7"]
UNIT = 4096
READS, MEAN = 60, 50 * 1024
#: Mean gaps that can be asked for, and the first that the file has no room for.
GAPS = (0, 1, 3000, ((8 << 20) - READS * MEAN) // READS)


def wrong_gaps(preloaded: Preloaded, command: list[str]) -> Iterator[str]:
    """All that lies before and between the reads is as much as was asked for."""
    intent = preloaded.directory / "gaps.toml"
    words = [*command, "--intent", str(intent), "--gap"]
    for gap in GAPS:
        code, _, errors = preloaded.run([*words, str(gap)], with_library=False)
        pairs = tomllib.loads(intent.read_text())["file"][0]["willneed"] if code == 0 else []
        reads = sorted(map(tuple, pairs))
        ends = [0, *(offset + length for offset, length in reads)]
        gaps = [offset - end for (offset, _), end in zip(reads, ends, strict=False)]
        if (len(gaps), sum(gaps)) != (READS, READS * gap) or min(gaps) < 0:
            yield f"gaps of {gap}: {code}, {errors!r}, {gaps}"
    code, _, errors = preloaded.run([*words, str(GAPS[-1] + 1)], with_library=False)
    if code != 2 or b"do not fit" not in errors:
        yield f"gaps that do not fit: {code}, {errors!r}"


def main() -> int:
    library, queue = sys.argv[1:3]
    program = str(Path(sys.argv[3]).absolute())
    failures = []
    with tempfile.TemporaryDirectory(dir=".", prefix="posix-analysis-") as name:
        directory = Path(name).resolve()
        command = [program, *OPTIONS, "--compute-us", "100", "events"]
        preloaded = Preloaded(library, queue, directory, "")
        for made in (["--create"], ["--intent", "intent.toml"]):
            code, _, errors = preloaded.run([*command, *made], with_library=False)
            if code != 0:
                failures.append(f"{made}: {code}, {errors!r}")
        pairs = tomllib.loads((directory / "intent.toml").read_text())["file"][0]["willneed"]
        needed = sum(length for _, length in pairs)
        backward = sum(b[0] < a[0] for a, b in itertools.pairwise(pairs))
        if (len(pairs), needed, backward) != (READS, READS * MEAN, 7):
            failures.append(f"other reads than asked for: {len(pairs)}, {needed}, {backward}")

        failures += wrong_gaps(preloaded, command)

        code, output, errors = preloaded.run(command, with_library=False)
        if code != 0 or b"all bytes are right" not in output:
            failures.append(f"alone: {code}, {errors!r}")
        wait_until_settled(directory)
        emptied = evict(directory / "events")
        code, _, errors = preloaded.run(command)
        (record,) = preloaded.take_records()
        served, fetched = (int(str(record[key])) for key in ("bytes_served", "bytes_fetched"))
        print(f"{needed} bytes needed, {fetched} fetched, {served} served")
        if code != 0:
            failures.append(f"with the library: {code}, {errors!r}")
        if emptied and (2 * served < needed or fetched > needed + 2 * UNIT * len(pairs)):
            failures.append(f"not what was declared: {record}")

        with (directory / "events").open("r+b") as file:
            file.seek(pairs[30][0] + 5)
            byte = file.read(1)[0]
            file.seek(pairs[30][0] + 5)
            file.write(bytes([byte ^ 1]))
        code, _, errors = preloaded.run(command, with_library=False)
        if code != 1 or f"wrong at offset {pairs[30][0] + 5}".encode() not in errors:
            failures.append(f"damaged: {code}, {errors!r}")
    print("\n".join(failures) or "all as it should be")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

"""Goal: the analysis workload checks what it reads, and declares exactly the bytes that it reads.

Method: a small file. Read alone; damaged; under the library with the intent that the program wrote
itself, whose extents must be all that is fetched, but for the rounding to 4 KiB.

usage: analysis_check.py LIBRARY uring|threads PROGRAM
"""

from __future__ import annotations

import itertools
import sys
import tempfile
import tomllib
from pathlib import Path

from preloaded import Preloaded, evict, wait_until_settled

OPTIONS = ["--size", "8MiB", "--reads", "60", "--mean", "50KiB", "--backward", "7"]
UNIT = 4096


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
        if (len(pairs), needed, backward) != (60, 60 * 50 * 1024, 7):
            failures.append(f"other reads than asked for: {len(pairs)}, {needed}, {backward}")

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

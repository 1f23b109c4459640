"""Goal: files that are read ahead, or whose reads are written down, may be opened, read, sought and
closed in signal handlers, which may also fork, and open others on a stack of 8 KiB.

Method: the program `handlers` with a timer of half a millisecond, over a declared file and one that
is not; it must end by itself, with the right bytes, and records must tell of reads, and that some
were served, as the file is not in the page cache.

usage: handlers_check.py LIBRARY uring|threads PROGRAM
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from preloaded import Preloaded, evict, make_file, total, wait_until_settled

SIZE = 4 << 20
INTENT = '[[file]]\npath = "events"\nwillneed = [[0, 65536], [1048576, 65536]]\nbudget = "1MiB"\n'


def main() -> int:
    library, queue = sys.argv[1:3]
    program = str(Path(sys.argv[3]).absolute())
    failures = []
    with tempfile.TemporaryDirectory(dir=".", prefix="posix-handlers-") as name:
        directory = Path(name).resolve()
        make_file(directory / "events", SIZE, 7)
        make_file(directory / "undeclared", 1000, 8)
        wait_until_settled(directory)
        for policy in ("", 'policy = "page-cache"\n'):
            preloaded = Preloaded(library, queue, directory / f"with{len(policy)}", INTENT + policy)
            command = [program, str(directory / "events"), "20", str(directory / "undeclared")]
            emptied = evict(directory / "events")
            code, said, errors = preloaded.run(command)
            if code != 0:
                failures.append(f"{policy or 'own memory'}: status {code}: {said!r} {errors!r}")
            records = preloaded.take_records()
            if total(records, "reads") == 0:
                failures.append(f"{policy or 'own memory'}: no record tells of reads")
            if emptied and not policy and total(records, "reads_served") == 0:
                failures.append(f"nothing was served: {records}")
        preloaded = Preloaded(library, queue, directory / "recorded", "")
        preloaded.environment["FOREBAY_RECORD_READS"] = "1"
        code, said, errors = preloaded.run(command)
        if code != 0 or not any(preloaded.records.glob("*.trace")):
            failures.append(f"written down: status {code}: {said!r} {errors!r}")
    print("\n".join(failures) or "all as it should be")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

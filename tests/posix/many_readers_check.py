"""Goal: threads, signal handlers and thousands of openings, of one file and of as many, get right
bytes from what is read ahead, threads that are cancelled end as without Forebay, and nothing hangs.

Method: many_readers checks every byte itself. Each way of reading runs with the file out of the
page cache; those that wait, at their first opening, until it is read ahead must be served. Of ten
thousand openings, or as many as may be open, the records tell of each.

usage: many_readers_check.py LIBRARY uring|threads PROGRAM
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from preloaded import Preloaded, evict, total, wait_until_settled

INTENT = """
[[file]]
path = "many.dat"
willneed = [[0, 0]]
block = "64KiB"
budget = "1MiB"

[[file]]
path = "*/files/*"
willneed = [[0, 0]]
block = "4KiB"
budget = "32KiB"

[[file]]
path = "*/advised/*"
willneed = [[0, 0]]
policy = "page-cache"
"""

#: So many are opened where the limit on descriptors allows it.
WANTED = 10_000
#: They wait until the file is read ahead.
MUST_SERVE = ("threads", "signals", "allocating")


def openings_told(preloaded: Preloaded, records: list[dict[str, object]]) -> int:
    """By the records of files, and by those of further ones together."""
    told = total(records, "openings")
    for path in preloaded.records.glob("*.left-alone"):
        told += int(json.loads(path.read_bytes())["openings"])
        path.unlink()
    return told


def wrong_openings(preloaded: Preloaded, records: list[dict[str, object]], said: bytes) -> bool:
    """Whether the records tell of others than the program says."""
    opened, told = int(said), openings_told(preloaded, records)
    limit = "" if opened == WANTED else f", not {WANTED}: no more may be open"
    print(f"{opened} openings{limit}; {told} of them told")
    return opened != told


def main() -> int:
    library, queue = sys.argv[1:3]
    program = str(Path(sys.argv[3]).absolute())
    failures = 0
    with tempfile.TemporaryDirectory(dir=".", prefix="posix-many-") as name:
        directory = Path(name).resolve()
        preloaded = Preloaded(library, queue, directory, INTENT)
        preloaded.run([program, "make", "many.dat"], with_library=False)
        for files in ("files", "advised"):
            (directory / files).mkdir()
            preloaded.run([program, "make_files", files], with_library=False)
        wait_until_settled(directory)
        for what in ("threads", "signals", "allocating", "cancelled", "openings"):
            emptied = evict(directory / "many.dat")
            code, said, errors = preloaded.run([program, what, "many.dat"])
            records = preloaded.take_records()
            served = total(records, "bytes_served")
            print(f"{what}: status {code}, {len(records)} openings, {served} bytes served")
            if served == 0 and emptied and what in MUST_SERVE:
                failures += 1
                print("nothing was served")
            if code != 0 or (what == "openings" and wrong_openings(preloaded, records, said)):
                failures += 1
                print(errors.decode(errors="replace"))
        for files in ("files", "advised"):
            code, said, errors = preloaded.run([program, "files", files])
            records = preloaded.take_records()
            print(f"{files}: status {code}, {len(records)} records")
            if code != 0 or wrong_openings(preloaded, records, said):
                failures += 1
                print(errors.decode(errors="replace"))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

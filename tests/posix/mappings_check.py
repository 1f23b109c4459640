"""Goal: letting go of what was read through a mapping destroys nothing that a program puts in its
place; and a file that was in the page cache before stays there.

Method: the program `mappings` over a declared file, which it takes out of the page cache each time;
records must tell that something was brought there. Then over one that stays there.

usage: mappings_check.py LIBRARY uring|threads PROGRAM
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from preloaded import Preloaded, evict, resident_bytes, total, wait_until_settled

PIECE = 64 << 10
PIECES = 16
SIZE = PIECE * PIECES
INTENT = (
    '[[file]]\npath = "events"\nbudget = "512KiB"\n'
    f"willneed = {[[n * PIECE, PIECE] for n in range(PIECES)]}\n"
)


def main() -> int:
    library, queue = sys.argv[1:3]
    program = str(Path(sys.argv[3]).absolute())
    failures = []
    with tempfile.TemporaryDirectory(dir=".", prefix="posix-mappings-") as name:
        directory = Path(name).resolve()
        path = directory / "events"
        path.write_bytes(bytes((n // PIECE * 7 + n % 251) % 256 for n in range(SIZE)))
        wait_until_settled(directory)
        preloaded = Preloaded(library, queue, directory, INTENT)
        emptied = evict(path)
        code, said, errors = preloaded.run([program, str(path), "200", "cold"])
        if code != 0:
            failures.append(f"status {code}: {said!r} {errors!r}")
        if emptied and total(preloaded.take_records(), "bytes_fetched") == 0:
            failures.append("nothing was brought")
        path.read_bytes()
        code, said, errors = preloaded.run([program, str(path), "20", "warm"])
        if code != 0:
            failures.append(f"in the page cache: status {code}: {said!r} {errors!r}")
        if emptied and resident_bytes(path) < SIZE:
            failures.append(f"of what was in the page cache {resident_bytes(path)} bytes are left")
    print("\n".join(failures) or "all as it should be")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

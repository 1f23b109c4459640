"""Goal: independent reads of MPI-IO are read ahead like those of any other program, by what the
same intent file declares, ranks share what is fetched, and nothing is fetched for the MPI's own
opening of the file.

Method: two ranks read a declared file in step, by MPI_File_read_at, MPI_File_read and
MPI_File_iread_at (tests/mpi/intercept_read_ahead.c, which checks the bytes). The records say what
was fetched and served. There is one for each rank, and perhaps one for the first until it went
together with the second.

usage: mpi_check.py DIRECTORY RANKS COMMAND...
"""

from __future__ import annotations

import shutil
import struct
import sys
from pathlib import Path

from preloaded import Preloaded, evict, total, wait_until_settled

#: As the program has them.
PIECE, STEP, PIECES = 40_000, 100_000, 120
SIZE = STEP * PIECES
BUDGET = 1 << 20


def main() -> int:
    directory, ranks, command = Path(sys.argv[1]).resolve(), int(sys.argv[2]), sys.argv[3:]
    shutil.rmtree(directory, ignore_errors=True)
    willneed = [[n * STEP, PIECE] for n in range(PIECES)]
    intent = (
        f'[[file]]\npath = "read_ahead.dat"\nwillneed = {willneed}\nbudget = {BUDGET}\ngap = 0\n'
    )
    preloaded = Preloaded("within", "uring", directory, intent)
    content = struct.pack(f"<{SIZE // 8}Q", *range(0, SIZE, 8))
    (directory / "read_ahead.dat").write_bytes(content)
    wait_until_settled(directory)
    emptied = evict(directory / "read_ahead.dat")
    code, output, errors = preloaded.run(command)
    records = preloaded.take_records()
    fetched, served = total(records, "bytes_fetched"), total(records, "bytes_served")
    needed = PIECE * PIECES
    print(f"{len(records)} openings, {fetched} bytes fetched, {served} served")
    if code != 0:
        print(f"status {code}: {output!r} {errors!r}")
        return 1
    if len(records) >= 2 * ranks:
        print(f"{len(records)} openings were read ahead: {records}")
        return 1
    if emptied and served < needed * ranks // 2:
        print(f"{served} bytes were served of {needed * ranks}: {records}")
        return 1
    # What the first one fetched before it saw the second is fetched again.
    if emptied and fetched > 1.1 * needed + 2 * BUDGET:
        print(f"{fetched} bytes were fetched of {needed}: {records}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Goal: with the write-behind cache on and nothing else said, all that ranks write together waits
in logs, also where their parts are smaller than what of a file is one rank's at a time; and it is
in the file at the end.

Method: run intercept_cache_absorbed, on one node and on several emulated ones, with logs in memory;
count what its record says that logs took, and compare each byte.

Usage: intercept_cache_absorbed_check.py DIRECTORY RANKS COMMAND...
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

STEPS = 24
HEADER = 100
PART = 100_000


def expected(ranks: int) -> bytes:
    content = bytearray()
    for step in range(STEPS):
        for rank, length in [(100, HEADER), *((rank, PART) for rank in range(ranks))]:
            first = step * 31 + rank * 57
            period = bytes((first + i) % 256 for i in range(251))
            content += (period * (length // 251 + 1))[:length]
    return bytes(content)


def main() -> int:
    directory, ranks, command = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    content = expected(ranks)
    for nodes in ({}, {"FOREBAY_RANKS_PER_NODE": "1"}):
        with tempfile.TemporaryDirectory(dir=directory) as reports:
            environment = os.environ | {
                "FOREBAY_REPORT_DIR": reports,
                "FOREBAY_HINTS": "forebay_cache=enable",
            }
            subprocess.run(command, env=environment | nodes, check=True, timeout=100)
            (record,) = (json.loads(path.read_bytes()) for path in Path(reports).glob("*.json"))
        assert record["nodes"] == (ranks if nodes else 1), record
        assert record["counters"]["cache_absorbed"] == len(content), record
        assert not any("given up" in note for note in record["notes"]), record
        assert (directory / "absorbed.dat").read_bytes() == content, nodes
    return 0


if __name__ == "__main__":
    sys.exit(main())

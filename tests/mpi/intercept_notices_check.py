"""Goal: what the user got wrong is said once, by one rank, with what would be right; no more.

Method: run intercept_notices, which gives the same wrong hint six times on two ranks, and two too
late three times, with settings from outside that are right and wrong; count the lines on standard
error.

Usage: intercept_notices_check.py COMMAND...
"""

from __future__ import annotations

import os
import subprocess
import sys


def notices(**environment: str) -> list[str]:
    """The lines that Forebay says in a run with these variables."""
    done = subprocess.run(
        sys.argv[1:],
        env=os.environ | environment,
        stderr=subprocess.PIPE,
        text=True,
        check=True,
        timeout=60,
    )
    return [line for line in done.stderr.splitlines() if "forebay" in line.lower()]


def main() -> int:
    hint, late, cache = notices()
    assert hint.startswith("forebay: /"), hint
    assert 'notices.dat: MPI_Info: cb_nodes = "banana"' in hint, hint
    assert "accepted: a whole number" in hint, hint
    assert "notices.dat: MPI_Info: data has gone through aggregators already" in late, late
    assert "notices.dat: MPI_Info: the write-behind cache stays as it was" in cache, cache

    mode, *again = notices(FOREBAY_MODE="banana")
    assert mode == "forebay: FOREBAY_MODE=banana has no effect; accepted: engine, observe or off"
    assert again == [hint, late, cache]

    nodes, *again = notices(FOREBAY_RANKS_PER_NODE="2x")
    assert nodes == (
        "forebay: FOREBAY_RANKS_PER_NODE=2x has no effect; accepted: a whole number from 1 up"
    )
    assert again == [hint, late, cache]

    for quiet in ("observe", "off"):
        assert notices(FOREBAY_MODE=quiet) == []
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Goal: what failed stands in the record in words, with the file, the range and the reason.

Method: run intercept_failures, in which one write of each rank is refused, and read its record.

Usage: intercept_failures_check.py DIRECTORY RANKS COMMAND...
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path


def main() -> int:
    directory, ranks, command = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    with tempfile.TemporaryDirectory(dir=directory) as reports:
        environment = os.environ | {"FOREBAY_REPORT_DIR": reports}
        subprocess.run(command, env=environment, check=True, timeout=60)
        (path,) = Path(reports).iterdir()
        failures = json.loads(path.read_bytes())["failures"]
    assert len(failures) == ranks, failures
    for rank in range(ranks):
        begin = f"write 8192 bytes at {8192 * (rank + 1)} to {directory.resolve()}/failures.dat: "
        (found,) = (what for what in failures if what.startswith(begin))
        assert "too large" in found, found
        assert failures[found] == 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Goal: why files pass through, where a program has too many open, stands in their records.

Method: run intercept_many_files and count the records and their reasons.

Usage: intercept_many_files_check.py DIRECTORY RANKS COMMAND...
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

CROWDED = "as many files are open as Forebay has communicators for"
SHORT = "few file descriptors are left"


def kind(record: dict[str, Any]) -> tuple[int, str]:
    """Ranks of a file, and why it passed through; "" if it did not."""
    reasons = list(record["passed_through"]) or [""]
    assert len(reasons) == 1, record
    return record["ranks"], reasons[0]


def main() -> int:
    directory, ranks, command = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    with tempfile.TemporaryDirectory(dir=directory) as reports:
        environment = os.environ | {"FOREBAY_REPORT_DIR": reports}
        subprocess.run(command, env=environment, check=True, timeout=150)
        records = [json.loads(path.read_bytes()) for path in Path(reports).iterdir()]
    found = Counter(kind(record) for record in records)
    for alone in (1, ranks):
        assert found[alone, ""] > 0, found
        assert found[alone, SHORT] > 0, found
    assert found[ranks, CROWDED] > 0, found
    assert set(found) == {(1, ""), (1, SHORT), (ranks, ""), (ranks, SHORT), (ranks, CROWDED)}
    assert all(
        "only the calls of rank 0" in r["notes"][0] for r in records if kind(r)[1] == CROWDED
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())

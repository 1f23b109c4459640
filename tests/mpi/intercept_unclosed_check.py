"""Goal: the report tells of files that the program never closes, and what any rank has to say.

Method: run intercept_unclosed. There must be a record of each of its files, with all calls, and
what is in the cache must be in the file; of the one whose cache a rank gives up, that rank's reason
must be told, which is not the one that writes the record.

Usage: intercept_unclosed_check.py DIRECTORY RANKS COMMAND...
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

PART, PARTS = 4096, 4


def main() -> None:
    directory, ranks = Path(sys.argv[1]), int(sys.argv[2])
    shutil.rmtree(directory, ignore_errors=True)
    reports = directory / "reports"
    reports.mkdir(parents=True)
    environment = os.environ | {"FOREBAY_REPORT_DIR": str(reports)}
    subprocess.run(sys.argv[3:], env=environment, check=True, timeout=100)
    records = {}
    for path in reports.glob("*.json"):
        record = json.loads(path.read_bytes())
        records[Path(record["path"]).name.partition("-")[2]] = record
    assert sorted(records) == ["cached", "given-up", "plain"], sorted(records)
    for name, record in records.items():
        assert record["calls"]["write"] == PARTS * ranks, (name, record)
        assert record["calls"]["close"] == (ranks if name == "given-up" else 0), (name, record)
        expected = b"".join(bytes([ord("a") + rank]) * PART for rank in range(ranks)) * PARTS
        assert Path(record["path"]).read_bytes() == expected, name
    assert records["cached"]["counters"]["cache_drained"] == PART * PARTS * ranks, records["cached"]
    assert records["cached"]["hints"]["forebay_cache"] == "enable", records["cached"]
    given_up = [note for note in records["given-up"]["notes"] if "given up" in note]
    assert len(given_up) == 1, records["given-up"]
    assert not any("given up" in note for note in records["cached"]["notes"]), records["cached"]
    shutil.rmtree(directory)


if __name__ == "__main__":
    main()

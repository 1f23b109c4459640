"""Goal: a run leaves a whole record that says what happened (docs/formats/report.md).

Method: run intercept_report, whose figures are known, under the preload in both modes, with the
storage counters on; check file name, checksum and figures.

Usage: intercept_report_check.py CHECKSUM_PROGRAM DIRECTORY RANKS COMMAND...
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

#: Bytes that each rank writes and reads.
BYTES_PER_RANK = 4000


def record_of(mode: str, directory: Path, command: list[str]) -> dict[str, Any]:
    """The one record of a run of `command`, whose MPI launcher passes the environment on."""
    reports = directory / mode
    shutil.rmtree(reports, ignore_errors=True)
    reports.mkdir(parents=True)
    environment = os.environ | {
        "FOREBAY_MODE": mode,
        "FOREBAY_REPORT_DIR": str(reports),
        "FOREBAY_COUNT_STORAGE": "1",
    }
    subprocess.run(command, env=environment, check=True, timeout=100)
    (path,) = reports.iterdir()
    pid, sequence, checksum = path.name.removesuffix(".json").split("-")
    assert pid.isdecimal(), path.name
    assert sequence == "0", path.name
    assert xxh64(path) == checksum, f"{path.name} has another checksum"
    record: dict[str, Any] = json.loads(path.read_bytes())
    return record


def xxh64(path: Path) -> str:
    result = subprocess.run([sys.argv[1], str(path)], capture_output=True, text=True, check=True)
    return result.stdout.strip()


def check(record: dict[str, Any], mode: str, ranks: int) -> None:
    assert record["version"] == 1
    assert record["mode"] == mode
    assert record["ranks"] == ranks
    assert record["nodes"] == 1
    assert record["amode"] == ["RDWR", "CREATE"]
    assert Path(record["path"]).is_absolute()
    assert record["file_system"] != "unknown"
    assert record["calls"] == {
        "open": ranks,
        "write": 2 * ranks,
        "read": 2 * ranks,
        "sync": ranks,
        "close": ranks,
        "other": 0,
    }
    seconds_max = {name: seconds["max"] for name, seconds in record["seconds"].items()}
    together = record["seconds_together"]
    for name, classes in {
        "writing": ("write", "sync", "close"),
        "data": ("write", "read"),
        "all": tuple(seconds_max),
    }.items():
        parts = [seconds_max[one] for one in classes]
        assert max(parts) <= together[name] <= sum(parts) + 1e-8, name
    for name, seconds in record["seconds"].items():
        assert 0 <= seconds["max"] <= seconds["sum"], name
        assert (seconds["sum"] > 0) == (record["calls"][name] > 0), name
    moved = BYTES_PER_RANK * ranks
    assert record["storage"]["write_bytes"] >= moved, record["storage"]
    assert record["storage"]["read_bytes"] >= moved, record["storage"]
    assert record["passed_through"] == {}
    assert ("counters" in record) == (mode == "engine")
    if mode == "engine":
        counters = record["counters"]
        assert counters["write_calls"] == counters["read_calls"] == 2 * ranks
        assert counters["bytes_written"] == counters["bytes_read"] == moved
        assert counters["storage_bytes_written"] == moved
        assert counters["collective_calls"] == 2 * ranks
        assert record["hints"]["forebay"] == "enable"


def main() -> int:
    directory, ranks, command = Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
    for mode in ("engine", "observe"):
        check(record_of(mode, directory, command), mode, ranks)
    return 0


if __name__ == "__main__":
    sys.exit(main())

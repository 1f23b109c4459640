"""Goal: a program that is killed while its logs are flushed, in a sync, in a close, or while the
file is finished after a close that did not wait, loses nothing of the accesses that were finished:
a recovery brings all to the file, and after it nothing is left to be recovered. What it left when
it opened the file says where to look.

Method: run intercept_cache_killed, of which one rank dies at its nth call that changes a file or a
name, for rising n up to the first that is not reached; recover with forebay-cache; compare each
byte.

Usage: intercept_cache_killed_check.py FOREBAY_CACHE DIRECTORY RANKS COMMAND...
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import recovering

BLOCK = 4096
BLOCKS = 64
CALLS = (0, 2, 5, 9, 15, 30, 60, 120)

#: How the file is flushed, for each moment at which ranks are killed.
MOMENTS = {"write": "immediate", "sync": "onsync", "close": "onclose", "drain": "deferred"}


def written(turn: int, ranks: int) -> bytes:
    content = bytearray()
    for i in range(BLOCKS):
        for rank in range(ranks):
            first = turn * 100 + rank * 7
            content += bytes(first + j % 50 for j in range(i * BLOCK, (i + 1) * BLOCK))
    return bytes(content)


def run(directory: Path, moment: str, rank: int, call: int, command: list[str]) -> bool:
    """Whether the call was reached, and the program killed."""
    shutil.rmtree(directory, ignore_errors=True)
    for name in ("logs", "records"):
        (directory / name).mkdir(parents=True)
    environment = os.environ | {
        "FOREBAY_HINTS": f"forebay_cache=enable;forebay_cache_path={directory / 'logs'};"
        f"forebay_cache_flush={MOMENTS[moment]};forebay_cache_capacity=32MiB;"
        "romio_cb_write=enable;cb_buffer_size=65536",
        "FOREBAY_REPORT_DIR": str(directory / "records"),
    }
    result = subprocess.run(
        [*command, moment, str(rank), str(call), str(directory / "data")],
        env=environment,
        timeout=100,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "intercept_cache_killed.c" not in result.stderr, result.stderr
    marks = [json.loads(mark.read_text()) for mark in (directory / "records").glob("*.cached")]
    where = {"path": str(directory / "data"), "log_path": str(directory / "logs")}
    assert marks, "each opening leaves one"
    assert all(mark == {"version": 1, **where} for mark in marks), marks
    return result.returncode != 0


def recover(program: str, directory: Path) -> None:
    words = ["--directory", str(directory / "logs"), "--file", str(directory / "data")]
    files = recovering.recover(program, *words)
    assert all(file["state"] == "recovered" and not file["damage"] for file in files), files
    assert not (directory / ".data.forebay-dirty").exists()


def judge(directory: Path, moment: str, ranks: int) -> None:
    content = (directory / "data").read_bytes()
    first, last = written(0, ranks), written(1, ranks)
    if moment != "write":
        assert content == last
        return
    # The second access may have been finished or not, on each rank.
    assert len(content) == len(first)
    assert all(a in (b, c) for a, b, c in zip(content, first, last, strict=True))


def main() -> None:
    program, directory, ranks = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    for moment in MOMENTS:
        kills = 0
        for call in CALLS:
            killed = run(directory, moment, call % ranks, call, sys.argv[4:])
            recover(program, directory)
            judge(directory, moment, ranks)
            if not killed:
                break
            kills += 1
        assert kills > 2, moment
    shutil.rmtree(directory)


if __name__ == "__main__":
    main()

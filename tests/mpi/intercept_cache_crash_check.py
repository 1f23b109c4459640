"""Goal: what a program wrote before it was killed is in the file after a recovery, the newest; and
a program that is run before that is told, and its bytes are not written over.

Method: run intercept_cache_crash, which kills one of its ranks or all while everything is in logs;
recover with forebay-cache; compare each byte.

Usage: intercept_cache_crash_check.py FOREBAY_CACHE DIRECTORY RANKS COMMAND...
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import recovering

BLOCK = 1000
BLOCKS = 32


def expected(ranks: int) -> bytes:
    """The third turn of every rank, and over its first block what it wrote by itself."""
    content = bytearray(BLOCK * BLOCKS * ranks)
    for rank in range(ranks):
        for i in range(BLOCKS):
            at = BLOCK * (i * ranks + rank)
            turn = bytes((180 + rank * 7 + j % 50) % 256 for j in range(i * BLOCK, (i + 1) * BLOCK))
            content[at : at + BLOCK] = turn if i else bytes([250 + rank]) * BLOCK
    return bytes(content)


def run(victim: int, directory: Path, command: list[str]) -> str:
    """Leaves the file's bytes in logs. Returns what was said."""
    environment = os.environ | {
        "FOREBAY_HINTS": f"e10_cache=enable;e10_cache_path={directory / 'logs'};"
        "forebay_cache_flush=onclose;forebay_cache_capacity=32MiB;romio_cb_write=enable"
    }
    result = subprocess.run(
        [*command, str(victim), str(directory / "data")],
        env=environment,
        timeout=100,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode != 0, "the program was not killed"
    return result.stderr


def recover(program: str, logs: Path, data: Path, *options: str) -> str:
    """What became of the file."""
    words = [*options, "--directory", str(logs), "--file", str(data)]
    (file,) = recovering.recover(program, *words)
    return str(file["state"])


def main() -> None:
    program, directory, ranks = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    for victim in (-1, *range(ranks)):
        shutil.rmtree(directory, ignore_errors=True)
        (directory / "logs").mkdir(parents=True)
        run(victim, directory, sys.argv[4:])
        data = directory / "data"
        assert (directory / ".data.forebay-dirty").is_dir(), "nobody is warned"
        assert recover(program, directory / "logs", data) == "recovered"
        assert data.read_bytes() == expected(ranks), f"rank {victim} was killed"
        assert not (directory / ".data.forebay-dirty").exists()
        assert not list((directory / "logs").glob("*/[!.]*"))
    run_twice(program, directory, ranks)


def run_twice(program: str, directory: Path, ranks: int) -> None:
    """Without a recovery in between."""
    shutil.rmtree(directory)
    logs, data = directory / "logs", directory / "data"
    logs.mkdir(parents=True)
    said = run(-1, directory, sys.argv[4:])
    assert "earlier program" not in said, said
    deadline = time.monotonic() + 60
    while "earlier program" not in said:  # As long as a killed rank is not gone, none is told of.
        assert time.monotonic() < deadline, said
        said = run(-1, directory, sys.argv[4:])
    assert f"forebay cache recover {data}" in said, said
    assert recover(program, logs, data) == "overtaken"
    assert recover(program, logs, data, "--overtaken", "replay") == "recovered"
    assert data.read_bytes() == expected(ranks)
    assert not (directory / ".data.forebay-dirty").exists()
    assert not list(logs.glob("*/[!.]*"))


if __name__ == "__main__":
    main()

"""Goal: what intercept_cache_faults says; and what a failed close left in logs is recovered.

Method: run its cases. Those with file systems that are full need small ones of their own, which
only root may make; everybody else is told that they were left out.

Usage: intercept_cache_faults_check.py FOREBAY_CACHE DIRECTORY RANKS COMMAND...
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

BLOCK = 4096
BLOCKS = 32
START = 64 << 20


def expected(ranks: int, turns: int) -> bytes:
    """What the ranks wrote, blocks in turn."""
    content = bytearray()
    for i in range(turns * BLOCKS):
        turn, first = i // BLOCKS + 1, i % BLOCKS * BLOCK
        for rank in range(ranks):
            content += bytes(
                1 + (rank * 31 + turn * 57 + (first + j) * 7) % 251 for j in range(BLOCK)
            )
    return bytes(content)


@contextmanager
def small_file_system(place: Path, size: str) -> Iterator[None]:
    """A tmpfs at `place`. Raises PermissionError where the user may not mount one."""
    place.mkdir(exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)]
    mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    if mounted.returncode != 0:
        raise PermissionError(mounted.stderr.strip())
    try:
        yield
    finally:
        subprocess.run(["umount", str(place)], check=True)


def main() -> None:
    program, directory, ranks = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    shutil.rmtree(directory, ignore_errors=True)
    logs = directory / "logs"
    data = directory / "data.dat"
    logs.mkdir(parents=True)

    def run(case: str, place: Path) -> None:
        subprocess.run([*sys.argv[4:], case, str(place), str(logs)], check=True, timeout=150)
        leaves = case in ("left", "stays", "read-only")
        assert leaves or not [path for path in logs.rglob("*") if path.is_file()], case

    def recover(incomplete: str) -> dict[str, object]:
        command = [program, "recover", "--incomplete", incomplete, "--directory", str(logs)]
        result = subprocess.run(
            [*command, "--file", str(data)], capture_output=True, text=True, check=False
        )
        (file,) = json.loads(result.stdout.splitlines()[-1])["files"]
        assert isinstance(file, dict)
        return file

    run("refused", directory)

    run("left", directory)
    assert (directory / ".data.dat.forebay-dirty").is_dir(), "nobody is warned"
    file = recover("drop")
    assert file["state"] == "recovered", file
    with data.open("rb") as content:
        content.seek(START)
        assert content.read() == expected(ranks, 2)
    data.unlink()

    # What was written since is newer than what is in the logs: in the first case these say that
    # they are flushed, in the second they could not, and a recovery asks.
    for case, state in (("stays", "recovered"), ("read-only", "overtaken")):
        run(case, directory)
        with data.open("r+b") as content:
            content.write(b"newer")
        file = recover("replay")
        assert file["state"] == state, (case, file)
        assert data.read_bytes() == b"newer" + expected(ranks, 2)[5:], case
        shutil.rmtree(logs)
        shutil.rmtree(directory / ".data.dat.forebay-dirty", ignore_errors=True)
        logs.mkdir()
        data.unlink()

    try:
        with small_file_system(directory / "small", "4m"):
            run("full-file", directory / "small")
        with small_file_system(logs, "40m"):
            run("full-log", directory)
    except PermissionError as reason:
        print(f"left out: full file systems ({reason})")
    shutil.rmtree(directory)


if __name__ == "__main__":
    main()

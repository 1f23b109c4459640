"""Goal: what ranks agreed on before their program was killed is in the file after a recovery, also
where nodes are lost with it, as many as the redundancy is good for; and a node that cannot keep
its part of the protection is told of and is no error. A file that is never closed is whole when
the program ends.

Method: run intercept_cache_lost_node on emulated nodes, remove the directories of some, recover
with forebay-cache, compare each byte. A full node needs a file system of its own, which only root
may make; everybody else is told that it was left out.

Usage: intercept_cache_lost_node_check.py FOREBAY_CACHE DIRECTORY RANKS COMMAND...
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import recovering

BLOCK = 4096
BLOCKS = 64
TURNS = 8

NOTE = "no protection against the loss of nodes any more"


def expected(ranks: int) -> bytes:
    """What the last turn wrote."""
    content = bytearray()
    for i in range(BLOCKS):
        for rank in range(ranks):
            first = TURNS * 30 + rank * 7
            content += bytes((first + j % 50) % 256 for j in range(i * BLOCK, (i + 1) * BLOCK))
    return bytes(content)


class Job:
    """One run of the program, each rank on a node of its own."""

    def __init__(self, directory: Path, ranks: int) -> None:
        shutil.rmtree(directory, ignore_errors=True)
        (directory / "logs").mkdir(parents=True)
        (directory / "report").mkdir()
        self.directory = directory
        self.data = directory / "data"
        self.ranks = ranks

    def node(self, number: int) -> Path:
        return self.directory / "logs" / f"node-{number}"

    def run(
        self,
        case: str,
        redundancy: str,
        command: list[str],
        aggregators: int,
        flush: str = "onclose",
    ) -> int:
        environment = os.environ | {
            "FOREBAY_RANKS_PER_NODE": "1",
            "FOREBAY_REPORT_DIR": str(self.directory / "report"),
            "FOREBAY_HINTS": f"forebay_cache=enable;forebay_cache_path={self.directory / 'logs'};"
            f"forebay_cache_flush={flush};forebay_cache_capacity=64MiB;"
            "forebay_cache_compress=disable;"
            f"forebay_cache_redundancy={redundancy};"
            f"romio_cb_write=enable;cb_nodes={aggregators};cb_buffer_size=16384",
        }
        result = subprocess.run(
            [*command, case, str(self.data)],
            env=environment,
            timeout=150,
            capture_output=True,
            text=True,
            check=False,
        )
        if case in ("close", "finalize"):
            assert result.returncode == 0, result.stderr
        return result.returncode

    def recover(self, program: str, lost: list[int]) -> dict[str, Any]:
        """What became of the file."""
        words = ["--file", str(self.data)]
        for number in lost:
            words += ["--lost", f"{socket.gethostname()}:{number}"]
        (file,) = recovering.recover(program, *words)
        return file

    def logs_left(self) -> list[Path]:
        return list((self.directory / "logs").glob("**/forebay-cache-*/[!.]*"))


def lose_nodes(
    program: str, job: Job, case: str, redundancy: str, lost: list[int], command: list[str]
) -> None:
    assert job.run(case, redundancy, command, job.ranks) != 0, "the program was not killed"
    assert (job.directory / ".data.forebay-dirty").is_dir(), "nobody is warned"
    for number in lost:
        shutil.rmtree(job.node(number))
    file = job.recover(program, lost)
    if case == "begin":
        assert file["state"] == "partial", file
        return
    assert file["state"] == "recovered", file
    assert file["rebuilt_logs"] == len(lost), file
    assert not file["damage"], file
    assert job.data.read_bytes() == expected(job.ranks), (case, redundancy, lost)
    assert not (job.directory / ".data.forebay-dirty").exists()
    assert not job.logs_left()


def fill_a_node(job: Job, command: list[str]) -> None:
    """Rank 0 alone has a log, whose copy node 1 keeps, which has less room than that takes."""
    place = job.node(1)
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=3m,mode=700", "tmpfs", str(place)]
    mounted = subprocess.run(mount, capture_output=True, text=True, check=False)
    if mounted.returncode != 0:
        print(f"left out: a full node ({mounted.stderr.strip()})")
        return
    try:
        job.run("close", "partner", command, 1)
        (report,) = (job.directory / "report").glob("*.json")
        record = json.loads(report.read_text())
        assert any(NOTE in note for note in record["notes"]), record["notes"]
        assert not record["failures"], record
        assert job.data.read_bytes() == expected(job.ranks)
        assert not job.logs_left()
    finally:
        subprocess.run(["umount", str(place)], check=True)


def main() -> None:
    program, directory, ranks = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    command = sys.argv[4:]
    cases = [
        ("commit", "partner", [1]),
        ("commit", "parity:3+1", [2]),
        ("commit", "parity:2+2", [0, 3]),
        ("begin", "partner", [1]),
        ("end", "parity:3+1", [0]),
    ]
    for case, redundancy, lost in cases:
        lose_nodes(program, Job(directory, ranks), case, redundancy, lost, command)
    for case, redundancy, flush in (
        ("close", "parity:2+1", "onclose"),
        ("finalize", "parity:2+1", "onclose"),
        ("finalize", "partner", "deferred"),
        ("finalize", "none", "deferred"),
    ):
        job = Job(directory, ranks)
        job.run(case, redundancy, command, ranks, flush)
        assert job.data.read_bytes() == expected(ranks), (case, redundancy, flush)
        assert not job.logs_left(), (case, redundancy, flush)
        assert not (directory / ".data.forebay-dirty").exists()
    fill_a_node(Job(directory, ranks), command)
    shutil.rmtree(directory)


if __name__ == "__main__":
    main()

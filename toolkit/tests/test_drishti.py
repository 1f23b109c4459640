"""Goal: Drishti, which advises on Darshan's logs, reads those that are exported, and finds in them
what the program did.

Method: runs of which every call is known, exported and shown to Drishti.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import TIMEOUT_S
from made_runs import MIB, MadeRun

from forebay.trace import darshan_export

pytest.importorskip("drishti", reason="Drishti is not installed (make venv)")

START = "from drishti.reporter import main; main()"  # it reads its arguments as it is imported


def told(made: MadeRun, log: Path) -> str:
    """What Drishti says, its blanks as one."""
    darshan_export.export(made.trace(), log)
    done = subprocess.run(
        [sys.executable, "-c", START, str(log), "--size", "200"], cwd=log.parent,
        env={**os.environ, "COLUMNS": "200"}, stdin=subprocess.DEVNULL, capture_output=True,
        text=True, check=False, timeout=TIMEOUT_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return re.sub(r"[\s│]+", " ", done.stdout)


def run(path: Path) -> MadeRun:
    return MadeRun(
        path / "run", processes=4, ranks=4, files=["/scratch/shared", "/scratch/input"],
        run={"command": ["./simulation", "input.nml"]},
    )  # fmt: skip


def test_small_independent_writes_of_a_shared_file_are_found(tmp_path: Path) -> None:
    made = run(tmp_path)
    for rank in range(4):
        for turn in range(300):
            place = (4 * turn + rank) * 1000
            made.mpi("write_at", turn, 0.5, 1000, process=rank, offset=place, collective=False)
            made.posix("pwrite", turn, 0.4, 1000, process=rank, offset=place, within="mpi")
    text = told(made, tmp_path / "job.darshan")
    assert "EXECUTABLE: ./simulation DARSHAN: job.darshan" in text
    assert "FILES: 1 files (0 use STDIO, 0 use POSIX, 1 use MPI-IO)" in text
    assert "PROCESSES 4" in text
    assert '1200 (100.00%) small write requests are to "shared"' in text
    assert '1200 (100.0%) independent writes to "shared"' in text
    assert "write size intensive (100.00% write vs. 0.00% read)" in text


def test_large_collective_reads_are_none_of_that(tmp_path: Path) -> None:
    made = run(tmp_path)
    for rank in range(4):
        for turn in range(20):
            place = (4 * turn + rank) * 8 * MIB
            made.mpi("read_at_all", 20 * turn, 9, 8 * MIB, process=rank, file=1, offset=place,
                     collective=True)  # fmt: skip
            made.posix("pread", 20 * turn, 8, 8 * MIB, process=rank, file=1, offset=place,
                       within="mpi")  # fmt: skip
    text = told(made, tmp_path / "job.darshan")
    assert "read data using 80 (100.00%) collective operations" in text
    assert "read size intensive (0.00% write vs. 100.00% read)" in text
    assert "0 critical issues" in text
    assert "small" not in text.partition("THRESHOLDS")[0]

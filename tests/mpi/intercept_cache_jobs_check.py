"""Goal: two jobs whose files have one basename, and whose logs are in one directory, have nothing
to do with each other: each file gets its own bytes, whether its job ends or is killed, or its logs
are recovered while the other one's are there; and nobody is warned of the other one's.

Method: intercept_cache_killed as two jobs of different sizes, so that their files differ, of which
one, both or none are killed in the close: both at a time, held where both have something in their
logs; then one after the other, with the first one's logs still there. Recover with forebay-cache;
compare each byte.

Usage: intercept_cache_jobs_check.py FOREBAY_CACHE DIRECTORY LAUNCHER... - COMMAND...
The last word of LAUNCHER is a number of ranks, and is replaced.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import recovering
from intercept_cache_killed_check import written

#: Of those that change files, in a close.
CALL = 2
NO_RANK = -1
NAME = "data"
PATIENCE_S = 100


@dataclass(frozen=True)
class Setting:
    """What all jobs share."""

    program: str
    logs: Path
    launcher: list[str]
    command: list[str]


@dataclass(frozen=True)
class Job:
    """Writes a file of its own."""

    directory: Path
    ranks: int
    dies: bool

    @property
    def file(self) -> Path:
        return self.directory / NAME

    @property
    def gate(self) -> Path:
        return self.directory / "gate"

    @contextlib.contextmanager
    def running(self, setting: Setting) -> Iterator[subprocess.Popen[bytes]]:
        self.directory.mkdir()
        os.mkfifo(self.gate)
        environment = os.environ | {
            "FOREBAY_HINTS": f"forebay_cache=enable;forebay_cache_path={setting.logs};"
            "forebay_cache_flush=onclose;forebay_cache_capacity=32MiB;"
            "romio_cb_write=enable;cb_buffer_size=65536",
        }
        base = "OMPI_MCA_orte_tmpdir_base"  # Jobs must not share it.
        if base in environment:
            environment[base] += f"/{self.directory.name}"
        rank = 0 if self.dies else NO_RANK
        words = ["close", str(rank), str(CALL), str(self.file), str(self.gate)]
        process = subprocess.Popen(
            [*setting.launcher[:-1], str(self.ranks), *setting.command, *words],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        try:
            yield process
        finally:
            process.kill()

    @contextlib.contextmanager
    def held(self, process: subprocess.Popen[bytes]) -> Iterator[None]:
        """As long as this lasts it has something in its logs, and does not go on."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                gate = os.open(self.gate, os.O_WRONLY | os.O_NONBLOCK)
                break
            except OSError:  # Nobody waits there yet.
                assert process.poll() is None, process.communicate()
                assert time.monotonic() < deadline, "it does not come so far"
                time.sleep(0.01)
        try:
            yield
        finally:
            os.close(gate)

    def judge(self, process: subprocess.Popen[bytes]) -> None:
        """It ended as it was to."""
        output, _ = process.communicate(timeout=PATIENCE_S)
        assert (process.returncode != 0) == self.dies, output.decode()
        assert b"intercept_cache_killed.c" not in output, output.decode()
        assert b"earlier program" not in output, output.decode()
        assert self.is_whole() != self.dies

    def is_whole(self) -> bool:
        warned = (self.directory / f".{NAME}.forebay-dirty").exists()
        return not warned and self.file.read_bytes() == written(1, self.ranks)

    def words(self, setting: Setting) -> list[str]:
        """For a recovery of its file."""
        return [setting.program, "--directory", str(setting.logs), "--file", str(self.file)]

    def recover(self, setting: Setting) -> None:
        (file,) = recovering.recover(*self.words(setting))
        assert file["file"] == str(self.file), file
        assert file["state"] == "recovered", file
        assert not file["damage"], file
        assert self.is_whole()


def run_at_once(setting: Setting, one: Job, other: Job) -> None:
    with one.running(setting) as first, other.running(setting) as second:
        with one.held(first), other.held(second):
            for job in (one, other):
                (file,) = recovering.recover_now(*job.words(setting))
                assert file["state"] == "in use", file
        one.judge(first)
        other.judge(second)


def run_in_turn(setting: Setting, one: Job, other: Job) -> None:
    for job in (one, other):
        with job.running(setting) as process:
            with job.held(process):
                pass
            job.judge(process)


def recover_rest(setting: Setting) -> None:
    """A rank that was killed when all it had was in the file leaves what says of no file."""
    deadline = time.monotonic() + PATIENCE_S
    while list(setting.logs.glob("*/[!.]*")):
        assert recovering.recover(setting.program, "--directory", str(setting.logs)) == []
        assert time.monotonic() < deadline, "something is left"


def main() -> None:
    program, directory = sys.argv[1], Path(sys.argv[2]).resolve()
    end = sys.argv.index("-")
    setting = Setting(program, directory / "logs", sys.argv[3:end], sys.argv[end + 1 :])
    for run in (run_at_once, run_in_turn):
        for deaths in ((True, True), (True, False), (False, True), (False, False)):
            shutil.rmtree(directory, ignore_errors=True)
            setting.logs.mkdir(parents=True)
            one, other = Job(directory / "a", 1, deaths[0]), Job(directory / "b", 2, deaths[1])
            run(setting, one, other)
            for job in (one, other):
                if job.dies:
                    job.recover(setting)
            recover_rest(setting)
    shutil.rmtree(directory)


if __name__ == "__main__":
    main()

"""Goal: ranks on several hosts have a write-behind cache like those of one: programs see their file
as if there were none, what is killed is recovered on each host or rebuilt where a host is lost, and
what cannot be is told of.

Method: run other tests' programs on emulated hosts (as_hosts.py), with the cache on by hints; look
into the reports that it really was; kill ranks, recover on each host, compare each byte.

Usage: intercept_cache_hosts_check.py FOREBAY_CACHE DIRECTORY PROGRAMS PLACES PRELOAD LAUNCHER...
PLACES: on how many ranks, and how many of them on a host, programs are run that check themselves
("3:1,4:2"). The last word of LAUNCHER is a number of ranks, and is replaced.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from as_hosts import ENVIRONMENT, Hosts, enter
from intercept_cache_crash_check import expected as expected_after_crash
from intercept_cache_lost_node_check import expected as expected_after_loss

#: Programs that check themselves, and the policy of the cache that they are given, if they do not
#: ask for one.
PROGRAMS = {
    "intercept_cache": "",
    "intercept_data": "onclose",
    "intercept_handles": "",
    "intercept_state": "immediate",
}

RANKS = 3  # One on each host, where some are killed.


@dataclass(frozen=True)
class Setting:
    """What all runs share."""

    tool: str
    directory: Path
    programs: Path
    preload: str
    launcher: list[str]

    def command(self, program: str, *arguments: str) -> list[str]:
        words = ["env", self.preload, "FOREBAY_TEST_PRELOADED=1"]
        return [*words, str(self.programs / program), *arguments]


class Bench:
    """A directory that all hosts see, with a file and reports; hosts with memory of their own."""

    def __init__(self, setting: Setting, ranks: int, per_host: int) -> None:
        self.setting = setting
        self.ranks = ranks
        self.per_host = per_host
        self.directory = setting.directory
        shutil.rmtree(self.directory, ignore_errors=True)
        (self.directory / "report").mkdir(parents=True)
        self.data = self.directory / "data"
        self.hosts = Hosts(self.directory, (ranks + per_host - 1) // per_host)

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_: object) -> None:
        self.hosts.end()
        shutil.rmtree(self.directory)

    def run(self, hints: str, command: list[str]) -> subprocess.CompletedProcess[str]:
        report = {"FOREBAY_REPORT_DIR": str(self.directory / "report")}
        declared = {"FOREBAY_HINTS": hints} if hints else {}
        launcher = [*self.setting.launcher[:-1], str(self.ranks)]
        return subprocess.run(
            [*launcher, *self.hosts.of_ranks(self.per_host), *command],
            env=os.environ | ENVIRONMENT | report | declared,
            timeout=120,
            capture_output=True,
            text=True,
            check=False,
        )

    def records(self) -> list[dict[str, Any]]:
        return [json.loads(path.read_text()) for path in (self.directory / "report").glob("*.json")]

    def recover(self, host: int, *options: str) -> dict[str, Any]:
        """What became of the file on one host, once all killed ranks are gone, which a launcher may
        not await."""
        command = [self.setting.tool, "recover", "--incomplete", "drop", *options]
        command += ["--directory", "/dev/shm", "--file", str(self.data)]
        deadline = time.monotonic() + 60
        while True:
            result = subprocess.run(
                self.hosts.on(host, command), capture_output=True, text=True, check=True
            )
            (file,) = json.loads(result.stdout.splitlines()[-1])["files"]
            if file["state"] != "in use":
                return dict(file)
            assert time.monotonic() < deadline, "the ranks live on"
            time.sleep(0.05)

    def is_complete(self) -> bool:
        """Nobody is warned, and no log is left."""
        warned = (self.directory / ".data.forebay-dirty").exists()
        return not warned and not list(self.directory.glob("host-*/forebay-cache-*/[!.]*"))


def hints(flush: str, *more: str) -> str:
    words = ["forebay_cache=enable", "forebay_cache_path=/dev/shm", f"forebay_cache_flush={flush}"]
    return ";".join([*words, "forebay_cache_capacity=64MiB", *more])


def run_programs(setting: Setting, ranks: int, per_host: int) -> None:
    for name, flush in PROGRAMS.items():
        with Bench(setting, ranks, per_host) as bench:
            # By the batch job's number, hosts know the logs of one program from those of others.
            job = ["env", "SLURM_JOB_ID=1"]
            command = [*job, *setting.command(name, str(setting.directory))]
            said = bench.run(hints(flush) if flush else "", command)
            assert said.returncode == 0, (name, ranks, per_host, said.stderr)
            assert "earlier program" not in said.stderr, said.stderr
            records = bench.records()
            absorbed = [record["counters"].get("cache_absorbed", 0) for record in records]
            assert any(absorbed), (name, records)
            notes = [note for record in records for note in record.get("notes", [])]
            without = {note for note in notes if note.startswith("no write-behind cache")}
            assert all("by another handle" in note for note in without), without
            assert bench.is_complete()


def crash(setting: Setting) -> None:
    """Also where the rank is killed whose process keeps the claims of all."""
    for victim in (-1, 0, RANKS - 1):
        with Bench(setting, RANKS, 1) as bench:
            command = setting.command("intercept_cache_crash", str(victim), str(bench.data))
            said = bench.run(hints("onclose", "romio_cb_write=enable"), command)
            assert said.returncode != 0, "the program was not killed"
            assert not bench.is_complete(), "nobody is warned"
            file = bench.recover(0)
            assert file["state"] == "partial", f"other hosts have logs, too: {file}"
            for host in range(RANKS):
                file = bench.recover(host, "--partial")
                assert file["state"] == "recovered", file
            assert bench.data.read_bytes() == expected_after_crash(RANKS), f"{victim} was killed"
            assert bench.is_complete()


def lose_a_host(setting: Setting) -> None:
    """Recovered on a host that reaches the memory of the others."""
    for lost in (0, RANKS - 1):
        with Bench(setting, RANKS, 1) as bench:
            command = setting.command("intercept_cache_lost_node", "commit", str(bench.data))
            declared = hints(
                "onclose",
                "forebay_cache_redundancy=partner",
                "forebay_cache_compress=disable",
                f"romio_cb_write=enable;cb_nodes={RANKS};cb_buffer_size=16384",
            )
            assert bench.run(declared, command).returncode != 0, "the program was not killed"
            bench.hosts.lose(lost)
            here, *others = (host for host in range(RANKS) if host != lost)
            words = ["--lost", f"node{lost}"]
            for host in others:
                words += ["--directory", str(bench.hosts.memory(host))]
            file = bench.recover(here, *words)
            assert file["state"] == "recovered", file
            assert file["rebuilt_logs"] == 1, file
            assert bench.data.read_bytes() == expected_after_loss(RANKS), lost
            assert bench.is_complete()


def main() -> None:
    enter()
    tool, directory, programs, places, preload = sys.argv[1:6]
    setting = Setting(tool, Path(directory), Path(programs), preload, sys.argv[6:])
    for place in places.split(","):
        ranks, per_host = (int(word) for word in place.split(":"))
        run_programs(setting, ranks, per_host)
    crash(setting)
    lose_a_host(setting)


if __name__ == "__main__":
    main()

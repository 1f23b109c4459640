"""Files written one after another, with computing in between, by the stock MPI and by Forebay
without the write-behind cache, with it, and with one that never flushes."""

import random
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import measuring
from campaign import Hints, Mpi, Series, Workload
from local_runs import Task
from measuring import MeasuringError, Run
from results import ROOT

STOCK, OFF, ON, NEVER = MODES = ("stock", "off", "on", "never")
SYNCED = "synced"  # the stock MPI, which syncs each file before closing it

_ONLY_WRITING = "--no-read"


@dataclass(frozen=True)
class Places:
    """Directories that hold nothing else."""

    files: Path  # what the program writes
    stored: Path  # the same files, where reading them takes no time of what is measured
    logs: Path
    # What is to be done before each run, so that it does not pay for the last one; untimed.
    prepare: str | None = None


def sleeping(mpi: Mpi, ranks: int) -> Path | None:
    """What lets the ranks of this MPI sleep while they wait, to be preloaded; nothing where they
    would not take the cores from all else. Raises MeasuringError if it was not built."""
    if not mpi.hinders(ranks):
        return None
    if not measuring.SLEEPING.is_file():
        raise MeasuringError(f"{measuring.SLEEPING} does not exist: run 'make build' first")
    return measuring.SLEEPING


@dataclass(frozen=True)
class Case:
    """One series of files by one workload and MPI, in each of `modes`."""

    task: Task
    series: Series
    mpi: Mpi
    workload: Workload
    places: Places
    modes: tuple[str, ...] = MODES
    stock_hints: Hints = field(default_factory=dict)
    hints: Hints = field(default_factory=dict)  # for Forebay, those of the cache aside
    preload: Path | None = None  # on all sides
    beside: Mapping[str, Callable[[], float]] = field(default_factory=dict)  # measured in turn, too

    def document(self) -> dict[str, Any]:
        """Every side's runs, in shuffled order, a round at a time. Raises MeasuringError if a side
        fails, or if the program finds other bytes than it wrote by Forebay. "identical" says
        whether all of Forebay's runs left the same, "stock_identical" whether the stock MPI's did,
        too."""
        file = self.places.files / self.workload.name
        commands = {mode: self._command(mode, file) for mode in self.modes}
        order = random.Random(1)
        runs: dict[str, list[dict[str, Any]]] = {mode: [] for mode in self.modes}
        beside: dict[str, list[float]] = {name: [] for name in self.beside}
        digests: dict[str, set[tuple[str, ...]]] = {mode: set() for mode in self.modes}
        verified = False
        sides = (*self.modes, *self.beside)
        for _ in range(self.task.pairs):
            for side in order.sample(sides, len(sides)):
                self._clear()
                self._prepare()
                if side in beside:
                    beside[side].append(self.beside[side]())
                    continue
                run = self._run(side, commands[side])
                summary = _summary(run)
                if side == NEVER:
                    summary["recovery_s"] = self._recover()
                runs[side].append(summary)
                files = sorted(self.places.stored.iterdir())
                digests[side].add(tuple(map(measuring.digest, files)))
                if not _is_stock(side) and not verified:
                    self._verify(commands[side])
                    verified = True
        self._clear()
        ours = set.union(*(digests[mode] for mode in self.modes if not _is_stock(mode)))
        theirs = set.union(*(digests[mode] for mode in self.modes if _is_stock(mode)))
        return {
            "version": 1,
            "command": commands[ON],
            "hints": {mode: self._hints(mode) for mode in self.modes},
            "runs": runs,
            **({"beside": beside} if beside else {}),
            "identical": len(ours) == 1,
            "stock_identical": theirs == ours,
            "sleeping": self.preload is not None,
            "environment": {"mpi": {run.records[0]["mpi"]: run.records[0]["mpi_version"]}},
        }

    def _command(self, mode: str, file: Path) -> list[str]:
        """Only a cache that is flushed has anything to do while the program computes, which is
        asleep then; the others are spared the time."""
        words = self.task.tools.command(self.mpi, self.series.setting.ranks, self.workload, file)
        more = [*self.series.arguments(computing=mode == ON), _ONLY_WRITING]
        more += ["--sync"] if mode == SYNCED else []
        return [*words[:-1], *more, words[-1]]

    def _verify(self, command: list[str]) -> None:
        """The program reads, by the stock MPI, what was written by this command."""
        words = [*(word for word in command[:-1] if word != _ONLY_WRITING), "--verify-only"]
        done = subprocess.run(
            [*words, command[-1]],
            cwd=ROOT,
            env=measuring.environment(self.preload),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise MeasuringError(f"{' '.join(words)}: {done.stdout}{done.stderr}")

    def _clear(self) -> None:
        for directory in (self.places.files, self.places.logs):
            for left in directory.iterdir():
                if left.is_dir():
                    shutil.rmtree(left)
                else:
                    left.unlink()

    def _prepare(self) -> None:
        if self.places.prepare:
            measuring.shell(self.places.prepare)

    def _recover(self) -> float:
        """Seconds of `forebay cache recover` for what was never flushed. Logs on a disk are written
        out before: a crash would have left nothing else of them."""
        self._prepare()
        begun = time.monotonic()
        measuring.forebay(self.task.tools, ["cache", "recover", str(self.places.logs)])
        return time.monotonic() - begun

    def _hints(self, mode: str) -> Hints:
        if _is_stock(mode):
            return self.stock_hints
        if mode == OFF:
            return self.hints
        return {
            **self.hints,
            "forebay_cache": "enable",
            "forebay_cache_path": str(self.places.logs),
            "forebay_cache_flush": "deferred" if mode == ON else "none",
        }

    def _run(self, mode: str, command: list[str]) -> Run:
        stock = _is_stock(mode)
        run = measuring.run(
            self.task.tools,
            command,
            self.task.timeout_s,
            observe=stock,
            ranks_per_node=None if stock else self.series.setting.ranks_per_node,
            stock_hints=self._hints(mode) if stock else None,
            hints=None if stock else self._hints(mode),
            preload=self.preload,
        )
        if run.exit_code != 0 or len(run.records) != self.series.files:
            raise MeasuringError(f"{mode}: {' '.join(command)}: exit status {run.exit_code}")
        return run


def _is_stock(mode: str) -> bool:
    return mode in (STOCK, SYNCED)


def _summary(run: Run) -> dict[str, Any]:
    """Of each file, in the order of writing: bytes, seconds of the slowest rank in opening it and
    in writing and closing it, seconds that ranks waited for its log after that, and what the log
    took."""
    records = sorted(run.records, key=lambda record: str(record["path"]))
    return {
        "bytes": [Path(record["path"]).stat().st_size for record in records],
        "open": [record["seconds"]["open"]["max"] for record in records],
        "seconds": [record["seconds_together"]["writing"] for record in records],
        "late": [
            record.get("late_counters", {}).get("cache_exposed_ns", 0) / 1e9 for record in records
        ],
        "absorbed": [record.get("counters", {}).get("cache_absorbed", 0) for record in records],
        "log_bytes": [record.get("counters", {}).get("cache_log_bytes", 0) for record in records],
        "notes": sorted({note for record in records for note in record["notes"]}),
    }

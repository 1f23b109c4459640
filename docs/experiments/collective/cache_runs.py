"""The write-behind cache on an emulated parallel file system: several files, one after another,
with computing in between, written by the stock MPI and by Forebay without a cache, with one, and
with one that never flushes."""

import random
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import measuring
import results
from campaign import Device, Hints, Mpi, Workload
from forebay.units import parse_rate, parse_size
from local_runs import Task
from measuring import MeasuringError, Run
from results import ROOT
from testbed_runs import mounted, stored_files, testbed_command

STOCK, OFF, ON, NEVER = MODES = ("stock", "off", "on", "never")

_ONLY_WRITING = "--no-read"


def measure(task: Task, parent: Path) -> None:
    """The campaign "cache", on a testbed that is mounted in `parent` for the time. `task.pairs` is
    how often each side runs."""
    described = task.campaign.cache
    with tempfile.TemporaryDirectory(prefix="forebay-experiment-") as directory:
        sleeping = measuring.sleeping_library(Path(directory))
        for mpi in task.mpis:
            for device in described.devices:
                for workload in measuring.chosen(described.setting, task.only):
                    for aggregators, buffer in product(described.aggregators, device.buffers):
                        path = result_path(task.results, mpi, device, workload, aggregators, buffer)
                        if task.wanted(path):
                            with _places(task, parent, device, aggregators) as (mount, local):
                                case = Case(task, mpi, workload, aggregators, buffer, local)
                                case.preload = sleeping if mpi.polls else None
                                results.store(path, case.document(mount))


def result_path(
    base: Path, mpi: Mpi, device: Device, workload: Workload, aggregators: int, buffer: str
) -> Path:
    """Where one case's result is."""
    return base / f"{mpi.key}-cache-{device.name}" / f"{workload.name}-{aggregators}-{buffer}.json"


@contextmanager
def _places(
    task: Task, parent: Path, device: Device, aggregators: int
) -> Iterator[tuple[Path, Path]]:
    """The testbed, and the directory for logs: in memory, or on a device that is emulated by one
    server which the aggregators share, and by a page cache, from which a flush reads."""
    with mounted(task.tools, task.campaign.testbed, parent) as mount, measuring.place(parent) as at:
        if device.per_aggregator is None:
            yield mount, at.directory
            return
        local = at.directory / "device"
        bandwidth = f"{aggregators * parse_rate(device.per_aggregator)}B/s"
        words = ["--servers", "1", "--bandwidth", bandwidth, "--latency", "0ms", "--page-cache"]
        testbed_command(task.tools, ["up", *words, "--mount", str(local)])
        try:
            yield mount, local
        finally:
            testbed_command(task.tools, ["down", "--mount", str(local)])


class Case:
    """One workload with so many aggregators and such buffers."""

    def __init__(
        self, task: Task, mpi: Mpi, workload: Workload, aggregators: int, buffer: str, local: Path
    ) -> None:
        self._task = task
        self._mpi = mpi
        self._workload = workload
        self._aggregators = aggregators
        self._buffer_bytes = parse_size(buffer)
        self._local = local
        self.preload: Path | None = None  # on all sides

    def document(self, mount: Path) -> dict[str, Any]:
        """Every side's runs, in shuffled order, a round at a time. Raises MeasuringError if a side
        fails, or if the program finds other bytes than it wrote by Forebay. "identical" says
        whether all of Forebay's runs left the same, "stock_identical" whether the stock MPI's did,
        too."""
        commands = {mode: self._command(mode, mount / self._workload.name) for mode in MODES}
        order = random.Random(1)
        runs: dict[str, list[dict[str, Any]]] = {mode: [] for mode in MODES}
        digests: dict[str, set[tuple[str, ...]]] = {mode: set() for mode in MODES}
        verified = False
        for _ in range(self._task.pairs):
            for mode in order.sample(MODES, len(MODES)):
                self._clear(mount)
                run = self._run(mode, commands[mode])
                summary = _summary(run)
                if mode == NEVER:
                    summary["recovery_s"] = self._recover()
                runs[mode].append(summary)
                files = sorted(stored_files(mount).iterdir())
                digests[mode].add(tuple(map(measuring.digest, files)))
                if mode != STOCK and not verified:
                    self._verify(commands[mode])
                    verified = True
        self._clear(mount)
        ours = set.union(*(digests[mode] for mode in MODES if mode != STOCK))
        return {
            "version": 1,
            "command": commands[ON],
            "hints": {mode: self._hints(mode) for mode in MODES},
            "runs": runs,
            "identical": len(ours) == 1,
            "stock_identical": digests[STOCK] == ours,
            "sleeping": self.preload is not None,
            "environment": {"mpi": {run.records[0]["mpi"]: run.records[0]["mpi_version"]}},
        }

    def _command(self, mode: str, file: Path) -> list[str]:
        """Only a cache that is flushed has anything to do while the program computes, which is
        asleep then; the others are spared the time."""
        cache = self._task.campaign.cache
        words = self._task.tools.command(self._mpi, cache.setting.ranks, self._workload, file)
        return [*words[:-1], *cache.arguments(computing=mode == ON), _ONLY_WRITING, words[-1]]

    def _verify(self, command: list[str]) -> None:
        """The program reads, by the stock MPI, what was written by this command."""
        words = [*(word for word in command[:-1] if word != _ONLY_WRITING), "--verify-only"]
        done = subprocess.run(
            [*words, command[-1]],
            cwd=ROOT,
            env=measuring.environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise MeasuringError(f"{' '.join(words)}: {done.stdout}{done.stderr}")

    def _clear(self, mount: Path) -> None:
        for file in mount.iterdir():
            file.unlink()
        for left in self._local.iterdir():
            shutil.rmtree(left)

    def _recover(self) -> float:
        """Seconds of `forebay cache recover` for what was never flushed."""
        begun = time.monotonic()
        words = [str(self._task.tools.forebay), "cache", "recover", str(self._local)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise MeasuringError(f"{' '.join(words)}: {done.stderr}")
        return time.monotonic() - begun

    def _hints(self, mode: str) -> Hints:
        if mode == STOCK:
            given = {"aggregators": self._aggregators, "buffer_bytes": self._buffer_bytes}
            stock = self._task.campaign.cache.stock[self._mpi.key]
            return {key: value.format(**given) for key, value in stock.items()}
        hints = {"cb_nodes": str(self._aggregators), "cb_buffer_size": str(self._buffer_bytes)}
        if mode == OFF:
            return hints
        flush = "deferred" if mode == ON else "none"
        path = str(self._local)
        return {
            **hints,
            "forebay_cache": "enable",
            "forebay_cache_path": path,
            "forebay_cache_flush": flush,
        }

    def _run(self, mode: str, command: list[str]) -> Run:
        stock = mode == STOCK
        run = measuring.run(
            self._task.tools,
            command,
            self._task.timeout_s,
            observe=stock,
            ranks_per_node=None if stock else self._task.campaign.cache.setting.ranks_per_node,
            stock_hints=self._hints(mode) if stock else None,
            hints=None if stock else self._hints(mode),
            preload=self.preload,
        )
        if run.exit_code != 0 or len(run.records) != self._task.campaign.cache.files:
            raise MeasuringError(f"{mode}: {' '.join(command)}: exit status {run.exit_code}")
        return run


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

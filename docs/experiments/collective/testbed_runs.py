"""Eight ranks on four emulated nodes over an emulated parallel file system: against the stock MPI
with its defaults, and with the best hints of a small sweep."""

import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import measuring
import results
from campaign import QUANTITIES, Hints, Mpi, Testbed, Workload
from local_runs import Task
from measuring import CompareOptions, MeasuringError, Tools

# What one run of a sweep gave: seconds by quantity, None where the run failed or was too slow.
Seconds = dict[str, float | None]


def measure(task: Task, parent: Path) -> None:
    """The campaign "testbed", on one that is mounted in `parent` for the time."""
    described = task.campaign.testbed
    for mpi in task.mpis:
        for workload in measuring.chosen(described.setting, task.only):
            base = task.results / f"{mpi.key}-testbed"
            with mounted(task.tools, described, parent) as mount:
                _one_workload(task, mpi, workload, base, mount)


def _one_workload(task: Task, mpi: Mpi, workload: Workload, base: Path, mount: Path) -> None:
    setting = task.campaign.testbed.setting
    file = mount / workload.name
    command = task.tools.command(mpi, setting.ranks, workload, file)

    def compare(path: Path, hints: Hints) -> None:
        if task.wanted(path):
            file.unlink(missing_ok=True)  # a file that is there before would be kept
            options = CompareOptions(
                task.pairs,
                task.timeout_s,
                ranks_per_node=setting.ranks_per_node,
                stock_hints=hints,
            )
            results.store(path, measuring.compare(task.tools, options, command))

    compare(base / f"{workload.name}.json", {})
    swept = base / f"{workload.name}-sweep.json"
    if task.wanted(swept):
        results.store(swept, _sweep_document(task, mpi, command, file))
    found = results.load(swept)
    assert found is not None
    best: dict[str, Hints] = found.raw["best"]
    for hints, path in against(best, base, workload.name):
        compare(path, hints)


def against(best: dict[str, Hints], base: Path, name: str) -> list[tuple[Hints, Path]]:
    """The comparisons to make beyond the one with the defaults: with the hints that are best for
    writing, and, where they are others, with those that are best for reading."""
    found: list[tuple[Hints, Path]] = []
    for quantity in QUANTITIES:
        hints = best[quantity]
        if hints and hints not in [known for known, _ in found]:
            found.append((hints, base / f"{name}-best-{quantity}.json"))
    return found


def _sweep_document(task: Task, mpi: Mpi, command: list[str], file: Path) -> dict[str, Any]:
    def measure(hints: Hints) -> Seconds:
        file.unlink(missing_ok=True)
        shown = " ".join(f"{key}={value}" for key, value in hints.items()) or "the defaults"
        run = measuring.run(task.tools, command, task.timeout_s, observe=True, stock_hints=hints)
        found = run.seconds()
        rates = [f"{q} {found[q]:.2f} s" if found[q] else f"{q} failed" for q in QUANTITIES]
        task.say(f"  {shown}: {', '.join(rates)}")
        return found

    tried, best = sweep(task.campaign.testbed.sweep[mpi.key], measure)
    file.unlink(missing_ok=True)
    return {
        "version": 1,
        "command": command,
        "tried": [{"hints": hints, **seconds} for hints, seconds in tried],
        "best": best,
        "environment": {},
    }


def sweep(
    stages: list[list[Hints]], measure: Callable[[Hints], Seconds]
) -> tuple[list[tuple[Hints, Seconds]], dict[str, Hints]]:
    """Everything tried, in order, and the best hints by quantity. Starts with no hints; each stage
    puts its alternatives on top of the best so far, for each quantity by itself, and nothing is
    measured twice."""
    tried: list[tuple[Hints, Seconds]] = []

    def seconds(hints: Hints) -> Seconds:
        for known, measured in tried:
            if known == hints:
                return measured
        tried.append((hints, measure(hints)))
        return tried[-1][1]

    def cost(hints: Hints, quantity: str) -> float:
        spent = seconds(hints)[quantity]
        return float("inf") if spent is None else spent

    best: dict[str, Hints] = {quantity: {} for quantity in QUANTITIES}
    for stage in stages:
        for quantity in QUANTITIES:
            base = best[quantity]
            best[quantity] = min(
                [base, *({**base, **more} for more in stage)],
                key=lambda hints: cost(hints, quantity),
            )
    return tried, best


@contextmanager
def mounted(tools: Tools, described: Testbed, parent: Path) -> Iterator[Path]:
    """A fresh testbed below `parent`, taken down and removed at the end."""
    parameters = {
        "--servers": str(described.servers),
        "--bandwidth": described.bandwidth,
        "--latency": described.latency,
        "--stripe": described.stripe,
        "--lock-cost": described.lock_cost,
    }
    with measuring.place(parent) as place:
        mount = place.directory / "mount"
        parameters["--backing"] = str(stored_files(mount))
        words = [word for pair in parameters.items() for word in pair]
        testbed_command(tools, ["up", *words, "--mount", str(mount)])
        try:
            yield mount
        finally:
            testbed_command(tools, ["down", "--mount", str(mount)])


@contextmanager
def glusterfs(tools: Tools, memory: Path, backing: Path, *options: str) -> Iterator[Path]:
    """A volume that is mounted below `memory` for the time; its bricks lie in `backing`. Raises
    MeasuringError."""
    with tempfile.TemporaryDirectory(prefix="forebay-experiment-", dir=memory) as name:
        mount = str(Path(name) / "mount")
        words = ["--real", "glusterfs", *(options or ("--servers", "1"))]
        testbed_command(tools, ["up", *words, "--mount", mount, "--backing", str(backing)])
        try:
            yield Path(mount)
        finally:
            testbed_command(tools, ["down", "--mount", mount])


def stored_files(mount: Path) -> Path:
    """Where the testbed keeps the files that are seen in `mount`; reading them there takes none of
    its time."""
    return mount.with_name("files")


def testbed_command(tools: Tools, words: list[str]) -> None:
    """`forebay testbed` with these words. Raises MeasuringError if it fails."""
    done = subprocess.run(
        [str(tools.forebay), "testbed", *words],
        stdout=subprocess.DEVNULL,
        env=measuring.environment(),
        check=False,
    )
    if done.returncode != 0:
        raise MeasuringError(f"'forebay testbed {words[0]}' ended with status {done.returncode}")

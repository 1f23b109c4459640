"""Two ranks on a local file system: collective calls against the stock MPI's collective calls, and
against its independent ones."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import measuring
import results
from campaign import QUANTITIES, Campaign, Mpi, Setting, Workload
from measuring import FOREBAY, STOCK, CompareOptions, MeasuringError, Place, Run, Tools


@dataclass(frozen=True)
class Task:
    """What the command line asks for."""

    campaign: Campaign
    tools: Tools
    results: Path
    mpis: list[Mpi]
    pairs: int
    timeout_s: float
    say: Callable[[str], None]
    again: bool = False  # measure also what there is
    only: list[str] = field(default_factory=list)  # workloads; all if empty

    def wanted(self, path: Path) -> bool:
        """Whether this result is to be measured, and says so."""
        name = f"{path.parent.name}/{path.stem}"
        if not self.again and results.done(path):
            self.say(f"{name}: there already")
            return False
        self.say(f"{name}: measuring")
        return True


def each(
    task: Task, setting: Setting, parents: list[Path]
) -> Iterator[tuple[Place, Mpi, Workload]]:
    """The chosen workloads by each MPI, in a fresh place in each of these directories."""
    for parent, mpi in ((parent, mpi) for parent in parents for mpi in task.mpis):
        with measuring.place(parent) as place:
            for workload in measuring.chosen(setting, task.only):
                yield place, mpi, workload


def collective(task: Task, parents: list[Path]) -> None:
    """The campaign "local" in each of these directories, by `forebay compare`."""
    setting = task.campaign.local
    for place, mpi, workload in each(task, setting, parents):
        path = task.results / f"{mpi.key}-{place.file_system}" / f"{workload.name}.json"
        if task.wanted(path):
            options = CompareOptions(task.pairs, task.timeout_s, prepare=place.prepare)
            file = place.directory / workload.name
            command = task.tools.command(mpi, setting.ranks, workload, file)
            results.store(path, measuring.compare(task.tools, options, command))


def independent(task: Task, parents: list[Path]) -> None:
    """The campaign "independent": the stock side makes independent calls, Forebay's side collective
    ones. The commands differ, so the pairs are made here, as `forebay compare` makes them."""
    setting = task.campaign.independent
    for place, mpi, workload in each(task, setting, parents):
        name = f"independent-{workload.name}.json"
        path = task.results / f"{mpi.key}-{place.file_system}" / name
        if task.wanted(path):
            results.store(path, _two_commands(task, place, mpi, setting, workload))


def _two_commands(
    task: Task, place: Place, mpi: Mpi, setting: Setting, workload: Workload
) -> dict[str, Any]:
    file = place.directory / workload.name
    collective_command = task.tools.command(mpi, setting.ranks, workload, file)
    independent_command = [*collective_command[:-1], "--independent", str(file)]

    def one(side: str) -> tuple[Run, str]:
        file.unlink(missing_ok=True)
        if place.prepare:
            measuring.shell(place.prepare)
        stock = side == STOCK
        command = independent_command if stock else collective_command
        run = measuring.run(task.tools, command, task.timeout_s, observe=stock)
        if run.exit_code != 0:
            raise MeasuringError(f"{workload.name}, {side}: exit status {run.exit_code}")
        return run, measuring.digest(file)

    one(STOCK)
    warm, _ = one(FOREBAY)
    pairs: list[dict[str, Any]] = []
    digests = set()
    for order in measuring.orders(task.pairs, seed=1):
        pair: dict[str, Any] = {"order": list(order)}
        for side in order:
            run, content = one(side)
            pair[side] = run.seconds()
            digests.add(content)
        pairs.append(pair)
    return {
        "version": 1,
        "identical": len(digests) == 1,
        "commands": {STOCK: independent_command, FOREBAY: collective_command},
        "ratio": {
            quantity: results.ratio_of(
                [
                    pair[STOCK][quantity] / pair[FOREBAY][quantity]
                    for pair in pairs
                    if pair[STOCK][quantity] and pair[FOREBAY][quantity]
                ]
            )
            for quantity in QUANTITIES
        },
        "pairs": pairs,
        "records": warm.records,
        "environment": {"mpi": {r["mpi"]: r["mpi_version"] for r in warm.records}},
    }

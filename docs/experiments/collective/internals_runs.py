"""What the engine counts about itself: copies, messages and metadata with four emulated nodes, and
the cost of describing ever more pieces."""

from pathlib import Path
from typing import Any

import measuring
import results
from campaign import Campaign, Mpi, Workload
from local_runs import Task
from measuring import MeasuringError, Run


def measure(task: Task, parent: Path) -> None:
    """The campaign "internals", with files in `parent`."""
    for mpi in task.mpis:
        if mpi.key not in task.campaign.internals.mpis:
            continue
        base = task.results / f"{mpi.key}-internals"
        with measuring.place(parent) as place:
            for workload in measuring.chosen(task.campaign.internals.exchange, task.only):
                path = base / f"{workload.name}.json"
                if task.wanted(path):
                    results.store(path, _exchange(task, mpi, workload, place.directory))
            path = base / "pieces.json"
            if not task.only and task.wanted(path):
                results.store(path, _pieces(task, mpi, place.directory))


def _exchange(task: Task, mpi: Mpi, workload: Workload, directory: Path) -> dict[str, Any]:
    setting = task.campaign.internals.exchange
    command = task.tools.command(mpi, setting.ranks, workload, directory / workload.name)
    run = _run(task, command, ranks_per_node=setting.ranks_per_node)
    return {
        "version": 1,
        "command": command,
        "ranks_per_node": setting.ranks_per_node,
        "records": run.records,
        "environment": _environment(run),
    }


def _pieces(task: Task, mpi: Mpi, directory: Path) -> dict[str, Any]:
    pieces = task.campaign.internals.pieces
    points = []
    for count in pieces.counts:
        workload = piece_workload(task.campaign, count)
        command = task.tools.command(mpi, pieces.ranks, workload, directory / "pieces")
        runs = [_run(task, command) for _ in range(pieces.repeats)]
        stock = _run(task, command, observe=True)
        points.append(
            {
                "pieces": count,
                "schedule_ns": {kind: [_schedule_ns(r, kind) for r in runs] for kind in _KINDS},
                "rss_max_bytes": {
                    measuring.FOREBAY: [run.rss_max_bytes for run in runs],
                    measuring.STOCK: [stock.rss_max_bytes],
                },
            }
        )
        task.say(f"  {count} pieces")
    return {
        "version": 1,
        "command": command,
        "ranks": pieces.ranks,
        "points": points,
        "environment": _environment(runs[0]),
    }


_KINDS = ("write", "read")


def piece_workload(campaign: Campaign, count: int) -> Workload:
    """`interleave` with so many pieces in the file."""
    total = campaign.internals.pieces.total_bytes
    if total % count != 0:
        raise MeasuringError(f"{total} bytes cannot be {count} pieces")
    arguments = ["--piece", str(total // count), "--total", str(total)]
    return Workload("pieces", "interleave", arguments, "", {}, {})


def _schedule_ns(run: Run, kind: str) -> int:
    """Of the slowest rank, over the openings that wrote or read."""
    return sum(
        int(record["counters"]["schedule_ns"])
        for record in run.records
        if record["calls"][kind] > 0
    )


def _run(
    task: Task, command: list[str], *, observe: bool = False, ranks_per_node: int | None = None
) -> Run:
    run = measuring.run(
        task.tools, command, task.timeout_s, observe=observe, ranks_per_node=ranks_per_node
    )
    if run.exit_code != 0 or not run.records:
        raise MeasuringError(f"{' '.join(command)}: exit status {run.exit_code}")
    return run


def _environment(run: Run) -> dict[str, Any]:
    return {"mpi": {record["mpi"]: record["mpi_version"] for record in run.records}}

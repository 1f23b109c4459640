"""What the write-behind cache takes in, against what its local device takes: two ranks that write
to logs which are never flushed, to logs that are flushed before the close returns, and to no log;
and fio writing as many bytes from as many processes into the same directory, in turn: from memory,
as a program does, until the page cache has them or until they are durable, and from one small
buffer, which the processor keeps at hand and no program has its data in."""

import random
import shutil
from pathlib import Path
from typing import Any

import fio
import measuring
import results
from campaign import Mpi, Workload
from local_runs import Task, each
from measuring import MeasuringError, Place, Run

OFF, ON, LOG, FIO, ONE_BUFFER, FIO_DURABLE = SIDES = (
    "off",
    "on",
    "log",
    "fio",
    "fio_one_buffer",
    "fio_durable",
)
#: Of the runs of LOG, what went to logs in the time of the write calls alone, without the close.
LOG_CALLS = "log_calls"


def measure(task: Task, parents: list[Path]) -> None:
    """The campaign "log" in each of these directories. `task.pairs` is how often each side runs."""
    fio.require()
    for place, mpi, workload in each(task, task.campaign.log.setting, parents):
        name = f"log-{workload.name}.json"
        path = task.results / f"{mpi.key}-{place.file_system}" / name
        if task.wanted(path):
            results.store(path, _document(task, place, mpi, workload))


def _document(task: Task, place: Place, mpi: Mpi, workload: Workload) -> dict[str, Any]:
    ranks = task.campaign.log.setting.ranks
    file = place.directory / workload.name
    logs = place.directory / "logs"
    command = task.tools.command(mpi, ranks, workload, file)
    command = [*command[:-1], "--no-read", str(file)]
    cache = {"forebay_cache": "enable", "forebay_cache_path": str(logs)}
    hints = {OFF: {}, ON: cache, LOG: {**cache, "forebay_cache_flush": "none"}}

    def clear() -> None:
        file.unlink(missing_ok=True)
        # Of logs that are not recovered.
        shutil.rmtree(file.with_name(f".{file.name}.forebay-dirty"), ignore_errors=True)
        shutil.rmtree(logs, ignore_errors=True)
        logs.mkdir(mode=0o700)
        if place.prepare:
            measuring.shell(place.prepare)

    def write(side: str) -> Run:
        clear()
        run = measuring.run(task.tools, command, task.timeout_s, hints=hints[side])
        if run.exit_code != 0:
            raise MeasuringError(f"{' '.join(command)}: exit status {run.exit_code}")
        return run

    warm = write(LOG).records
    absorbed: int = sum(record["counters"]["cache_absorbed"] for record in warm)
    if absorbed == 0:
        raise MeasuringError(f"{workload.name}: nothing went to a log: {warm[0]['notes']}")
    order = random.Random(1)
    rates: dict[str, list[float]] = {side: [] for side in (*SIDES, LOG_CALLS)}
    each_bytes = absorbed // ranks
    buffers = each_bytes // fio.CALL_BYTES
    for _ in range(task.pairs):
        for side in order.sample(SIDES, len(SIDES)):
            if side in hints:
                run = write(side)
                spent = run.seconds()["write"]
                assert spent is not None
                rates[side].append(absorbed / spent)
                if side == LOG:
                    rates[LOG_CALLS].append(absorbed / run.seconds_in_calls("write"))
                continue
            clear()
            if side == FIO_DURABLE:
                rates[side].append(fio.durable(logs, each_bytes, ranks))
            else:
                taken_from = 1 if side == ONE_BUFFER else buffers
                rates[side].append(fio.taken_in(logs, each_bytes, ranks, taken_from))
    return {
        "version": 2,
        "command": command,
        "hints": hints,
        "bytes": absorbed,
        "bytes_per_s": rates,
        "environment": {"mpi": {record["mpi"]: record["mpi_version"] for record in warm}},
    }

"""The write-behind cache on an emulated parallel file system, by the number of aggregators and the
size of their buffers."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import cache_case
import measuring
import results
from cache_case import Case, Places
from campaign import Device, Hints, Mpi, Workload
from forebay.units import parse_rate, parse_size
from local_runs import Task
from testbed_runs import mounted, stored_files, testbed_command


@dataclass(frozen=True)
class Part:
    """Of the grid; all of a dimension where nothing of it is named."""

    devices: list[str]
    aggregators: list[int]
    buffers: list[str]


def measure(task: Task, parent: Path, part: Part) -> None:
    """The campaign "cache", on a testbed that is mounted in `parent` for the time. `task.pairs` is
    how often each side runs. Raises MeasuringError."""
    described = task.campaign.cache
    series = described.series
    devices = measuring.named("device", described.devices, part.devices)
    counts = measuring.among("number of aggregators", described.aggregators, part.aggregators)
    buffers = dict.fromkeys(buffer for device in devices for buffer in device.buffers)
    sizes = measuring.among("buffer", list(buffers), part.buffers)
    for mpi, device in product(task.mpis, devices):
        preload = cache_case.sleeping(mpi, series.setting.ranks)
        for workload in measuring.chosen(series.setting, task.only):
            of_device = [buffer for buffer in device.buffers if buffer in sizes]
            for aggregators, buffer in product(counts, of_device):
                path = result_path(task.results, mpi, device, workload, aggregators, buffer)
                if task.wanted(path):
                    stock, own = _hints(described.stock[mpi.key], aggregators, buffer)
                    with _places(task, parent, device, aggregators) as places:
                        case = Case(
                            task,
                            series,
                            mpi,
                            workload,
                            places,
                            stock_hints=stock,
                            hints=own,
                            preload=preload,
                        )
                        results.store(path, case.document())


def result_path(
    base: Path, mpi: Mpi, device: Device, workload: Workload, aggregators: int, buffer: str
) -> Path:
    """Where one case's result is."""
    return base / f"{mpi.key}-cache-{device.name}" / f"{workload.name}-{aggregators}-{buffer}.json"


def _hints(stock: Hints, aggregators: int, buffer: str) -> tuple[Hints, Hints]:
    """For the stock MPI, whose keys these are, and for Forebay."""
    size = parse_size(buffer)
    given = {"aggregators": aggregators, "buffer_bytes": size}
    theirs = {key: value.format(**given) for key, value in stock.items()}
    return theirs, {"cb_nodes": str(aggregators), "cb_buffer_size": str(size)}


@contextmanager
def _places(task: Task, parent: Path, device: Device, aggregators: int) -> Iterator[Places]:
    """Files on the testbed, and logs in memory, or on a device that is emulated by one server which
    the aggregators share, and by a page cache, from which a flush reads."""
    with mounted(task.tools, task.campaign.testbed, parent) as mount, measuring.place(parent) as at:
        if device.per_aggregator is None:
            yield Places(mount, stored_files(mount), at.directory)
            return
        local = at.directory / "device"
        bandwidth = f"{aggregators * parse_rate(device.per_aggregator)}B/s"
        words = ["--servers", "1", "--bandwidth", bandwidth, "--latency", "0ms", "--page-cache"]
        testbed_command(task.tools, ["up", *words, "--mount", str(local)])
        try:
            yield Places(mount, stored_files(mount), local)
        finally:
            testbed_command(task.tools, ["down", "--mount", str(local)])

"""The write-behind cache on real file systems: files on a local disk, and on GlusterFS with its
bricks there, with logs in memory and on that disk; and fio on the same devices, in turn."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import cache_case
import fio
import measuring
import results
from cache_case import MODES, SYNCED, Case, Places
from campaign import FilePlace, Mpi, Workload
from forebay.units import parse_size
from local_runs import Task
from testbed_runs import glusterfs

MEMORY, DISK = LOGS = ("memory", "disk")
# What fio makes durable where the files are, and where the logs are if that is another device.
FIO_FILES, FIO_LOGS = "fio_files", "fio_logs"


def measure(task: Task, memory: Path, disk: Path, only: list[str]) -> None:
    """The campaign "cache-local" in these two directories, for the places of these names, or for
    all. `task.pairs` is how often each side runs."""
    fio.require()
    described = task.campaign.cache_local
    setting = described.series.setting
    for place, mpi in product(measuring.named("place", described.places, only), task.mpis):
        preload = cache_case.sleeping(mpi, setting.ranks)
        for workload, logs in product(measuring.chosen(setting, task.only), LOGS):
            path = result_path(task.results, mpi, place, workload, logs)
            if task.wanted(path):
                with _places(task, place, memory, disk, logs) as places:
                    document = _document(task, mpi, workload, places, preload)
                    name = measuring.file_system(places.files)
                    results.store(path, {**document, "file_system": name})


def result_path(base: Path, mpi: Mpi, place: FilePlace, workload: Workload, logs: str) -> Path:
    """Where one case's result is."""
    return base / f"{mpi.key}-cache-local-{place.name}" / f"{workload.name}-{logs}.json"


@contextmanager
def _places(task: Task, place: FilePlace, memory: Path, disk: Path, logs: str) -> Iterator[Places]:
    with ExitStack() as undo:
        on_disk = undo.enter_context(measuring.place(disk))
        own = {MEMORY: undo.enter_context(measuring.place(memory)), DISK: on_disk}
        files = on_disk.directory / "files"
        if place.volume is None:
            files.mkdir()
        else:
            bricks = on_disk.directory / "bricks"
            volume = glusterfs(task.tools, memory, bricks, "--layout", place.volume)
            files = undo.enter_context(volume)
        logs_in = own[logs].directory / "logs"
        logs_in.mkdir(mode=0o700)
        yield Places(files, files, logs_in, on_disk.prepare)


def _document(
    task: Task, mpi: Mpi, workload: Workload, places: Places, preload: Path | None
) -> dict[str, Any]:
    described = task.campaign.cache_local
    count = described.series.files * parse_size(described.file)
    beside: dict[str, Callable[[], float]] = {
        FIO_FILES: partial(fio.durable_at_best, places.files, count)
    }
    if places.logs.stat().st_dev != places.files.stat().st_dev:
        beside[FIO_LOGS] = partial(fio.durable_at_best, places.logs, count)
    return Case(
        task,
        described.series,
        mpi,
        workload,
        places,
        modes=(*MODES, SYNCED),
        preload=preload,
        beside=beside,
    ).document()

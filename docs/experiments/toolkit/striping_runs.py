"""The experiments of [ARCHER] with striping: a 3-D array by ever more processes over 1, 4 and 48
servers, collectively or not, and many small files, each on one server or spread over all. One JSON
document a round."""

from __future__ import annotations

import random
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import measuring
import testbed_runs
from analysis_runs import evict
from campaign import Mpi, Testbed, Workload
from machine_time import Stolen
from measuring import FOREBAY, STOCK, MeasuringError, Tools
from methodology_runs import TIMEOUT_S

PROCESSES = (1, 2, 4, 8)
SERVERS = (1, 4, 48)
ENGINES = (STOCK, FOREBAY)
TOGETHER, ALONE = CALLS = ("write_all", "write")

# Of each process: weak scaling. Rows of 512 bytes.
SIZE = (32, 32, 64)
BYTES = 8 * SIZE[0] * SIZE[1] * SIZE[2]

# All servers together stay below what emulating them takes of a small machine.
BANDWIDTH = "2MiB/s"
LOCK_COST = "2ms"


@dataclass(frozen=True)
class Case:
    """One way of writing the array."""

    servers: int
    processes: int
    call: str
    engine: str


def cases() -> list[Case]:
    """All of them."""
    return [
        Case(servers, processes, call, engine)
        for servers in SERVERS
        for processes in PROCESSES
        for call in CALLS
        for engine in ENGINES
    ]


@contextmanager
def testbeds(tools: Tools, described: Testbed, memory: Path) -> Iterator[dict[int, Path]]:
    """Mounted for the time, by their number of servers."""
    with ExitStack() as undo:
        yield {
            servers: undo.enter_context(
                testbed_runs.mounted(tools, paced(described, servers), memory)
            )
            for servers in SERVERS
        }


def paced(described: Testbed, servers: int) -> Testbed:
    """So many servers, paced as this campaign has them."""
    return replace(described, servers=servers, bandwidth=BANDWIDTH, lock_cost=LOCK_COST)


def measure_round(
    tools: Tools, mpi: Mpi, mounts: dict[int, Path], shuffle: random.Random
) -> dict[str, Any]:
    """Every case once, in shuffled order. Every file is compared with one that the program itself
    has read and found right. Raises MeasuringError."""
    stolen = Stolen()
    quick = mounts[SERVERS[-1]]
    right = {processes: _right(tools, mpi, quick, processes) for processes in PROCESSES}
    todo = cases()
    shuffle.shuffle(todo)
    runs = []
    versions: dict[str, str] = {}
    for case in todo:
        mount = mounts[case.servers]
        run = measuring.run(
            tools,
            _command(tools, mpi, mount, case.processes, case.call),
            TIMEOUT_S,
            observe=case.engine == STOCK,
        )
        spent = run.seconds()["write"]
        if run.exit_code != 0 or spent is None:
            raise MeasuringError(f"{case}: exit status {run.exit_code}")
        versions |= {record["mpi"]: record["mpi_version"] for record in run.records}
        runs.append(
            {
                **vars(case),
                "seconds": spent,
                "identical": measuring.digest(_stored(mount)) == right[case.processes],
            }
        )
        (mount / _NAME).unlink()
    return {
        "version": 1,
        "stolen_share": stolen.share(),
        "environment": {"mpi": versions},
        "runs": runs,
    }


_NAME = "array"


def _stored(mount: Path) -> Path:
    return testbed_runs.stored_files(mount) / _NAME


def _command(
    tools: Tools, mpi: Mpi, mount: Path, processes: int, call: str, *more: str
) -> list[str]:
    size = "x".join(map(str, SIZE))
    arguments = ["--size", size, *(["--independent"] if call == ALONE else []), *more]
    arguments += [] if more else ["--no-read"]
    workload = Workload("block3d", "block3d", arguments, "", {}, {})
    return tools.command(mpi, processes, workload, mount / _NAME)


def _right(tools: Tools, mpi: Mpi, mount: Path, processes: int) -> str:
    """The digest of what a run by the stock MPI wrote and found right."""
    command = _command(tools, mpi, mount, processes, TOGETHER, "--cold")
    run = measuring.run(tools, command, TIMEOUT_S, observe=True)
    if run.exit_code != 0:
        raise MeasuringError(f"{' '.join(command)}: exit status {run.exit_code}")
    found = measuring.digest(_stored(mount))
    (mount / _NAME).unlink()
    return found


# As large as those of [ARCHER], which had 36,000 and 5,500 of them.
FILES = 100
FILE_BYTES = 300_000
BRICKS = 6
ONE, ALL = LAYOUTS = ("one brick", f"{BRICKS} bricks")
LAYOUT_OPTIONS = {
    ONE: ("--layout", "distributed", "--servers", str(BRICKS)),
    ALL: ("--layout", "dispersed", "--servers", str(BRICKS), "--redundancy", "2"),
}
SMALL, LARGE = "small files", "one large file"
WRITE, READ, TAR = ("write", "read", "tar")
TASKS = ((SMALL, WRITE), (SMALL, READ), (SMALL, TAR), (LARGE, WRITE), (LARGE, READ))


@contextmanager
def volumes(tools: Tools, memory: Path) -> Iterator[dict[str, Path]]:
    """Of GlusterFS, mounted for the time, by layout. Raises MeasuringError."""
    with ExitStack() as undo:
        place = undo.enter_context(measuring.place(memory)).directory
        yield {
            layout: undo.enter_context(
                testbed_runs.glusterfs(tools, memory, place / str(number), *LAYOUT_OPTIONS[layout])
            )
            for number, layout in enumerate(LAYOUTS)
        }


def measure_files(mounts: dict[str, Path], shuffle: random.Random) -> dict[str, Any]:
    """On each volume every task once, the volumes in turn and in shuffled order. What is read and
    packed is compared with what was written. Raises MeasuringError."""
    stolen = Stolen()
    content = shuffle.randbytes(FILES * FILE_BYTES)
    runs = []
    for data, task in TASKS:
        for layout in shuffle.sample(LAYOUTS, len(LAYOUTS)):
            seconds = _TASKS[task](mounts[layout] / data.replace(" ", "-"), data, content)
            runs.append({"layout": layout, "data": data, "task": task, "seconds": seconds})
    for layout in LAYOUTS:
        for data in (SMALL, LARGE):
            subprocess.run(["rm", "-rf", mounts[layout] / data.replace(" ", "-")], check=True)
    return {
        "version": 1,
        "stolen_share": stolen.share(),
        "environment": {"glusterfs": _glusterfs_version()},
        "runs": runs,
    }


def _parts(data: str, content: bytes) -> dict[str, bytes]:
    if data == LARGE:
        return {"file": content}
    return {
        f"file{number:05}": content[number * FILE_BYTES : (number + 1) * FILE_BYTES]
        for number in range(FILES)
    }


def _write(directory: Path, data: str, content: bytes) -> float:
    directory.mkdir()
    parts = _parts(data, content)
    start = time.perf_counter()
    for name, part in parts.items():
        (directory / name).write_bytes(part)
    return time.perf_counter() - start


def _read(directory: Path, data: str, content: bytes) -> float:
    parts = _parts(data, content)
    for name in parts:
        evict(directory / name)
    start = time.perf_counter()
    found = {name: (directory / name).read_bytes() for name in parts}
    spent = time.perf_counter() - start
    if found != parts:
        raise MeasuringError(f"{directory}: what is read is not what was written")
    return spent


def _tar(directory: Path, data: str, content: bytes) -> float:
    parts = _parts(data, content)
    for name in parts:
        evict(directory / name)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as place:
        archive = Path(place) / "archive"
        start = time.perf_counter()
        subprocess.run(["tar", "-cf", archive, "-C", directory, "."], check=True)
        spent = time.perf_counter() - start
        subprocess.run(["tar", "-xf", archive, "-C", place], check=True)
        for name, part in parts.items():
            if (Path(place) / name).read_bytes() != part:
                raise MeasuringError(f"{directory}: {name} is another one in the archive")
    return spent


_TASKS: dict[str, Callable[[Path, str, bytes], float]] = {WRITE: _write, READ: _read, TAR: _tar}


def _glusterfs_version() -> str:
    told = subprocess.run(["gluster", "--version"], capture_output=True, text=True, check=True)
    return told.stdout.splitlines()[0]

"""The experiment of [METHOD]: NAS BT-IO and MADBench2 by 4 and 9 processes, each in 8
configurations of the I/O system. One JSON document a round of one program."""

from __future__ import annotations

import random
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import traced_runs
from campaign import Mpi, Workload
from disks import volume
from machine_time import Stolen
from measuring import Tools
from testbed_runs import glusterfs

PROCESSES = (4, 9)
TIMEOUT_S = 300

RAID_DISKS = 5


@dataclass(frozen=True)
class Place:
    """Where files lie."""

    name: str
    disks: int
    is_network: bool


PLACES = (
    Place("local, one disk", 1, is_network=False),
    Place("local, RAID 5", RAID_DISKS, is_network=False),
    Place("network, one disk", 1, is_network=True),
    Place("network, RAID 5", RAID_DISKS, is_network=True),
)


@dataclass(frozen=True)
class Way:
    """One way of a program to do its I/O."""

    name: str
    arguments: tuple[str, ...]


@dataclass(frozen=True)
class Program:
    """An application: what it is told in each of its two ways. `computing_operations`: of floating
    point, of all processes together, in a run."""

    name: str
    title: str
    arguments: tuple[str, ...]
    ways: tuple[Way, Way]
    computing_operations: float = 0.0

    def compute_s(self, processes: int) -> float:
        """Seconds that the processes compute."""
        return self.computing_operations / (RATE * processes)


# Floating point operations a second of a process.
RATE = 1e9

# Class W of NAS BT, and of its 200 time steps the first 100, of which every fifth is written.
CLASS_W = 24
WRITTEN = 20
STEPS = 5 * WRITTEN


def bt_operations(side: int, steps: int) -> float:
    """Operations of floating point that NAS BT counts of itself. [NPB 3, BT/bt.f, mflops]"""
    return steps * (3478.8 * side**3 - 17655.7 * side**2 + 28023.7 * side)


COLLECTIVE = Way("collective", ("--variant", "full"))
INDEPENDENT = Way("independent", ("--variant", "simple"))
SHARED = Way("shared file", ())
OWN = Way("own files", ("--own-files",))

BT_IO = Program(
    "multipart",
    "BT-IO",
    ("--size", str(CLASS_W), "--steps", str(WRITTEN), "--cold"),
    (COLLECTIVE, INDEPENDENT),
    bt_operations(CLASS_W, STEPS),
)
MADBENCH = Program(
    "outofcore",
    "MADBench2",
    ("--matrices", "8", "--side", "512", "--independent", "--cold"),
    (SHARED, OWN),
)
PROGRAMS = (BT_IO, MADBENCH)


@dataclass(frozen=True)
class Case:
    """One of a program's configurations."""

    place: Place
    way: Way
    processes: int

    @property
    def name(self) -> str:
        return f"{self.place.name}, {self.way.name}"


def cases_of(program: Program) -> list[Case]:
    """All, by processes, then by place."""
    return [
        Case(place, way, processes)
        for processes in PROCESSES
        for place in PLACES
        for way in program.ways
    ]


@contextmanager
def places(tools: Tools, memory: Path) -> Iterator[dict[str, Path]]:
    """By name of a place a directory there, all up for the time. The network file system is
    GlusterFS of one server, which keeps its files on such a volume. Raises CannotBeDoneError, or
    MeasuringError."""
    with ExitStack() as undo:
        found = {}
        for place in PLACES:
            directory = undo.enter_context(volume(memory, place.disks))
            if place.is_network:
                directory = undo.enter_context(glusterfs(tools, memory, directory / "bricks"))
            found[place.name] = directory
        yield found


def measure_round(
    tools: Tools,
    mpi: Mpi,
    directories: Mapping[str, Path],
    program: Program,
    shuffle: random.Random,
) -> dict[str, Any]:
    """Every case once, in shuffled order."""
    stolen = Stolen()
    todo = cases_of(program)
    shuffle.shuffle(todo)
    with tempfile.TemporaryDirectory(prefix="forebay-experiment-") as name:
        traces = [Path(name) / str(number) for number in range(len(todo))]
        for case, trace in zip(todo, traces, strict=True):
            run_case(tools, mpi, directories[case.place.name], program, case, trace)
        share = stolen.share()
        told = [traced_runs.report(trace) for trace in traces]
        version = traced_runs.mpi_version(traces[0])
    return {
        "version": 1,
        "program": program.name,
        "stolen_share": share,
        "compute_s": {str(processes): program.compute_s(processes) for processes in PROCESSES},
        "environment": {"mpi": {mpi.key: version}},
        "runs": [
            {
                "case": case.name,
                "processes": case.processes,
                **asdict(traced_runs.figures(report)),
            }
            for case, report in zip(todo, told, strict=True)
        ],
    }


def run_case(
    tools: Tools, mpi: Mpi, directory: Path, program: Program, case: Case, trace: Path
) -> None:
    """One run, on what nothing is left of from the one before. Raises MeasuringError."""
    arguments = [*program.arguments, *case.way.arguments]
    compute_s = program.compute_s(case.processes)
    if compute_s:
        arguments += ["--compute", f"{compute_s:.3f}"]
    workload = Workload(program.name, program.name, arguments, "", {}, {})
    command = tools.command(mpi, case.processes, workload, directory / program.name)
    traced_runs.trace(tools, command, trace, TIMEOUT_S)
    for file in directory.glob(f"{program.name}*"):
        file.unlink()
    subprocess.run(["sync", "--file-system", str(directory)], check=True)

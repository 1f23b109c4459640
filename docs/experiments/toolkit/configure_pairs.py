"""The pairs of a program and a system on which `forebay configure` is tried: what each program is
told, and by what of its system the best settings were planted."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from campaign import Mpi
from measuring import MeasuringError, Tools
from testbed_runs import stored_files, testbed_command

# Below --tmpfs. Always the same, as limits are told by path: they were measured by an earlier
# command, and hold for a testbed of the same parameters at the same place.
PLACE = "forebay-configure"


@dataclass(frozen=True)
class System:
    """A file system. `testbed`: as `forebay testbed up` has it; none is memory."""

    name: str
    testbed: Mapping[str, str] = field(default_factory=dict)

    @property
    def described(self) -> str:
        if not self.testbed:
            return "memory (tmpfs)"
        told = self.testbed
        servers = int(told["servers"])
        text = f"{servers} server{'s' if servers > 1 else ''} of {told['bandwidth']}, "
        text += f"{told['latency']} a request, stripes of {told['stripe']}"
        if lock := told.get("lock-cost"):
            text += f", {lock} lost when a stripe's writer changes"
        if each := told.get("object-cost"):
            text += f", {each} for each server of a file that is opened, made or removed"
        return text


def _emulated(
    name: str, servers: int, bandwidth: str, latency: str, stripe: str, **costs: str
) -> System:
    told = {"servers": str(servers), "bandwidth": bandwidth, "latency": latency, "stripe": stripe}
    return System(name, told | {key.replace("_", "-"): cost for key, cost in costs.items()})


CONTENDED = _emulated("contended", 4, "4MiB/s", "3ms", "64KiB", lock_cost="2ms")
SINGLE = _emulated("single", 1, "16MiB/s", "3ms", "64KiB", lock_cost="1ms")
WIDE = _emulated("wide", 48, "1MiB/s", "3ms", "64KiB", lock_cost="1ms")
DISTANT = _emulated("distant", 4, "16MiB/s", "10ms", "256KiB")
MEMORY = System("memory")
# Of planted faults alone: what small files cost on 48 servers, and on one of these.
SPREAD = _emulated("spread", 48, "1MiB/s", "3ms", "64KiB", object_cost="200us")
WHOLE = _emulated("whole", 1, "1MiB/s", "3ms", "64KiB", object_cost="200us")
SYSTEMS = (CONTENDED, SINGLE, WIDE, DISTANT, MEMORY)


@dataclass(frozen=True)
class Pair:
    """A program on a system. `variable` is one of the program's own choices: its name, and what it
    may be; `{NAME}` of a system stands for its directory. The first one is what it is without."""

    name: str
    program: str
    arguments: tuple[str, ...]
    system: System
    planted: str
    mpi: str = "openmpi"
    ranks: int = 4
    variable: tuple[str, tuple[str, ...]] | None = None
    constraints: tuple[str, ...] = ("cache_path=/dev/shm",)

    def choices(self, directories: Mapping[str, Path]) -> tuple[str, ...]:
        """The values of the variable."""
        values = self.variable[1] if self.variable else ()
        return tuple(value.format(**directories) for value in values)

    def command(self, tools: Tools, mpi: Mpi, directories: Mapping[str, Path]) -> list[str]:
        """As a user would start it. A variable of the program's is read by a shell in its place."""
        program = tools.workloads / mpi.key / self.program
        if not program.is_file():
            raise MeasuringError(f"{program} does not exist: run 'make build' first")
        start = mpi.start(self.ranks)
        words = [str(program), *self.arguments]
        if self.variable is None:
            return [*start, *words, str(directories[self.system.name] / self.name)]
        name, usual = self.variable[0], self.choices(directories)[0]
        chosen = f'"${{{name}:-{usual}}}"'
        if usual.startswith("/"):
            return [*start, "sh", "-c", f"exec {shlex.join(words)} {chosen}/{self.name}"]
        file = str(directories[self.system.name] / self.name)
        return [*start, "sh", "-c", f'exec {shlex.join(words)} {chosen} "$0"', file]

    def stored(self, directories: Mapping[str, Path]) -> list[Path]:
        """The files that a run left, where reading and removing them takes none of the servers'
        time."""
        places = []
        for directory in directories.values():
            behind = stored_files(directory)
            places.append(behind if behind.is_dir() else directory)
        return sorted(file for place in places for file in place.glob(f"{self.name}*"))


PAIRS = (
    Pair(
        "rows",
        "block3d",
        ("--grid", "1x1x4", "--size", "32x32x64", "--files", "3", "--no-read"),
        CONTENDED,
        "Rows of 512 bytes of four processes lie in turn in each stripe, and a stripe whose writer "
        "changes costs its server 2 ms: whoever does not gather them pays for that.",
    ),
    Pair(
        "pauses",
        "checkpoint",
        ("--blocks", "1", "--files", "3", "--compute", "0.2", "--no-read"),
        SINGLE,
        "Between two files the program computes for about as long as the server takes, which a "
        "cache that is flushed meanwhile hides.",
    ),
    Pair(
        "directories",
        "segments",
        ("--block", "1MiB", "--transfer", "256KiB", "--segments", "2", "--no-read"),
        SINGLE,
        "The program may write to one server, to 4 or to 48, of which only the latter are as fast "
        "together as it would need.",
        variable=("DIRECTORY", ("{single}", "{contended}", "{wide}")),
    ),
    Pair(
        "calls",
        "multipart",
        ("--size", "16", "--steps", "1", "--no-read"),
        DISTANT,
        "By default the program writes each row of 320 bytes in a call of its own, and each "
        "request takes 10 ms; it could write all of a step in one call.",
        variable=("VARIANT", ("--variant=simple", "--variant=full")),
    ),
    Pair(
        "memory",
        "lattice4d",
        ("--local", "16x16x16x16", "--files", "2"),
        MEMORY,
        "Rows of 3 KiB of two processes, in memory: every copy between them costs as much as "
        "writing does, so the way with fewest of them is best.",
        mpi="mpich",
        ranks=2,
        constraints=(),
    ),
)


@contextmanager
def mounted(
    tools: Tools, memory: Path, systems: Collection[System] = SYSTEMS
) -> Iterator[dict[str, Path]]:
    """A directory of each system by its name, all there for the time. Raises MeasuringError."""
    place = memory / PLACE
    if place.exists():
        raise MeasuringError(
            f"{place} is there: another campaign runs, or was killed. If so, take its testbeds "
            f"down ('forebay testbed status', 'down --mount DIR') and remove {place}"
        )
    with ExitStack() as undo:
        place.mkdir()
        undo.callback(shutil.rmtree, place, ignore_errors=True)
        found = {}
        for system in systems:
            directory = place / system.name / "mount"
            directory.mkdir(parents=True)
            if system.testbed:
                words = [w for key, value in system.testbed.items() for w in (f"--{key}", value)]
                words += ["--backing", str(stored_files(directory))]
                testbed_command(tools, ["up", *words, "--mount", str(directory)])
                undo.callback(testbed_command, tools, ["down", "--mount", str(directory)])
            found[system.name] = directory
        yield found

"""An application's pattern, from a trace of one run: of each layer the five dimensions, for all
processes and each, and the phases."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from forebay.characterise import accesses as accesses_of
from forebay.characterise import bursts, counted, elements, pattern, phases
from forebay.characterise.phases import Phases
from forebay.trace import calls, mpi_files, places, tables, unseen
from forebay.trace.calls import Kind
from forebay.trace.directory import Trace
from forebay.trace.mpi_files import MpiFiles

FORMAT_VERSION = 1
#: What the program itself asked for comes first. A capture has C streams among POSIX.
LAYERS = ("mpiio", "posix", "stdio")


@dataclass(frozen=True)
class Layer:
    """One layer's pattern. `level` is that of the trace: with `counters` there is no order of
    calls, hence no phases."""

    name: str
    level: str
    whole: dict[str, Any]
    processes: list[dict[str, Any]] = field(default_factory=list)
    phases: Phases = field(default_factory=lambda: Phases([], 0, 0.0))
    sharing: list[dict[str, Any]] = field(default_factory=list)
    pause_s: float = 0.0  # from which on a pause parts two bursts; 0: nothing does
    left_out: int = 0  # reads and writes of the system's files
    left_out_bytes: int = 0


@dataclass(frozen=True)
class Application:
    """All layers that a trace tells of."""

    trace: Trace
    layers: list[Layer]
    files: list[str]
    warnings: list[str]
    mpi_files: MpiFiles | None = None  # what its MPI did for itself, and no layer has

    def as_json(self) -> dict[str, Any]:
        run = self.trace.run
        return {
            "version": FORMAT_VERSION,
            "trace": str(self.trace.path),
            "command": run.command,
            "wall_seconds": run.wall_ns / 1e9,
            "ranks": run.ranks,
            "processes": self.trace.rows("processes"),
            "complete": run.complete,
            "losses": run.losses,
            "warnings": self.warnings,
            "files": self.files,
            "mpi_files": None if self.mpi_files is None else self.mpi_files.as_json(),
            "layers": {
                layer.name: {
                    "level": layer.level,
                    "pause_s": layer.pause_s,
                    "left_out": {"calls": layer.left_out, "bytes": layer.left_out_bytes},
                    "global": layer.whole,
                    "sharing": layer.sharing,
                    "phases": [phase.as_json() for phase in layer.phases.listed],
                    "phases_not_listed": layer.phases.others,
                    "bytes_not_listed_share": layer.phases.others_share,
                    "processes": layer.processes,
                }
                for layer in self.layers
            },
        }


def characterise(
    trace: Trace, pause_s: float | None = None, all_files: bool = False
) -> Application:
    """The patterns of a trace. Pauses from `pause_s` seconds on part bursts; if None, those that
    are clearly longer than others. `all_files`: those of the system and
    of the MPI, too."""
    layers = []
    for name in LAYERS:
        layer = None
        if trace.rows(name) and _moves_data(trace, name):
            layer = _of_calls(trace, name, pause_s, all_files)
        if layer is None:
            layer = _of_counters(trace, name)
        if layer is not None:
            layers.append(layer)
    paths = trace.table("files")["path"].to_pylist()
    own = None if all_files else mpi_files.of(trace)
    return Application(trace, layers, paths, unseen.caveats(trace), own)


def _moves_data(trace: Trace, name: str) -> bool:
    _, words = tables.codes(trace.table(name, ["call"]), "call")
    return any(calls.kind_of(word) <= Kind.WRITE for word in words)


def _of_calls(trace: Trace, name: str, pause_s: float | None, all_files: bool) -> Layer | None:
    wanted = None if all_files else places.applications(trace)
    found, others = accesses_of.load(trace, name, wanted)
    if len(found) == 0:
        return None
    pause = bursts.pauses(found)
    limit = bursts.threshold_ns(found, pause) if pause_s is None else round(pause_s * 1e9)
    burst = bursts.numbers(pause, found.process, limit)
    family, series = accesses_of.families(trace.table("files")["path"].to_pylist())
    rows, in_loop = elements.found_in(found, burst, family)
    follows = pattern.followed(found, in_loop)
    count = max(1, trace.rows("processes"))
    ranks = _ranks(trace, count)
    whole, each = pattern.scopes(found, burst, others, count)
    wall = max(trace.run.wall_ns, int(found.end_ns.max()))
    listed = phases.found_in(rows, found.words, series, family, ranks)
    total = pattern.of(found, follows, whole, wall)
    total["repetition"]["most"] = max((phase.repetitions for phase in listed.listed), default=0)
    return Layer(
        name=name,
        level=trace.run.levels.get(name, "events"),
        whole=total,
        processes=[
            {"process": process, "rank": int(ranks[process])}
            | pattern.of(found, follows, scope, wall)
            for process, scope in each
        ],
        phases=listed,
        sharing=pattern.sharing(found),
        pause_s=limit / 1e9,
        left_out=others.left_out,
        left_out_bytes=others.left_out_bytes,
    )


def _ranks(trace: Trace, count: int) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """Of each process its rank, or its number where none has one."""
    if not trace.rows("processes"):
        return np.arange(count)
    ranks = tables.integers(trace.table("processes"), "rank")
    return np.arange(count) if (ranks < 0).all() else ranks


def _of_counters(trace: Trace, name: str) -> Layer | None:
    whole = counted.pattern(trace, name)
    return None if whole is None else Layer(name, "counters", whole)

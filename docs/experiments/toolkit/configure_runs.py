"""`forebay configure` on pairs of a program and a system: what it proposes within 30 runs, beside
the best of a grid of all that it may choose from. One JSON document a round of a pair.

The grid has every factor that `configure` found for the program, each with a few of its values. All
of it is run in passes of shuffled order, what is fastest then more often; and what decides are
fresh runs of the fastest few, of the proposal and of the default, in turn.

Within a round nothing is left out, of any pair: a run that does not end in TIMEOUT_S, or that
fails, counts as one of TIMEOUT_S. Only if the default itself fails, nothing can be measured. Which
rounds count is told by configure_figures.py."""

from __future__ import annotations

import json
import random
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import measuring
import results
import traced_runs
from campaign import Mpi
from configure_pairs import Pair
from forebay.configure import candidate, space, workload
from forebay.configure.constraints import Constraints, parse
from forebay.configure.factors import KNOWN, Kind, Settings, Variable
from forebay.evaluate import ways
from forebay.file_checks import FileChecks
from forebay.timed_runs import TimedRuns
from forebay.trace.directory import Trace
from machine_time import Stolen
from measuring import MeasuringError, Tools, forebay
from toolkit_pages import SCRIPT

RUNS_MOST = 30
ROUNDS_OF_LIMITS = 4
# A run of so long is ended, and counts as one of so long: nothing that is best is near it.
TIMEOUT_S = 20.0
# Of the grid: passes over all, and then over the fastest.
PASSES, FASTEST, MORE_PASSES = 1, 10, 3
# Of fresh runs.
FINALISTS, FINAL_PASSES = 3, 7
_NUMBERS_KEPT = 2  # of a factor's values, beside the default

NOTHING_FASTER = 4  # exit status of `forebay configure`
DEFAULT, PROPOSED = "default", "proposed"


def limits_file(output: Path) -> Path:
    return output / "results" / "configure-systems.json"


def limits(output: Path) -> dict[str, Any]:
    """What is in that file. Raises MeasuringError where it is not there."""
    found = results.load(limits_file(output))
    if found is None:
        raise MeasuringError("no limits of the systems are there: 'run.py systems' measures them")
    document: dict[str, Any] = found.raw["system"]
    return document


def characterise(tools: Tools, directory: Path, output: Path) -> None:
    """Measures the limits of a system by `forebay characterise system --quick`, which has five
    minutes, and adds them to those that are there. Raises MeasuringError."""
    stolen = Stolen()
    before = results.load(limits_file(output))
    with tempfile.TemporaryDirectory(prefix="forebay-experiment-") as name:
        out = Path(name) / "system.json"
        words = ["characterise", "system", "--quick", "--rounds", str(ROUNDS_OF_LIMITS)]
        words += ["-o", str(out)]
        if before is not None:
            out.write_text(json.dumps(before.raw["system"]))
            words.append("--again")
        forebay(tools, [*words, str(directory)])
        found = {
            "version": 1,
            "stolen_share": stolen.share(),
            "environment": {},
            "system": json.loads(out.read_text()),
        }
    results.store(limits_file(output), found, SCRIPT)


@dataclass(frozen=True)
class Case:
    """A pair that is to be measured. `directory` is for what is written beside: trace, history."""

    tools: Tools
    mpi: Mpi
    pair: Pair
    directories: Mapping[str, Path]
    directory: Path

    @property
    def command(self) -> list[str]:
        return self.pair.command(self.tools, self.mpi, self.directories)

    @property
    def variables(self) -> list[Variable]:
        if self.pair.variable is None:
            return []
        return [Variable(self.pair.variable[0], self.pair.choices(self.directories))]

    @property
    def constraints(self) -> Constraints:
        return Constraints(tuple(parse(text, self.variables) for text in self.pair.constraints))

    @property
    def system(self) -> Path:
        return self.directory / "system.json"

    @property
    def trace(self) -> Path:
        return self.directory / "trace"

    def remove_files(self) -> None:
        for file in self.pair.stored(self.directories):
            file.unlink()


def measure(
    tools: Tools,
    mpi: Mpi,
    directories: Mapping[str, Path],
    pair: Pair,
    system: Mapping[str, Any],
    shuffle: random.Random,
) -> dict[str, Any]:
    """One round of a pair. Raises MeasuringError."""
    stolen = Stolen()
    with tempfile.TemporaryDirectory(prefix="forebay-experiment-") as name:
        case = Case(tools, mpi, pair, directories, Path(name))
        case.system.write_text(json.dumps(system))
        forebay(tools, ["trace", "-o", str(case.trace), "--", *case.command])
        case.remove_files()
        program = workload.of(Trace(case.trace))
        proposal = configure(case)
        case.remove_files()
        timed = Timed(case, program)
        grid = timed.grid(thinned(program, case.variables, case.constraints), shuffle)
        final = timed.final(grid, proposal["settings"], shuffle)
        case.remove_files()
        return {
            "version": 1,
            "pair": pair.name,
            "stolen_share": stolen.share(),
            "environment": {"mpi": {mpi.key: traced_runs.mpi_version(case.trace)}},
            "io_share": program.ceiling_share,
            "identical": timed.identical,
            "not_ended": timed.not_ended,
            "configure": proposal,
            "grid": grid,
            "final": final,
        }


def configure(case: Case) -> dict[str, Any]:
    """What `forebay configure` proposes, and each run that it made for that. Raises
    MeasuringError."""
    told, history = case.directory / "search.json", case.directory / "configure.sqlite"
    words = ["configure", str(case.trace), "--system", str(case.system)]
    words += ["--max-runs", str(RUNS_MOST), "--history", str(history), "--json", str(told)]
    words += ["--out", str(case.directory / "configurations.toml")]
    for constraint in case.pair.constraints:
        words += ["--constraint", constraint]
    for variable in case.variables:
        words += ["--variable", f"{variable.name}={','.join(variable.values)}"]
    start = time.monotonic()
    forebay(case.tools, [*words, "--", *case.command], (0, NOTHING_FASTER))
    spent = time.monotonic() - start
    found = json.loads(told.read_text())
    settings = {run["configuration"]: run["settings"] for run in found["runs"]}
    best = found["best"]
    kept = ("configuration", "settings", "why", "state", "predicted", "seconds")
    return {
        "settings": settings[best] if best else {},
        "proposes": best is not None,
        "stopped": found["stopped"],
        "feasible": found["candidates"]["feasible"],
        "seconds": spent,
        "runs": [{key: run[key] for key in kept} for run in found["runs"]],
    }


def thinned(
    program: workload.Workload, variables: list[Variable], constraints: Constraints
) -> list[dict[str, str]]:
    """All combinations of what `configure` may choose from, with a few values of each factor: of
    numbers the default, the least and the most."""
    built = space.SpaceBuilder(program, constraints, variables).build()
    for factor, values in built.values.items():
        built.values[factor] = _thinned(factor, values, built.defaults.get(factor))
    found = space.candidates(built, constraints, 0)
    first: list[dict[str, str]] = [{}]
    if program.opens_through_mpi:
        first.append({"engine": "mpi"})
    return first + [settings for settings in found if settings not in first]


def _thinned(factor: str, values: Sequence[str | None], default: str | None) -> list[str | None]:
    known = KNOWN.get(factor)
    if known is None or known.kind not in (Kind.COUNT, Kind.SIZE):
        return list(values)
    others = [value for value in values if value is not None and value != default]
    if len(others) > _NUMBERS_KEPT:
        others = [others[0], others[-1]]
    return [None, *others]


class Timed:
    """Runs of a case by settings, timed as `configure` times them: the whole command."""

    def __init__(self, case: Case, program: workload.Workload) -> None:
        self._case = case
        self._program = program
        # What is written is looked at below, without the servers.
        words = [str(directory) for directory in case.directories.values()]
        self._runs = TimedRuns(
            case.command, checks=FileChecks(["*"]), timeout_s=TIMEOUT_S, also=words
        )
        self._runs.begin()
        self._right: dict[str, str] | None = None
        self.identical = True
        self.not_ended: list[dict[str, Any]] = []  # runs that failed, or took too long

    def grid(
        self, candidates: list[dict[str, str]], shuffle: random.Random
    ) -> list[dict[str, Any]]:
        """Every one of these in passes, then the fastest of them in further ones."""
        seconds: list[list[float]] = [[] for _ in candidates]

        def passes(places: Sequence[int], count: int) -> None:
            for _ in range(count):
                for place in shuffle.sample(places, len(places)):
                    seconds[place].append(self._one(candidates[place])["wall"])

        def ranked() -> list[int]:
            return sorted(range(len(candidates)), key=lambda place: median(seconds[place]))

        passes(range(len(candidates)), PASSES)
        passes(ranked()[:FASTEST], MORE_PASSES)
        return [
            {"settings": candidates[place], "seconds": seconds[place]}
            for place in sorted(ranked(), key=lambda n: len(seconds[n]) <= PASSES)
        ]

    def final(
        self, grid: list[dict[str, Any]], proposed: dict[str, str], shuffle: random.Random
    ) -> list[dict[str, Any]]:
        """Fresh runs of the grid's fastest, of the proposal and of the default, in turn."""
        todo: dict[str, dict[str, str]] = {DEFAULT: {}}
        if proposed:
            todo[PROPOSED] = proposed
        for number, one in enumerate(grid[:FINALISTS], start=1):
            if one["settings"] not in todo.values():
                todo[f"grid {number}"] = one["settings"]
        runs: dict[str, list[dict[str, float]]] = {name: [] for name in todo}
        for _ in range(FINAL_PASSES):
            for name in shuffle.sample(list(todo), len(todo)):
                runs[name].append(self._one(todo[name]))
        return [{"name": name, "settings": todo[name], "runs": runs[name]} for name in todo]

    def _one(self, settings: Settings) -> dict[str, float]:
        """Seconds of one run. Raises MeasuringError if the default fails otherwise than by its
        time."""
        made = candidate.configuration("candidate", settings, self._program)
        self._runs.reset()
        self._case.remove_files()
        way = ways.way(made, self._case.directory, "auto", None)
        with measuring.in_environment():  # as of the runs that the command makes
            run = self._runs.run(way)
        if run.failure is not None:
            how = run.failure.how
            if not settings and not run.failure.timed_out:
                raise MeasuringError(f"the default: {how}: {run.failure.stderr[-1000:]}")
            self.not_ended.append({"settings": dict(settings), "how": how})
            return {"wall": TIMEOUT_S, "mpiio": TIMEOUT_S}
        left = {
            file.name: measuring.digest(file)
            for file in self._case.pair.stored(self._case.directories)
        }
        self._right = self._right or left
        self.identical &= left == self._right
        return {"wall": run.side.wall, "mpiio": run.side.mpiio or 0.0}

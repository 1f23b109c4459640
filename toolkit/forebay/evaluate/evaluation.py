"""What an evaluation found: the value that `forebay evaluate` prints and writes as JSON."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from forebay.comparison import Failure, FileCheck, Side
from forebay.configurations import Configuration
from forebay.evaluate import storage_probe
from forebay.evaluate.background import Load
from forebay.evaluate.in_force import Setting, State
from forebay.evaluate.sequential import PairedTest
from forebay.evaluate.storage_probe import StorageLoad
from forebay.evaluate.verdict import Plan, Verdict, judge, not_in_force

VERSION = 1  # of its JSON
# From so many blocks on, and such a share of them, uneven loads are worth a word.
_UNEVEN_BLOCKS, _UNEVEN_SHARE = 2, 0.2


@dataclass(frozen=True)
class EvaluatedRun:
    """One timed run, in the order in which they ran, and what else the machine did about it."""

    block: int  # from 1 up
    configuration: str
    side: Side
    before: Load | None
    after: Load | None
    # How soon the program's file systems answered.
    storage_before: list[StorageLoad] = field(default_factory=list)
    storage_after: list[StorageLoad] = field(default_factory=list)


@dataclass
class Evaluation:
    """The whole campaign, or what there is of it when it stopped."""

    command: list[str]
    configurations: list[Configuration]
    reference: str
    quantity: str  # of comparison.QUANTITIES
    plan: Plan
    seed: int
    runs: list[EvaluatedRun] = field(default_factory=list)
    tests: dict[str, PairedTest] = field(default_factory=dict)  # of each candidate
    settings: dict[str, list[Setting]] = field(default_factory=dict)
    files: dict[str, list[FileCheck]] = field(default_factory=dict)  # of each candidate
    environment: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    failure: Failure | None = None
    unsteady: str | None = None  # how the output's size differs from run to run
    interrupted: bool = False
    broken_off: str | None = None  # why the campaign could not go on, and what to do

    def __post_init__(self) -> None:
        candidates = [c.name for c in self.configurations if c.name != self.reference]
        self.tests = {name: PairedTest(self.plan.alpha / len(candidates)) for name in candidates}

    @property
    def candidates(self) -> list[str]:
        return list(self.tests)

    def lacking(self, name: str) -> list[str]:
        """What shows that its settings, or those it is compared with, did not hold."""
        return [
            f"{of}: {setting}"
            for of in (name, self.reference)
            for setting in self.settings.get(of, [])
            if setting.state == State.NOT_IN_FORCE
        ]

    def differing(self, name: str) -> list[FileCheck]:
        """Files that are not as the reference leaves them, though that leaves them alike. Those
        that were written without MPI beside one configuration only may be somebody else's, and
        under other variables a program may write other files."""
        others = self.has_other_variables(name)
        return [
            check
            for check in self.files.get(name, [])
            if check.identical is False
            and not check.reason
            and ((check.mpi and not others) or (check.hash_stock and check.hash_forebay))
        ]

    def has_other_variables(self, name: str) -> bool:
        """Whether a configuration gives the ranks other variables than the reference does."""
        of = {each.name: each.environment for each in self.configurations}
        return of[name] != of[self.reference]

    def left_alone(self, name: str) -> list[FileCheck]:
        """Files that the program writes under the variables of one of the two configurations
        alone, so that nothing can be compared."""
        return [
            check
            for check in self.files.get(name, [])
            if check.mpi
            and self.has_other_variables(name)
            and not (check.hash_stock and check.hash_forebay)
        ]

    def verdict(self, name: str) -> Verdict | None:
        """What can be said of a candidate; None if it cannot be judged: the command fails, is not
        the same twice, or leaves other files."""
        if self.failure or self.unsteady or self.differing(name):
            return None
        lacking = self.lacking(name)
        if lacking:
            return not_in_force(lacking, self.tests[name].blocks, self.plan)
        return replace(judge(self.tests[name], self.plan), reasons=self._uneven_loads(name))

    def _uneven_loads(self, name: str) -> tuple[str, ...]:
        """Of the file systems, beside the runs of a candidate and the reference, if that was so in
        many blocks: what was there before each, since what comes after is also the run's own."""
        runs = {(run.block, run.configuration): run.storage_before for run in self.runs}
        blocks = [block for block, of in runs if of == name and (block, self.reference) in runs]
        found = Counter(
            path
            for block in blocks
            for path in storage_probe.uneven(runs[block, name], runs[block, self.reference])
        )
        return tuple(
            f"{path} was loaded otherwise beside one run than beside the other in {number} of "
            f"{len(blocks)} blocks: a quieter time needs fewer runs"
            for path, number in found.items()
            if number >= max(_UNEVEN_BLOCKS, _UNEVEN_SHARE * len(blocks))
        )

    def seconds(self, name: str) -> list[float]:
        """The times of a configuration, block by block."""
        found = (getattr(r.side, self.quantity) for r in self.runs if r.configuration == name)
        return [value for value in found if value is not None]

    def loads(self) -> Iterable[Load | None]:
        """The background before and after each run."""
        return (load for run in self.runs for load in (run.before, run.after))

    def as_json(self) -> dict[str, Any]:
        """The document of `forebay evaluate --json` (docs/guide/evaluate.md)."""
        verdicts = {name: self.verdict(name) for name in self.candidates}
        return {
            "version": VERSION,
            "command": self.command,
            "reference": self.reference,
            "time": self.quantity,
            "alpha": self.plan.alpha,
            "least_gain": self.plan.least_gain,
            "blocks_max": self.plan.blocks_max,
            "seed": self.seed,
            "verdicts": {name: v and _verdict_json(v) for name, v in verdicts.items()},
            "configurations": {c.name: c.as_json() for c in self.configurations},
            "settings": {
                name: [asdict(setting) for setting in found]
                for name, found in self.settings.items()
            },
            "runs": [asdict(run) for run in self.runs],
            "log_ratios": {name: test.ratios.tolist() for name, test in self.tests.items()},
            "files": {name: [_file_json(c) for c in found] for name, found in self.files.items()},
            "environment": self.environment,
            "notes": self.notes,
            "failure": asdict(self.failure) if self.failure else None,
            "unsteady": self.unsteady,
            "interrupted": self.interrupted,
            "broken_off": self.broken_off,
        }


def _verdict_json(verdict: Verdict) -> dict[str, Any]:
    content = asdict(verdict)
    return {"verdict": str(content.pop("kind")), **content}


def _file_json(check: FileCheck) -> dict[str, Any]:
    return {
        "path": check.path,
        "bytes": check.bytes,
        "hash_reference": check.hash_stock,
        "hash": check.hash_forebay,
        "identical": check.identical,
        "mpi": check.mpi,
        "reason": check.reason,
    }


def exit_code(result: Evaluation) -> int:
    """0: judged, whatever the verdicts; 1: a configuration leaves other files, or broken off; 3:
    the command fails, or its output is not of the same size twice; 130: interrupted."""
    if result.failure is not None or result.unsteady is not None:
        return 3
    if result.broken_off is not None or any(result.differing(name) for name in result.candidates):
        return 1
    return 130 if result.interrupted else 0

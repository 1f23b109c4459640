"""What a search found, as `forebay configure` prints and writes it (docs/formats/search.md)."""

from dataclasses import asdict, dataclass, field
from typing import Any

from forebay.comparison import Failure
from forebay.configurations import Configuration
from forebay.configure.chooser import Candidate, Ranked
from forebay.configure.constraints import Constraints
from forebay.configure.disturbances import counting
from forebay.configure.history import Search, SearchRun, State, Why
from forebay.configure.space import LeftOut
from forebay.configure.workload import Workload

FORMAT = "forebay search"
VERSION = 1

# Why a search ended.
CEILING = "ceiling"
FAILURE = "failure"
OUTPUT = "output"
INTERRUPTED = "interrupted"
BUDGET = "budget"


@dataclass
class SearchResult:
    """The whole search, or what there is of it. `ranking` has places in `candidates`, of which the
    first is the reference."""

    search: Search
    host: str
    workload: Workload
    constraints: Constraints
    least_gain: float
    ignored: list[str] = field(default_factory=list)  # patterns of files
    system: dict[str, Any] | None = None
    factors: dict[str, list[str | None]] = field(default_factory=dict)
    left_out: list[LeftOut] = field(default_factory=list)
    considered: int = 0
    candidates: list[Candidate] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)  # of the candidates that were run
    configurations: dict[str, Configuration] = field(default_factory=dict)  # those that were run
    runs: list[SearchRun] = field(default_factory=list)
    ranking: list[Ranked] = field(default_factory=list)
    stopped: str = ""
    failure: Failure | None = None
    failure_text: str = ""
    notes: list[str] = field(default_factory=list)

    @property
    def reference(self) -> Ranked | None:
        return next((ranked for ranked in self.ranking if ranked.candidate == 0), None)

    @property
    def best(self) -> Ranked | None:
        """What looks faster than the reference by the least gain that matters; None if nothing
        does."""
        reference = self.reference
        others = self.others()
        if reference is None or not others:
            return None
        gain = reference.seconds / others[0].seconds - 1
        return others[0] if gain >= self.least_gain else None

    def others(self) -> list[Ranked]:
        """All but the reference, best first."""
        return [ranked for ranked in self.ranking if ranked.candidate != 0]

    def name(self, ranked: Ranked) -> str:
        return self.names[ranked.candidate]

    def given_up(self) -> list[SearchRun]:
        """The latest run of each configuration that failed, did not hold or left other files."""
        bad = (State.FAILED, State.NOT_IN_FORCE, State.OTHER_FILES)
        return list(
            {
                run.configuration: run
                for run in self.runs
                if run.state in bad and (run.why, run.state) != (Why.TRACED, State.FAILED)
            }.values()
        )

    @property
    def counted(self) -> list[SearchRun]:
        """Runs whose times count."""
        unused = (Why.WARM_UP, Why.TRACED)
        return [r for r in self.runs if r.state is State.MEASURED and r.why not in unused]

    def disturbed(self) -> list[SearchRun]:
        """Those of them that are set aside, since most with the same settings were much faster."""
        told = [(run.configuration, run.seconds or 0.0) for run in self.counted]
        return [r for r, counts in zip(self.counted, counting(told), strict=True) if not counts]

    def as_json(self) -> dict[str, Any]:
        share, speedup = self.workload.ceiling_share, self.workload.best_speedup
        return {
            "format": FORMAT,
            "version": VERSION,
            **asdict(self.search),
            "host": self.host,
            "system": self.system,
            "constraints": [str(each) for each in self.constraints.all],
            "least_gain": self.least_gain,
            "ceiling": None if share is None else {"io_share": share, "best_speedup": speedup},
            "factors": [{"name": k, "values": values} for k, values in self.factors.items()],
            "left_out": [asdict(each) for each in self.left_out],
            "candidates": {"considered": self.considered, "feasible": len(self.candidates)},
            "configurations": {
                name: configuration.as_json() for name, configuration in self.configurations.items()
            },
            "runs": [run.as_json() for run in self.runs],
            "ranking": [
                {
                    "configuration": self.name(ranked),
                    "seconds": ranked.seconds,
                    "low": ranked.low,
                    "high": ranked.high,
                    "runs": ranked.runs,
                }
                for ranked in self.ranking
            ],
            "best": None if self.best is None else self.name(self.best),
            "stopped": self.stopped,
            "failure": self.failure_text or None,
            "notes": self.notes,
        }


def exit_code(result: SearchResult) -> int:
    """0: something looks faster; 4: nothing does, or I/O takes too little; 1: broken off; 3: the
    command fails, or its output is not of the same size twice; 130: interrupted."""
    if result.stopped == FAILURE:
        return 3 if result.failure is not None else 1
    if result.stopped == OUTPUT:
        return 3
    if result.stopped == INTERRUPTED:
        return 130
    return 0 if result.best is not None else 4

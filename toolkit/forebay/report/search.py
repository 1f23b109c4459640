"""All that the report of a search says, before it is a page or lines on a terminal.

A search claims nothing; an evaluation does. So the verdict is that of the evaluations of what the
search found, where they lie beside it, else that nothing is claimed.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from forebay import configurations, intent_file
from forebay.configure import contrasts, history, result, result_file, workload
from forebay.configure import stored as stored_search
from forebay.configure.contrasts import Contrast, Noise, Trouble
from forebay.configure.history import SearchRun, State, Why
from forebay.configure.stored import Ceiling, Estimate, StoredSearch
from forebay.errors import ForebayError
from forebay.evaluate import in_force
from forebay.evaluate import stored as stored_evaluation
from forebay.evaluate.in_force import Setting
from forebay.report import campaign
from forebay.report.campaign import Campaign
from forebay.statistics import median
from forebay.trace.directory import RUN_FILE, Trace
from forebay.units import show_seconds, show_share

JSON_VERSION = 1
# A larger file is no result of an evaluation.
_JSON_BYTES_MOST = 64 << 20

_ENDS = {
    "runs": "the runs were used up",
    result.BUDGET: "the budget was used up",
    "nothing left to gain": "nothing was expected of a further run",
    "no candidate left": "no other setting works",
    result.INTERRUPTED: "it was interrupted; the same command goes on",
    result.FAILURE: "it was broken off",
    result.OUTPUT: "the command's output is not the same twice",
}


@dataclass(frozen=True)
class SearchReport:
    """`evaluations` are those of what the search found, the latest first. `prove` is the command
    that shows whether the best is faster, None where nothing is to be proved."""

    found: StoredSearch
    ceiling: Ceiling | None
    contrasts: list[Contrast]
    troubles: list[Trouble]
    noise: Noise | None
    evaluations: list[Campaign]
    prove: str | None
    caveats: list[str] = field(default_factory=list)

    @property
    def reference(self) -> str:
        return self.found.search.reference

    @property
    def reference_s(self) -> float | None:
        """The median of the reference's runs, in seconds."""
        times = [run.seconds for run in self.found.counted if run.configuration == self.reference]
        return median([time for time in times if time]) if times else None

    @property
    def best(self) -> str | None:
        """What the search took for faster by what matters; it is no claim."""
        return None if self.found.ending is None else self.found.ending.best

    @property
    def verdict(self) -> str:
        """What is claimed, in a sentence."""
        if self.evaluations:
            return self.evaluations[0].summary
        return f"Nothing is claimed: {self._why_nothing}"

    @property
    def _why_nothing(self) -> str:
        ending = self.found.ending
        if ending is not None and ending.stopped == result.CEILING:
            if self.ceiling is None:
                return "how much I/O the run has could not be told, so nothing was run."
            return "without any I/O the run would not be faster by what matters, so none was made."
        if ending is not None and ending.stopped in (result.FAILURE, result.OUTPUT):
            return f"{_ENDS[ending.stopped]}: {ending.failure}"
        if not self.found.counted:
            return "no run was measured."
        if ending is None:
            return "the search was killed, and what it measured is below."
        if self.best is None:
            return (
                f"nothing that was tried looks {show_share(ending.least_gain)} faster than "
                f"'{self.reference}'."
            )
        return (
            f"'{self.best}' looks best, by estimates of noisy runs, which prove nothing; no "
            "evaluation of it lies here."
        )

    @property
    def estimate(self) -> str:
        """Of the best against the reference, in words; empty where there is none."""
        ranking = [] if self.found.ending is None else self.found.ending.ranking
        known = {each.configuration: each for each in ranking}
        if self.best not in known or self.reference not in known:
            return ""
        one, other = (_told(known[name]) for name in (self.best, self.reference))
        return f"The search's estimate: {self.best} {one}, {self.reference} {other}."

    @property
    def ceiling_words(self) -> str:
        if self.ceiling is None:
            return "How much I/O the run has is not known: its trace is gone or tells nothing."
        share = show_share(self.ceiling.io_share)
        return (
            f"I/O is {share} of the time of the process that has most; without any, the run were "
            f"{self.ceiling.best_speedup:.2f} times as fast, and no setting can do better."
        )

    @property
    def end(self) -> str:
        """Why the search ended."""
        ending = self.found.ending
        return "it was killed" if ending is None else _ENDS.get(ending.stopped, ending.stopped)

    @property
    def best_so_far(self) -> list[tuple[int, float]]:
        """After each run whose time counts: its number, and the least seconds until then."""
        least: list[tuple[int, float]] = []
        for run in self.found.counted:
            assert run.seconds is not None
            least.append((run.number, min([run.seconds, *(s for _, s in least[-1:])])))
        return least

    @property
    def settings(self) -> list[tuple[str, Setting, int]]:
        """Of each configuration every setting that was asked for, what the records of its runs
        have, and of how many runs."""
        merged: dict[tuple[str, str, str], list[Setting]] = {}
        for run in self.found.runs:
            for each in self.found.settings(run):
                merged.setdefault((run.configuration, each.key, each.asked), []).append(each)
        return [
            (name, _merged(settings), len(settings)) for (name, _, _), settings in merged.items()
        ]

    def as_json(self) -> dict[str, Any]:
        """docs/guide/report.md says what is in it."""
        latest = self.evaluations[0] if self.evaluations else None
        application = None if latest is None else latest.application
        return {
            "version": JSON_VERSION,
            "search": str(self.found.path),
            "command": self.found.search.command,
            "verdict": self.verdict,
            "claimed": latest is not None and latest.best is not None,
            "ceiling": None if self.ceiling is None else vars(self.ceiling),
            "best": self.best,
            "estimate": self.estimate,
            "ended": self.end,
            "runs": len(self.found.runs),
            "best_so_far": self.best_so_far,
            "factors": [
                {
                    "factor": each.factor,
                    "before": each.before,
                    "after": each.after,
                    "gain": each.gain,
                    "interval": each.bounds,
                    "beyond_noise": each.beyond_noise,
                    "pairs": each.pairs,
                }
                for each in self.contrasts
            ],
            "never_went_well": [f"{each.factor}={each.value}" for each in self.troubles],
            "not_in_force": [
                f"{name}: {setting}"
                for name, setting, _ in self.settings
                if setting.state is in_force.State.NOT_IN_FORCE
            ],
            "evaluations": [
                {"campaign": str(each.path), "verdict": each.summary, "verdicts": each.sentences}
                for each in self.evaluations
            ],
            "prove": self.prove,
            "lines": [] if application is None else application.lines,
            "use": [] if application is None else application.use,
            "undo": [] if application is None else application.undo,
            "caveats": self.caveats,
        }


def _told(estimate: Estimate) -> str:
    return (
        f"{show_seconds(estimate.seconds)} ({show_seconds(estimate.low)} to "
        f"{show_seconds(estimate.high)}, {estimate.runs} run{'s' if estimate.runs != 1 else ''})"
    )


def _merged(settings: list[Setting]) -> Setting:
    """What several runs of one configuration say of a setting; it held if it held in all."""
    first = settings[0]
    states = {each.state for each in settings}
    worst = next(
        state
        for state in (
            in_force.State.NOT_IN_FORCE, in_force.State.NOT_RECORDED, in_force.State.IN_FORCE,
        )
        if state in states
    )  # fmt: skip
    observed = tuple(sorted({value for each in settings for value in each.observed}))
    return Setting(first.key, first.asked, observed, worst)


def source_in(directory: Path) -> Path | None:
    """The history of the search that was made in a directory, if there is one."""
    path = directory / history.FILE_NAME
    return path if path.is_file() and not (directory / RUN_FILE).exists() else None


def examine(found: StoredSearch) -> SearchReport:
    """Works out what the report says of a search, and of the evaluations that lie beside it."""
    caveats: list[str] = []
    ceiling = _ceiling(found, caveats)
    noise = contrasts.noise_of(found.counted)
    evaluations = list(_evaluations(found, caveats))
    return SearchReport(
        found=found,
        ceiling=ceiling,
        contrasts=contrasts.contrasts(found.counted),
        troubles=contrasts.troubles(found.runs),
        noise=noise,
        evaluations=sorted(evaluations, key=lambda each: -each.path.stat().st_mtime),
        prove=_prove(found) if not evaluations else None,
        caveats=caveats,
    )


def _ceiling(found: StoredSearch, caveats: list[str]) -> Ceiling | None:
    """As the search had it; of one that was killed, from its trace, if that is still the same."""
    if found.ending is not None:
        return found.ending.ceiling
    path = Path(found.search.trace["path"])
    try:
        digest = json.loads((path / RUN_FILE).read_bytes())["checksum"]
        if digest != found.search.trace["checksum"]:
            caveats.append(f"{path} is another trace by now: the ceiling is not known.")
            return None
        known = workload.of(Trace(path))
    except (OSError, ValueError, KeyError, ForebayError):
        return None
    share, speedup = known.ceiling_share, known.best_speedup
    return None if share is None or speedup is None else Ceiling(share, speedup)


def _evaluations(found: StoredSearch, caveats: list[str]) -> Iterator[Campaign]:
    """Results of `forebay evaluate --json` in the search's directory, if they are of its command
    and of a configuration that it ran."""
    searched = [] if found.ending is None else list(found.ending.configurations.values())
    candidates = [each for each in searched if each.name not in configurations.BUILT_IN]
    for path in sorted(found.path.parent.glob("*.json")):
        if path == found.path or not path.is_file() or path.stat().st_size > _JSON_BYTES_MOST:
            continue
        try:
            evaluated = stored_evaluation.load(path)
        except (ForebayError, OSError):
            continue  # Something else.
        if evaluated.command != found.search.command:
            continue
        asked = [each for each in evaluated.configurations if each.name in evaluated.candidates]
        if any(_is_same(one, other) for one in asked for other in candidates):
            yield campaign.examine(path, evaluated)
        else:
            caveats.append(f"{path} evaluates no configuration of this search: it is left out.")


def _is_same(one: configurations.Configuration, other: configurations.Configuration) -> bool:
    """Whether two ask for the same, whatever they are called."""
    return (one.stock, one.hints, one.environment, one.sections) == (
        other.stock, other.hints, other.environment, other.sections,
    )  # fmt: skip


def _prove(found: StoredSearch) -> str | None:
    """As the search wrote it beside what it found, if that is still there."""
    path = found.path.parent / configurations.FILE_NAME
    try:
        about = intent_file.load(path).get("about") if path.exists() else None
    except ForebayError:
        return None
    if not isinstance(about, dict) or about.get("made_by") != result_file.MADE_BY:
        return None
    if Path(str(about.get("history"))).name != found.path.name and stored_search.is_history(
        found.path
    ):
        return None
    return str(about["prove"]) if "prove" in about else None


#: What a run was for, in words.
PURPOSES = {
    Why.WARM_UP: "warm-up, not used",
    Why.REFERENCE: "reference",
    Why.MODEL: "best by the model",
    Why.SEARCH: "search",
    Why.AGAIN: "repeated",
    Why.TRACED: "traced, not timed",
}


def outcome(run: SearchRun) -> str:
    """What came of a run, in words."""
    return "" if run.state is State.MEASURED else f"{run.state}: {run.reason}"


def settings_words(run: SearchRun) -> str:
    """What a run asked for."""
    return ", ".join(f"{key}={value}" for key, value in run.settings.items()) or "none"


def change(contrast: Contrast) -> str:
    """What was changed, in words."""
    before, after = (
        "left alone" if value is None else value for value in (contrast.before, contrast.after)
    )
    return f"{contrast.factor}: {before} to {after}"

"""All that the report of an evaluation says, before it is a page or lines on a terminal."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forebay.apply import Application, apply
from forebay.evaluate import background, evaluation_report
from forebay.evaluate.background import Load
from forebay.evaluate.stored import StoredEvaluation
from forebay.evaluate.verdict import Kind
from forebay.statistics import median

JSON_VERSION = 1
_FORMAT = "sh"  # which can say all that a configuration can have


@dataclass(frozen=True)
class Times:
    """A configuration's runs, in the order of their blocks: seconds, and what else the machine did
    before and after them."""

    name: str
    seconds: list[float]
    loads: list[Load]

    @property
    def fastest(self) -> float:
        return min(self.seconds)

    @property
    def median(self) -> float:
        return median(self.seconds)

    @property
    def slowest(self) -> float:
        return max(self.seconds)

    def load(self, quantity: str) -> tuple[float, float] | None:
        """Median and largest of a quantity of Load; None where it was not looked at."""
        values = [getattr(load, quantity) for load in self.loads]
        return (median(values), max(values)) if values else None


@dataclass(frozen=True)
class Campaign:
    """`best` is the candidate that is shown to be faster, and by most; None if none is.
    `application` is how it is put to use and undone."""

    path: Path
    evaluation: StoredEvaluation
    best: str | None
    application: Application | None
    times: list[Times]
    busy_share: float  # of the moments looked at, in which the machine did something else

    @property
    def summary(self) -> str:
        reference = self.evaluation.reference
        if not any(self.evaluation.given.values()):
            return "Nothing is judged."
        if self.best is None:
            known = [verdict for verdict in self.evaluation.given.values() if verdict is not None]
            noisy = any(verdict.kind is Kind.TOO_NOISY for verdict in known)
            advice = ", but not all is decided: it is too noisy" if noisy else ": keep it"
            return f"No configuration is shown to be faster than '{reference}'{advice}."
        others = sum(self._improved(name) for name in self.evaluation.candidates) - 1
        more = ", and of all that are, by most" if others else ""
        return f"'{self.best}' is shown to be faster than '{reference}'{more}."

    @property
    def sentences(self) -> dict[str, str]:
        """The verdict on each candidate in words."""
        found = self.evaluation
        said = {}
        for name, verdict in found.given.items():
            said[name] = (
                f"{name}: not judged"
                if verdict is None
                else evaluation_report.sentence(
                    name, found.reference, verdict, found.plan.least_gain
                )
            )
        return said

    def _improved(self, name: str) -> bool:
        verdict = self.evaluation.given[name]
        return verdict is not None and verdict.kind is Kind.IMPROVED

    def as_json(self) -> dict[str, Any]:
        """docs/guide/report.md says what is in it."""
        return {
            "version": JSON_VERSION,
            "campaign": str(self.path),
            "command": self.evaluation.command,
            "verdict": self.summary,
            "verdicts": self.sentences,
            "troubles": evaluation_report.troubles(self.evaluation),
            "best": self.best,
            "lines": [] if self.application is None else self.application.lines,
            "use": [] if self.application is None else self.application.use,
            "undo": [] if self.application is None else self.application.undo,
            "busy_share": self.busy_share,
        }


def examine(path: Path, evaluation: StoredEvaluation) -> Campaign:
    """Works out what the report says of a campaign."""
    best = _best(evaluation)
    chosen = [each for each in evaluation.configurations if each.name == best]
    cores = evaluation.environment.get("cores")
    return Campaign(
        path=path,
        evaluation=evaluation,
        best=best,
        application=apply(chosen[0], _FORMAT, Path()) if chosen else None,
        times=[
            Times(each.name, evaluation.seconds(each.name), _loads(evaluation, each.name))
            for each in evaluation.configurations
            if evaluation.seconds(each.name)
        ],
        busy_share=background.busy_share(
            evaluation.loads(), cores if isinstance(cores, int) and cores > 0 else 1
        ),
    )


def _best(evaluation: StoredEvaluation) -> str | None:
    """Shown to be faster by most: the one whose least gain is largest."""
    gains: Iterable[tuple[float, str]] = (
        (verdict.low or 0.0, name)
        for name, verdict in evaluation.given.items()
        if verdict is not None and verdict.kind is Kind.IMPROVED
    )
    return max(gains, default=(0.0, None))[1]


def _loads(evaluation: StoredEvaluation, name: str) -> list[Load]:
    return [
        load
        for run in evaluation.runs
        if run.configuration == name
        for load in (run.before, run.after)
        if load is not None
    ]

"""The part of an evaluation that its page has room for: of its candidates and runs, those that
matter most."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from forebay.comparison import FileCheck
from forebay.evaluate import in_force
from forebay.evaluate.evaluation import EvaluatedRun
from forebay.evaluate.in_force import Setting
from forebay.evaluate.stored import StoredEvaluation
from forebay.evaluate.verdict import Kind
from forebay.report import rows
from forebay.report.rows import Rows

CANDIDATES_MOST = 24
_FILES_MOST = 200
_FILES_EACH = 20
# What to act upon first; last what was not judged.
_RANK = (Kind.IMPROVED, Kind.NOT_IN_FORCE, Kind.TOO_NOISY, Kind.SLOWER, Kind.NO_GAIN)


@dataclass(frozen=True)
class CampaignPart:
    """`evaluation` has the candidates that are shown, with all that is known of them, but of the
    runs those that are shown. `left_out` are the numbers of candidates and of runs that are not."""

    evaluation: StoredEvaluation
    candidates_left_out: int
    runs_left_out: int
    settings: Rows[tuple[str, Setting]]
    files: dict[str, Rows[FileCheck]]

    @property
    def points_left_out(self) -> int:
        """Blocks of candidates that are shown, without a point in the picture of differences."""
        tests = self.evaluation.tests
        return sum(points(self.evaluation, name).left_out for name in tests)


def of(found: StoredEvaluation) -> CampaignPart:
    """The part of an evaluation that is shown."""
    shown_candidates = candidates(found)
    names = {found.reference, *shown_candidates.shown}
    runs = _runs([run for run in found.runs if run.configuration in names])
    settings = [(name, each) for name, of_it in found.settings.items() for each in of_it]
    part = replace(
        found, configurations=[each for each in found.configurations if each.name in names],
        runs=runs, given={name: found.given[name] for name in shown_candidates.shown},
    )  # fmt: skip
    part.tests = {name: found.tests[name] for name in shown_candidates.shown}
    shown = rows.most_important(
        ((name, each) for name, each in settings if name in names), rows.ROWS_MOST,
        lambda row: row[1].state is not in_force.State.NOT_IN_FORCE,
    )  # fmt: skip
    return CampaignPart(
        evaluation=part,
        candidates_left_out=shown_candidates.left_out,
        runs_left_out=len(found.runs) - len(runs),
        settings=Rows(shown.shown, len(settings) - len(shown.shown)),
        files={
            name: rows.most_important(
                checks,
                min(_FILES_EACH, _FILES_MOST // len(names)),
                lambda check: check.identical is not False,
            )
            for name, checks in found.files.items()
            if checks and name in names
        },
    )


def candidates(found: StoredEvaluation) -> Rows[str]:
    """Those that are shown."""
    return rows.most_important(found.candidates, CANDIDATES_MOST, _importance(found))


def points(found: StoredEvaluation, name: str) -> Rows[tuple[int, float]]:
    """Of a candidate's blocks those with a point in the picture of differences, from 1 up, and the
    logarithm of the ratio of each."""
    ratios = enumerate(found.tests[name].ratios.tolist(), start=1)
    return rows.evenly(list(ratios), max(2, rows.POINTS_MOST // len(found.tests)))


def _importance(found: StoredEvaluation) -> Callable[[str], tuple[int, float]]:
    def rank(name: str) -> tuple[int, float]:
        verdict = found.given[name]
        if verdict is None:
            return len(_RANK), 0.0
        gain = next((each for each in (verdict.low, verdict.gain) if each is not None), -math.inf)
        return _RANK.index(verdict.kind), -gain

    return rank


def _runs(runs: Sequence[EvaluatedRun]) -> list[EvaluatedRun]:
    """Whole blocks, so that what is compared stays side by side, at equal distances."""
    blocks = sorted({run.block for run in runs})
    most = len(blocks) * rows.RUNS_MOST // max(1, len(runs))
    kept = set(rows.evenly(blocks, max(1, most)).shown)
    return [run for run in runs if run.block in kept][: rows.RUNS_MOST]

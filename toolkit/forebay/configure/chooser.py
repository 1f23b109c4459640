"""Which settings to run next, by the model and by what runs have shown: decides, runs nothing."""

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forebay.configure.disturbances import counting, is_undecided
from forebay.configure.factors import Settings
from forebay.configure.history import State, Why
from forebay.configure.residual import Estimate, Features, Residual, improvement

# At the end a part of the runs repeats the best, and the reference: of many noisy times the least
# is mostly luck.
_REPEATED_PART = 0.25
_REPEATED = 3
# Before, no candidate is run more often than this: what is unknown comes first.
_TRIED_MOST = 2
_STOP_AT = 0.001  # expected improvement, a logarithm
_STOP_FROM = 12  # runs
# Before the search ends early, each of those that its word rests on was run so often.
_SURE = 4


_Values = frozenset[tuple[str, str]]


@dataclass(frozen=True)
class Candidate:
    """Settings that can be tried. `effective`: what is in force under them; `predicted`: seconds by
    the model alone, None if it has nothing to say."""

    settings: dict[str, str]
    effective: dict[str, str]
    predicted: float | None


@dataclass(frozen=True)
class Choice:
    """The next run. `expected` is by the model and all runs before: seconds, low, high."""

    candidate: int
    why: Why
    expected: tuple[float, float, float] | None


@dataclass(frozen=True)
class Ranked:
    """A candidate that was run, with the estimate of its seconds."""

    candidate: int
    seconds: float
    low: float
    high: float
    runs: int


class Chooser:
    """Candidates and the runs of them so far. The first candidate is the reference."""

    def __init__(self, candidates: Sequence[Candidate], runs_max: int, seed: int) -> None:
        self.candidates = list(candidates)
        self._runs_max = runs_max
        known = [c.predicted for c in candidates if c.predicted]
        usual = float(np.median(known)) if known else 1.0
        predicted = np.array([c.predicted or usual for c in candidates])
        features = Features([c.effective for c in candidates], predicted)
        self._predicted = predicted
        self._model_speaks = bool(known) and float(np.ptp(np.log(predicted))) > 0
        self._residual = Residual(features.points, predicted, seed)
        self._times: list[tuple[int, float]] = []  # infinite: not ended in time
        self._expected: dict[int, float] = {}  # seconds, before the first run of a candidate
        self._runs = 0
        self._bad = np.zeros(len(candidates), np.bool_)  # that did not go well themselves
        self._late = np.zeros(len(candidates), np.bool_)  # of whose runs half did not end in time
        self._shunned = np.zeros(len(candidates), np.bool_)  # that are like those
        self._failed: list[_Values] = []
        self._not_in_force: set[tuple[str, str]] = set()
        self._disproven: list[_Values] = []  # by traced runs, for the engine that ignores them
        self._good: set[tuple[str, str]] = set()
        self._estimate: Estimate | None = None

    @property
    def _out(self) -> NDArray[np.bool_]:
        return self._bad | self._late

    @property
    def _given_up(self) -> NDArray[np.bool_]:
        return self._out | self._shunned

    def place(self, settings: Settings) -> int | None:
        """The number of the candidate with these settings."""
        return next(
            (n for n, c in enumerate(self.candidates) if c.settings == dict(settings)), None
        )

    def add(
        self,
        candidate: int,
        why: Why,
        state: State,
        seconds: float | None,
        not_in_force: Iterable[tuple[str, str]] = (),
    ) -> None:
        """Takes what came of a run. One that failed because it did not end in time has infinite
        `seconds`. Of settings that did not hold, `not_in_force` names each factor with its value:
        no candidate with it is run again, unless it held in another run."""
        if state in (State.STARTED, State.INTERRUPTED):
            return
        self._runs += 1
        if why is Why.TRACED:
            if state is State.NOT_IN_FORCE:
                self._disprove(candidate, not_in_force)
            return
        values = frozenset(self.candidates[candidate].settings.items())
        if state is State.MEASURED and seconds:
            if why is Why.WARM_UP:
                self._expected[candidate] = seconds
            else:
                self._take(candidate, seconds)
            if values <= self._good:
                return
            self._good |= values
        elif state is State.FAILED and seconds == math.inf:
            self._take(candidate, seconds)
            if self._late[candidate] and not self._is_undecided(candidate):
                self._failed.append(values)
        else:
            self._bad[candidate] = True
            self._not_in_force |= set(not_in_force)
            if state in (State.FAILED, State.OTHER_FILES):
                self._failed.append(values)
        self._shun()

    def _disprove(self, candidate: int, settings: Iterable[tuple[str, str]]) -> None:
        """Timed runs of the MPI do not tell whether its hints held. What a traced run disproves was
        in vain in them, too: none of them is a setting that can be proposed."""
        self._bad[candidate] = True
        engine = {("engine", self.candidates[candidate].settings.get("engine", "forebay"))}
        self._disproven += [frozenset({setting} | engine) for setting in settings]
        for number, each in enumerate(self.candidates[1:], start=1):
            self._bad[number] |= any(pair <= each.settings.items() for pair in self._disproven)

    def _take(self, candidate: int, seconds: float) -> None:
        if candidate not in self._expected:
            before = self.estimate()
            self._expected[candidate] = before.seconds(candidate) if before else math.inf
        self._times.append((candidate, seconds))
        self._estimate = None
        ended = [math.isfinite(each) for each in self._seconds(candidate)]
        self._late[candidate] = 2 * sum(ended) <= len(ended)

    def _seconds(self, candidate: int) -> list[float]:
        return [seconds for place, seconds in self._times if place == candidate]

    def _counting(self) -> list[tuple[int, float]]:
        """The runs that tell what their settings take."""
        return list(itertools.compress(self._times, counting(self._times)))

    def _is_undecided(self, candidate: int) -> bool:
        return is_undecided(self._seconds(candidate), self._expected[candidate])

    def _shun(self) -> None:
        """Gives up what cannot be expected to go well: values that did not hold, and what two runs
        that failed or left other files have in common; of both only what never went well. Where
        that is several values, a candidate is given up that has all of them: any one of them alone
        may be harmless, and the next run with it tells."""
        suspects = [frozenset({value}) for value in self._not_in_force - self._good]
        suspects += [
            (one & other) - self._good for one, other in itertools.combinations(self._failed, 2)
        ]
        suspects = [suspect for suspect in dict.fromkeys(suspects) if suspect]
        for number, each in enumerate(self.candidates[1:], start=1):
            values = each.settings.items()
            self._shunned[number] = any(suspect <= values for suspect in suspects)

    def estimate(self) -> Estimate | None:
        if self._estimate is None and (times := self._counting()):
            places, seconds = zip(*times, strict=True)
            self._estimate = self._residual.learn(places, seconds)
        return self._estimate

    @property
    def left(self) -> int:
        """Runs that may be made."""
        return max(0, self._runs_max - self._runs)

    def next(self) -> Choice | str:
        """The next run, or why there is none."""
        left = self.left
        if left <= 0:
            return "runs"
        if self._runs == 0:
            return Choice(0, Why.WARM_UP, None)
        estimate = self.estimate()
        if estimate is None:
            return Choice(0, Why.REFERENCE, None)
        for place in dict(self._times):
            if self._is_undecided(place) and not self._bad[place]:
                return self._choice(place, Why.AGAIN, estimate)
        alive = np.flatnonzero(~self._given_up)
        if len(alive) < 2:
            return "no candidate left"
        again = self._again(estimate) if left <= self._repeats() else None
        if again is not None:
            return self._choice(again, Why.AGAIN, estimate)
        if set(dict(self._times)) == {0} and self._model_speaks:
            first = alive[np.argmin(self._predicted[alive])]
            if first != 0:
                return self._choice(int(first), Why.MODEL, estimate)
        run = Counter(place for place, _ in self._counting())
        seen = [place for place in run if not self._out[place]]
        best = min(seen, key=lambda place: float(estimate.mean[place]))
        gains = improvement(estimate, float(estimate.mean[best]))
        fresh = np.array([place for place in alive if run[int(place)] < _TRIED_MOST], np.int64)
        near = self._near(sorted(seen, key=lambda place: float(estimate.mean[place])), run)
        if near and len(self._times) % 2 == 0:
            place = max(near, key=lambda n: float(gains[n]))
        elif len(fresh):
            place = int(fresh[np.argmax(gains[fresh])])
        else:
            place = best
        worth = gains[place] >= _STOP_AT or len(self._times) < _STOP_FROM
        if not near and not worth:
            unsure = self._again(estimate)
            if unsure is None or run[unsure] >= _SURE * self._weight(unsure):
                return "nothing left to gain"
            return self._choice(unsure, Why.AGAIN, estimate)
        return self._choice(place, Why.AGAIN if run[place] else Why.SEARCH, estimate)

    def _near(self, ranked: Sequence[int], run: Mapping[int, int]) -> list[int]:
        """Untried neighbours of the best that has some; the MPI alone, for one, has none."""
        for place in ranked[:_REPEATED]:
            near = [n for n in self._neighbours(place) if not self._given_up[n] and not run[n]]
            if near:
                return near
        return []

    def _neighbours(self, place: int) -> list[int]:
        """Candidates that differ in one factor: where model and process are sure and wrong, a step
        in each direction shows it."""
        here = self.candidates[place].settings
        return [
            number
            for number, each in enumerate(self.candidates)
            if sum(
                here.get(factor) != each.settings.get(factor) for factor in {*here, *each.settings}
            )
            == 1
        ]

    def _repeats(self) -> int:
        return max(2, math.ceil(_REPEATED_PART * self._runs_max))

    def _again(self, estimate: Estimate) -> int | None:
        """Of the best and the reference the one with fewest runs; None if nothing else was run."""
        ranking = self.ranking()
        run = {ranked.candidate: ranked.runs for ranked in ranking}
        best = [r.candidate for r in ranking if r.candidate][:_REPEATED]
        if not best:
            return None
        return min([*best, 0], key=lambda c: (run.get(c, 0) / self._weight(c), c))

    @staticmethod
    def _weight(candidate: int) -> int:
        """The reference counts for two: everything is told against it."""
        return 2 if candidate == 0 else 1

    def _choice(self, candidate: int, why: Why, estimate: Estimate) -> Choice:
        expected = (estimate.seconds(candidate), *estimate.interval(candidate))
        return Choice(candidate, why, expected)

    def ranking(self) -> list[Ranked]:
        """Those that were run and may be used, best first."""
        estimate = self.estimate()
        if estimate is None:
            return []
        run: Mapping[int, int] = Counter(place for place, _ in self._counting())
        ranked = [
            Ranked(place, estimate.seconds(place), *estimate.interval(place), count)
            for place, count in run.items()
            if not self._out[place]
        ]
        return sorted(ranked, key=lambda each: (each.seconds, each.candidate))

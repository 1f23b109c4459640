"""Which factors mattered in a search: configurations that differ in one factor alone, compared.

A search steps from the best to its neighbours, so there are such pairs; a factor that was never
changed alone has none, and nothing is told of it. How much a difference may be chance is taken from
the runs that repeat a configuration: their spread on a logarithmic scale, the same for all. What
the pairs show is an estimate of a few noisy runs, chosen by their own results, and no proof.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from forebay.configure.disturbances import counting
from forebay.configure.history import SearchRun, State
from forebay.errors import ForebayError
from forebay.units import parse_size

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Contrast:
    """One factor, changed from `before` to `after` (None: left alone) in pairs of configurations
    that have all else in common. Gains are logarithms of seconds before / seconds after, of
    `pairs`; `half` is half the width of the mean's interval, None if nothing tells the noise."""

    factor: str
    before: str | None
    after: str | None
    pairs: list[tuple[str, str]]  # configurations, before and after
    gains: list[float]
    half: float | None

    @property
    def mean(self) -> float:
        return sum(self.gains) / len(self.gains)

    @property
    def gain(self) -> float:
        """0.25: the later value is 25 % faster."""
        return math.expm1(self.mean)

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Of the gain."""
        if self.half is None:
            return None
        return math.expm1(self.mean - self.half), math.expm1(self.mean + self.half)

    @property
    def beyond_noise(self) -> bool:
        return self.half is not None and abs(self.mean) > self.half


@dataclass(frozen=True)
class Trouble:
    """A value of which none of its `runs` could be used, and what came of them."""

    factor: str
    value: str
    runs: int
    states: list[State]


@dataclass(frozen=True)
class Noise:
    """Of one run: a standard deviation of log seconds, from `degrees` of freedom."""

    deviation: float
    degrees: int

    @property
    def quantile(self) -> float:
        """Deviations that a mean stays within, with CONFIDENCE (Student's t)."""
        from scipy.special import stdtrit  # slow to import

        return float(stdtrit(self.degrees, (1 + CONFIDENCE) / 2))


def noise_of(runs: Sequence[SearchRun]) -> Noise | None:
    """From configurations that were run several times; None if there are none."""
    squares, degrees = 0.0, 0
    for logs in _logs(runs).values():
        mean = sum(logs) / len(logs)
        squares += sum((log - mean) ** 2 for log in logs)
        degrees += len(logs) - 1
    return Noise(math.sqrt(squares / degrees), degrees) if degrees else None


def contrasts(runs: Sequence[SearchRun]) -> list[Contrast]:
    """Of runs whose times count: every change of one factor, largest effect first."""
    logs, noise = _logs(runs), noise_of(runs)
    settings = {run.configuration: run.settings for run in runs}
    found: dict[tuple[str, str | None, str | None], list[tuple[str, str]]] = {}
    for pair in itertools.combinations(logs, 2):
        factor = _only_difference(*(settings[name] for name in pair))
        if factor is None:
            continue
        one, other = sorted(pair, key=lambda name: _place(settings[name].get(factor)))
        key = (factor, settings[one].get(factor), settings[other].get(factor))
        found.setdefault(key, []).append((one, other))
    made = [_contrast(key, pairs, logs, noise) for key, pairs in found.items()]
    return sorted(made, key=lambda each: -abs(each.mean))


def _contrast(
    key: tuple[str, str | None, str | None],
    pairs: list[tuple[str, str]],
    logs: Mapping[str, list[float]],
    noise: Noise | None,
) -> Contrast:
    gains = [_mean(logs[before]) - _mean(logs[after]) for before, after in pairs]
    half = None
    if noise is not None:
        # A configuration that is in several pairs counts in each: its chance is shared by them.
        weights: dict[str, float] = {}
        for before, after in pairs:
            weights[before] = weights.get(before, 0.0) + 1 / len(pairs)
            weights[after] = weights.get(after, 0.0) - 1 / len(pairs)
        variance = sum(weight**2 / len(logs[name]) for name, weight in weights.items())
        half = noise.quantile * noise.deviation * math.sqrt(variance)
    return Contrast(*key, pairs, gains, half)


def _logs(runs: Sequence[SearchRun]) -> dict[str, list[float]]:
    """Of each configuration, without the runs that were disturbed."""
    told = [(run.configuration, run.seconds) for run in runs if run.seconds]
    found: dict[str, list[float]] = {}
    for name, seconds in itertools.compress(told, counting(told)):
        found.setdefault(name, []).append(math.log(seconds))
    return found


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _only_difference(one: Mapping[str, str], other: Mapping[str, str]) -> str | None:
    differing = [name for name in {*one, *other} if one.get(name) != other.get(name)]
    return differing[0] if len(differing) == 1 else None


def _place(value: str | None) -> tuple[bool, float, str]:
    """Left alone first, then amounts by size and words by letters."""
    if value is None:
        return (False, 0.0, "")
    try:
        return (True, parse_size(value), value)
    except ForebayError:
        return (True, math.inf, value)


def troubles(runs: Sequence[SearchRun]) -> list[Trouble]:
    """Values that never went well: their runs failed, left other files or did not hold them."""
    found: dict[tuple[str, str], list[State]] = {}
    for run in runs:
        if run.state is not State.INTERRUPTED:
            for pair in run.settings.items():
                found.setdefault(pair, []).append(run.state)
    return [
        Trouble(factor, value, len(states), sorted(set(states)))
        for (factor, value), states in found.items()
        if State.MEASURED not in states
    ]

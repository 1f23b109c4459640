"""How long a campaign takes: what its runs have taken so far, and what is therefore left."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from forebay.characterise.system.probes import Probe
from forebay.errors import ForebayError
from forebay.statistics import median
from forebay.units import show_duration

#: Of the whole in quick mode, and what is kept of it for the end.
QUICK_S = 300.0
_QUICK_PLANNED_S = 255.0
_QUICK_MOST_S = 290.0
LEAST_ROUNDS = 4
#: From here on the interval of the median covers 95 %.
GOOD_ROUNDS = 6
WARM_UP_RUN_S = 0.1
_LEAST_RUN_S = 0.25
QUICK_RUN_S = 1.5
FULL_RUN_S = 3.0


@dataclass
class Schedule:
    """Seconds that runs of each measurement took beside what they were told to take, by place in
    the list. `run_s`: what those that scale are told."""

    probes: Sequence[Probe]
    rounds: int
    run_s: float
    _beside_s: dict[int, list[float]] = field(default_factory=dict)

    def took(self, number: int, seconds: float, told_s: float) -> None:
        """A run of a measurement that was told `told_s` took `seconds`."""
        beside = seconds - (told_s if self.probes[number].scales else 0.0)
        self._beside_s.setdefault(number, []).append(max(0.0, beside))

    def expected_s(self, number: int) -> float:
        """Of one run."""
        known = self._beside_s.get(number)
        scaled = self.run_s if self.probes[number].scales else 0.0
        return (median(known) if known else 0.0) + scaled

    def round_s(self, numbers: Sequence[int]) -> float:
        return sum(self.expected_s(number) for number in numbers)

    def fit(self, numbers: Sequence[int], left_s: float, rounds_left: int) -> None:
        """Shortens the runs, so that the rounds that are left take at most `left_s`, as far as runs
        may be shortened."""
        scaling = sum(self.probes[number].scales for number in numbers)
        beside = self.round_s(numbers) - scaling * self.run_s
        if scaling and rounds_left > 0:
            fitting = (left_s / rounds_left - beside) / scaling
            self.run_s = min(self.run_s, max(_LEAST_RUN_S, fitting))


def planned_quick(
    schedule: Schedule, numbers: Sequence[int], spent_s: float, paths: int
) -> Sequence[int]:
    """Chooses rounds and the length of runs such that five minutes are enough, and if need be which
    measurements are spared: returns those that are made. Raises ForebayError where they are too
    many all the same."""
    left = _QUICK_PLANNED_S - spent_s
    for rounds in range(max(schedule.rounds, LEAST_ROUNDS), LEAST_ROUNDS - 1, -1):
        schedule.rounds = rounds
        schedule.fit(numbers, left, rounds)
        if rounds * schedule.round_s(numbers) <= left:
            return numbers
    for kept in (numbers, [n for n in numbers if not schedule.probes[n].spare]):
        needed = spent_s + schedule.rounds * schedule.round_s(kept)
        if needed <= _QUICK_MOST_S:
            return kept
    raise ForebayError(
        f"{LEAST_ROUNDS} rounds of {len(numbers)} measurements would take "
        f"{show_duration(needed)}, and --quick is for five minutes",
        ("Name fewer directories at a time (--again adds them to the same file), or take --full."
         if paths > 1 else "Take --full, which has no limit, or come back when less is going on."),
        exit_code=1,
    )  # fmt: skip

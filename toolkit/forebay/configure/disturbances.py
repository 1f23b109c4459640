"""Runs that took far longer than their settings take: another job, or the host of a virtual
machine, had the processors for a while. That makes runs longer and never shorter, by no known
distribution; one of ten times as long, with all others within a few percent, is too much for the
mean of their logarithms, and for what a process learns of its neighbours. [Huber 1964]
"""

import math
from collections.abc import Hashable, Sequence
from statistics import median_high

# A run of so many times what was to be expected is no matter of noise: with a spread of 15 % two
# runs are that far apart once in a thousand times.
FAR = 2.0


def counting(runs: Sequence[tuple[Hashable, float]]) -> list[bool]:
    """Of each run, told by its settings and its seconds, whether it tells what these settings take.
    One that took more than twice as long as more than half of those with the same settings does
    not; of two runs both do. Infinite is a run that was ended because of its time."""
    seconds: dict[Hashable, list[float]] = {}
    for settings, each in runs:
        seconds.setdefault(settings, []).append(each)
    longest = {settings: FAR * median_high(all_of) for settings, all_of in seconds.items()}
    return [each <= longest[settings] and math.isfinite(each) for settings, each in runs]


def is_undecided(seconds: Sequence[float], expected: float) -> bool:
    """Whether runs of the same settings, which before the first were expected to take so long, need
    one more to tell what these take. Three decide: one is set aside, or they are that slow."""
    if len(seconds) == 1:
        return seconds[0] > FAR * expected or math.isinf(seconds[0])
    return len(seconds) == 2 and max(seconds) > FAR * min(seconds)

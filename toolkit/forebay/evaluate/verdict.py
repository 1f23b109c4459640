"""When enough was seen of a configuration, and what can be said of it then."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from forebay.evaluate.sequential import PairedTest, blocks_needed, smallest_detectable


class Kind(StrEnum):
    """What an evaluation says of a configuration."""

    IMPROVED = "improved"
    SLOWER = "slower"
    NO_GAIN = "no detectable gain"
    NOT_IN_FORCE = "setting did not take effect"
    TOO_NOISY = "too noisy"


@dataclass(frozen=True)
class Plan:
    """How hard to look."""

    alpha: float = 0.05  # for all candidates together
    least_gain: float = 0.1  # the smallest that matters: 0.1 is 10 %
    blocks_max: int = 20


@dataclass(frozen=True)
class Verdict:
    """Gains are reference's time / candidate's - 1: 0.25 is 25 % faster. None: not known, or with
    `low` and `high` no bound on that side yet."""

    kind: Kind
    blocks: int
    confidence: float
    gain: float | None = None
    low: float | None = None
    high: float | None = None
    smallest_detectable: float | None = None
    # Until the least gain would be detectable, where it is too noisy; None: no number would do.
    more_blocks: int | None = None
    reasons: tuple[str, ...] = ()  # why it is not in force, or what disturbed the runs


def is_decided(test: PairedTest, plan: Plan) -> bool:
    """Whether no further block is needed: a difference is shown, or that there is no gain that
    would matter, or the blocks are used up."""
    if test.blocks >= plan.blocks_max:
        return True
    return test.above(0) or test.below(0) or test.below(math.log1p(plan.least_gain))


def judge(test: PairedTest, plan: Plan) -> Verdict:
    """What the pairs so far say. With less than 2 it is too noisy, with no number."""
    confidence = 1 - plan.alpha
    if test.blocks < 2:
        return Verdict(Kind.TOO_NOISY, test.blocks, confidence)
    low, high = test.interval()
    detectable = smallest_detectable(test.ratios, test.blocks, test.alpha)
    worth = math.log1p(plan.least_gain)
    more = None
    if test.above(0):
        kind = Kind.IMPROVED
    elif test.below(0):
        kind = Kind.SLOWER
    elif test.below(worth) or detectable <= worth:
        kind = Kind.NO_GAIN
    else:
        kind = Kind.TOO_NOISY
        needed = blocks_needed(test.ratios, worth, test.alpha)
        more = None if needed is None else max(1, needed - test.blocks)
    return Verdict(
        kind=kind,
        blocks=test.blocks,
        confidence=confidence,
        gain=math.expm1(test.estimate()),
        low=_gain(low),
        high=_gain(high),
        smallest_detectable=_gain(detectable),
        more_blocks=more,
    )


def not_in_force(reasons: Iterable[str], blocks: int, plan: Plan) -> Verdict:
    """That of a configuration whose settings the runs did not have."""
    return Verdict(Kind.NOT_IN_FORCE, blocks, 1 - plan.alpha, reasons=tuple(reasons))


def _gain(log_ratio: float) -> float | None:
    return math.expm1(log_ratio) if math.isfinite(log_ratio) else None

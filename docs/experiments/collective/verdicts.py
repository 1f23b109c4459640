"""When a bar is met. The rules stand here and nowhere else."""

from enum import StrEnum

from campaign import Rules
from forebay.statistics import Ratio


class Verdict(StrEnum):
    """What a measurement says about a claim."""

    MET = "met"
    BY_LIMIT = "met by limit"
    MISSED = "missed"
    TOO_FEW = "too few pairs"
    NO_BAR = "no bar"


def of_bar(
    rules: Rules,
    ratio: Ratio | None,
    bar: float | None,
    of_limit: float | None,
    *,
    identical: bool,
) -> Verdict:
    """Whether a ratio's median reaches its bar, or Forebay this part of the limit measured in the
    same run (None: not measured). Being fast with other bytes is worth nothing.
    Worked example: ratio 1.1, bar 1.5, 90 % of the limit: met by limit; at 80 %: missed."""
    if bar is None or ratio is None:
        return Verdict.NO_BAR
    if not identical:
        return Verdict.MISSED
    if ratio.pairs < rules.pairs_at_least:
        return Verdict.TOO_FEW
    if ratio.median >= bar:
        return Verdict.MET
    if of_limit is not None and of_limit >= rules.limit_in_place_of_bar:
        return Verdict.BY_LIMIT
    return Verdict.MISSED


def of_floor(rules: Rules, fraction: Ratio | None, floor: float | None) -> Verdict:
    """Whether a fraction's median (of the limit, of a bandwidth) reaches the floor."""
    if floor is None or fraction is None:
        return Verdict.NO_BAR
    if fraction.pairs < rules.pairs_at_least:
        return Verdict.TOO_FEW
    return Verdict.MET if fraction.median >= floor else Verdict.MISSED


def smallest(ratios: list[Ratio | None]) -> Ratio | None:
    """The ratio against the best of several peers: the one with the smallest median."""
    known = [ratio for ratio in ratios if ratio is not None]
    return min(known, key=lambda ratio: ratio.median) if known else None

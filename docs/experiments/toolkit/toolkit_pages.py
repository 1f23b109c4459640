"""What the pages of the toolkit's campaigns share."""

from collections.abc import Iterable
from pathlib import Path
from statistics import median

import results
from forebay.statistics import Ratio
from page_parts import digits
from results import Result, awake
from rounds import paths

SCRIPT = "docs/experiments/toolkit/run.py"

# Above this part of the processors' time, what the host took is told.
STOLEN_MUCH = 0.08


def stored_rounds(output: Path, stem: str) -> list[Result]:
    """The rounds of these results that there are, in order."""
    return [one for one in map(results.load, paths(output, stem)) if one is not None]


def spread(values: Iterable[float]) -> str:
    """Median, least and most: 2.34 [2.01, 2.50]."""
    known = list(values)
    return f"{digits(median(known))} [{digits(min(known))}, {digits(max(known))}]"


def percents(shares: Iterable[float]) -> str:
    """The same of shares, in whole percent."""
    known = [100 * share for share in shares]
    return f"{median(known):.0f} % [{min(known):.0f}, {max(known):.0f}]"


def stolen_text(rounds: Iterable[Result]) -> str:
    """How much of the time the host took, and what was done against that."""
    rounds = list(rounds)
    taken = [float(one.raw["stolen_share"]) for one in rounds]
    much = sum(share > STOLEN_MUCH for share in taken)
    least, most = 100 * min(taken), 100 * max(taken)
    text = f"The host took {least:.1f} to {most:.1f} % of the processors' time"
    if much:
        text += f", in {much} of {len(taken)} rounds more than {100 * STOLEN_MUCH:.0f} %"
    return f"{text}.{awake.told([one.experiment for one in rounds])}"


# What a ratio of times shows.
MORE, LESS, SAME, TOO_FEW = "more", "less", "no difference", "too few rounds"


def shown(ratio: Ratio | None) -> str:
    """One of the above."""
    if ratio is None or not ratio.enough:
        return TOO_FEW
    if not ratio.detectable:
        return SAME
    return MORE if ratio.low > 1 else LESS

"""What a search for one kind of loss found, before it is weighed against the run."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_FILES_NAMED = 3


@dataclass(frozen=True)
class Clue:
    """`process_seconds`: those of all processes together that would be had back, at most.
    `prove`: whether a comparison with Forebay's engine can show what it gains."""

    key: str
    title: str
    process_seconds: float
    confidence: str  # high, medium, low
    evidence: list[str]
    advice: str
    prove: bool = False


def most_of(seconds: NDArray[np.float64], file: NDArray[np.int64], paths: list[str]) -> str:
    """The files with most of the seconds of calls, by name; empty where none is known."""
    known = file >= 0
    if not known.any():
        return ""
    amount = np.bincount(file[known], seconds[known])
    order = np.argsort(-amount, kind="stable")[:_FILES_NAMED]
    return ", ".join(paths[place] for place in order.tolist() if amount[place] > 0)

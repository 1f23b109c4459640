"""What a search for one kind of loss found, before it is weighed against the run."""

from dataclasses import dataclass


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

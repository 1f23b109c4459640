"""What the pages on reading ahead share: rounds and times as text, and claims that are judged."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from analysis_runs import BANDWIDTH, awake
from kernel_picture import Bar
from rounds import paths

FEWEST_ROUNDS = 5  # for a verdict
NOT_MEASURED = "not measured yet"

MADE_BY = (
    "Made by `docs/experiments/prefetch/run.py table` from `results/`; no figure of a table is "
    "typed by hand."
)


def stored_rounds(output: Path, stem: str) -> list[dict[str, Any]]:
    """The rounds of these results that there are, in order."""
    return [json.loads(path.read_text()) for path in paths(output, stem)]


def notes_of(output: Path, stem: str) -> list[str]:
    """The part of a page that a person has written."""
    notes = output / f"notes-{stem}.md"
    if not notes.is_file():
        return []
    return ["", "## Where the time goes", "", notes.read_text().rstrip()]


def bound(computing: float, needed: float, bandwidth: float = BANDWIDTH) -> float:
    """Seconds that nobody can beat: of computing, or of reading `needed` bytes at so many a
    second."""
    return max(computing, needed / bandwidth)


def spread(seconds: list[float]) -> str:
    """Median, least and most."""
    return f"{median(seconds):.2f} [{min(seconds):.2f}, {max(seconds):.2f}]"


def circumstances_of(rounds: list[dict[str, Any]], others_above: int) -> str:
    """When and where. Others had the machine, too, above that load average."""
    first, last = rounds[0], rounds[-1]
    loads = [
        max(0.0, one["load_average"] - (one["cores"] if one.get("kept_awake") else 0))
        for one in rounds
    ]
    commits = list(dict.fromkeys(one["commit"] for one in rounds))
    return (
        f"{first['date']} to {last['date']}, "
        f"commit{'s' if len(commits) > 1 else ''} {', '.join(commits)}, Linux {last['kernel']}, "
        f"{last['cores']} cores, load average {min(loads):.1f} to {max(loads):.1f}: "
        f"above {others_above} others had the machine, too.{awake.told(rounds)}"
    )


def runs_by_case(rounds: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Those of all rounds, in order."""
    found: dict[str, list[dict[str, Any]]] = {}
    for one in rounds:
        for run in one["runs"]:
            found.setdefault(run["case"], []).append(run)
    return found


def bar_of(name: str, runs: list[dict[str, Any]]) -> Bar:
    """Of one case, in a picture."""
    seconds = [run["seconds"] for run in runs]
    requests = median(run["requests"] for run in runs)
    served = median(run["bytes_served"] for run in runs) / 1e6
    return Bar(name, median(seconds), min(seconds), max(seconds), requests, served)


def row_of(name: str, runs: list[dict[str, Any]]) -> str:
    """Of one case, in a table: the case, seconds, requests, MB read where the file is stored."""
    requests = median(run["requests"] for run in runs)
    served = median(run["bytes_served"] for run in runs) / 1e6
    return (
        f"| {name} | {spread([run['seconds'] for run in runs])} | {requests:.0f} | {served:.0f} |"
    )


def memory_of(run: dict[str, Any]) -> int:
    """Bytes of Forebay's buffers, in all processes."""
    return sum(int(file["memory_peak"]) for file in run.get("prefetch", []))


@dataclass(frozen=True)
class Claim:
    """A figure and the bar that it is held against."""

    what: str
    value: float | None  # None: not measured yet
    bar: float
    is_least: bool = False
    reach: float | None = None  # the most that the value can be

    def verdict(self, rounds: int) -> str:
        """Met or missed, and why that may not be the last word."""
        if self.value is None:
            return NOT_MEASURED
        if self.value >= self.bar if self.is_least else self.value <= self.bar:
            verdict = "met"
        elif self.reach is not None and self.reach < self.bar:
            verdict = f"missed: {self.reach:.2f} is the most that anybody can reach"
        else:
            verdict = "missed"
        if rounds < FEWEST_ROUNDS:
            verdict += f", by fewer than {FEWEST_ROUNDS} rounds"
        return verdict


def table_of(claims: Iterable[Claim], rounds: int) -> list[str]:
    """The claims, with a blank line before them."""
    lines = ["", "| claim | bar | measured | |", "|---|---|---|---|"]
    for claim in claims:
        sign = "at least" if claim.is_least else "at most"
        value = "" if claim.value is None else f"{claim.value:.2f}"
        lines.append(f"| {claim.what} | {sign} {claim.bar:g} | {value} | {claim.verdict(rounds)} |")
    return lines

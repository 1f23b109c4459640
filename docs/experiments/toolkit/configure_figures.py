"""What `forebay configure` proposed for pairs of a program and a system, beside the best of all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from configure_pairs import PAIRS, Pair
from configure_runs import DEFAULT, PROPOSED
from forebay.configure.candidate import described
from forebay.statistics import Ratio, median_ratio
from results import Result
from toolkit_pages import stored_rounds

# Of the best: as near as this a proposal has to come.
NEAR = 1.10


@dataclass(frozen=True)
class Way:
    """One of the settings that were run in turn at the end. Seconds by run."""

    name: str
    settings: dict[str, str]
    wall: list[float]
    mpiio: list[float]


@dataclass(frozen=True)
class Found:
    """One round of a pair."""

    pair: Pair
    raw: dict[str, Any]
    ways: list[Way]

    @property
    def default(self) -> Way:
        return next(way for way in self.ways if way.name == DEFAULT)

    @property
    def proposed(self) -> Way:
        """What `configure` proposes; where it proposes nothing, the default."""
        return next((way for way in self.ways if way.name == PROPOSED), self.default)

    @property
    def best(self) -> Way:
        """The least median of fresh runs: of the grid's fastest, the default and the proposal."""
        return min(self.ways, key=lambda way: median(way.wall))

    @property
    def distance(self) -> float:
        """The proposal's time over that of the best, medians; 1 is the best itself."""
        return median(self.proposed.wall) / median(self.best.wall)

    @property
    def distance_in_calls(self) -> float:
        """The same of the time inside MPI-IO calls alone."""
        least = min(median(way.mpiio) for way in self.ways)
        return median(self.proposed.mpiio) / least

    @property
    def is_near(self) -> bool:
        return self.distance <= NEAR

    def gain(self, over: Way, way: Way) -> Ratio | None:
        """Of wall times, run by run."""
        return median_ratio([a / b for a, b in zip(over.wall, way.wall, strict=True)])

    @property
    def runs(self) -> int:
        """That `configure` made, the warm-up among them."""
        return len(self.raw["configure"]["runs"])

    @property
    def grid_seconds(self) -> list[float]:
        """Medians of all of the grid, in the grid's order."""
        return [median(one["seconds"]) for one in self.raw["grid"]]

    def told(self, way: Way, places: Iterable[tuple[str, str]]) -> str:
        """Its settings in words, with directories by name."""
        text = described(way.settings) if way.settings else "default"
        if way.settings == {"engine": "mpi"}:
            text = "the MPI alone"
        for path, name in places:
            text = text.replace(path, name)
        return text


def collect(output: Path) -> list[Found]:
    """All rounds of all pairs, by pair."""
    return [
        _found(pair, one)
        for pair in PAIRS
        for one in stored_rounds(output, f"configure-{pair.name}")
    ]


def _found(pair: Pair, one: Result) -> Found:
    ways = [
        Way(
            way["name"],
            way["settings"],
            [run["wall"] for run in way["runs"]],
            [run["mpiio"] for run in way["runs"]],
        )
        for way in one.raw["final"]
    ]
    return Found(pair, one.raw, ways)

"""What `forebay configure` proposed for pairs of a program and a system, beside the best of all.

Which rounds count is one rule for all pairs, whatever came of them: those in which the host took no
more of the processors' time than STOLEN_MUCH. A pair stands by the median of its rounds that
count."""

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
from toolkit_pages import STOLEN_MUCH, stored_rounds

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

    def distance_of(self, way: Way) -> float:
        """Its time over that of the best, medians; 1 is the best itself."""
        return median(way.wall) / median(self.best.wall)

    @property
    def distance(self) -> float:
        """The proposal's."""
        return self.distance_of(self.proposed)

    @property
    def distance_in_calls(self) -> float:
        """The same of the time inside MPI-IO calls alone."""
        least = min(median(way.mpiio) for way in self.ways)
        return median(self.proposed.mpiio) / least

    @property
    def is_near(self) -> bool:
        return self.distance <= NEAR

    @property
    def stolen_share(self) -> float:
        return float(self.raw["stolen_share"])

    @property
    def counts(self) -> bool:
        return self.stolen_share <= STOLEN_MUCH

    @property
    def gains(self) -> list[float]:
        """Default / proposal of wall times, run by run; none where nothing was proposed."""
        if self.proposed is self.default:
            return []
        return [a / b for a, b in zip(self.default.wall, self.proposed.wall, strict=True)]

    @property
    def not_ended(self) -> int:
        """Runs that count as one of TIMEOUT_S. Rounds of earlier code had none."""
        return len(self.raw.get("not_ended", []))

    @property
    def runs(self) -> int:
        """That `configure` made, the warm-up among them."""
        return len(self.raw["configure"]["runs"])

    def told(self, way: Way, places: Iterable[tuple[str, str]]) -> str:
        """Its settings in words, with directories by name."""
        text = described(way.settings) if way.settings else "default"
        if way.settings == {"engine": "mpi"}:
            text = "the MPI alone"
        for path, name in places:
            text = text.replace(path, name)
        return text


@dataclass(frozen=True)
class OfPair:
    """All rounds of a pair, in order."""

    pair: Pair
    rounds: list[Found]

    @property
    def counted(self) -> list[Found]:
        return [one for one in self.rounds if one.counts]

    @property
    def is_near(self) -> bool:
        """By the median of the rounds that count; not without any."""
        return _are_near(one.distance for one in self.counted)

    @property
    def default_is_near(self) -> bool:
        """Likewise of the default: then a search that proposes nothing is near as well."""
        return _are_near(one.distance_of(one.default) for one in self.counted)

    @property
    def near_rounds(self) -> int:
        return sum(one.is_near for one in self.counted)

    @property
    def gain(self) -> Ratio | None:
        """Default / proposal, of all runs of the rounds that count."""
        return median_ratio([gain for one in self.counted for gain in one.gains])


def _are_near(distances: Iterable[float]) -> bool:
    known = list(distances)
    return bool(known) and median(known) <= NEAR


def collect(output: Path) -> list[OfPair]:
    """By pair, of those that were measured."""
    found = []
    for pair in PAIRS:
        rounds = stored_rounds(output, f"configure-{pair.name}")
        if rounds:
            found.append(OfPair(pair, [_found(pair, one) for one in rounds]))
    return found


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

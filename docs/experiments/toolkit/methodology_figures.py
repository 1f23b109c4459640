"""What rounds of one program of [METHOD] gave, and the sentences that this supports."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import median
from typing import Any

from forebay.statistics import Ratio, median_ratio
from methodology_runs import COLLECTIVE, INDEPENDENT, PLACES, PROCESSES, Case, Place, Program, Way
from page_parts import digits
from results import Result

# What [METHOD] found: the share of BT-IO's time that is I/O.
PUBLISHED_INDEPENDENT, PUBLISHED_COLLECTIVE = 0.9, 0.3
# Most of the run, and a minority of it.
HALF = 0.5
FEWEST_ROUNDS = 5

Run = dict[str, Any]
Figure = Callable[[Run], float]


def run_time(run: Run) -> float:
    return float(run["run_s"])


def io_time(run: Run) -> float:
    return float(run["io_s"])


def share(run: Run) -> float:
    return float(run["share"])


def operations(run: Run) -> float:
    return float(run["operations"])


def rate(run: Run) -> float:
    """Bytes a second of I/O."""
    return float(run["bytes"] / run["io_s"])


def operations_per_s(run: Run) -> float:
    """Of I/O."""
    return float(run["operations"] / run["io_s"])


@dataclass(frozen=True)
class Found:
    """The runs of one program by case, those of a round at the same place in each list."""

    program: Program
    runs: dict[tuple[str, int], list[Run]]
    rounds: int

    def of(self, case: Case, figure: Figure) -> list[float]:
        return [figure(run) for run in self.runs[case.name, case.processes]]

    def median(self, case: Case, figure: Figure) -> float:
        return median(self.of(case, figure))

    def cases(self, processes: int) -> list[Case]:
        return [Case(place, way, processes) for place in PLACES for way in self.program.ways]

    def ratio(self, above: Case, below: Case, figure: Figure = io_time) -> Ratio | None:
        """Of a figure, round by round."""
        pairs = zip(self.of(above, figure), self.of(below, figure), strict=True)
        return median_ratio([one / other for one, other in pairs])


def collect(program: Program, rounds: Iterable[Result]) -> Found:
    """All runs of these rounds."""
    runs: dict[tuple[str, int], list[Run]] = {}
    count = 0
    for one in rounds:
        count += 1
        for run in one.raw["runs"]:
            runs.setdefault((run["case"], run["processes"]), []).append(run)
    return Found(program, runs, count)


@dataclass(frozen=True)
class Turn:
    """From independent to collective I/O, of one place and so many processes."""

    place: Place
    processes: int
    independent: list[float]  # share of I/O, by round
    collective: list[float]
    ratio: Ratio | None  # of I/O times, independent / collective

    @property
    def of_published(self) -> float | None:
        """What collective I/O would take of a run of which independent takes the published 90 %:
        the times of both are as measured, and what is computed takes as long as it must. Worked
        example: 21 times as fast makes 30 % of 90 %."""
        if self.ratio is None:
            return None
        taken = PUBLISHED_INDEPENDENT / self.ratio.median
        return taken / (taken + 1 - PUBLISHED_INDEPENDENT)

    @property
    def verdict(self) -> str:
        """Whether I/O goes from most of the time to a minority, in every round."""
        if len(self.independent) < FEWEST_ROUNDS:
            return "too few rounds"
        if min(self.independent) > HALF > max(self.collective):
            return "reproduced"
        if min(self.independent) > HALF:
            return "not reproduced: collective I/O is not always less than half"
        return "not reproduced: independent I/O is not always more than half"


def turns(found: Found) -> list[Turn]:
    """All of BT-IO."""
    made = []
    for processes in PROCESSES:
        for place in PLACES:
            alone = Case(place, INDEPENDENT, processes)
            together = Case(place, COLLECTIVE, processes)
            made.append(
                Turn(
                    place,
                    processes,
                    found.of(alone, share),
                    found.of(together, share),
                    found.ratio(alone, together),
                )
            )
    return made


@dataclass(frozen=True)
class Factor:
    """What one choice changes while all others stay: the ratio of I/O times, first / second."""

    what: str
    rest: str
    processes: int
    ratio: Ratio | None
    way: Way | None = None  # that stays


def disk_factors(found: Found) -> list[Factor]:
    """One disk against RAID 5."""
    local_one, local_five, network_one, network_five = PLACES
    return [
        Factor(
            "one disk / RAID 5",
            f"{'network' if one.is_network else 'local'}, {way.name}",
            processes,
            found.ratio(Case(one, way, processes), Case(five, way, processes)),
            way,
        )
        for processes in PROCESSES
        for one, five in ((local_one, local_five), (network_one, network_five))
        for way in found.program.ways
    ]


def network_factors(found: Found) -> list[Factor]:
    """The network against the local file system."""
    local_one, local_five, network_one, network_five = PLACES
    return [
        Factor(
            "network / local",
            f"{far.name.removeprefix('network, ')}, {way.name}",
            processes,
            found.ratio(Case(far, way, processes), Case(near, way, processes)),
            way,
        )
        for processes in PROCESSES
        for near, far in ((local_one, network_one), (local_five, network_five))
        for way in found.program.ways
    ]


def way_factors(found: Found) -> list[Factor]:
    """The second way of the program against its first."""
    first, second = found.program.ways
    return [
        Factor(
            f"{second.name} / {first.name}",
            place.name,
            processes,
            found.ratio(Case(place, second, processes), Case(place, first, processes)),
        )
        for processes in PROCESSES
        for place in PLACES
    ]


def sentences(found: Found, processes: int) -> list[str]:
    """What each kind of figure says of the 8 configurations, where all rounds agree."""
    return [
        _order_sentence(found, processes, "Run time", run_time),
        _order_sentence(found, processes, "I/O time", io_time),
        _operations_sentence(found, processes),
        _rank_sentence(found, processes, "Transfer rate", rate),
        _rank_sentence(found, processes, "IOPs", operations_per_s),
    ]


def _order_sentence(found: Found, processes: int, name: str, figure: Figure) -> str:
    ordered = sorted(found.cases(processes), key=lambda case: found.median(case, figure))
    best, worst = ordered[0], ordered[-1]
    if max(found.of(best, figure)) >= min(found.of(worst, figure)):
        return f"**{name}**: no two configurations are told apart by every round."
    times = found.median(worst, figure) / found.median(best, figure)
    return (
        f"**{name}**: shortest with *{best.name}* ({digits(found.median(best, figure))} s), "
        f"longest with *{worst.name}* ({digits(found.median(worst, figure))} s), "
        f"{digits(times)} times as long."
    )


def _operations_sentence(found: Found, processes: int) -> str:
    first, second = found.program.ways
    by_way = {}
    for way in (first, second):
        cases = [Case(place, way, processes) for place in PLACES]
        by_way[way] = {count for case in cases for count in found.of(case, operations)}
    if any(len(counts) > 1 for counts in by_way.values()):
        every = [found.median(case, operations) for case in found.cases(processes)]
        return (
            f"**Operations**: {min(every):,.0f} to {max(every):,.0f}; they differ from run to run."
        )
    (few,), (many,) = by_way[first], by_way[second]
    if few == many:
        return f"**Operations**: {few:,.0f} in every configuration."
    return (
        f"**Operations**: the place changes nothing: {few:,.0f} with {first.name}, {many:,.0f} "
        f"with {second.name}, {digits(many / few)} times as many."
    )


def _rank_sentence(found: Found, processes: int, name: str, figure: Figure) -> str:
    cases = found.cases(processes)
    highest = max(cases, key=lambda case: found.median(case, figure))
    shortest = min(cases, key=lambda case: found.median(case, run_time))
    text = f"**{name}**: highest with *{highest.name}*"
    if highest == shortest:
        return f"{text}, where the run is shortest as well."
    times = found.median(highest, run_time) / found.median(shortest, run_time)
    if max(found.of(shortest, run_time)) >= min(found.of(highest, run_time)):
        return f"{text}; the run is about as short as with *{shortest.name}*."
    return (
        f"{text}, where the run takes {digits(times)} times as long as the shortest: who chooses "
        "by this figure alone, chooses wrongly."
    )

"""What rounds of the experiments of [ARCHER] gave, and what they show of its claims."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from forebay.statistics import Ratio, median_ratio
from results import Result
from striping_runs import (
    ALL,
    ALONE,
    BYTES,
    LARGE,
    ONE,
    PROCESSES,
    READ,
    SERVERS,
    SMALL,
    TAR,
    TOGETHER,
    WRITE,
    Case,
)
from toolkit_pages import LESS, MORE, SAME, TOO_FEW, shown


@dataclass(frozen=True)
class Array:
    """Seconds of writing the array by case, those of a round at the same place in each list."""

    seconds: dict[Case, list[float]]
    identical: bool
    rounds: int

    def rates(self, case: Case) -> list[float]:
        """Bytes a second of all processes together."""
        return [case.processes * BYTES / seconds for seconds in self.seconds[case]]

    def rate(self, case: Case) -> float:
        return median(self.rates(case))

    def ratio(self, above: Case, below: Case) -> Ratio | None:
        """Of rates, round by round."""
        pairs = zip(self.rates(above), self.rates(below), strict=True)
        return median_ratio([one / other for one, other in pairs])


def collect_array(rounds: Iterable[Result]) -> Array:
    """All runs of these rounds."""
    seconds: dict[Case, list[float]] = {}
    identical = True
    count = 0
    for one in rounds:
        count += 1
        for run in one.raw["runs"]:
            case = Case(run["servers"], run["processes"], run["call"], run["engine"])
            seconds.setdefault(case, []).append(run["seconds"])
            identical &= run["identical"]
    return Array(seconds, identical, count)


Files = dict[tuple[str, str, str], list[float]]
"""Seconds by layout, data and task."""


def collect_files(rounds: Iterable[Result]) -> Files:
    """All runs of these rounds."""
    seconds: Files = {}
    for one in rounds:
        for run in one.raw["runs"]:
            key = (run["layout"], run["data"], run["task"])
            seconds.setdefault(key, []).append(run["seconds"])
    return seconds


def spread_costs(files: Files, data: str, task: str) -> Ratio | None:
    """Times as long over all bricks as on one, round by round."""
    pairs = zip(files[ALL, data, task], files[ONE, data, task], strict=True)
    return median_ratio([over_all / on_one for over_all, on_one in pairs])


@dataclass(frozen=True)
class Claim:
    """A sentence of [ARCHER], what was measured for it, and whether that shows it."""

    sentence: str
    measured: str
    ratio: Ratio | None
    expected: str  # MORE or LESS

    @property
    def verdict(self) -> str:
        said = shown(self.ratio)
        if said == TOO_FEW:
            return said
        if said == SAME:
            return "not shown"
        return "reproduced" if said == self.expected else "not reproduced"


def array_claims(array: Array, engine: str) -> list[Claim]:
    """Of the array."""
    least, most = PROCESSES[0], PROCESSES[-1]
    claims = [
        Claim(
            "more stripes make `write_all` faster (500 MiB/s, 2 and 10 GiB/s with 1, 4 and 48)",
            f"{more} / {fewer} servers, {most} processes",
            array.ratio(Case(more, most, TOGETHER, engine), Case(fewer, most, TOGETHER, engine)),
            MORE,
        )
        for fewer, more in pairwise(SERVERS)
    ]
    claims += [
        Claim(
            "`write` in place of `write_all` is slower",
            f"`write` / `write_all`, {servers} servers, {most} processes",
            array.ratio(Case(servers, most, ALONE, engine), Case(servers, most, TOGETHER, engine)),
            LESS,
        )
        for servers in SERVERS
    ]
    claims += [
        Claim(
            "`write` falls with more processes (49.5, 5.9 and 2.4 MiB/s by 1, 8 and 64)",
            f"{most} / {least} processes, {servers} servers",
            array.ratio(Case(servers, most, ALONE, engine), Case(servers, least, ALONE, engine)),
            LESS,
        )
        for servers in SERVERS
    ]
    return claims


def files_claims(files: Files) -> list[Claim]:
    """Of small files, and of a large one: times over all bricks / on one."""
    measured = "time over all bricks / on one"
    claims = [
        Claim(
            "small files are read faster from one stripe each (6 minutes in place of 2 hours)",
            f"reading, {measured}",
            spread_costs(files, SMALL, READ),
            MORE,
        ),
        Claim(
            "`tar` of small files is faster with one stripe each (by 40 %)",
            f"`tar`, {measured}",
            spread_costs(files, SMALL, TAR),
            MORE,
        ),
    ]
    claims += [
        Claim(
            "advice depends on the pattern: stripes cost small files more than a large one",
            f"{task}, what it costs small files / a large one",
            _quotient(files, task),
            MORE,
        )
        for task in (WRITE, READ)
    ]
    return claims


def _quotient(files: Files, task: str) -> Ratio | None:
    by_round = zip(
        files[ALL, SMALL, task],
        files[ONE, SMALL, task],
        files[ALL, LARGE, task],
        files[ONE, LARGE, task],
        strict=True,
    )
    return median_ratio([(a / b) / (c / d) for a, b, c, d in by_round])

"""The pictures of a search: its runs with the best so far, and what each factor changed."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from forebay.configure.contrasts import Contrast
from forebay.configure.history import SearchRun, State, Why
from forebay.report import drawing, rows, search
from forebay.report.drawing import COLOURS
from forebay.report.rows import Rows
from forebay.report.search import SearchReport
from forebay.units import show_seconds

#: Of what a run was for, and of those without a time. Seen well on white and on near black.
RUN_COLOURS = {
    Why.WARM_UP: "#b9a44c",
    Why.REFERENCE: drawing.GREY,
    Why.MODEL: COLOURS["metadata"],
    Why.SEARCH: COLOURS["read"],
    Why.AGAIN: COLOURS["mpi"],
    Why.TRACED: drawing.GREY,
}
BEST_COLOUR = COLOURS["write"]
LOST_COLOUR = "#d64576"
_MARKERS = {
    Why.WARM_UP: "v",
    Why.REFERENCE: "o",
    Why.MODEL: "D",
    Why.SEARCH: "s",
    Why.AGAIN: "^",
    Why.TRACED: "x",
}
_MOST_TICKS = 14
# From fastest to slowest; beyond it the axis goes by factors.
_WIDE = 8.0
_MARGIN = 1.15
CONTRASTS_MOST = 14
ROW = 0.42  # inches
HALF_DASH = 0.32  # of what a run has of the axis
RUNS_HEIGHT, RUNS_RATIO = 4.2, 8.0


def runs(report: SearchReport) -> str:
    """The seconds of every run in the order of time, as predicted and as measured, with the least
    so far as a line; below them those that have no time to use."""
    pyplot = drawing.pyplot_for("search")
    figure, (times, lost) = drawing.one_above_another(pyplot, RUNS_HEIGHT, RUNS_RATIO)
    found = shown_runs(report).shown
    half = HALF_DASH * run_width(found)
    for run in found:
        if run.predicted:
            place = [run.number - half, run.number + half]
            times.plot(place, [run.predicted] * 2, color=drawing.GREY, linewidth=1.4)
        if run.state is State.MEASURED and run.seconds:
            times.plot(
                run.number, run.seconds, _MARKERS[run.why], color=RUN_COLOURS[run.why],
                markersize=6,
            )  # fmt: skip
        else:
            lost.plot(run.number, 0, "X", color=LOST_COLOUR, markersize=7)
    least = shown_least(report, found)
    if least:
        numbers, seconds = zip(*[*least, (run_span(found)[1], least[-1][1])], strict=True)
        times.step(numbers, seconds, where="post", color=BEST_COLOUR, linewidth=2, zorder=1)
    if report.reference_s is not None:
        times.axhline(report.reference_s, color=drawing.GREY, linewidth=1, linestyle=(0, (2, 3)))
    _scale(pyplot, times, *time_scale(report, found))
    times.set_ylabel(f"time ({report.found.search.time})")
    lost.set_ylim(-1, 1)
    lost.set_yticks([0], ["not used"])
    lost.tick_params(axis="y", length=0)
    lost.xaxis.set_major_locator(pyplot.MaxNLocator(_MOST_TICKS, integer=True))
    lost.set_xlim(*run_span(found))
    lost.set_xlabel("run, in the order of time")
    return drawing.svg(pyplot, figure, "The time of every run of the search, and the best so far")


def _scale(pyplot: Any, axes: Any, ends: tuple[float, float], by_factors: bool) -> None:  # noqa: ANN401
    from matplotlib.ticker import LogLocator, NullFormatter

    if by_factors:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(10, subs=(1, 2, 5), numticks=12))
        axes.yaxis.set_minor_formatter(NullFormatter())
    else:
        axes.yaxis.set_major_locator(pyplot.MaxNLocator(6))
    axes.set_ylim(*ends)
    axes.yaxis.set_major_formatter(lambda value, _: show_seconds(value) if value > 0 else "0")


def time_scale(
    report: SearchReport, shown: Sequence[SearchRun]
) -> tuple[tuple[float, float], bool]:
    """The ends of an axis of the times that are shown and of the reference's, in seconds, and
    whether it goes by factors: so where they differ by much, since the slow ones would hide the
    others."""
    times = [time for run in shown for time in (run.seconds, run.predicted)]
    seconds = [time for time in (*times, report.reference_s) if time]
    if not seconds:
        return (0.0, 1.0), False
    low, high = min(seconds), max(seconds)
    if high > _WIDE * low:
        return (low / _MARGIN, high * _MARGIN), True
    spare = 0.08 * (high - low or high)
    return (max(0.0, low - spare), high + spare), False


def shown_runs(report: SearchReport) -> Rows[SearchRun]:
    """Those that have a place in the picture and the table: first those that were the fastest until
    then, then by their times; last those without one."""
    least, fastest = math.inf, set()
    for number, seconds in report.best_so_far:
        if seconds < least:
            least = seconds
            fastest.add(number)
    counted = {run.number for run in report.found.counted}

    def rank(run: SearchRun) -> tuple[bool, bool, float]:
        return run.number not in fastest, run.number not in counted, run.seconds or math.inf

    return rows.most_important(report.found.runs, rows.RUNS_MOST, rank)


def shown_least(report: SearchReport, shown: Sequence[SearchRun]) -> list[tuple[float, float]]:
    """The least so far where there is a run that is shown: its number, and seconds."""
    numbers = {run.number for run in shown}
    return [(number, seconds) for number, seconds in report.best_so_far if number in numbers]


def run_span(shown: Sequence[SearchRun]) -> tuple[float, float]:
    """The ends of an axis of the numbers of runs."""
    spare = 0.7 * run_width(shown)
    return shown[0].number - spare, shown[-1].number + spare


def run_width(shown: Sequence[SearchRun]) -> float:
    """What a run has of the axis: 1, or where many are left out more, so that it is still seen."""
    return max(1.0, (shown[-1].number - shown[0].number) / rows.RUNS_MOST)


def shown_gains(each: Contrast) -> Rows[tuple[float, tuple[str, str]]]:
    """Those that have a point in the picture, from the least to the largest if not all have, and
    the pair of each."""
    gains = list(zip(each.gains, each.pairs, strict=True))
    most = rows.POINTS_MOST // CONTRASTS_MOST
    return rows.evenly(gains if len(gains) <= most else sorted(gains), most)


def shown_contrasts(report: SearchReport) -> list[Contrast]:
    """Those that have a place in the picture and the table, largest effect first."""
    return report.contrasts[:CONTRASTS_MOST]


def factors(report: SearchReport) -> str:
    """Of each change of one factor the gain of every pair, and the mean with its interval."""
    pyplot = drawing.pyplot_for("factors")
    shown = shown_contrasts(report)
    figure, axes = pyplot.subplots(
        figsize=(drawing.WIDTH, 0.9 + ROW * len(shown)), layout="constrained"
    )
    for row, each in enumerate(shown):
        colour = BEST_COLOUR if each.beyond_noise else drawing.GREY
        if each.half is not None:
            ends = [each.mean - each.half, each.mean + each.half]
            axes.plot(ends, [row, row], color=colour, linewidth=5, alpha=0.35)
        gains = [gain for gain, _ in shown_gains(each).shown]
        axes.plot(gains, [row] * len(gains), "o", color=colour, markersize=4)
        axes.plot([each.mean] * 2, [row - 0.3, row + 0.3], color=colour, linewidth=2.2)
    axes.axvline(0, color=drawing.GREY, linewidth=1)
    axes.set_yticks(range(len(shown)), [rows.label(search.change(each)) for each in shown])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(shown) - 0.5, -0.5)
    low, high = gain_span(shown)
    marks = drawing.round_gains(low, high)
    axes.set_xticks(np.log1p(marks), [drawing.percent(mark) for mark in marks])
    axes.set_xlim(low, high)
    axes.set_xlabel("gain: time before / time after - 1")
    return drawing.svg(pyplot, figure, "What changing one factor alone did to the time")


def gain_span(shown: list[Contrast]) -> tuple[float, float]:
    """Logarithms of gains at the ends of the axis."""
    return drawing.spared([0.0, *(gain for each in shown for gain in each.gains)], 0.12, 0.03)

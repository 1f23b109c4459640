"""The pictures of an evaluation: every run, and every paired difference."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from forebay.evaluate.evaluation import EvaluatedRun
from forebay.evaluate.stored import StoredEvaluation
from forebay.report import campaign_part, drawing, rows
from forebay.units import show_seconds

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Of the configurations, the reference first. Seen well on white and on near black.
_COLOURS = (
    drawing.GREY, "#1e88e5", "#f4711f", "#2e9e6b", "#a457c4", "#c9a227", "#d64576", "#1aa6b7",
)  # fmt: skip
_MARKERS = "osD^vPX*"
_STRIP = 0.78  # of a candidate's row that its blocks take, one below the other
ROW = 0.95  # inches
RUNS_HEIGHT, RUNS_RATIO = 4.4, 3.0


def colours(result: StoredEvaluation) -> dict[str, str]:
    """Of each configuration, the same in all pictures."""
    names = [result.reference, *result.candidates]
    return {name: _COLOURS[place % len(_COLOURS)] for place, name in enumerate(names)}


def runs(result: StoredEvaluation) -> str:
    """The seconds of every run in the order of time, above what else the machine did then."""
    pyplot = drawing.pyplot_for("runs")
    figure, (times, load) = drawing.one_above_another(pyplot, RUNS_HEIGHT, RUNS_RATIO)
    for place, (name, colour) in enumerate(colours(result).items()):
        known = [
            (number, seconds)
            for number, run in enumerate(result.runs, start=1)
            if run.configuration == name
            and (seconds := getattr(run.side, result.quantity)) is not None
        ]
        if known:
            number, seconds = zip(*known, strict=True)
            marker = _MARKERS[place % len(_MARKERS)]
            times.plot(number, seconds, marker, color=colour, markersize=5.5)
    _part_blocks(times, result)
    times.set_ylabel(f"time ({result.quantity})")
    times.yaxis.set_major_locator(pyplot.MaxNLocator(5))
    times.yaxis.set_major_formatter(lambda value, _: show_seconds(value) if value > 0 else "0")
    numbers = np.arange(1, len(result.runs) + 1)
    busy = [cores_busy(run) for run in result.runs]
    load.bar(numbers, busy, width=0.7, color=drawing.COLOURS["metadata"])
    load.set_ylim(0, max([1.0, *busy]))
    load.set_ylabel("cores busy")
    load.yaxis.set_major_locator(pyplot.MaxNLocator(2))
    load.xaxis.set_major_locator(pyplot.MaxNLocator(12, integer=True))
    load.set_xlim(0.4, len(result.runs) + 0.6)
    load.set_xlabel("run, in the order of time")
    return drawing.svg(pyplot, figure, "The time of every run, and what else the machine did")


def _part_blocks(axes: Any, result: StoredEvaluation) -> None:  # noqa: ANN401
    """A faint ground below every other block."""
    for begin, end in other_blocks(result):
        axes.axvspan(begin, end, color=drawing.GREY, alpha=0.13, linewidth=0)


def other_blocks(result: StoredEvaluation) -> list[tuple[float, float]]:
    """Of every other block, from where to where its runs are on an axis of their numbers."""
    block = [run.block for run in result.runs]
    spans = []
    for first in sorted(set(block))[1::2]:
        places = [number for number, each in enumerate(block, start=1) if each == first]
        spans.append((places[0] - 0.5, places[-1] + 0.5))
    return spans


def cores_busy(run: EvaluatedRun) -> float:
    """With something else, about a run."""
    known = [load.cores for load in (run.before, run.after) if load is not None]
    return max(known, default=0.0)


def differences(result: StoredEvaluation) -> str:
    """Of each candidate the gain in every block, one below the other, and the interval of the true
    one. The axis is that of log ratios, so that twice and half as fast are as far from 0."""
    pyplot = drawing.pyplot_for("differences")
    shown = paired(result)
    figure, axes = pyplot.subplots(
        figsize=(drawing.WIDTH, 1.0 + ROW * len(shown)), layout="constrained"
    )
    for row, name in enumerate(shown):
        points = campaign_part.points(result, name).shown
        ratios = [ratio for _, ratio in points]
        colour = colours(result)[name]
        verdict = result.given[name]
        if verdict is not None and verdict.gain is not None:
            low, high = log_gain(verdict.low), log_gain(verdict.high)
            _band(axes, row, low, high, colour)
            middle = float(np.log1p(verdict.gain))
            axes.plot([middle, middle], [row - 0.44, row + 0.44], color=colour, linewidth=2.4)
        axes.plot(ratios, row + block_places(len(ratios)), "o", color=colour, markersize=4.5)
    axes.axvline(0, color=drawing.GREY, linewidth=1)
    worth = float(np.log1p(result.plan.least_gain))
    axes.axvline(worth, color=drawing.GREY, linewidth=1, linestyle=(0, (2, 3)))
    axes.set_ylim(len(shown) - 0.45, -0.55)
    axes.set_yticks(range(len(shown)), map(rows.label, shown))
    axes.tick_params(axis="y", length=0)
    low, high = gain_span(result)
    gains = drawing.round_gains(low, high)
    axes.set_xticks(np.log1p(gains), [drawing.percent(gain) for gain in gains])
    axes.set_xlim(low, high)
    axes.set_xlabel(f"gain against {rows.label(result.reference)}: its time / the other's - 1")
    return drawing.svg(pyplot, figure, "The gain in every block, with its interval")


def paired(result: StoredEvaluation) -> list[str]:
    """The candidates with a row, from the top."""
    return [name for name, test in result.tests.items() if test.blocks]


def log_gain(bound: float | None) -> float | None:
    """The logarithm of the ratio for a bound of a gain; None: it is no bound, or as low as none."""
    return None if bound is None or bound <= -1 else math.log1p(bound)


def block_places(blocks: int) -> "NDArray[np.float64]":
    """Where in a candidate's row its blocks are."""
    return _STRIP * (np.linspace(-0.5, 0.5, blocks) if blocks > 1 else np.zeros(blocks))


def gain_span(result: StoredEvaluation) -> tuple[float, float]:
    """Log ratios at the ends of the axis."""
    worth = float(np.log1p(result.plan.least_gain))
    ratios = [result.tests[name].ratios for name in paired(result)]
    return drawing.spared([0.0, worth, *np.concatenate(ratios).tolist()], 0.08, 0.02)


def _band(axes: Any, row: int, low: float | None, high: float | None, colour: str) -> None:  # noqa: ANN401
    """An interval; without a bound on a side it goes on to the end of the axis."""
    begin, end = (edge if edge is not None else sign * 1e3 for edge, sign in ((low, -1), (high, 1)))
    spans: Sequence[float] = (row - 0.44, row + 0.44)
    axes.fill_betweenx(spans, begin, end, color=colour, alpha=0.22, linewidth=0)

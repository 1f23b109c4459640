"""What all pictures of the pages have in common: SVG without a colour of its own for text, so that
it reads in light and in dark."""

import io
import math
from collections.abc import Sequence
from typing import Any

from forebay.units import show_bytes

#: Seen well on white and on near black.
COLOURS = {"read": "#1e88e5", "write": "#f4711f", "metadata": "#a457c4", "mpi": "#2e9e6b"}
#: Of what other things are held against.
GREY = "#7f8b97"
WIDTH = 9.0
#: Of a cell with hardly anything in it.
LEAST_OPACITY = 0.25
# Of an axis of gains: log ratios from end to end, marks on it.
_WIDE, _FEWEST_TICKS, _TICKS = 1.0, 3, 12
# Stands in the drawing for the colour of the page's text.
_TEXT = "#010203"


def pyplot_for(salt: str) -> Any:  # noqa: ANN401  matplotlib has no types
    """Set up for drawings whose names differ from those of other drawings in the page."""
    import matplotlib as mpl  # slow to import

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = f"forebay {salt}"
    mpl.rcParams["svg.fonttype"] = "none"
    mpl.rcParams["font.family"] = "sans-serif"
    mpl.rcParams["font.size"] = 10
    mpl.rcParams["text.parse_math"] = False  # values of variables may have two '$'
    for key in ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"):
        mpl.rcParams[key] = _TEXT
    from matplotlib import pyplot

    return pyplot


def heights(height: float, ratio: float) -> tuple[float, float]:
    """Of two pictures one above another, `height` in all, the upper `ratio` times as high."""
    return height * ratio / (ratio + 1), height / (ratio + 1)


def one_above_another(pyplot: Any, height: float, ratio: float) -> tuple[Any, tuple[Any, Any]]:  # noqa: ANN401
    """A figure of `height` inches: two pictures with one axis, the upper `ratio` times as high."""
    figure, axes = pyplot.subplots(
        2,
        1,
        figsize=(WIDTH, height),
        sharex=True,
        layout="constrained",
        gridspec_kw={"height_ratios": heights(height, ratio)},
    )
    return figure, tuple(axes)


def byte_step(most: float, intervals: int) -> float:
    """From tick to tick of an axis of `most` bytes, round in the unit in which they are told."""
    from matplotlib.ticker import MaxNLocator

    unit = 1024.0 ** max(0, int(math.log2(max(most, 1)) // 10))
    ticks = MaxNLocator(intervals).tick_values(0, most / unit)
    return max(1.0, float(ticks[1] - ticks[0]) * unit)


def byte_ticks(axis: Any, most: float, intervals: int) -> None:  # noqa: ANN401
    """Ticks from 0 to `most` bytes."""
    from matplotlib.ticker import FuncFormatter, MultipleLocator

    axis.set_major_locator(MultipleLocator(byte_step(most, intervals)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: show_bytes(value)))


def round_gains(low: float, high: float) -> list[float]:
    """Gains to mark between two log ratios: evenly apart where that is near even on the axis, else
    by factors."""
    from matplotlib.ticker import MaxNLocator

    even = list(MaxNLocator(8).tick_values(math.expm1(low), math.expm1(high)))
    if high - low < _WIDE:
        return even
    powers = range(-6, 7)
    factors = [step * 10.0**power for power in powers for step in (1, 2, 5)]
    gains = [factor - 1 for factor in factors if low <= math.log(factor) <= high]
    if len(gains) < _FEWEST_TICKS:
        return [gain for gain in even if gain > -1]
    return gains if len(gains) <= _TICKS else [gain for gain in gains if _is_power(gain + 1)]


def spared(values: Sequence[float], share: float, least: float) -> tuple[float, float]:
    """The ends of an axis on which `values` are not at the edge: `share` of their span away."""
    low, high = min(values), max(values)
    spare = max(least, share * (high - low))
    return low - spare, high + spare


def percent(gain: float) -> str:
    """0.25 -> '+25 %', a gain as the axes have it."""
    if abs(gain) < 1e-9:
        return "0 %"
    return f"{100 * gain:+.0f} %" if gain >= 1 else f"{100 * gain:+.3g} %"


def _is_power(factor: float) -> bool:
    return math.isclose(math.log10(factor), round(math.log10(factor)), abs_tol=1e-9)


def svg(pyplot: Any, figure: Any, label: str) -> str:  # noqa: ANN401
    for axes in figure.axes:
        axes.patch.set_visible(False)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    figure.patch.set_visible(False)
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    pyplot.close(figure)
    drawn = text.getvalue()
    drawn = drawn[drawn.index("<svg") :].replace(_TEXT, "currentColor")
    return drawn.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)

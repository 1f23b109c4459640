"""The pictures of a run's report."""

from typing import TYPE_CHECKING

import numpy as np

from forebay.report import drawing
from forebay.report.drawing import COLOURS, LEAST_OPACITY
from forebay.report.grids import OffsetTime, RankTime
from forebay.report.timeline import CATEGORIES

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TICK_ROWS = 8
OFFSETS_HEIGHT = 3.4  # inches
RATES_HEIGHT = 1.1


def ranks_height(rows: int) -> float:
    """Inches of so many rows of processes."""
    return min(4.5, 1.2 + 0.22 * rows)


def marked_rows(rows: int) -> "NDArray[np.int64]":
    """Those whose first process is named on the axis."""
    return np.arange(0, rows, max(1, -(-rows // _TICK_ROWS)))


def rank_time(found: RankTime, first_name: str) -> str:
    """Processes over time: the colour of what took most of a cell, the more opaque the more; above
    it bytes a second."""
    pyplot = drawing.pyplot_for("ranks")
    rows = found.share.shape[1]
    height = ranks_height(rows)
    figure, (rates, cells) = pyplot.subplots(
        2,
        1,
        figsize=(drawing.WIDTH, height + 1.3),
        sharex=True,
        layout="constrained",
        gridspec_kw={"height_ratios": [RATES_HEIGHT, height]},
    )
    last_s = found.cell_s * found.share.shape[2]
    times = np.linspace(0, last_s, found.share.shape[2] + 1)
    for place, name in enumerate(("read", "write")):
        if found.rates[place].any():
            rates.stairs(found.rates[place], times, color=COLOURS[name], linewidth=1.2)
    rates.set_ylim(bottom=0)
    rates.set_ylabel("bytes/s")
    drawing.byte_ticks(rates.yaxis, float(found.rates.max(initial=0)), 3)
    cells.imshow(
        _blend(found.share, [COLOURS[name] for name in CATEGORIES]),
        extent=(0, last_s, rows, 0),
        aspect="auto",
        interpolation="nearest",
    )
    ticks = marked_rows(rows)
    cells.set_yticks(ticks + 0.5, [str(tick * found.per_row) for tick in ticks])
    cells.set_ylabel(first_name)
    cells.set_xlabel("seconds of the run")
    return drawing.svg(pyplot, figure, "Processes over time, and bytes a second")


def offset_time(found: OffsetTime) -> str:
    """Places of a file over time, the more opaque the more bytes."""
    pyplot = drawing.pyplot_for("offsets")
    figure, axes = pyplot.subplots(figsize=(drawing.WIDTH, OFFSETS_HEIGHT), layout="constrained")
    amount = np.log1p(found.amount)
    share = amount / max(1e-9, float(amount.max()))
    last_s = found.cell_s * share.shape[2]
    axes.imshow(
        _blend(share, [COLOURS["read"], COLOURS["write"]]),
        extent=(0, last_s, found.low, found.high),
        origin="lower",
        aspect="auto",
        interpolation="nearest",
    )
    drawing.byte_ticks(axes.yaxis, float(found.high - found.low), 6)
    axes.set_ylabel("offset in the file")
    axes.set_xlabel("seconds of the run")
    return drawing.svg(pyplot, figure, "Offsets of a file over time")


def _blend(share: "NDArray[np.float64]", colours: list[str]) -> "NDArray[np.float64]":
    """Of shares by what, row and cell: cells in the colour of the largest, transparent where all
    are nothing."""
    from matplotlib import colors

    largest = share.argmax(axis=0)
    total = share.sum(axis=0).clip(0, 1)
    image: NDArray[np.float64] = np.array([colors.to_rgba(colour) for colour in colours])[largest]
    image[..., 3] = np.where(total > 0, LEAST_OPACITY + (1 - LEAST_OPACITY) * total, 0)
    return image

"""The charts of a run's report, of the same cells as its pictures."""

from typing import TYPE_CHECKING

import numpy as np

from forebay.report import charts, drawing, pictures
from forebay.report.charts import Chart, Spec
from forebay.report.drawing import COLOURS
from forebay.report.grids import OffsetTime, RankTime
from forebay.report.timeline import CATEGORIES, NAMES

if TYPE_CHECKING:
    from numpy.typing import NDArray

_RATES = ("read", "write")
_TIME = ("time", "seconds", ("start", "end"))


def rank_time(found: RankTime, first_name: str) -> Chart:
    """Processes over time, below the bytes a second."""
    rows, cells = found.share.shape[1:]
    times = np.linspace(0, found.cell_s * cells, cells + 1)
    first = np.minimum(np.arange(rows + 1) * found.per_row, found.processes) - 0.5
    marked = pictures.marked_rows(rows) * found.per_row
    lower = {
        **_cells(times, first[::-1], {"title": first_name, "values": marked.tolist()}),
        "name": "lower",
        "height": charts.pixels(pictures.ranks_height(rows)),
    }
    rates = {f"{name} rate": values for name, values in zip(_RATES, found.rates, strict=True)}
    return Chart(
        charts.one_above_another(_rates(times, float(found.rates.max(initial=0))), lower),
        {
            "cells": {
                "grid": charts.grid(
                    dict(zip(CATEGORIES, found.share, strict=True)), times, first, by_power=False
                )
            },
            # The last moment is where the line ends.
            "rates": {
                "start": _rounded(times),
                "end": _rounded(np.append(times[1:], times[-1])),
                **{name: _rounded(np.append(each, each[-1])) for name, each in rates.items()},
            },
        },
        [
            (first_name, "row", ("low", "high")),
            _TIME,
            *[(NAMES[name], "share", (name,)) for name in CATEGORIES],
            *[(name, "rate", (f"{name} rate",)) for name in _RATES],
        ],
        charts.BESIDE,
        moves=True,
    )


def offset_time(found: OffsetTime) -> Chart:
    """Places of a file over time."""
    rows, cells = found.amount.shape[1:]
    times = np.linspace(0, found.cell_s * cells, cells + 1)
    offsets = np.linspace(found.low, found.high, rows + 1)
    step = drawing.byte_step(float(found.high - found.low), 6)
    marked = np.arange(np.ceil(found.low / step), found.high // step + 1) * step
    axis = {"title": "offset in the file", "values": marked.tolist(), **charts.BYTES}
    spec = {
        **_cells(times, offsets, axis),
        "height": charts.pixels(pictures.OFFSETS_HEIGHT),
        "params": [charts.ALONG],
    }
    layers = dict(zip(_RATES, found.amount, strict=True))
    return Chart(
        spec,
        {"cells": {"grid": charts.grid(layers, times, offsets, by_power=True)}},
        [
            ("offset", "bytes", ("low", "high")),
            _TIME,
            *[(name, "bytes", (name,)) for name in _RATES],
        ],
        moves=True,
    )


def _cells(times: "NDArray[np.float64]", edges: "NDArray[np.float64]", axis: Spec) -> Spec:
    """Cells of a grid, from the lower end of the y axis at the first of `edges`."""
    ends = float(times[0]), float(times[-1])
    return {
        "data": {"name": "cells"},
        "mark": {"type": "rect", "clip": True, **charts.TOLD},
        "encoding": {
            # Whole pixels: between others there would be seams.
            "x": charts.quantity(
                "start", {"title": "seconds of the run", "tickCount": 12}, ends, round=True
            ),
            "x2": {"field": "end"},
            "y": charts.quantity(
                "low",
                {**charts.LEFT, **axis},
                (float(edges[0]), float(edges[-1])),
                round=True,
            ),
            "y2": {"field": "high"},
            "color": charts.coloured("most", {name: COLOURS[name] for name in CATEGORIES}),
            "opacity": charts.own("strength", "quantitative"),
        },
    }


def _rates(times: "NDArray[np.float64]", most: float) -> Spec:
    """Lines of bytes a second, with what tells of a moment wherever the pointer is in it."""
    step = drawing.byte_step(most, 3)
    axis = {
        "title": "bytes/s",
        "values": (np.arange(most // step + 1) * step).tolist(),
        **charts.LEFT,
        **charts.BYTES,
    }
    ends = 0.0, 1.05 * max(most, 1.0)
    under = charts.column("upper", (float(times[0]), float(times[-1])), charts.NO_WORDS)
    lines: list[Spec] = [
        {
            "mark": {"type": "line", "interpolate": "step-after", "clip": True, "strokeWidth": 1.3},
            "encoding": {
                "x": under["encoding"]["x"],
                "y": charts.quantity(f"{name} rate", axis, ends),
                "color": {"value": COLOURS[name]},
            },
        }
        for name in _RATES
    ]
    return {
        "data": {"name": "rates"},
        "height": charts.pixels(pictures.RATES_HEIGHT),
        "layer": [*lines, under],
    }


def _rounded(values: "NDArray[np.float64]") -> list[float]:
    return [float(f"{value:.6g}") for value in values]

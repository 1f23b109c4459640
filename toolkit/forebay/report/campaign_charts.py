"""The charts of an evaluation, of what its pictures show."""

import math

from forebay.evaluate.stored import StoredEvaluation
from forebay.report import campaign_part, campaign_pictures, charts, drawing, gain_chart, rows
from forebay.report.charts import Chart, Spec
from forebay.report.gain_chart import GainRow, Words
from forebay.units import show_seconds

_SHAPES = (
    "circle", "square", "diamond", "triangle-up", "triangle-down", "cross", "triangle-left",
    "triangle-right",
)  # fmt: skip
_HALF_BAND = 0.44  # of a candidate's row
_HALF_BAR = 0.35  # of what a run takes of the axis


def differences(result: StoredEvaluation) -> Chart:
    """Of each candidate the gain in every block, and the interval of the true one."""
    colours = campaign_pictures.colours(result)
    return gain_chart.chart(
        [_row(result, name, colours[name]) for name in campaign_pictures.paired(result)],
        Words("configuration", "block", f"gain against {rows.label(result.reference)}"),
        campaign_pictures.gain_span(result),
        campaign_pictures.ROW,
        _HALF_BAND,
        math.log1p(result.plan.least_gain),
    )


def _row(result: StoredEvaluation, name: str, colour: str) -> GainRow:
    shown = campaign_part.points(result, name).shown
    places = campaign_pictures.block_places(len(shown)).tolist()
    points = [
        (str(block), ratio, place) for (block, ratio), place in zip(shown, places, strict=True)
    ]
    verdict = result.given[name]
    if verdict is None or verdict.gain is None:
        return GainRow(rows.name(name), colour, points, None, None)
    bounds = campaign_pictures.log_gain(verdict.low), campaign_pictures.log_gain(verdict.high)
    return GainRow(rows.name(name), colour, points, math.log1p(verdict.gain), bounds)


def runs(result: StoredEvaluation) -> Chart:
    """The seconds of every run in the order of time, above what else the machine did then."""
    heights = drawing.heights(campaign_pictures.RUNS_HEIGHT, campaign_pictures.RUNS_RATIO)
    upper, lower = map(charts.pixels, heights)
    ends = 0.4, len(result.runs) + 0.6
    seconds = [getattr(run.side, result.quantity) for run in result.runs]
    numbers = range(1, len(result.runs) + 1)
    colours = campaign_pictures.colours(result)
    names = list(colours)
    busy = [campaign_pictures.cores_busy(run) for run in result.runs]
    table = {
        "start": [number - 0.5 for number in numbers],
        "end": [number + 0.5 for number in numbers],
        "from": [number - _HALF_BAR for number in numbers],
        "to": [number + _HALF_BAR for number in numbers],
        "number": list(numbers),
        "run": list(map(str, numbers)),
        "block": [str(run.block) for run in result.runs],
        "configuration": [rows.name(run.configuration) for run in result.runs],
        "colour": [colours[run.configuration] for run in result.runs],
        "shape": [_SHAPES[names.index(run.configuration) % len(_SHAPES)] for run in result.runs],
        "seconds": seconds,
        "time": ["no time" if time is None else show_seconds(time) for time in seconds],
        "busy": busy,
        "cores": [f"{cores:.1f}" for cores in busy],
    }
    known = [time for time in seconds if time is not None]
    grounds = campaign_pictures.other_blocks(result)
    return Chart(
        charts.one_above_another(
            {**_times(result, ends, drawing.spared(known or [0.0], 0.08, 1e-9)), "height": upper},
            {**_busy(ends, max([1.0, *busy])), "height": lower},
        ),
        {
            "runs": table,
            "grounds": {"start": [low for low, _ in grounds], "end": [high for _, high in grounds]},
        },
        [
            ("run", "text", ("run",)),
            ("block", "text", ("block",)),
            ("configuration", "text", ("configuration",)),
            (result.quantity, "text", ("time",)),
            ("cores busy", "text", ("cores",)),
        ],
        charts.BESIDE,
        moves=True,
    )


def _times(
    result: StoredEvaluation, ends: tuple[float, float], seconds: tuple[float, float]
) -> Spec:
    axis = {
        "title": f"time ({result.quantity})", "tickCount": 5, **charts.LEFT, **charts.SECONDS,
    }  # fmt: skip
    under = charts.column("upper", ends, charts.ABOVE_RUN_NUMBERS)
    x = under["encoding"]["x"]
    ground = {
        "data": {"name": "grounds"},
        "mark": {"type": "rect", "clip": True, "color": drawing.GREY, "opacity": 0.13},
        "encoding": under["encoding"],
    }
    points = {
        "mark": {"type": "point", "filled": True, "size": 55, "opacity": 1, "clip": True},
        "encoding": {
            "x": {**x, "field": "number"},
            "y": charts.quantity("seconds", axis, seconds),
            "color": charts.own("colour"),
            "shape": charts.own("shape"),
        },
    }
    return {"data": {"name": "runs"}, "layer": [ground, points, under]}


def _busy(ends: tuple[float, float], most: float) -> Spec:
    """Bars of the cores that were busy."""
    under = charts.column("lower", ends, charts.RUN_NUMBERS)
    axis = {"title": "cores busy", "tickCount": 2, **charts.LEFT}
    bars = {
        "mark": {"type": "rect", "clip": True, "color": drawing.COLOURS["metadata"]},
        "encoding": {
            "x": {**under["encoding"]["x"], "field": "from"},
            "x2": {"field": "to"},
            "y": charts.quantity("busy", axis, (0.0, most)),
            "y2": {"datum": 0},
        },
    }
    return {"data": {"name": "runs"}, "layer": [bars, under]}

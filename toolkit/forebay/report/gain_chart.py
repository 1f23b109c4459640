"""A chart of gains, a row of them for each thing that was compared: single ones as points, and the
estimate in its interval. Its axis is that of log ratios, as in the picture."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from forebay.report import charts, drawing
from forebay.report.charts import Chart, Spec
from forebay.report.drawing import GREY, percent

_NAME = 240  # pixels


@dataclass(frozen=True)
class GainRow:
    """`gains` by what each is of and its place in the row, from -0.5 to 0.5; all gains are
    logarithms. `interval` has a bound or None, and is None where there is no estimate."""

    name: str
    colour: str
    gains: Sequence[tuple[str, float, float]]
    estimate: float | None
    interval: tuple[float | None, float | None] | None


@dataclass(frozen=True)
class Words:
    """What a row and a point are called, and the axis."""

    row: str
    point: str
    axis: str


def chart(
    rows: Sequence[GainRow],
    words: Words,
    span: tuple[float, float],
    row_inches: float,
    half_band: float,
    worth: float | None = None,
) -> Chart:
    """`span` are the ends of the axis, `worth` a gain to mark, `half_band` half of what an interval
    takes of a row."""
    marks = [
        mark for mark in map(math.log1p, drawing.round_gains(*span)) if span[0] < mark < span[1]
    ]
    x_axis = {"title": words.axis, "values": marks, "formatType": "showGain"}
    y_axis = {
        "title": None, "values": list(range(len(rows))), "ticks": False, "domain": False,
        "labelLimit": _NAME, "labelExpr": "data('names')[datum.value].name",
    }  # fmt: skip

    def x(field: str) -> Spec:
        return charts.quantity(field, x_axis, span)

    def y(field: str) -> Spec:
        return charts.quantity(field, y_axis, (len(rows) - 0.5, -0.5))

    colour = charts.own("colour")
    across = {"y": y("top"), "y2": {"field": "bottom"}, "color": colour}
    layers: list[Spec] = [
        {
            "data": {"name": "estimates"},
            "mark": {"type": "rect", "clip": True, "opacity": 0.25, **charts.TOLD},
            "encoding": {"x": x("low"), "x2": {"field": "high"}, **across},
        },
        *[
            {
                "data": {"name": "names"},
                "mark": {"type": "rule", "color": GREY, **({"strokeDash": [2, 3]} if at else {})},
                "encoding": {"x": {"datum": at, **_scale_of(x("low"))}},
            }
            for at in ([0.0] if worth is None else [0.0, worth])
        ],
        {
            "data": {"name": "estimates"},
            "mark": {"type": "rule", "clip": True, "strokeWidth": 2.6, **charts.TOLD},
            "encoding": {"x": x("estimate"), **across},
        },
        {
            "data": {"name": "gains"},
            "mark": {"type": "circle", "size": 34, "opacity": 1, "clip": True, **charts.TOLD},
            "encoding": {"x": x("gain"), "y": y("place"), "color": colour},
        },
    ]
    return Chart(
        {"layer": layers, "height": charts.pixels(row_inches * len(rows))},
        {
            "names": {"name": [row.name for row in rows]},
            "estimates": _estimates(rows, span, half_band),
            "gains": _gains(rows),
        },
        [
            (words.row, "text", ("name",)),
            (words.point, "text", ("of",)),
            ("gain", "text", ("told",)),
            ("estimate", "text", ("estimated",)),
            ("interval", "text", ("bounds",)),
        ],
    )


def _scale_of(channel: Spec) -> Spec:
    return {key: channel[key] for key in ("type", "axis", "scale")}


def _estimates(
    rows: Sequence[GainRow], span: tuple[float, float], half_band: float
) -> dict[str, list[object]]:
    table: dict[str, list[object]] = {}
    for number, row in enumerate(rows):
        if row.estimate is None:
            continue
        low, high = row.interval or (row.estimate, row.estimate)
        _add(
            table,
            name=row.name,
            colour=row.colour,
            top=number - half_band,
            bottom=number + half_band,
            # What has no bound goes on to the end of the axis.
            low=span[0] if low is None else low,
            high=span[1] if high is None else high,
            estimate=row.estimate,
            estimated=percent(math.expm1(row.estimate)),
            bounds="not known" if row.interval is None else f"{_bound(low)} to {_bound(high)}",
        )
    return table


def _bound(gain: float | None) -> str:
    return "without bound" if gain is None else percent(math.expm1(gain))


def _gains(rows: Sequence[GainRow]) -> dict[str, list[object]]:
    table: dict[str, list[object]] = {}
    for number, row in enumerate(rows):
        for of, gain, place in row.gains:
            _add(
                table,
                name=row.name,
                colour=row.colour,
                of=of,
                gain=gain,
                place=number + place,
                told=percent(math.expm1(gain)),
            )
    return table


def _add(table: dict[str, list[object]], **row: object) -> None:
    for key, value in row.items():
        table.setdefault(key, []).append(value)

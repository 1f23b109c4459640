"""Charts in the place of pictures, where a page is read with JavaScript: Vega-Lite of what the
pictures are drawn of.

A figure keeps its SVG. Beside it stands its chart as JSON, and `charts.js` puts the chart in the
SVG's place when it was drawn without an error. Vega itself is in the page once. Names of
traces are data: none is a part of an expression, of a field's name or of a format.
"""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forebay import native
from forebay.report import drawing

#: Begins the chart of a figure.
MARK = '<script type="application/json">'
#: Pixels of a page for an inch of a picture, so that a chart is as high as its picture.
_PIXELS = 100
# Of a grid: values as shares of one, or of a power of two.
_CODES = 1000

Spec = dict[str, Any]

_LEFT = 62
#: Of the y axes of charts one above another, so that both begin at one place.
LEFT: Spec = {"minExtent": _LEFT, "maxExtent": _LEFT}
#: What such axes and their titles take of the width, in pixels.
BESIDE = _LEFT + 40
#: Of an x axis whose words are those of the chart below.
NO_WORDS: Spec = {"title": None, "labels": False}
_WHOLE: Spec = {"tickMinStep": 1, "format": "d"}
RUN_NUMBERS: Spec = {"title": "run, in the order of time", **_WHOLE}
ABOVE_RUN_NUMBERS: Spec = {**NO_WORDS, **_WHOLE}
SECONDS: Spec = {"formatType": "showSeconds"}
BYTES: Spec = {"formatType": "showBytes"}


@dataclass(frozen=True)
class Chart:
    """`spec` is in Vega-Lite, and names its data, each a column of values by field, or a `grid`.

    `tips` are the lines of what is shown under the pointer: a title, the unit of the values
    (text, bytes, rate, seconds, share, row), and their field, or both ends' fields. `beside` is
    what axes take of the width, in pixels; None where Vega can find it by itself.
    """

    spec: Spec
    data: Mapping[str, Mapping[str, Any]]
    tips: Sequence[tuple[str, str, Sequence[str]]]
    beside: int | None = None
    moves: bool = False  # along its x axis


@dataclass(frozen=True)
class Script:
    """A script of the page, and its place in the page's policy of what may run."""

    text: str

    @property
    def source(self) -> str:
        digest = hashlib.sha256(self.text.encode()).digest()
        return f"'sha256-{base64.b64encode(digest).decode()}'"


def figure(svg: str, chart: Chart) -> str:
    """What stands in a figure: the picture and, if the package has Vega, its chart."""
    if native.find("vega.js", "share") is None:
        return svg
    try:
        told = json.dumps(vars(chart), separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    except ValueError:  # A value that JSON cannot have: the picture stays.
        return svg
    told = told.replace("<", r"\u003c")  # nothing that begins or ends an element
    return f"{svg}\n{MARK}{told}</script>"


def scripts() -> list[Script]:
    """Vega, and what draws charts by it; none if the package has none."""
    vega = native.find("vega.js", "share")
    if vega is None:
        return []
    return [
        Script(path.read_text(encoding="utf-8"))
        for path in (vega, Path(__file__).with_name("charts.js"))
    ]


def pixels(inches: float) -> int:
    """Of a chart in the place of a picture."""
    return round(_PIXELS * inches)


def grid(
    layers: dict[str, NDArray[np.float64]],
    across: NDArray[np.float64],
    down: NDArray[np.float64],
    by_power: bool,
) -> dict[str, Any]:
    """Cells between the edges `across` and `down`, each layer a value in each `[row, cell]`: from
    0 to 1 or, `by_power`, any. They are stored as thousandths of one, or of a power of two, so that
    a grid is as long as it has cells, whatever they hold."""
    codes = {
        name: np.ceil(_CODES * (np.log2(1 + values) if by_power else values.clip(0, 1)))
        for name, values in layers.items()
        if values.any()
    }
    most = max([float(values.max()) for values in codes.values()], default=1.0)
    raw = b"".join(values.astype("<u2").tobytes() for values in codes.values())
    return {
        "layers": list(codes),
        "across": _edges(across),
        "down": _edges(down),
        "codes": base64.b64encode(raw).decode(),
        "full": most if by_power else float(_CODES),
        "power": by_power,
        "least": drawing.LEAST_OPACITY,
    }


def _edges(values: NDArray[np.float64]) -> list[float]:
    return [float(f"{value:.12g}") for value in values]


def quantity(name: str, axis: Spec | None, domain: tuple[float, float], **scale: object) -> Spec:
    """A channel of numbers with a given domain."""
    return {
        "field": name,
        "type": "quantitative",
        "axis": axis,
        "scale": {"domain": list(domain), "nice": False, "zero": False, **scale},
    }


def own(name: str, kind: str = "nominal") -> Spec:
    """A channel that the data give as it is shown: a colour, an opacity."""
    return {"field": name, "type": kind, "scale": None}


def coloured(name: str, colours: Mapping[str, str]) -> Spec:
    """A channel of what the page's legend has."""
    return {
        "field": name,
        "type": "nominal",
        "legend": None,
        "scale": {"domain": list(colours), "range": list(colours.values())},
    }


def one_above_another(upper: Spec, lower: Spec) -> Spec:
    """Two charts with one x axis, that move along it together. In each, one view is named so."""
    return {
        "vconcat": [upper, lower],
        "spacing": 8,
        "resolve": {"scale": {"x": "shared"}},
        "params": [{**ALONG, "views": ["upper", "lower"]}],
    }


def column(name: str, domain: tuple[float, float], axis: Spec | None) -> Spec:
    """A view that shows nothing and has the pointer wherever it is above what its data have from
    `start` to `end`; `name` is that which `one_above_another` asks for."""
    return {
        "name": name,
        "mark": {"type": "rect", "clip": True, "opacity": 0, **TOLD},
        "encoding": {
            "x": quantity("start", axis, domain, round=True),
            "x2": {"field": "end"},
        },
    }


#: Drag to move, Ctrl and the wheel to zoom, double click to go back. A wheel alone moves the page.
ALONG: Spec = {
    "name": "along",
    "select": {
        "type": "interval",
        "encodings": ["x"],
        "zoom": "wheel![event.ctrlKey]",
    },
    "bind": "scales",
}
#: Of a mark whose data are told under the pointer.
TOLD: Spec = {"tooltip": {"content": "data"}}

"""The charts of a search, of what its pictures show."""

from forebay.configure.contrasts import Contrast
from forebay.configure.history import State
from forebay.report import charts, drawing, gain_chart, rows, search, search_pictures
from forebay.report.charts import Chart, Spec
from forebay.report.gain_chart import GainRow, Words
from forebay.report.search import SearchReport
from forebay.report.search_pictures import BEST_COLOUR, LOST_COLOUR, RUN_COLOURS
from forebay.units import show_seconds

_SHAPES = dict(
    zip(
        RUN_COLOURS,
        ("triangle-down", "circle", "diamond", "square", "triangle-up", "cross"),
        strict=True,
    )
)
_HALF_BAND = 0.2


def runs(report: SearchReport) -> Chart:
    """The seconds of every run in the order of time, as predicted and as measured, with the least
    so far; below them those that have no time to use."""
    upper, lower = map(
        charts.pixels, drawing.heights(search_pictures.RUNS_HEIGHT, search_pictures.RUNS_RATIO)
    )
    found = search_pictures.shown_runs(report).shown
    ends, width = search_pictures.run_span(found), search_pictures.run_width(found)
    half = search_pictures.HALF_DASH * width
    used = [run.state is State.MEASURED and bool(run.seconds) for run in found]
    least = search_pictures.shown_least(report, found)
    if least:
        least = [*least, (ends[1], least[-1][1])]
    return Chart(
        charts.one_above_another(
            {**_times(report, ends), "height": upper}, {**_lost(ends), "height": lower}
        ),
        {
            "runs": {
                "start": [run.number - width / 2 for run in found],
                "end": [run.number + width / 2 for run in found],
                "from": [run.number - half for run in found],
                "to": [run.number + half for run in found],
                "number": [run.number for run in found],
                "predicted": [run.predicted or None for run in found],
                "measured": [
                    run.seconds if use else None for run, use in zip(found, used, strict=True)
                ],
                "lost": [None if use else 0 for use in used],
                "colour": [RUN_COLOURS[run.why] for run in found],
                "shape": [_SHAPES[run.why] for run in found],
                "run": [str(run.number) for run in found],
                "configuration": [rows.name(run.configuration) for run in found],
                "settings": [rows.clipped(search.settings_words(run)) for run in found],
                "purpose": [search.PURPOSES[run.why] for run in found],
                "forecast": [
                    "" if not run.predicted else show_seconds(run.predicted) for run in found
                ],
                "time": ["" if not run.seconds else show_seconds(run.seconds) for run in found],
                "outcome": [rows.clipped(search.outcome(run)) for run in found],
            },
            "least": {
                "number": [number for number, _ in least],
                "seconds": [seconds for _, seconds in least],
            },
        },
        [
            ("run", "text", ("run",)),
            ("configuration", "text", ("configuration",)),
            ("settings", "text", ("settings",)),
            ("for", "text", ("purpose",)),
            ("predicted", "text", ("forecast",)),
            ("measured", "text", ("time",)),
            ("", "text", ("outcome",)),
        ],
        charts.BESIDE,
        moves=True,
    )


def _times(report: SearchReport, ends: tuple[float, float]) -> Spec:
    shown = search_pictures.shown_runs(report).shown
    seconds, by_factors = search_pictures.time_scale(report, shown)
    scale = {"type": "log"} if by_factors else {}
    axis = {
        "title": f"time ({report.found.search.time})", "tickCount": 6, **charts.LEFT,
        **charts.SECONDS,
    }  # fmt: skip
    under = charts.column("upper", ends, charts.ABOVE_RUN_NUMBERS)

    def x(name: str) -> Spec:
        return {**under["encoding"]["x"], "field": name}

    def y(name: str) -> Spec:
        return charts.quantity(name, axis, seconds, **scale)

    layers: list[Spec] = [
        {
            "mark": {"type": "rule", "clip": True, "color": drawing.GREY, "strokeWidth": 1.6},
            "encoding": {"x": x("from"), "x2": {"field": "to"}, "y": y("predicted")},
        },
        {
            "data": {"name": "least"},
            "mark": {
                "type": "line", "interpolate": "step-after", "clip": True, "color": BEST_COLOUR,
            },
            "encoding": {"x": x("number"), "y": y("seconds")},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 60, "opacity": 1, "clip": True},
            "encoding": {
                "x": x("number"),
                "y": y("measured"),
                "color": charts.own("colour"),
                "shape": charts.own("shape"),
            },
        },
        under,
    ]  # fmt: skip
    if report.reference_s is not None:
        line = {"type": "rule", "color": drawing.GREY, "strokeDash": [2, 3]}
        level = {**y("seconds"), "datum": report.reference_s}
        del level["field"]
        layers.insert(0, {"data": {"name": "least"}, "mark": line, "encoding": {"y": level}})
    return {"data": {"name": "runs"}, "layer": layers}


def _lost(ends: tuple[float, float]) -> Spec:
    """The runs that have no time to use."""
    under = charts.column("lower", ends, charts.RUN_NUMBERS)
    axis = {
        "title": None, "values": [0], "ticks": False, "labelExpr": "'not used'", **charts.LEFT,
    }  # fmt: skip
    crosses = {
        "mark": {
            "type": "point", "filled": True, "size": 70, "opacity": 1, "clip": True, "angle": 45,
            "shape": "cross", "color": LOST_COLOUR,
        },
        "encoding": {
            "x": {**under["encoding"]["x"], "field": "number"},
            "y": charts.quantity("lost", axis, (-1.0, 1.0)),
        },
    }  # fmt: skip
    return {"data": {"name": "runs"}, "layer": [crosses, under]}


def factors(report: SearchReport) -> Chart:
    """Of each change of one factor the gain of every pair, and the mean with its interval."""
    shown = search_pictures.shown_contrasts(report)
    return gain_chart.chart(
        [_row(each) for each in shown],
        Words("change", "pair", "gain: time before / time after \u2212 1"),
        search_pictures.gain_span(shown),
        search_pictures.ROW,
        _HALF_BAND,
    )


def _row(each: Contrast) -> GainRow:
    bounds = None if each.half is None else (each.mean - each.half, each.mean + each.half)
    return GainRow(
        rows.name(search.change(each)),
        BEST_COLOUR if each.beyond_noise else drawing.GREY,
        [
            (f"{rows.name(before)} to {rows.name(after)}", gain, 0.0)
            for gain, (before, after) in search_pictures.shown_gains(each).shown
        ],
        each.mean,
        bounds,
    )

"""The report of a run as one page of HTML."""

from pathlib import Path
from typing import Any

from forebay import output_paths
from forebay.characterise import app_report
from forebay.report import charts, pictures, run_charts
from forebay.report.contents import Contents, command, speedup
from forebay.report.findings import LEAST_SHARE
from forebay.report.funnel import Flow
from forebay.report.templates import rendered
from forebay.report.timeline import NAMES

_PHASES = 12
_LISTED = 40
_ORDER = ("compute", "metadata", "read", "write", "mpi")


def write(contents: Contents, path: Path) -> None:
    """Writes the page."""
    output_paths.write_text(path, render(contents))


def render(contents: Contents) -> str:
    trace, times = contents.trace, contents.budget.best_speedup
    return rendered(
        "page.html.j2",
        contents=contents,
        run=trace.run,
        title=command(trace) or str(trace.path),
        directory=str(trace.path),
        budget=contents.budget,
        ceiling=None if times is None else speedup(times),
        shares=_shares(contents),
        least_share=LEAST_SHARE,
        names=NAMES,
        ranks_picture=_ranks_picture(contents),
        offsets_picture=_offsets_picture(contents),
        layers=_phases(contents),
        flows=_flows(contents),
        settings_shown=_LISTED,
        environment=sorted(trace.run.environment.items())[:_LISTED],
        tables=[(name, trace.rows(name)) for name in trace.names()],
        stored_bytes=trace.stored_bytes(),
    )


def _ranks_picture(contents: Contents) -> str | None:
    if contents.ranks is None:
        return None
    name = "rank" if contents.trace.run.ranks else "process"
    return charts.figure(
        pictures.rank_time(contents.ranks, name), run_charts.rank_time(contents.ranks, name)
    )


def _offsets_picture(contents: Contents) -> str | None:
    if contents.offsets is None:
        return None
    return charts.figure(
        pictures.offset_time(contents.offsets), run_charts.offset_time(contents.offsets)
    )


def _shares(contents: Contents) -> list[dict[str, Any]]:
    budget = contents.budget
    return [
        {
            "key": name,
            "name": NAMES[name],
            "seconds": budget.seconds[name],
            "share": budget.share(name),
        }
        for name in _ORDER
        if name in budget.seconds
    ]


def _phases(contents: Contents) -> list[dict[str, Any]]:
    """Of each layer with phases, those with most bytes as texts."""
    files = contents.application.files
    shown = {
        layer.name: [
            phase
            for phase in layer.phases.listed[:_PHASES]
            if max(phase.bytes_share, phase.time_share) >= LEAST_SHARE
        ]
        for layer in contents.application.layers
    }
    return [
        {
            "name": app_report.NAMES[layer.name],
            "phases": [
                {
                    "bytes": phase.bytes_share,
                    "time": phase.time_share,
                    "what": app_report.what(phase, files),
                    "who": app_report.who(phase),
                    "when": app_report.when(phase),
                }
                for phase in shown[layer.name]
            ],
            "others": len(layer.phases.listed) - len(shown[layer.name]) + layer.phases.others,
        }
        for layer in contents.application.layers
        if layer.phases.listed
    ]


def _flows(contents: Contents) -> list[dict[str, Any]]:
    """The funnel's places in order, with the width of each bar."""
    places = contents.funnel.places()
    most = max([flow.bytes for flow in places.values()], default=0) or 1
    return [_flow(name, flow, most) for name, flow in places.items()]


def _flow(name: str, flow: Flow, most: int) -> dict[str, Any]:
    return {
        "name": name,
        "flow": flow,
        "read_width": 100 * flow.read_bytes / most,
        "write_width": 100 * flow.written_bytes / most,
    }

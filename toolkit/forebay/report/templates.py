"""Pages of HTML that need nothing else: no network, and to be read no script."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from forebay.report import charts, escapes, rows
from forebay.report.drawing import COLOURS
from forebay.units import show_bytes, show_count, show_operations, show_seconds, show_share

#: Of a page. A picture and its chart have a fixed number of cells or, as a table, no more rows than
#: `rows` has; Vega takes some 900 KB.
BYTES_MOST = 2 << 20


def rendered(template: str, **content: object) -> str:
    """The page that a template beside this file makes of `content`."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    environment.filters |= {
        "bytes": show_bytes,
        "count": show_count,
        "operations": show_operations,
        "seconds": show_seconds,
        "percent": show_share,
        "clipped": rows.clipped,
        "name": rows.name,
        "text": lambda text: rows.clipped(text, rows.TEXT_MOST),
    }
    drawn = any(isinstance(each, str) and charts.MARK in each for each in content.values())
    return environment.get_template(template).render(
        colours=COLOURS, scripts=charts.scripts() if drawn else [], **content
    )


def _shown(value: object) -> object:
    """Of what a template puts into the page: texts without what is none."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return escapes.escaped(value)
    return value

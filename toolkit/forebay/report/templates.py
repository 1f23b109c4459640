"""Pages of HTML that need nothing else: no network, no script."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from forebay.report.drawing import COLOURS
from forebay.units import show_bytes, show_count, show_operations, show_seconds, show_share

#: Of a page; a picture has a fixed number of cells, so it stays far below.
BYTES_MOST = 2 << 20


def rendered(template: str, **content: object) -> str:
    """The page that a template beside this file makes of `content`."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "bytes": show_bytes,
        "count": show_count,
        "operations": show_operations,
        "seconds": show_seconds,
        "percent": show_share,
    }
    return environment.get_template(template).render(colours=COLOURS, **content)

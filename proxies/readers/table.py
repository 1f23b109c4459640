"""A table of events: many columns, of which an analysis reads a few."""

from __future__ import annotations

from collections.abc import Iterator

import content
from content import Numbers

ROWS = 800_000
"""256 MB."""

_QUANTITIES = ("energy", "x", "y", "time")
_READ_CHANNELS = (1, 3, 6, 8)

NAMES = [f"{quantity}_{channel}" for channel in range(10) for quantity in _QUANTITIES]
"""40 columns: four quantities of ten channels."""

READ_NAMES = [f"{name}_{channel}" for channel in _READ_CHANNELS for name in ("energy", "time")]
"""Two quantities of four channels, which makes eight columns with gaps between them."""


def batches(rows: int, at_once: int) -> Iterator[dict[str, Numbers]]:
    """All columns, some rows at a time."""
    for first in range(0, rows, at_once):
        end = min(first + at_once, rows)
        yield {name: content.of_column(column, first, end) for column, name in enumerate(NAMES)}


def read_columns(rows: int) -> Iterator[Numbers]:
    """Those that are read, whole."""
    for name in READ_NAMES:
        yield content.of_column(NAMES.index(name), 0, rows)

"""What a page shows of what has no end: so many rows, the most important ones, and how many it
leaves out. A page has to stay below `templates.BYTES_MOST`, whatever was measured."""

import html
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from forebay.report import escapes

#: Of a picture and of a table: runs, and points of all that is compared.
RUNS_MOST, POINTS_MOST = 200, 300
#: Of a table with a row for each of something, and of a list of sentences.
ROWS_MOST, SENTENCES_MOST = 100, 20
#: Bytes in a page of a name, of what else is in a row, and of a text that stands alone.
NAME_MOST, CELL_MOST, TEXT_MOST = 160, 240, 2000
#: Characters of a name beside a picture.
_LABEL_MOST = 48

Row = TypeVar("Row")


@dataclass(frozen=True)
class Rows(Generic[Row]):
    """In the order in which they were."""

    shown: list[Row]
    left_out: int


def most_important(items: Iterable[Row], most: int, rank: Callable[[Row], Any]) -> Rows[Row]:
    """The `most` of lowest rank; of the same rank the first."""
    found = list(items)
    kept = sorted(range(len(found)), key=lambda place: rank(found[place]))[:most]
    return Rows([found[place] for place in sorted(kept)], len(found) - len(kept))


def first(items: Iterable[Row], most: int) -> Rows[Row]:
    """Those at the front."""
    return most_important(items, most, lambda _: 0)


def evenly(items: Sequence[Row], most: int) -> Rows[Row]:
    """At equal distances, from the first to the last."""
    if len(items) <= most:
        return Rows(list(items), 0)
    last = len(items) - 1
    kept = [items[round(place * last / max(1, most - 1))] for place in range(most)]
    return Rows(kept, len(items) - most)


def clipped(text: object, most: int = CELL_MOST) -> str:
    """With no more than `most` bytes in a page, and how many more characters there are; escaped."""
    whole = escapes.escaped(str(text))
    kept = whole[:most]
    while (taken := _bytes_in_page(kept)) > most:
        kept = kept[: len(kept) * most // taken]
    if len(kept) == len(whole):
        return whole
    return f"{kept}\u2026 ({len(whole) - len(kept)} more characters)"


def _bytes_in_page(text: str) -> int:
    return len(html.escape(text).encode())


def name(text: str) -> str:
    """Of a configuration, a setting or the like."""
    return clipped(escapes.in_a_line(text), NAME_MOST)


def label(text: str) -> str:
    """Beside a picture."""
    text = escapes.in_a_line(text)
    return text if len(text) <= _LABEL_MOST else f"{text[:_LABEL_MOST]}\u2026"

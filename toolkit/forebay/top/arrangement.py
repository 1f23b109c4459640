"""Which rows are shown, and in which order."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from forebay.top.columns import Column
from forebay.top.picture import FileRow, ProcessRow

Row = TypeVar("Row", ProcessRow, FileRow)

_RANKS = re.compile(r"\d+(-\d+)?(,\d+(-\d+)?)*")


@dataclass(frozen=True)
class Arrangement:
    """`sort` is a column's key; of one that is not there the first counts. `wanted`: ranks such as
    0-3,7, or a part of what a row's words are."""

    sort: str
    is_reversed: bool = False
    wanted: str = ""

    def rows(self, rows: Sequence[Row], columns: Sequence[Column[Row]]) -> list[Row]:
        """Numbers from the largest, but ranks and processes as they count; words from A."""
        column = next((c for c in columns if c.key == self.sort), columns[0])
        falling = column.is_number and column.key not in ("rank", "pid")
        kept = [row for row in rows if self._is_wanted(row)]
        # What is alike stays in the order of ranks.
        kept.sort(key=_natural)
        return sorted(kept, key=column.value, reverse=falling != self.is_reversed)

    def moved(self, keys: Sequence[str], step: int) -> "Arrangement":
        """Sorted by the column that is `step` columns further, around the ends."""
        place = keys.index(self.sort) if self.sort in keys else 0
        return replace(self, sort=keys[(place + step) % len(keys)], is_reversed=False)

    def _is_wanted(self, row: ProcessRow | FileRow) -> bool:
        wanted = self.wanted.strip().lower()
        if not wanted:
            return True
        if isinstance(row, FileRow):
            return wanted in row.path.lower()
        if _RANKS.fullmatch(wanted):
            return row.pid == int(wanted) if wanted == str(row.pid) else _holds(wanted, row.rank)
        return any(wanted in word.lower() for word in (row.program, row.host, row.state))


def _holds(ranks: str, rank: int | None) -> bool:
    if rank is None:
        return False
    for part in ranks.split(","):
        first, _, last = part.partition("-")
        if int(first) <= rank <= int(last or first):
            return True
    return False


def _natural(row: ProcessRow | FileRow) -> tuple[float, str]:
    if isinstance(row, FileRow):
        return 0, row.path
    return (float("inf") if row.rank is None else row.rank, f"{row.pid:020}")

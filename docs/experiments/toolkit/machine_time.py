"""How much of the processors' time the host took away, of a virtual machine."""

from __future__ import annotations

from pathlib import Path

_STEAL = 7  # of the numbers in the first line [proc(5)]
_TIMES = 8  # what follows, guests, is in the others


class Stolen:
    """Counts from when it is made."""

    def __init__(self, source: Path = Path("/proc/stat")) -> None:
        self._source = source
        self._start = self._now()

    def _now(self) -> list[int]:
        first = self._source.read_text().splitlines()[0].split()
        return [int(time) for time in first[1 : 1 + _TIMES]]

    def share(self) -> float:
        """Of the time since then, the part that the host took."""
        spent = [now - then for now, then in zip(self._now(), self._start, strict=True)]
        return spent[_STEAL] / max(1, sum(spent))

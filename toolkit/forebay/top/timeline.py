"""What happened in each second of the last minute, and in all."""

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

SECONDS = 60
# Seconds that are kept: what one look shows may be some seconds old.
_KEPT = SECONDS + 8
_NS = 1_000_000_000


class Quantity(IntEnum):
    """What is summed up. Bytes are those that calls moved."""

    MPI_READ_BYTES = 0
    MPI_WRITE_BYTES = 1
    COLLECTIVE_BYTES = 2
    POSIX_READ_BYTES = 3
    POSIX_WRITE_BYTES = 4
    OWN_READ_BYTES = 5  # of what the program asked for itself, by MPI-IO or POSIX
    OWN_WRITE_BYTES = 6
    MPI_CALLS = 7
    POSIX_CALLS = 8
    MPI_NS = 9
    OWN_POSIX_NS = 10  # in the program's own calls of POSIX
    POSIX_NS = 11  # in those of the MPI and of Forebay, too


class Timeline:
    """Sums of each Quantity by second of Unix time. Later seconds push out earlier ones."""

    def __init__(self) -> None:
        self.total = _nothing(len(Quantity))
        self.newest = 0
        self._sums = _nothing(_KEPT, len(Quantity))

    def add(self, begin_ns: Integers, duration_ns: Integers, amounts: Floats) -> None:
        """`amounts` (n, quantities) of calls, in Unix time: spread evenly over the time that each
        took."""
        if len(begin_ns) == 0:
            return
        self.total += amounts.sum(axis=0)
        first = begin_ns // _NS
        last = (begin_ns + duration_ns) // _NS
        self._advance(int(last.max()))
        within = first == last
        self._add_at(first[within], amounts[within])
        for place in np.flatnonzero(~within):
            self._spread(int(begin_ns[place]), int(duration_ns[place]), amounts[place])

    def rates(self, until_ns: int, window_s: int, since_ns: int) -> Floats:
        """Each Quantity per second, of the last `window_s` seconds before `until_ns`, in which
        nothing was before `since_ns`."""
        last = until_ns // _NS
        first = last - window_s + 1
        span = (until_ns - max(first * _NS, since_ns)) / _NS
        sums: Floats = self._rows(first, last).sum(axis=0)
        return sums / max(span, 0.1)

    def series(self, last: int) -> Floats:
        """The sums of the SECONDS seconds until `last` (SECONDS, quantities)."""
        return self._rows(last - SECONDS + 1, last)

    def _rows(self, first: int, last: int) -> Floats:
        seconds = np.arange(first, last + 1)
        known = (seconds > self.newest - _KEPT) & (seconds <= self.newest)
        rows: Floats = np.where(known[:, None], self._sums[seconds % _KEPT], 0.0)
        return rows

    def _advance(self, second: int) -> None:
        if second <= self.newest:
            return
        passed = np.arange(max(self.newest + 1, second - _KEPT + 1), second + 1)
        self._sums[passed % _KEPT] = 0
        self.newest = second

    def _add_at(self, seconds: Integers, amounts: Floats) -> None:
        known = seconds > self.newest - _KEPT
        seconds, amounts = seconds[known], amounts[known]
        if len(seconds) == 0:
            return
        if seconds[0] == seconds[-1] and np.all(seconds == seconds[0]):
            self._sums[int(seconds[0]) % _KEPT] += amounts.sum(axis=0)
            return
        np.add.at(self._sums, seconds % _KEPT, amounts)

    def _spread(self, begin_ns: int, duration_ns: int, amounts: Floats) -> None:
        end_ns = begin_ns + duration_ns
        first = max(begin_ns // _NS, self.newest - _KEPT + 1)
        seconds = np.arange(first, end_ns // _NS + 1)
        if len(seconds) == 0:
            return
        inside = np.minimum(end_ns, (seconds + 1) * _NS) - np.maximum(begin_ns, seconds * _NS)
        self._add_at(seconds, inside[:, None] / duration_ns * amounts)


def sum_of(rows: list[Floats]) -> Floats:
    """Of (quantities,) of several, which may be none."""
    return sum(rows, _nothing(len(Quantity)))


def minutes_sum(series: list[Floats]) -> Floats:
    """Of (seconds, quantities) of several."""
    return sum(series, _nothing(SECONDS, len(Quantity)))


def _nothing(*shape: int) -> Floats:
    nothing: Floats = np.zeros(shape)
    return nothing

"""Ticks of the traced processes of one host as times of the run."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from forebay.trace.spills import Image

_APART_NS = 1_000_000_000  # moments nearer to each other would add their own error to the rate


class SpillClock:
    """All processes of a host have the same counter: it is known by the moments at which any of
    them read it beside the clock, and runs evenly between these."""

    def __init__(self, images: list[Image], start_unix_ns: int) -> None:
        first = min((image.process for image in images), key=lambda process: process.ticks)
        moments = [(image.process.ticks, image.process.monotonic_ns) for image in images]
        moments += [moment for image in images for moment in image.moments]
        moments.sort()
        apart = [moments[0]]
        for moment in moments:
            if moment[1] - apart[-1][1] >= _APART_NS:
                apart.append(moment)
        if len(apart) > 1:
            apart.pop()
        if moments[-1] != apart[-1]:
            apart.append(moments[-1])
        self._base_ticks = moments[0][0]
        epoch = first.realtime_ns - first.monotonic_ns - start_unix_ns
        self._ticks = np.array([ticks - self._base_ticks for ticks, _ in apart], np.float64)
        self._base_ns = moments[0][1] + epoch
        self._ns = np.array([ns - moments[0][1] for _, ns in apart], np.float64)
        span = float(self._ns[-1])
        self.ticks_per_second = float(self._ticks[-1]) / span * 1e9 if span > 0 else 1e9

    def ns(self, ticks: int) -> int:
        """Since the start of the run."""
        return int(self._at(np.array([ticks - self._base_ticks], np.float64))[0])

    def times(
        self, begin: NDArray[Any], duration: NDArray[Any]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Starts and durations in nanoseconds. Calls that followed each other still do."""
        since = (begin - np.uint64(self._base_ticks)).astype(np.int64).astype(np.float64)
        start = self._at(since)
        return start, self._at(since + duration.astype(np.float64)) - start

    def _at(self, ticks: NDArray[np.float64]) -> NDArray[np.int64]:
        inside = np.interp(ticks, self._ticks, self._ns)
        beyond = np.maximum(ticks - self._ticks[-1], 0) + np.minimum(ticks, 0)
        elapsed: NDArray[np.int64] = np.rint(inside + beyond / self.ticks_per_second * 1e9).astype(
            np.int64
        )
        return elapsed + self._base_ns

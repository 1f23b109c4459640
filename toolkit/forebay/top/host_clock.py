"""Ticks of one host's processes as Unix time, while it is not yet known how the clock goes on."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from forebay.trace.spills import Process


class HostClock:
    """A straight line through the first moment at which a process read both clocks, and the
    last."""

    def __init__(self, process: Process) -> None:
        self._epoch_ns = process.realtime_ns - process.monotonic_ns
        self._first = self._last = (process.ticks, process.monotonic_ns)

    def hear(self, ticks: int, monotonic_ns: int) -> None:
        """That both clocks said this at one moment."""
        if ticks > self._last[0]:
            self._last = (ticks, monotonic_ns)

    def unix_ns(self, ticks: int) -> int:
        return int(self.all_unix_ns(np.array([ticks], np.uint64))[0])

    def all_unix_ns(self, ticks: NDArray[Any]) -> NDArray[np.int64]:
        since = (ticks - np.uint64(self._last[0])).astype(np.int64)
        return self.durations_ns(since) + (self._last[1] + self._epoch_ns)

    def durations_ns(self, ticks: NDArray[Any]) -> NDArray[np.int64]:
        passed: NDArray[np.int64] = np.rint(ticks.astype(np.float64) * self._ns_per_tick).astype(
            np.int64
        )
        return passed

    @property
    def _ns_per_tick(self) -> float:
        ticks = self._last[0] - self._first[0]
        return (self._last[1] - self._first[1]) / ticks if ticks > 0 else 1.0

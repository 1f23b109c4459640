"""Where a process pauses between two bursts of I/O."""

import numpy as np
from numpy.typing import NDArray

from forebay.characterise.accesses import Accesses

_Ints = NDArray[np.int64]

_SHORTEST_NS = 1_000_000  # shorter pauses are the system's
_TIMES_USUAL = 10  # as long as the usual pause, at least
# Pauses that take less of the time than this are none: the I/O is continuous.
_SHARE_MIN = 0.05


def pauses(accesses: Accesses) -> _Ints:
    """Nanoseconds from the end of all calls of the process that came before until each call; 0 for
    the first of a process. Expects calls in the order of process and start."""
    count = len(accesses)
    if count == 0:
        return np.empty(0, np.int64)
    process = accesses.process
    new = np.append(True, np.diff(process) != 0)
    span = int(accesses.end_ns.max()) + 1
    shift = (np.cumsum(new) - 1) * span  # keeps processes apart in one running maximum
    latest = np.maximum.accumulate(accesses.end_ns + shift)
    pause = np.zeros(count, np.int64)
    pause[1:] = accesses.start_ns[1:] + shift[1:] - latest[:-1]
    pause[new] = 0
    return np.maximum(pause, 0)


def threshold_ns(accesses: Accesses, pause: _Ints) -> int:
    """Pauses from this length on separate bursts; 0 if nothing does.

    Among the pauses that are clearly longer than those between calls that follow each other, the
    widest jump in length parts those of the program from those of the system.
    """
    if len(pause) < 2:
        return 0
    new = np.append(True, np.diff(accesses.process) != 0)
    between = pause[~new]
    if len(between) == 0:
        return 0
    usual = int(np.median(between))
    # Where a pause before each call is the usual thing, a call is a burst.
    floor = _SHORTEST_NS if usual >= _SHORTEST_NS else max(_SHORTEST_NS, _TIMES_USUAL * usual)
    long = np.sort(between[between >= floor])
    if len(long) == 0:
        return 0
    ladder = np.append(floor, long).astype(float)
    jumps = ladder[1:] / ladder[:-1]
    place = int(np.argmax(jumps))
    limit = int(np.sqrt(ladder[place] * ladder[place + 1]))
    begins = np.flatnonzero(new)
    ends = np.append(begins[1:], len(pause)) - 1
    whole = (accesses.end_ns[ends] - accesses.start_ns[begins]).sum()
    return limit if between[between >= limit].sum() >= _SHARE_MIN * whole else 0


def numbers(pause: _Ints, process: _Ints, limit_ns: int) -> _Ints:
    """The burst of each call, counted from 0 in each process."""
    new = np.append(True, np.diff(process) != 0)[: len(process)]
    cut = (pause >= limit_ns) & ~new if limit_ns > 0 else np.zeros(len(process), np.bool_)
    counted = np.cumsum(cut)
    at_start = counted[new]
    sizes = np.diff(np.append(np.flatnonzero(new), len(process)))
    result: _Ints = counted - np.repeat(at_start, sizes)
    return result

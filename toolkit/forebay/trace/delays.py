"""What tracing took of a run."""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

from forebay.trace import mpi_calls
from forebay.trace.spill_clock import SpillClock
from forebay.trace.spills import Image

_CALLS_TRIED = 256


@dataclass(frozen=True)
class Delay:
    """Of a process, from one program that it ran to the next."""

    start_ns: int
    end_ns: int
    spent_ns: float  # of the thread that tracing delayed most


def call_ns(image: Image, clock: SpillClock) -> float | None:
    """What a call cost as tried when the process began. None: it was not tried, as in a child that
    was forked, or the process did not end by itself."""
    if image.end is None or not image.end.cost_ticks:
        return None
    return image.end.cost_ticks / _CALLS_TRIED / clock.ticks_per_second * 1e9


def delay(image: Image, clock: SpillClock) -> Delay | None:
    """None: the process did not end by itself."""
    if image.end is None:
        return None
    per_call = image.end.cost_ticks / _CALLS_TRIED
    spent = 0.0
    for thread in image.threads.values():
        calls = per_call * sum(len(part) for part in thread.parts)
        in_mpi = sum(mpi_calls.ticks_of_tracing(image, part) for part in thread.parts)
        at_start = image.end.start_ticks if thread.tid == image.process.pid else 0
        spent = max(spent, calls + in_mpi + thread.spill_ticks + at_start)
    return Delay(
        clock.ns(image.process.ticks),
        clock.ns(image.end.ticks),
        spent / clock.ticks_per_second * 1e9,
    )


def one_after_the_other_ns(delays: Iterable[Delay]) -> float:
    """The most that the delays of processes come to that ran one after the other. Of two that ran
    at the same time only one counts, also where one waited for the other."""
    ordered = sorted(delays, key=lambda delay: delay.end_ns)
    ends = [delay.end_ns for delay in ordered]
    most = [0.0]  # of the first 0, 1, ... that ended
    for number, delay in enumerate(ordered):
        before = bisect_right(ends, delay.start_ns, hi=number)
        most.append(max(most[-1], most[before] + delay.spent_ns))
    return most[-1]

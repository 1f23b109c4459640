"""Goal: the model of a search takes a program that jumps about in its files for what it is: by
limits of random order where the system file has them.

Method: traces of runs that read the same in order and at random, and limits that are round numbers,
so that predictions are arithmetic.
"""

import random
from dataclasses import replace
from pathlib import Path

import pytest
from made_runs import MIB, MadeRun

from forebay.configure import rates, space, workload
from forebay.configure.constraints import Constraints
from forebay.configure.model import Model
from forebay.configure.rates import Point, Rates
from forebay.configure.workload import Workload
from forebay.system_file import Limit, System

KIB = 1024
CALLS = 256
REQUEST = 4 * KIB


def in_order(size: int, rate: float, mode: str = "cold", operation: str = "read") -> Point:
    return Point("file system", "/scratch", operation, mode, size, 1, rate)


def at_random(size: int, rate: float, processes: int = 1, operation: str = "read") -> Point:
    return Point(
        "device", "/scratch", operation, "direct", size, processes, rate, at_random=True
    )  # fmt: skip


LIMITS = [in_order(REQUEST, 100 * MIB), at_random(REQUEST, MIB)]


def reading(path: Path, jumps: bool, call: str = "pread") -> Workload:
    """A MiB in requests of 4 KiB, within half of a second."""
    places = list(range(CALLS))
    if jumps:
        random.Random(1).shuffle(places)
    made = MadeRun(path / "job.trace", ranks=1 if call != "pread" else 0)
    for turn, place in enumerate(places):
        add = made.posix if call == "pread" else made.mpi
        add(call, 2 * turn, 500 / CALLS, REQUEST, offset=place * REQUEST)
    return workload.of(made.trace())


def predicted(of_run: Workload, points: list[Point]) -> float:
    built = space.SpaceBuilder(of_run, Constraints(()), ()).build()
    seconds = Model(of_run, built, Rates(points), [], 1).predict({"collective": "disable"})
    assert seconds is not None
    return seconds - of_run.compute_s


@pytest.mark.parametrize("call", ["pread", "read_at"])
def test_what_jumps_goes_as_storage_does_at_random(tmp_path: Path, call: str) -> None:
    ordered = reading(tmp_path / "order", jumps=False, call=call)
    jumping = reading(tmp_path / "random", jumps=True, call=call)
    assert [work.at_random for work in ordered.works] == [False] * len(ordered.works)
    assert all(work.at_random for work in jumping.works)
    assert predicted(ordered, LIMITS) == pytest.approx(0.01)
    assert predicted(jumping, LIMITS) == pytest.approx(1.0)
    assert predicted(jumping, LIMITS[:1]) == pytest.approx(0.01)  # nothing at random was measured


def test_independent_calls_at_random_go_as_much_slower_as_storage_does(tmp_path: Path) -> None:
    library = Point(
        "library", "/scratch", "read", "cold", REQUEST, 1, 50 * MIB, "independent", "forebay"
    )
    jumping = reading(tmp_path, jumps=True, call="read_at")
    assert predicted(jumping, [*LIMITS, library]) == pytest.approx(100 / 50)


def test_requests_at_random_are_no_faster_than_in_order() -> None:
    """As where many are in flight, and the program has one at a time."""
    found = Rates([in_order(REQUEST, 40 * MIB), at_random(REQUEST, 400 * MIB, processes=32)])
    rate = found.storage("/scratch", "read", REQUEST, 1, at_random=True)
    assert rate == pytest.approx(40 * MIB)


def test_larger_requests_than_were_measured_at_random_go_on_as_in_order() -> None:
    """4 KiB take 4 ms at random; the other 1020 KiB of a MiB go at 100 MiB/s."""
    found = Rates(LIMITS)
    rate = found.storage("/scratch", "read", MIB, 1, at_random=True)
    assert rate == pytest.approx(MIB / (0.00390625 + (MIB - REQUEST) / (100 * MIB)))
    assert found.storage("/scratch", "read", KIB, 1, at_random=True) == pytest.approx(MIB / 4)


def test_what_is_in_the_page_cache_is_not_asked_of_the_device() -> None:
    warm = in_order(REQUEST, 1000 * MIB, "warm", "write")
    jumping = at_random(REQUEST, MIB, operation="write")
    rate = Rates([warm, jumping]).storage("/scratch", "write", REQUEST, 1, at_random=True)
    assert rate == pytest.approx(1000 * MIB)
    of_cache = replace(jumping, level="file system", mode="warm", rate=500 * MIB)
    both = Rates([warm, jumping, of_cache])
    rate = both.storage("/scratch", "write", REQUEST, 1, at_random=True)
    assert rate == pytest.approx(500 * MIB)


def test_limits_at_random_alone_tell_of_what_jumps_and_of_nothing_else() -> None:
    found = Rates([at_random(REQUEST, MIB)])
    assert found.storage("/scratch", "read", REQUEST, 1, at_random=True) == pytest.approx(MIB)
    assert found.storage("/scratch", "read", REQUEST, 1) is None


def test_limits_of_a_system_file_keep_their_order_and_what_is_in_flight() -> None:
    rate = {"median": 1.0, "low": 1.0, "high": 1.0}
    limits = [
        Limit("device", "/scratch", "read", "direct", REQUEST, 2, in_flight=16, order=order, **rate)
        for order in ("random", "sequential")
    ]
    jumping, plain = rates.of_system(System(Path("system.json"), "node1", limits))
    assert (jumping.at_random, jumping.processes) == (True, 32)
    assert (plain.at_random, plain.processes) == (False, 2)

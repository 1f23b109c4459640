"""`forebay cache watch` and `ls` say how fast logs grow and shrink, how long that takes, and how
old they are."""

import pytest

from forebay.cache import Entry
from forebay.cache_report import show_age
from forebay.cache_watch import pace, table


def _log(at_s: float, absorbed: int, drained: int, in_use: bool = True) -> Entry:
    return {
        "name": "log-0",
        "path": "/dev/shm/log-0",
        "file": "/scratch/out.dat",
        "state": "writing",
        "in_use": in_use,
        "progress": {
            "absorbed_bytes": absorbed,
            "drained_bytes": drained,
            "dirty_bytes": absorbed - drained,
            "updated_unix_s": at_s,
        },
    }


def test_two_looks_make_a_rate_and_the_time_that_is_left() -> None:
    first = _log(100.0, 4000, 1000)
    found = pace(_log(102.0, 10_000, 2000), first)
    assert found is not None
    assert (found.absorb_rate, found.drain_rate) == (3000.0, 500.0)
    assert found.left_s == 16.0, "8000 bytes at 500 in a second"
    assert found.as_json()["left_s"] == 16.0


def test_one_look_makes_none() -> None:
    found = pace(_log(100.0, 4000, 1000), None)
    assert found is not None
    assert (found.absorb_rate, found.drain_rate, found.left_s) == (None, None, None)
    assert table([found]) is not None


def test_a_log_that_said_nothing_since_stands_still() -> None:
    first = _log(100.0, 4000, 1000)
    found = pace(first, first)
    assert found is not None
    assert (found.absorb_rate, found.drain_rate, found.left_s) == (0.0, 0.0, None)
    done = pace(_log(101.0, 4000, 4000), first)
    assert done is not None
    assert done.left_s == 0.0


def test_a_log_that_nobody_writes_has_no_pace() -> None:
    assert pace(_log(100.0, 1, 0, in_use=False), None) is None
    assert pace({**_log(100.0, 1, 0), "progress": None}, None) is None


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(-5, "0 s"), (59.9, "59 s"), (60, "1 min"), (7260, "2 h 1 min"), (93784, "1 d 2 h")],
)
def test_an_age_has_its_two_largest_units(seconds: float, shown: str) -> None:
    assert show_age(seconds) == shown

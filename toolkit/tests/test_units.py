"""Quantities as users write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.errors import ForebayError
from forebay.units import (
    parse_rate,
    parse_seconds,
    parse_size,
    show_bytes,
    show_seconds,
    show_share,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("65536", 65536), ("64KiB", 65536), ("4MB", 4_000_000), ("4M", 4 << 20), ("1.5GiB", 3 << 29)],
)
def test_sizes_are_read_with_their_units(text: str, expected: int) -> None:
    assert parse_size(text) == expected


@pytest.mark.parametrize("text", ["", "banana", "4 parsecs", "-1", "4MiB/s"])
def test_what_is_no_size_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ForebayError) as caught:
        parse_size(text)
    assert "64KiB" in caught.value.advice


def test_rates_and_times_are_read_with_their_units() -> None:
    assert parse_rate("4MiB/s") == 4 << 20
    assert parse_seconds("3ms") == pytest.approx(0.003)
    assert parse_seconds("3") == pytest.approx(0.003)
    with pytest.raises(ForebayError):
        parse_seconds("soon")


@given(st.integers(0, 2**50))
def test_shown_sizes_are_within_a_twentieth_of_a_unit(count: int) -> None:
    number, unit = show_bytes(count).split()
    scale = 1024 ** ["B", "KiB", "MiB", "GiB", "TiB"].index(unit)
    assert abs(float(number) * scale - count) <= 0.051 * scale


@pytest.mark.parametrize(("seconds", "text"), [(2, "2.00 s"), (0.0123, "12.3 ms"), (5e-6, "5 us")])
def test_shown_times_have_a_fitting_unit(seconds: float, text: str) -> None:
    assert show_seconds(seconds) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [(0, "0 %"), (0.00012, "0.012 %"), (0.0123, "1.2 %"), (0.999, "100 %"), (12.3, "1230 %")],
)
def test_shares_are_shown_without_false_digits(share: float, text: str) -> None:
    assert show_share(share) == text

"""The interval must hold the median as often as it says: checked against enumeration of all orders
of signs, and by simulation with a fixed seed."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.statistics import coverage, median, median_ratio

ratios = st.lists(st.floats(0.01, 100), min_size=1, max_size=40)


@given(ratios)
def test_the_interval_encloses_the_median_and_lies_within_the_data(values: list[float]) -> None:
    ratio = median_ratio(values)
    assert ratio is not None
    assert min(values) <= ratio.low <= ratio.median <= ratio.high <= max(values)


@given(ratios, st.randoms(use_true_random=False))
def test_the_order_of_the_pairs_does_not_matter(values: list[float], random: object) -> None:
    shuffled = list(values)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert median_ratio(values) == median_ratio(shuffled)


@given(ratios)
def test_swapping_the_sides_inverts_the_interval(values: list[float]) -> None:
    one, other = median_ratio(values), median_ratio([1 / value for value in values])
    assert one is not None
    assert other is not None
    assert other.low == pytest.approx(1 / one.high)
    assert other.high == pytest.approx(1 / one.low)


@given(ratios)
def test_the_median_is_numpys(values: list[float]) -> None:
    assert median(values) == pytest.approx(float(np.median(values)))


@pytest.mark.parametrize("n", [1, 2, 5, 6, 9, 12])
def test_the_coverage_is_that_of_all_orders_of_signs(n: int) -> None:
    for k in range(1, (n + 1) // 2 + 1):
        enclosed = sum(k <= sum(signs) <= n - k for signs in itertools.product((0, 1), repeat=n))
        assert coverage(n, k) == pytest.approx(enclosed / 2**n)


def test_six_pairs_give_their_range_and_nine_leave_the_extremes_out() -> None:
    six = median_ratio([1, 2, 3, 4, 5, 6])
    nine = median_ratio([1, 2, 3, 4, 5, 6, 7, 8, 9])
    assert six is not None
    assert (six.low, six.high, six.coverage) == (1, 6, 1 - 2 / 64)
    assert nine is not None
    assert (nine.low, nine.high) == (2, 8)
    assert nine.coverage == pytest.approx(1 - 20 / 512)


@pytest.mark.parametrize("n", [6, 8, 10, 15])
def test_at_least_95_of_100_intervals_hold_the_true_median(n: int) -> None:
    generator = np.random.default_rng(7)
    trials = 2000
    held = 0
    for sample in generator.lognormal(0, 0.3, (trials, n)):
        ratio = median_ratio([float(value) for value in sample])
        assert ratio is not None
        held += ratio.low <= 1 <= ratio.high
    assert held / trials > 0.95 - 3 * (0.95 * 0.05 / trials) ** 0.5


def test_a_difference_needs_an_interval_without_1_and_pairs_enough() -> None:
    five = median_ratio([1.1, 1.2, 1.3, 1.4, 1.5])
    straddling = median_ratio([0.9, 1.2, 1.3, 1.4, 1.5, 1.6])
    three = median_ratio([1.1, 1.2, 1.3])
    assert five is not None
    assert five.detectable
    assert straddling is not None
    assert not straddling.detectable
    assert three is not None
    assert not three.detectable


def test_no_ratio_gives_no_median() -> None:
    assert median_ratio([]) is None

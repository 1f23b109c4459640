"""The sequential test: exactly valid for whatever is symmetric, and with the power that it says."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forebay.evaluate.self_test import campaign, false_claims, machine_noise
from forebay.evaluate.sequential import (
    Array,
    PairedTest,
    blocks_needed,
    log_evidence,
    smallest_detectable,
)
from forebay.evaluate.verdict import Kind, Plan

ratios = st.lists(st.floats(-3, 3).map(lambda x: round(x, 6)), min_size=1, max_size=40)


def after(values: list[float], alpha: float = 0.05) -> PairedTest:
    test = PairedTest(alpha)
    for value in values:
        test.add(value)
    return test


@settings(deadline=None)
@given(st.lists(st.floats(0, 5), min_size=1, max_size=8))
def test_over_all_signs_the_evidence_is_one_in_the_mean(sizes: list[float]) -> None:
    """This is what the promise rests on, and it holds for ratios of any size and spread."""
    signs = itertools.product([-1.0, 1.0], repeat=len(sizes))
    found = [math.exp(log_evidence(np.array(sizes) * np.array(s), 0.0)) for s in signs]
    assert np.mean(found) == pytest.approx(1.0)


@settings(deadline=None)
@given(ratios, st.floats(-2, 2))
def test_the_interval_is_what_is_not_ruled_out(values: list[float], theta: float) -> None:
    test = after(values)
    low, high = test.interval()
    if abs(theta - low) > 1e-6:
        assert test.above(theta) == (theta < low)
    if abs(theta - high) > 1e-6:
        assert test.below(theta) == (theta > high)


@settings(deadline=None)
@given(ratios, st.floats(-2, 2))
def test_turning_the_comparison_round_turns_the_answer_round(
    values: list[float], shift: float
) -> None:
    test, turned = after(values), after([-value for value in values])
    moved = after([value + shift for value in values])
    low, high = test.interval()
    assert turned.interval() == pytest.approx((-high, -low), abs=1e-6)
    assert moved.interval() == pytest.approx((low + shift, high + shift), abs=1e-6)
    assert turned.estimate() == pytest.approx(-test.estimate())


def test_five_pairs_show_nothing_and_seven_alike_do() -> None:
    assert after([0.5] * 5).interval() == (-math.inf, math.inf)
    low, high = after([0.5] * 7).interval()
    assert 0 < low < 0.5 < high
    assert not after([0.5] * 5).above(0)
    assert after([0.5] * 7).above(0)


def test_a_burst_has_little_say() -> None:
    calm = [0.3, 0.31, 0.29, 0.3, 0.32, 0.28, 0.3, 0.31, 0.3, 0.29, 0.31, 0.3, 0.3, 0.3]
    low, high = after([*calm, -2.0]).interval()
    assert low > 0.2
    assert high < 0.4
    assert after([*calm, -2.0]).estimate() == pytest.approx(0.3, abs=0.02)


def test_made_up_campaigns_without_a_difference_seldom_claim_one() -> None:
    found = false_claims(200, Plan(), 1)
    assert len(found.verdicts) == 200
    assert found.as_json()["false_claim_rate"] <= 0.05


def test_looking_at_every_block_of_many_does_not_raise_the_rate() -> None:
    found = false_claims(60, Plan(least_gain=0.001, blocks_max=50), 4)
    assert found.claim_rate <= 0.05


@pytest.mark.parametrize(
    ("spread", "gain", "blocks"), [(0.03, 0.1, 20), (0.15, 0.2, 20), (0.3, 0.5, 20)]
)
def test_gains_that_are_there_are_found(spread: float, gain: float, blocks: int) -> None:
    """`spread` is that of the log ratio of a pair; the gain is above the smallest detectable."""
    generator = np.random.default_rng(7)
    plan = Plan(blocks_max=blocks)
    kinds = [
        campaign(
            generator,
            generator.normal(0, spread / math.sqrt(2), 2 * blocks),
            math.log1p(gain),
            plan,
        ).kind
        for _ in range(100)
    ]
    assert kinds.count(Kind.IMPROVED) >= 80
    assert Kind.SLOWER not in kinds


def test_the_smallest_detectable_gain_is_detected_four_times_in_five() -> None:
    generator = np.random.default_rng(8)
    blocks, spread = 20, 0.15
    gain = smallest_detectable(generator.normal(0, spread, 500), blocks, 0.05)
    plan = Plan(blocks_max=blocks, least_gain=1e-6)
    kinds = [
        campaign(generator, generator.normal(0, spread / math.sqrt(2), 2 * blocks), gain, plan).kind
        for _ in range(200)
    ]
    assert 0.7 <= kinds.count(Kind.IMPROVED) / 200 <= 0.95


def test_one_burst_is_not_taken_for_noise() -> None:
    """Of 20 pairs one in which the machine took five times as long. The noise of the others is
    what decides, but for what the test itself loses by such a pair."""
    ratios = np.random.default_rng(4).normal(0, 0.03, 20)
    calm = smallest_detectable(ratios, 20, 0.05)
    ratios[7] += math.log(5)
    disturbed = smallest_detectable(ratios, 20, 0.05)
    assert calm < disturbed < 2 * calm


def test_what_is_detectable_is_detected_on_machines_with_bursts_too() -> None:
    generator = np.random.default_rng(6)
    blocks = 30

    def noise(pairs: int) -> Array:
        burst = generator.choice([-1, 1], pairs) * generator.uniform(0.4, 1.6, pairs)
        return generator.normal(0, 0.05, pairs) + np.where(generator.random(pairs) < 0.1, burst, 0)

    gain = smallest_detectable(noise(500), blocks, 0.05)
    found = 0
    for _ in range(200):
        test = PairedTest(0.05)
        for ratio in gain + noise(blocks):
            test.add(float(ratio))
        found += test.above(0)
    assert found >= 0.75 * 200


def test_intervals_hold_the_true_gain_on_noisy_machines() -> None:
    """Where campaigns stop is chosen by what they show, and still nineteen in twenty hold it."""
    generator = np.random.default_rng(9)
    plan, truth = Plan(), math.log(1.2)
    missed = 0
    for _ in range(200):
        found = campaign(generator, machine_noise(generator, 40), truth, plan)
        missed += (found.low is not None and found.low > 0.2 + 1e-9) or (
            found.high is not None and found.high < 0.2 - 1e-9
        )
    assert missed <= 10


@settings(deadline=None)
@given(st.floats(0.02, 0.6), st.floats(0.05, 0.5))
def test_the_blocks_needed_are_those_that_detect_it(spread: float, gain: float) -> None:
    noise = np.random.default_rng(3).normal(0, spread, 20)
    needed = blocks_needed(noise, gain, 0.05)
    assert needed is not None
    assert smallest_detectable(noise, needed, 0.05) <= gain + 1e-6
    assert smallest_detectable(noise, needed - 1, 0.05) > gain - 1e-6


def test_no_number_of_blocks_is_told_where_none_would_do() -> None:
    assert blocks_needed([-8.0, 8.0], 0.001, 0.05) is None
    assert smallest_detectable([-0.1, 0.1], 5, 0.05) == math.inf

"""Verdicts: which one, and when no further block is needed."""

import math

import pytest

from forebay.evaluate.evaluation_report import sentence
from forebay.evaluate.sequential import PairedTest
from forebay.evaluate.verdict import Kind, Plan, Verdict, is_decided, judge, not_in_force

PLAN = Plan()


def after(values: list[float]) -> PairedTest:
    test = PairedTest(PLAN.alpha)
    for value in values:
        test.add(value)
    return test


def words(verdict: Verdict) -> str:
    return sentence("best", "default", verdict, PLAN.least_gain)


def test_a_gain_is_told_with_its_interval() -> None:
    test = after([math.log(1.25) + 0.001 * i for i in range(-4, 5)])
    verdict = judge(test, PLAN)
    assert verdict.kind is Kind.IMPROVED
    assert verdict.gain == pytest.approx(0.25, abs=0.001)
    assert verdict.low is not None
    assert verdict.high is not None
    assert 0 < verdict.low < 0.25 < verdict.high
    assert is_decided(test, PLAN)
    assert words(verdict).startswith("best: improved, +25 % against default, 95 % interval +")


def test_a_loss_is_told_as_such() -> None:
    verdict = judge(after([-0.3] * 9), PLAN)
    assert verdict.kind is Kind.SLOWER
    assert "best: slower, -25.9 % against default" in words(verdict)


def test_equal_times_have_no_detectable_gain() -> None:
    test = after([0.01, -0.01, 0.005, -0.005, 0.0, 0.01, -0.01, 0.0, 0.0])
    verdict = judge(test, PLAN)
    assert verdict.kind is Kind.NO_GAIN
    assert is_decided(test, PLAN)
    assert verdict.smallest_detectable is not None
    assert verdict.smallest_detectable < PLAN.least_gain
    assert "no detectable gain over default, smallest detectable" in words(verdict)


def test_noise_asks_for_more_runs() -> None:
    noise = [0.5, -0.4, 0.3, -0.6, 0.2, -0.1, 0.4, -0.5, 0.6, -0.3]
    test = after(noise)
    verdict = judge(test, PLAN)
    assert verdict.kind is Kind.TOO_NOISY
    assert not is_decided(test, PLAN)
    assert verdict.more_blocks is not None
    assert verdict.more_blocks > 100
    assert f"too noisy, {2 * verdict.more_blocks} more runs needed to see a gain of 10 %" in words(
        verdict
    )


def test_blocks_that_are_used_up_end_it() -> None:
    noise = [0.5, -0.4] * 10
    assert not is_decided(after(noise[:-1]), PLAN)
    assert is_decided(after(noise), PLAN)


@pytest.mark.parametrize("values", [[], [0.5]])
def test_less_than_two_blocks_say_nothing(values: list[float]) -> None:
    verdict = judge(after(values), PLAN)
    assert (verdict.kind, verdict.gain) == (Kind.TOO_NOISY, None)
    assert "too noisy to tell" in words(verdict)


def test_few_blocks_have_no_bounds() -> None:
    verdict = judge(after([0.5, 0.5, 0.5]), PLAN)
    assert (verdict.low, verdict.high, verdict.smallest_detectable) == (None, None, None)
    assert verdict.kind is Kind.TOO_NOISY


def test_what_did_not_take_effect_is_not_judged_by_its_times() -> None:
    verdict = not_in_force(["best: cb_nodes: asked 4, observed 2"], 3, PLAN)
    assert words(verdict) == "best: setting did not take effect"
    assert verdict.gain is None

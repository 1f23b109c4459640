"""How the next run is chosen: systems of which every time is known, with a seed, and no program.

Method: the chooser is given candidates and a model of them that may be wrong; each run's time is a
formula, with log-normal noise. The best that it names is compared with the best there is.
"""

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest

from forebay.configure.chooser import Candidate, Choice, Chooser
from forebay.configure.history import State, Why

Seconds = Callable[[dict[str, str]], float]

DEFAULTS = {"collective": "automatic", "aggregators": "4", "buffer_size": "4194304"}


def settings() -> list[dict[str, str]]:
    made: list[dict[str, str]] = [{"collective": "disable"}]
    buffers = ("524288", "4194304", "16777216")
    for count, size in itertools.product((None, "1", "2", "4", "8"), (None, *buffers)):
        chosen = {"aggregators": count, "buffer_size": size}
        made.append({name: value for name, value in chosen.items() if value is not None})
    made.remove({})
    return [{}, *made]


def seconds(chosen: dict[str, str]) -> float:
    """Best with 4 aggregators and 16 MiB."""
    effective = DEFAULTS | chosen
    if effective["collective"] == "disable":
        return 7.0
    aggregators, buffer = int(effective["aggregators"]), int(effective["buffer_size"])
    return 1 + 8 / min(aggregators, 6) + 0.3 * aggregators + math.log2((16 << 20) / buffer) / 4


def wrong_model(chosen: dict[str, str]) -> float:
    """More aggregators, it says, are always better; of buffers it knows nothing."""
    return 1 + 8 / int((DEFAULTS | chosen)["aggregators"])


def chooser(model: Seconds | None, runs: int = 30, seed: int = 1) -> Chooser:
    return Chooser(
        [Candidate(each, DEFAULTS | each, model(each) if model else None) for each in settings()],
        runs,
        seed,
    )


def carry_out(chooser: Chooser, noise: float, seed: int = 1) -> list[Choice]:
    generator = np.random.default_rng(seed)
    choices = []
    while not isinstance(choice := chooser.next(), str):
        chosen = chooser.candidates[choice.candidate].settings
        spent = seconds(chosen) * math.exp(noise * generator.standard_normal())
        chooser.add(choice.candidate, choice.why, State.MEASURED, spent)
        choices.append(choice)
    return choices


@pytest.mark.parametrize("model", [seconds, wrong_model, None])
@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_the_best_is_found_whatever_the_model_says(model: Seconds | None, noise: float) -> None:
    searched = chooser(model)
    carry_out(searched, noise)
    least = min(map(seconds, settings()))
    found = searched.candidates[searched.ranking()[0].candidate].settings
    assert seconds(found) <= 1.1 * least


def test_a_model_that_is_right_finds_it_at_once() -> None:
    searched = chooser(seconds, runs=6)
    choices = carry_out(searched, 0.0)
    assert [choice.why for choice in choices[:3]] == [Why.WARM_UP, Why.REFERENCE, Why.MODEL]
    assert seconds(searched.candidates[choices[2].candidate].settings) == min(
        map(seconds, settings())
    )


def test_the_last_runs_repeat_the_best_and_the_reference() -> None:
    choices = carry_out(chooser(wrong_model, runs=20), 0.1)
    assert len(choices) == 20
    last = choices[-5:]
    assert all(choice.why is Why.AGAIN for choice in last)
    assert 0 in {choice.candidate for choice in last}
    assert len({choice.candidate for choice in last}) > 1


def test_it_stops_where_nothing_is_left_to_gain() -> None:
    few = chooser(seconds, runs=200)
    choices = carry_out(few, 0.0)
    assert few.next() == "nothing left to gain"
    assert len(choices) < 100


def test_it_does_not_stop_before_the_best_were_repeated() -> None:
    """Few candidates, of which two are nearly alike: two runs of each would decide by noise."""
    chosen: list[dict[str, str]] = [{}, {"aggregators": "1"}, {"aggregators": "2"}]
    spent = {None: 5.0, "1": 2.0, "2": 2.2}
    generator = np.random.default_rng(3)
    searched = Chooser([Candidate(each, each, None) for each in chosen], 60, seed=1)
    runs = [0, 0, 0]
    while not isinstance(choice := searched.next(), str):
        seconds_now = spent[chosen[choice.candidate].get("aggregators")]
        noise = math.exp(0.05 * generator.standard_normal())
        searched.add(choice.candidate, choice.why, State.MEASURED, seconds_now * noise)
        runs[choice.candidate] += choice.why is not Why.WARM_UP
    assert choice == "nothing left to gain"
    assert min(runs) >= 4
    assert sum(runs) < 40
    assert searched.ranking()[0].candidate == 1


def expecting(spent: dict[str, str], times: float) -> tuple[Chooser, int]:
    """A search whose model is right, after a first run of these settings that took so many times
    as long as they do."""
    searched = chooser(seconds, runs=12)
    searched.add(0, Why.WARM_UP, State.MEASURED, seconds({}))
    searched.add(0, Why.REFERENCE, State.MEASURED, seconds({}))
    place = searched.place(spent)
    assert place is not None
    take(searched, place, times)
    return searched, place


def take(searched: Chooser, place: int, times: float) -> None:
    spent = seconds(searched.candidates[place].settings) * times
    state = State.MEASURED if math.isfinite(spent) else State.FAILED
    searched.add(place, Why.SEARCH, state, spent)


BEST = {"buffer_size": "16777216"}


@pytest.mark.parametrize("times", [3.0, 20.0, math.inf])
def test_a_run_far_beyond_what_was_expected_is_repeated_and_set_aside(times: float) -> None:
    searched, place = expecting(BEST, times)
    for _ in range(2):
        choice = searched.next()
        assert isinstance(choice, Choice)
        assert (choice.candidate, choice.why) == (place, Why.AGAIN)
        take(searched, place, 1.0)
    choice = searched.next()
    assert isinstance(choice, Choice)
    assert choice.candidate != place
    best = searched.ranking()[0]
    assert (best.candidate, best.runs) == (place, 2)
    assert best.seconds == pytest.approx(seconds(BEST), rel=0.01)


def test_settings_that_are_slow_twice_are_taken_to_be_slow() -> None:
    searched, place = expecting(BEST, 10.0)
    take(searched, place, 10.0)
    choice = searched.next()
    assert isinstance(choice, Choice)
    assert choice.candidate != place
    assert searched.ranking()[0].candidate == 0


def test_settings_that_do_not_end_in_time_twice_are_given_up() -> None:
    searched, place = expecting(BEST, math.inf)
    assert [ranked.candidate for ranked in searched.ranking()] == [0]
    take(searched, place, math.inf)
    choices = carry_out(searched, 0.0)
    assert place not in {choice.candidate for choice in choices}
    assert place not in {ranked.candidate for ranked in searched.ranking()}


def test_a_slow_repeat_does_not_take_the_best_its_place() -> None:
    searched, place = expecting(BEST, 1.0)
    for times in (1.02, 15.0, 0.98):
        take(searched, place, times)
    best = searched.ranking()[0]
    assert (best.candidate, best.runs) == (place, 3)
    assert best.seconds == pytest.approx(seconds(BEST), rel=0.05)


def test_a_slow_first_run_of_the_reference_claims_no_gain() -> None:
    """The warm-up tells what it was to take."""
    searched = chooser(None, runs=12)
    searched.add(0, Why.WARM_UP, State.MEASURED, seconds({}))
    searched.add(0, Why.REFERENCE, State.MEASURED, 8 * seconds({}))
    for _ in range(2):
        choice = searched.next()
        assert isinstance(choice, Choice)
        assert choice.candidate == 0
        take(searched, 0, 1.0)
    (reference,) = searched.ranking()
    assert reference.seconds == pytest.approx(seconds({}), rel=0.01)


@pytest.mark.parametrize("seed", range(4))
def test_disturbed_runs_cost_neither_the_best_nor_more_runs(seed: int) -> None:
    """Every seventh run takes 2 to 20 times as long, the first one of the best settings among
    them."""
    generator = np.random.default_rng(seed)
    searched = chooser(seconds, seed=seed)
    best = min(range(len(searched.candidates)), key=lambda n: seconds(settings()[n]))
    disturbed, runs = False, 0
    while not isinstance(choice := searched.next(), str):
        spent = seconds(settings()[choice.candidate]) * math.exp(0.15 * generator.standard_normal())
        first = choice.candidate == best and not disturbed
        disturbed |= first
        runs += 1
        if first or runs % 7 == 0:
            spent *= math.exp(generator.uniform(math.log(2), math.log(20)))
        searched.add(choice.candidate, choice.why, State.MEASURED, spent)
    assert runs <= 30
    found = searched.candidates[searched.ranking()[0].candidate].settings
    assert seconds(found) <= 1.15 * seconds(settings()[best])


def test_what_fails_is_avoided() -> None:
    """A value that failed twice, and never went well, is not tried a third time."""
    searched = chooser(None, runs=25)
    failures = 0
    while not isinstance(choice := searched.next(), str):
        chosen = searched.candidates[choice.candidate].settings
        bad = chosen.get("buffer_size") == "16777216"
        failures += bad
        state = State.FAILED if bad else State.MEASURED
        searched.add(choice.candidate, choice.why, state, None if bad else seconds(chosen))
    assert failures <= 2
    ranked = [searched.candidates[r.candidate].settings for r in searched.ranking()]
    assert all(each.get("buffer_size") != "16777216" for each in ranked)


def test_of_values_that_failed_together_each_gets_its_own_chance() -> None:
    """Two runs fail that have both a cache and a place for it, and only the place is at fault."""
    cached = [
        {"cache": "enable", **place, **more}
        for place in ({}, {"cache_path": "/full"})
        for more in ({}, {"aggregators": "1"}, {"aggregators": "2"}, {"aggregators": "4"})
    ]
    chosen = [{}, *cached, *({"aggregators": count} for count in ("1", "2", "4"))]
    searched = Chooser([Candidate(each, each, None) for each in chosen], 30, seed=1)
    searched.add(0, Why.WARM_UP, State.MEASURED, 5.0)
    searched.add(0, Why.REFERENCE, State.MEASURED, 5.0)
    tried: list[dict[str, str]] = []
    while not isinstance(choice := searched.next(), str):
        settings = searched.candidates[choice.candidate].settings
        tried.append(settings)
        bad = "cache_path" in settings
        spent = 2.0 if settings.get("cache") and not bad else 5.0
        state = State.FAILED if bad else State.MEASURED
        searched.add(choice.candidate, choice.why, state, None if bad else spent)
    assert sum("cache_path" in each for each in tried) <= 3
    best = searched.candidates[searched.ranking()[0].candidate].settings
    assert best["cache"] == "enable"


def test_a_pair_of_values_that_fails_leaves_its_parts() -> None:
    searched = chooser(None)
    searched.add(0, Why.WARM_UP, State.MEASURED, 5.0)
    searched.add(0, Why.REFERENCE, State.MEASURED, 5.0)
    other = {"aggregators": "8", "buffer_size": "4194304"}
    for failing in ({"aggregators": "8", "buffer_size": "16777216"}, other):
        place = searched.place(failing)
        assert place is not None
        searched.add(place, Why.SEARCH, State.FAILED, None)
    choices = carry_out(searched, 0.0)
    tried = [searched.candidates[choice.candidate].settings for choice in choices]
    assert all(each.get("aggregators") != "8" for each in tried)
    assert any(each.get("buffer_size") == "16777216" for each in tried)


def test_a_setting_that_does_not_hold_is_given_up_at_once() -> None:
    searched = chooser(None, runs=20)
    searched.add(0, Why.WARM_UP, State.MEASURED, 5.0)
    searched.add(0, Why.REFERENCE, State.MEASURED, 5.0)
    place = searched.place({"aggregators": "8"})
    assert place is not None
    searched.add(place, Why.SEARCH, State.NOT_IN_FORCE, 1.0, [("aggregators", "8")])
    choices = carry_out(searched, 0.0)
    chosen = [searched.candidates[choice.candidate].settings for choice in choices]
    assert all(each.get("aggregators") != "8" for each in chosen)
    assert all(searched.candidates[r.candidate].settings != {"aggregators": "8"}
               for r in searched.ranking())  # fmt: skip


def test_nothing_is_chosen_where_all_but_the_reference_is_out() -> None:
    searched = chooser(None)
    searched.add(0, Why.WARM_UP, State.MEASURED, 5.0)
    searched.add(0, Why.REFERENCE, State.MEASURED, 5.0)
    for place in range(1, len(searched.candidates)):
        searched.add(place, Why.SEARCH, State.OTHER_FILES, None)
    assert searched.next() == "no candidate left"


def test_the_same_runs_lead_to_the_same_choices() -> None:
    first, second = (carry_out(chooser(wrong_model, runs=12), 0.2) for _ in range(2))
    assert [choice.candidate for choice in first] == [choice.candidate for choice in second]

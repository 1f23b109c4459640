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
        [
            Candidate(each, DEFAULTS | each, model(each) if model else None)
            for each in settings()
        ],
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

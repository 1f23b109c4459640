"""Goal: a loop nest is found again in the offsets that it makes, and whatever is found makes them.

Method: random nests and random sequences, against a direct expansion.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forebay.characterise import loops
from forebay.characterise.loops import Loops

Levels = list[tuple[int, int]]  # count and step, the innermost first


def _expanded(base: int, levels: Levels) -> list[int]:
    offsets = [base]
    for count, step in levels:
        offsets = [offset + i * step for i in range(count) for offset in offsets]
    return offsets


def _levels(found: Loops, row: int) -> Levels:
    pairs = zip(found.counts[row].tolist(), found.steps[row].tolist(), strict=True)
    return [pair for pair in pairs if pair[0] > 1]


def _found(offsets: list[int], keys: list[int] | None = None) -> Loops:
    chosen = np.array(keys if keys is not None else [0] * len(offsets), np.uint64)
    return loops.found_in(np.array(offsets, np.int64), chosen)


@pytest.mark.parametrize(
    ("base", "levels"),
    [
        (7, []),
        (0, [(5, 8)]),
        (0, [(2, 8), (3, 64)]),
        (9, [(3, 8), (3, 64), (4, 1024)]),
        (4096, [(2, 10), (2, 100), (2, 1000), (5, 7000)]),
        (500, [(4, -100)]),
        (3, [(6, 0)]),
    ],
)
def test_a_loop_nest_is_found(base: int, levels: Levels) -> None:
    found = _found(_expanded(base, levels))
    assert len(found) == 1
    assert _levels(found, 0) == levels
    assert found.items.tolist() == [len(_expanded(base, levels))]


def test_what_is_before_and_behind_a_loop_is_not_in_it() -> None:
    found = _found([0, 1000, 1010, 1020, 1030, 7, 2000, 2010, 2020, 2030])
    assert found.first.tolist() == [0, 1, 5, 6]
    assert [_levels(found, i) for i in (1, 3)] == [[(4, 10)], [(4, 10)]]


def test_neighbours_of_another_key_are_not_in_a_loop() -> None:
    found = _found([0, 10, 20, 30, 40, 50], [1, 1, 1, 2, 2, 2])
    assert [_levels(found, i) for i in range(len(found))] == [[(3, 10)], [(3, 10)]]


@settings(deadline=None, max_examples=300)
@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 1)), max_size=40))
def test_whatever_is_found_makes_the_same_offsets(items: list[tuple[int, int]]) -> None:
    offsets, keys = [offset for offset, _ in items], [key for _, key in items]
    found = _found(offsets, keys)
    made: list[int] = []
    for row in range(len(found)):
        first, count = int(found.first[row]), int(found.items[row])
        assert first == len(made)
        assert len({*keys[first : first + count]}) == 1
        made += _expanded(offsets[first], _levels(found, row))
        assert len(made) == first + count
    assert made == offsets


@settings(deadline=None, max_examples=200)
@given(
    st.integers(0, 1000),
    st.lists(st.tuples(st.integers(2, 5), st.integers(1, 9)), min_size=1, max_size=4),
)
def test_any_nest_of_growing_steps_is_found_whole(base: int, shape: Levels) -> None:
    levels: Levels = []
    reach = 1
    for count, gap in shape:
        levels.append((count, reach + gap))
        reach += gap + (count - 1) * (reach + gap)
    offsets = _expanded(base, levels)
    found = _found(offsets)
    assert len(found) == 1
    assert _expanded(base, _levels(found, 0)) == offsets


def test_equal_rows_alone_have_equal_numbers() -> None:
    random = np.random.default_rng(1)
    columns = [random.integers(0, 30, 5000) for _ in range(3)]
    numbers = loops.mixed(*columns)
    rows = np.stack(columns, axis=1)
    assert len(np.unique(numbers)) == len(np.unique(rows, axis=0))

"""What tracing took of a run is what came one after the other of it."""

from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forebay.trace.delays import Delay, one_after_the_other_ns


@pytest.mark.parametrize(
    ("spans", "spent_ns"),
    [
        ([], 0),
        ([(0, 10, 3)], 3),
        ([(0, 10, 3), (0, 10, 4)], 4),  # ranks, at the same time
        ([(0, 10, 3), (10, 20, 4)], 7),  # a script's commands
        ([(0, 100, 5), (1, 50, 4), (50, 99, 4)], 8),  # and the shell that waited for them
        ([(0, 100, 9), (1, 50, 4), (50, 99, 4)], 9),
        ([(5, 5, 1), (5, 5, 2)], 3),  # too short for the clock
    ],
)
def test_what_is_at_the_same_time_counts_once(
    spans: list[tuple[int, int, float]], spent_ns: float
) -> None:
    assert one_after_the_other_ns(Delay(*span) for span in spans) == spent_ns


def follow_one_another(chosen: tuple[Delay, ...]) -> bool:
    ordered = sorted(chosen, key=lambda delay: delay.end_ns)
    return all(a.end_ns <= b.start_ns for a, b in pairwise(ordered))


@settings(deadline=None)
@given(
    st.lists(
        st.builds(
            lambda start, length, spent: Delay(start, start + length, spent),
            st.integers(0, 20),
            st.integers(1, 10),
            st.integers(0, 5),
        ),
        max_size=7,
    )
)
def test_no_other_choice_of_processes_comes_to_more(delays: list[Delay]) -> None:
    subsets = (chosen for n in range(len(delays) + 1) for chosen in combinations(delays, n))
    most = max(
        sum(delay.spent_ns for delay in chosen) for chosen in subsets if follow_one_another(chosen)
    )
    assert one_after_the_other_ns(delays) == most

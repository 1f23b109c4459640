"""Constraints of `forebay configure`: what they are read as, and what they allow.

Method: made-up constraints are printed and read again, and compared with plain arithmetic.
"""

import operator
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.configure.constraints import Constraints, parse
from forebay.configure.factors import KNOWN, Kind, Variable, parse_variable, survived_nodes
from forebay.errors import ForebayError

_SIGNS = {
    "<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt,
    "=": operator.eq, "!=": operator.ne,
}  # fmt: skip
_AMOUNTS = sorted(n for n, k in KNOWN.items() if k.kind in (Kind.COUNT, Kind.SIZE, Kind.NODES))


@given(
    st.sampled_from(_AMOUNTS),
    st.sampled_from(sorted(_SIGNS)),
    st.integers(0, 2**40),
    st.integers(0, 2**40),
)
def test_an_amount_is_compared_as_a_number(factor: str, sign: str, bound: int, value: int) -> None:
    constraint = parse(f" {factor} {sign} {bound} ")
    assert constraint.holds(str(value)) == _SIGNS[sign](value, bound)
    assert parse(str(constraint)) == constraint


@given(st.sampled_from(sorted(n for n, k in KNOWN.items() if k.words)), st.data())
def test_a_word_is_one_of_those_that_are_allowed(factor: str, data: st.DataObject) -> None:
    words = KNOWN[factor].words
    chosen = data.draw(st.lists(st.sampled_from(words), min_size=1, unique=True))
    for word in words:
        assert parse(f"{factor}={','.join(chosen)}").holds(word) == (word in chosen)
        assert parse(f"{factor}!={','.join(chosen)}").holds(word) == (word not in chosen)


@given(st.text(max_size=40))
def test_whatever_is_written_is_read_or_refused_with_advice(text: str) -> None:
    refused = None
    try:
        constraint = parse(text)
    except ForebayError as error:
        refused = error
    if refused is None:
        assert parse(str(constraint)) == constraint
    else:
        assert refused.message
        assert refused.advice


def test_sizes_may_have_units_and_hints_are_names_too() -> None:
    assert parse("cb_buffer_size<=4MiB").holds("4194304")
    assert not parse("buffer_size<4M").holds("4194304")
    assert parse("striping_factor==4").factor.name == "stripe_count"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("stripes<=4", "there is no factor 'stripes'"),
        ("stripe_count", "is no constraint"),
        ("cache<=enable", "cannot be compared with <="),
        ("aggregators<=1,2", "<= takes one value"),
        ("cache=on", "'on' is no value of cache"),
        ("aggregators>=many", "'many' is no value of aggregators"),
        ("buffer_size>=4 bananas", "is no size"),
        ("redundancy=raid", "is no value of redundancy"),
    ],
)
def test_a_wrong_constraint_says_what_is_wrong(text: str, words: str) -> None:
    with pytest.raises(ForebayError, match=re.escape(words)):
        parse(text)


def test_an_unknown_factor_lists_the_known_ones() -> None:
    with pytest.raises(ForebayError) as caught:
        parse("stripes<=4", [Variable("OWN_FILES", ("0", "1"))])
    assert "OWN_FILES" in caught.value.advice
    assert all(name in caught.value.advice for name in KNOWN)


def test_redundancy_counts_lost_nodes() -> None:
    values = ("none", "partner", "parity", "parity:4+1", "parity:8+3")
    assert [survived_nodes(value) for value in values] == [0, 1, 1, 1, 3]
    rules = Constraints((parse("redundancy>=1"),))
    assert rules.broken_by({"redundancy": "none"}) is rules.all[0]
    assert rules.broken_by({"redundancy": "parity:4+1"}) is None
    assert rules.broken_by({"cache": "disable"}) is None  # nothing waits where it could be lost


def test_variables_of_the_program_have_values_to_choose_from() -> None:
    assert parse_variable("OWN=0,1, 1") == Variable("OWN", ("0", "1"))
    for text in ("OWN", "OWN=1", "OWN=", "=1,2", "2X=1,2", "engine=a,b", "FOREBAY_HINTS=a,b"):
        with pytest.raises(ForebayError):
            parse_variable(text)
    rule = parse("OWN=1", [Variable("OWN", ("0", "1"))])
    assert rule.holds("1")
    assert not rule.holds("0")

"""Documents of JSON with one value changed: at every place in turn, or somewhere to something."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from forebay.errors import ForebayError

ANY_JSON = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.sampled_from([2**63 - 1, 2**63, 2**64, 10**400, -1]),
        st.floats(),
        st.text(),
        st.sampled_from(["", "/a\0b", "/\ud800", "/\udcff", "nan", "1", "12"]),
    ),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(), inner)),
    max_leaves=8,
)
"""What Python's json writes, NaN and lone surrogates too."""


def _changed(whole: dict[str, Any], value: object) -> Iterator[str]:
    """The text of `whole` with `value` in place of what stands at one place."""
    text = json.dumps(whole)
    for place in _places(whole):
        yield json.dumps(_with(json.loads(text), place, value))


def changed(whole: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """`whole` with anything in place of what stands at one place."""
    text = json.dumps(whole)
    return st.builds(
        lambda place, value: _with(json.loads(text), place, value),
        st.sampled_from(_places(whole)),
        ANY_JSON,
    )


def _with(document: dict[str, Any], place: tuple[Any, ...], value: object) -> dict[str, Any]:
    inner: Any = document
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return document


def check_changed(
    path: Path,
    whole: dict[str, Any],
    value: object,
    load: Callable[[Path], Any],
    report: Callable[[Any], dict[str, Any]],
) -> None:
    """Every such text at `path` is refused by `load`, or its report can be written as JSON."""
    for text in _changed(whole, value):
        path.write_text(text)
        try:
            found = load(path)
        except ForebayError:
            continue
        json.dumps(report(found))


def _places(value: object, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = list(enumerate(value))
    return [path] * bool(path) + [p for key, each in inner for p in _places(each, (*path, key))]

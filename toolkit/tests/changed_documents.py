"""Documents of JSON with one value changed, at every place in turn."""

import json
from collections.abc import Iterator
from typing import Any


def changed(whole: dict[str, Any], value: object) -> Iterator[str]:
    """The text of `whole` with `value` in place of what stands at one place."""
    text = json.dumps(whole)
    for place in _places(whole):
        content = json.loads(text)
        inner = content
        for key in place[:-1]:
            inner = inner[key]
        inner[place[-1]] = value
        yield json.dumps(content)


def _places(value: object, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = list(enumerate(value))
    return [path] * bool(path) + [p for key, each in inner for p in _places(each, (*path, key))]

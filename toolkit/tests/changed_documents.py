"""Documents of JSON with one value changed, at every place in turn."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from forebay.errors import ForebayError


def _changed(whole: dict[str, Any], value: object) -> Iterator[str]:
    """The text of `whole` with `value` in place of what stands at one place."""
    text = json.dumps(whole)
    for place in _places(whole):
        content = json.loads(text)
        inner = content
        for key in place[:-1]:
            inner = inner[key]
        inner[place[-1]] = value
        yield json.dumps(content)


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

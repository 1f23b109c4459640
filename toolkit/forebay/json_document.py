"""A file of one JSON object that has a version."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from forebay import bounded_file
from forebay.errors import ForebayError
from forebay.units import show_bytes


def shown(name: str | Path) -> str:
    """A name as JSON holds it: with what is no UTF-8 in it, as Python gives it, replaced."""
    return str(name).encode(errors="surrogateescape").decode(errors="replace")


def parsed(path: Path) -> Any:  # noqa: ANN401
    """What a file of JSON holds. Raises ValueError for what is none, or too large for one of
    ours."""
    content = bounded_file.content_of(path)
    if content is None:
        raise ValueError(f"it has more than {show_bytes(bounded_file.BYTES_MOST)}")
    try:
        return json.loads(content)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def load(
    path: Path,
    what: str,
    version: int,
    is_one: Callable[[dict[str, Any]], bool],
    advice: str,
) -> dict[str, Any]:
    """The object. Raises ForebayError for what is no JSON, no object that `is_one`, or of another
    version; `what` names such a file, and `advice` says where one is to be had."""
    try:
        document = parsed(path)
    except ValueError as error:
        raise ForebayError(f"{path} is no JSON: {error}", advice, exit_code=1) from error
    if not isinstance(document, dict) or not is_one(document):
        raise ForebayError(f"{path} is no {what}", advice, exit_code=1)
    if document.get("version") != version:
        raise ForebayError(
            f"{path} has version {document.get('version')!r}, and this command reads {version}",
            "Read it with the Forebay that wrote it, or a newer one.",
            exit_code=1,
        )
    return document

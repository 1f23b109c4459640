"""The files that a run's records are in (docs/formats/report.md): their order, their checksums, and
the values in them."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import xxhash

Parsed = TypeVar("Parsed")

MOST = 2**63 - 1
"""Of any number in a record; the end of the largest file."""

_MOST_NESTED = 20  # lists and objects inside each other; ours have 4


def in_order(paths: Iterable[Path]) -> list[Path]:
    """Those that are complete, as they were written: a name that begins with a dot is one that is
    being written."""
    complete = (path for path in paths if not path.name.startswith("."))
    return sorted(complete, key=lambda path: (path.lstat().st_mtime_ns, path.name))


def fits(content: bytes, checksum: str) -> bool:
    """Whether it is the content that a name with this checksum was made for."""
    return xxhash.xxh64_hexdigest(content) == checksum


def read(
    paths: Iterable[Path],
    version: int,
    parse: Callable[[dict[str, Any]], Parsed],
    rejected: list[str],
) -> list[Parsed]:
    """What `parse` makes of each, in order; it may raise ValueError, KeyError and TypeError. One
    that is not whole or no record is added to `rejected`, with the reason."""
    found: list[Parsed] = []
    for path in in_order(paths):
        try:
            if not path.is_file():  # Opening a pipe would wait.
                raise ValueError("no regular file")
            content = path.read_bytes()
            if not fits(content, path.stem.split("-")[-1]):
                raise ValueError("the checksum does not fit its content")
            found.append(parse(document(content, version)))
        except (KeyError, TypeError) as error:
            rejected.append(f"{path.name}: missing or wrong key: {error!r}")
        except OSError as error:
            rejected.append(f"{path.name}: {error.strerror}")
        except ValueError as error:
            rejected.append(f"{path.name}: {error}")
    return found


def document(content: bytes, version: int) -> dict[str, Any]:
    """The record with this content, which can be written as JSON again. Raises ValueError with the
    reason if it is none of this version."""
    try:
        raw = json.loads(content, parse_constant=_not_finite, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"no JSON: {error}") from error
    if not isinstance(raw, dict):
        raise ValueError("no JSON object")
    found = raw.get("version")
    if found != version or type(found) is not int:
        raise ValueError(f"version {found!r}, this command reads {version}")
    if _nests(raw, _MOST_NESTED):
        raise ValueError(f"more than {_MOST_NESTED} lists and objects inside each other")
    return raw


def number(record: dict[str, Any], name: str) -> float:
    """One from 0 up. Raises ValueError or KeyError."""
    value = record[name]
    if type(value) not in (int, float) or not 0 <= value <= MOST:
        raise ValueError(f"{name} is no number from 0 to {MOST}")
    return float(value)


def count(value: object, what: str) -> int:
    """A whole number from 0 up. Raises ValueError; `what` is for that."""
    if type(value) is not int or not 0 <= value <= MOST:
        raise ValueError(f"{what} is no whole number from 0 to {MOST}")
    return value


def text(record: dict[str, Any], name: str) -> str:
    """One that can be written as UTF-8. Raises ValueError or KeyError."""
    value = record[name]
    if not isinstance(value, str):
        raise ValueError(f"{name} is no text")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{name} is no UTF-8") from error
    return value


def _not_finite(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number")


def _finite(word: str) -> float:
    value = float(word)
    if abs(value) == float("inf"):
        _not_finite(word)
    return value


def _nests(value: object, levels: int) -> bool:
    """Whether more than so many lists and objects are inside each other."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(
        levels == 1 or _nests(each, levels - 1) for each in inner if isinstance(each, dict | list)
    )

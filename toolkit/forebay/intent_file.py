"""Intent files that declare reads (docs/formats/intent.md): written from extents that were recorded
or found in a file's own index, and summed up for a person."""

import difflib
import itertools
import json
import re
import subprocess
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from forebay import bounded_file, native
from forebay.errors import ForebayError
from forebay.record_files import MOST
from forebay.units import parse_size, show_bytes

FORMAT_VERSION = 1
# And "cache", if it is a size.
READ_KEYS = frozenset(
    {"willneed", "from", "same_size", "block", "budget", "ahead", "gap", "policy"}
)

Extent = tuple[int, int]
"""Offset and length in bytes."""

HOW_ELSE = "If the file is whole, record a run that reads it instead: forebay run --record."
"""What to do where a file's own index does not tell."""


@dataclass(frozen=True)
class DeclaredReads:
    """What will be read of one file, in that order."""

    path: Path
    extents: list[Extent]
    origin: str = ""  # format or recording; empty: a person
    same_size: int | None = None  # other files of so many bytes will be read alike

    def __str__(self) -> str:
        amount = show_bytes(sum(length for _, length in self.extents))
        return f"{self.path}: {len(self.extents)} extents, {amount}"


def coalesced(extents: Iterable[Extent], gap: int = 0) -> list[Extent]:
    """The same reads with each that begins at the end of its predecessor, or up to `gap` bytes
    behind it, as a part of that one. The order stays; empty ones are left out."""
    result: list[Extent] = []
    for offset, length in extents:
        if length <= 0:
            continue
        if result:
            first, before = result[-1]
            end = first + before
            if first <= offset <= end + gap:
                result[-1] = (first, max(before, offset + length - first))
                continue
        result.append((offset, length))
    return result


def as_toml(files: Iterable[DeclaredReads], comment: str) -> str:
    """An intent file. `comment` says where it comes from."""
    printable = re.sub(r"[^\S\n ]|[\x00-\x09\x0b-\x1f\x7f\ud800-\udfff]", "?", comment)
    lines = [f"# {line}".rstrip() for line in printable.split("\n")]
    lines.append(f"version = {FORMAT_VERSION}")
    for file in files:
        lines += ["", "[[file]]", f"path = {_pattern(file.path)}"]
        if file.origin:
            lines.append(f"from = {toml_value(file.origin)}")
        if file.same_size is not None:
            lines.append(f"same_size = {file.same_size}")
        lines.append("willneed = [")
        lines += [f"  [{offset}, {length}]," for offset, length in file.extents]
        lines.append("]")
    return "\n".join(lines) + "\n"


def _pattern(path: Path) -> str:
    """A TOML string with the pattern that this absolute path alone matches."""
    text = re.sub(r"([*?\[\\])", r"\\\1", str(path.absolute()))
    # What is no UTF-8: Python keeps such bytes as these characters.
    return toml_value(re.sub("[\udc80-\udcff]", lambda m: f"\\x{ord(m[0]) - 0xDC00:02x}", text))


def toml_value(value: object) -> str:
    """A string, an integer, a truth value, or a list of such as TOML writes it."""
    # A string of JSON is one of TOML, but for the one control character that JSON lets through.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def content_of(path: Path) -> bytes:
    """All that an intent file holds. Raises ForebayError where that is more than any does."""
    content = bounded_file.content_of(path)
    if content is None:
        raise ForebayError(f"{path} is too large", "Name an intent file.")
    return content


def load(path: Path) -> dict[str, Any]:
    """What an intent file says. Raises ForebayError where it is no TOML."""
    return parsed(content_of(path), path)


def parsed(content: bytes, path: Path) -> dict[str, Any]:
    """The same of its content; `path` is for messages."""
    try:
        found = tomllib.loads(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ForebayError(
            f"{path}:{line}: the byte {error.object[error.start]:#x} is not of UTF-8",
            'In a path, write such a byte as "\\\\x" and its two digits.',
        ) from error
    except (ValueError, RecursionError) as error:  # also of numbers of thousands of digits
        raise ForebayError(f"{path} is no TOML: {error}", "Correct the line.") from error
    return found


def sections(content: dict[str, Any]) -> list[dict[str, Any]]:
    """The [[file]] sections of an intent file, as far as they are tables."""
    found = content.get("file")
    return [s for s in found if isinstance(s, dict)] if isinstance(found, list) else []


def speaks_of_reads(section: dict[str, Any]) -> bool:
    """Whether a section makes its files read ahead."""
    has_budget = "cache" in section and not isinstance(section["cache"], dict)
    return has_budget or not READ_KEYS.isdisjoint(section)


def declares_reads(intent: Path | None) -> bool:
    """Whether a section of the intent file speaks of reads. False for what cannot be read or is no
    TOML: see why_unreadable()."""
    if intent is None:
        return False
    try:
        return any(speaks_of_reads(section) for section in sections(load(intent)))
    except (OSError, ForebayError):
        return False


def _here(number: int, section: dict[str, Any]) -> str:
    path = section.get("path")
    return f"section {number}" + (f" ({path})" if isinstance(path, str) else "")


def misspelt(number: int, section: dict[str, Any]) -> list[str]:
    """Keys of the section of that number that look like one that speaks of reads."""
    told = []
    for key in sorted(section.keys() - READ_KEYS - {"path", "cache"}):
        if like := difflib.get_close_matches(key, READ_KEYS, n=1, cutoff=0.8):
            told.append(f"{_here(number, section)} has a key {key}: {like[0]}?")
    return told


def mistakes(content: bytes, path: Path) -> list[str]:
    """All that is wrong in the content of the intent file `path`, as a run would tell it, with
    lines. Raises ForebayError where the whole file has no effect."""
    command = [str(native.intent_program()), str(path)]
    answer = subprocess.run(command, input=content, capture_output=True, check=False)
    if answer.returncode not in (0, 1):
        raise ForebayError(
            answer.stderr.decode(errors="replace").strip(),
            "Correct it: the file has no effect until then.",
        )
    return answer.stdout.decode(errors="replace").splitlines()


def unseen_mistakes(intent: Path | None) -> list[str]:
    """Mistakes in an intent file that the library which reads ahead does not tell, since they are
    in no section for a file of its own, by its name; none of what cannot be read or is no TOML: see
    why_unreadable()."""
    if intent is None:
        return []
    try:
        content = load(intent)
    except (OSError, ForebayError):
        return []
    found = content.get("file", [])
    told = [] if isinstance(found, list) else ["file is no array of [[file]] sections"]
    told += [
        f"{key} is not known: [[file]] sections and version = {FORMAT_VERSION} are"
        for key in sorted(content.keys() - {"file", "version"})
    ]
    for number, section in enumerate(sections(content), start=1):
        has_path = isinstance(section.get("path"), str)
        if not has_path:
            what = "has no path: a pattern of the files that it is for"
            told.append(f"{_here(number, section)} {what}")
        if not has_path or not speaks_of_reads(section):
            told += misspelt(number, section)
    return [f"{intent}: {each}" for each in told]


def why_unreadable(intent: Path | None) -> str:
    """Why the whole of an intent file has no effect; empty if it has, or there is none."""
    try:
        if intent is not None:
            load(intent)
    except ForebayError as error:
        return error.message
    except OSError as error:
        return f"{intent} cannot be read: {error.strerror}"
    return ""


@dataclass(frozen=True)
class SectionSummary:
    """What one [[file]] section declares of reads, in figures."""

    pattern: str
    extents: int
    bytes_declared: int  # those with a length; 0 stands for the rest of the file
    to_the_end: int  # extents of length 0
    backward: int  # extents that begin before the end of the one before
    wrong: int  # entries of willneed that are no pairs
    others: dict[str, Any] = field(default_factory=dict)  # every other key


def summarise(section: dict[str, Any]) -> SectionSummary:
    """The figures of one section."""

    def size(value: object) -> int | None:
        if isinstance(value, bool):
            return None
        if isinstance(value, int):
            return value if 0 <= value <= MOST else None
        try:
            return size(parse_size(value)) if isinstance(value, str) else None
        except ForebayError:
            return None

    listed = section.get("willneed", [])
    items = listed if isinstance(listed, list) else [listed]
    extents: list[Extent] = []
    wrong = 0
    for item in items:
        pair = [size(value) for value in item] if isinstance(item, list) else []
        if len(pair) == 2 and pair[0] is not None and pair[1] is not None:
            extents.append((pair[0], pair[1]))
        else:
            wrong += 1
    backward = sum(
        1 for before, after in itertools.pairwise(extents) if after[0] < before[0] + before[1]
    )
    return SectionSummary(
        pattern=str(section.get("path", "")),
        extents=len(extents),
        bytes_declared=sum(length for _, length in extents),
        to_the_end=sum(1 for _, length in extents if length == 0),
        backward=backward,
        wrong=wrong,
        others={k: v for k, v in section.items() if k not in ("path", "willneed")},
    )

"""What a run left in write-behind logs of this node and in no file: what to say about it."""

import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from forebay import cache, filesystem, intent_file
from forebay.errors import ForebayError
from forebay.records import Record
from forebay.units import show_bytes

_CACHE = ("forebay_cache", "e10_cache")
_PATH = ("forebay_cache_path", "e10_cache_path")
_HOLDING = ("writing", "draining", "left", "incomplete", "damaged")


def _declared(variables: Mapping[str, str], records: Iterable[Record]) -> list[tuple[str, str]]:
    """All hints that a run's variables, intent file and records speak of, in no order."""
    pairs: list[tuple[str, str]] = []
    for text in variables.get("FOREBAY_HINTS", "").split(";"):
        key, _, value = text.partition("=")
        pairs.append((key.strip(), value.strip()))
    pairs += [pair for record in records for pair in record.hints.items()]
    if "FOREBAY_INTENT" in variables:
        try:
            intent = intent_file.load(Path(variables["FOREBAY_INTENT"]))
        except (OSError, ForebayError):  # The library has said so.
            return pairs
        for section in intent_file.sections(intent):
            pairs += _of_section(section)
    return pairs


def _of_section(section: dict[str, Any]) -> list[tuple[str, str]]:
    table = section.get("cache")
    if not isinstance(table, dict):
        return [(key, str(value)) for key, value in section.items()]
    words = {"mode": "forebay_cache"}
    return [(words.get(key, f"forebay_cache_{key}"), str(value)) for key, value in table.items()]


def left_in_logs(
    variables: Mapping[str, str], records: Iterable[Record], failed: bool, since_unix_s: float
) -> list[cache.Entry]:
    """Logs made since then that hold bytes which are in no file. Looks where logs usually are and
    where the run's declarations say; not at all where it went well and declares no cache."""
    pairs = _declared(variables, records)
    if not failed and not any(key in _CACHE for key, _ in pairs):
        return []
    places = {Path(place.path) for place in filesystem.local_paths()}
    places |= {Path(value) for key, value in pairs if key in _PATH and Path(value).is_dir()}
    try:
        found = cache.survey(cache.Selection(directories=sorted(places)))
    except ForebayError:  # No forebay-cache is installed.
        return []
    return [
        log for log in found.in_state(*_HOLDING) if log.get("made_unix_s", 0) >= int(since_unix_s)
    ]


def advice(logs: list[cache.Entry]) -> list[str]:
    """What is missing from which file, and how to get it there."""
    by_file: dict[str, list[cache.Entry]] = {}
    for log in logs:
        by_file.setdefault(log["file"], []).append(log)
    lines = []
    for file, theirs in by_file.items():
        size = sum(log["complete_bytes"] + log["incomplete_bytes"] for log in theirs)
        count = f"{len(theirs)} write-behind log{'s' if len(theirs) != 1 else ''}"
        lines.append(f"forebay: {file} is not complete: {show_bytes(size)} are in {count} only.")
        if any(log["in_use"] for log in theirs):
            lines.append("A process of it still runs, and may be writing them to the file.")
        lines.append(f"Bring them there: forebay cache recover {shlex.quote(file)}")
    return lines

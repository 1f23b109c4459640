"""The part of system.json that the report reads (docs/formats/system.md)."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forebay.errors import ForebayError
from forebay.trace.directory import checksum

FORMAT = "forebay system"
VERSION = 1
LEVELS = ("device", "file system", "network")
MODES = ("direct", "cold", "warm", "fsync", "transfer")


@dataclass(frozen=True)
class Limit:
    """A rate in bytes a second, with its 95 % interval, of one kind of access."""

    level: str
    path: str  # what it was measured below; empty of a network
    operation: str  # read or write; of a network either
    mode: str
    size_bytes: int
    processes: int
    median: float
    low: float
    high: float


@dataclass(frozen=True)
class System:
    """What was measured, and on which host."""

    path: Path
    host: str
    limits: list[Limit]


def load(path: Path) -> System:
    """Raises ForebayError for what is no such file or is of a later version."""
    advice = "docs/formats/system.md says what is in such a file."
    try:
        document = json.loads(path.read_bytes())
    except ValueError as error:
        raise ForebayError(f"{path} is no JSON: {error}", advice, exit_code=1) from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ForebayError(f"{path} is no system file", advice, exit_code=1)
    if document.get("version") != VERSION:
        raise ForebayError(
            f"{path} has version {document.get('version')!r}, and this command reads {VERSION}",
            "Read it with the Forebay that wrote it, or a newer one.",
            exit_code=1,
        )
    if document.get("checksum", "") not in ("", checksum(document)):
        raise ForebayError(
            f"{path} is damaged: its checksum does not fit its content", advice, exit_code=1
        )
    try:
        host = str(document["host"])
        limits = [_limit(entry) for entry in document["limits"]]
    except (KeyError, TypeError, ValueError) as error:
        raise ForebayError(f"{path} is damaged: {error!r}", advice, exit_code=1) from error
    return System(path, host, limits)


def _limit(entry: dict[str, Any]) -> Limit:
    rate = entry["bytes_per_second"]
    limit = Limit(
        level=str(entry["level"]),
        path=str(entry.get("path", "")),
        operation=str(entry["operation"]),
        mode=str(entry["mode"]),
        size_bytes=int(entry["size_bytes"]),
        processes=int(entry.get("processes", 1)),
        median=float(rate["median"]),
        low=float(rate["low"]),
        high=float(rate["high"]),
    )
    if limit.level not in LEVELS or limit.mode not in MODES:
        raise ValueError(f"level {limit.level!r}, mode {limit.mode!r}")
    if limit.operation not in ("read", "write"):
        raise ValueError(f"operation {limit.operation!r}")
    if not (limit.size_bytes > 0 and 0 < limit.low <= limit.median <= limit.high):
        raise ValueError(f"a limit of {rate!r} at {limit.size_bytes} bytes")
    return limit

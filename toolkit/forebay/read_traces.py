"""What a recorded run read: one trace per opening of a file (docs/formats/report.md), and the reads
of each file that a later run will repeat."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forebay import record_files
from forebay.intent_file import DeclaredReads, Extent, coalesced

FORMAT_VERSION = 1
FEWEST_BYTES = 1 << 20  # Files of which less was read are left out: programs' own and libraries'.


@dataclass(frozen=True)
class Trace:
    """The reads of one opening, in their order."""

    path: Path
    size: int  # of the file
    reads: int
    bytes: int
    left_out: int  # reads that were too many to be kept
    extents: list[Extent]


@dataclass(frozen=True)
class Recording:
    """All files of a run. `small` of them were read so little that nothing is declared of them."""

    files: list[DeclaredReads]
    small: int
    left_out: int
    rejected: list[str]  # traces that were not whole


def load(places: list[Path]) -> Recording:
    """The traces in `places`, which are traces or directories of them. Openings of a file that read
    the same count once; those that read otherwise follow each other as they were closed, and a
    program finds its place in there."""
    found: list[Path] = []
    for place in places:
        found += place.glob("*.trace") if place.is_dir() else [place]
    rejected: list[str] = []
    traces = record_files.read(found, FORMAT_VERSION, _parsed, rejected)
    by_path: dict[Path, list[Trace]] = {}
    for trace in traces:
        by_path.setdefault(trace.path, []).append(trace)
    large = {p: t for p, t in by_path.items() if sum(one.bytes for one in t) >= FEWEST_BYTES}
    return Recording(
        files=[_declared(path, openings) for path, openings in large.items()],
        small=len(by_path) - len(large),
        left_out=sum(trace.left_out for trace in traces),
        rejected=rejected,
    )


def _parsed(record: dict[str, Any]) -> Trace:
    path = record_files.text(record, "path")
    if "path_bytes" in record:  # else it is UTF-8
        path = os.fsdecode(bytes.fromhex(record_files.text(record, "path_bytes")))
    if not path.startswith("/") or "\0" in path:
        raise ValueError("a path that no file has")
    if not isinstance(record["extents"], list):
        raise ValueError("extents is no list")
    size, reads, amount, left_out = (
        record_files.count(record[name], name) for name in ("size", "reads", "bytes", "left_out")
    )
    return Trace(Path(path), size, reads, amount, left_out, [_extent(e) for e in record["extents"]])


def _extent(value: object) -> Extent:
    if not isinstance(value, list) or len(value) != 2:
        raise ValueError("an extent that is no pair of offset and length")
    offset, length = (record_files.count(each, "a number of an extent") for each in value)
    if length < 1 or offset + length > record_files.MOST:
        raise ValueError("an extent that no file has")
    return offset, length


def _declared(path: Path, openings: list[Trace]) -> DeclaredReads:
    sizes = {trace.size for trace in openings}
    same_size = sizes.pop() if len(sizes) == 1 and 0 not in sizes else None
    return DeclaredReads(path, _joined(openings), "recording", same_size)


def _joined(openings: list[Trace]) -> list[Extent]:
    different = dict.fromkeys(tuple(trace.extents) for trace in openings)
    return coalesced(extent for extents in different for extent in extents)

"""What a recorded run read: one trace per opening of a file (docs/formats/report.md), and the reads
of each file that a later run will repeat."""

import json
from dataclasses import dataclass
from pathlib import Path

from forebay import record_files
from forebay.intent_file import DeclaredReads, Extent, coalesced

FORMAT_VERSION = 1
FEWEST_BYTES = 1 << 20  # Files of which less was read are left out: programs' own and libraries'.


@dataclass(frozen=True)
class Trace:
    """The reads of one opening, in their order."""

    path: Path
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
    traces: list[Trace] = []
    rejected: list[str] = []
    for path, content in record_files.whole(found, rejected):
        try:
            traces.append(_parsed(content))
        except (ValueError, KeyError, TypeError) as error:
            rejected.append(f"{path.name}: missing or wrong key: {error!r}")
    by_path: dict[Path, list[Trace]] = {}
    for trace in traces:
        by_path.setdefault(trace.path, []).append(trace)
    large = {p: t for p, t in by_path.items() if sum(one.bytes for one in t) >= FEWEST_BYTES}
    return Recording(
        files=[DeclaredReads(path, _joined(openings)) for path, openings in large.items()],
        small=len(by_path) - len(large),
        left_out=sum(trace.left_out for trace in traces),
        rejected=rejected,
    )


def _parsed(content: bytes) -> Trace:
    record = json.loads(content)
    if record["version"] != FORMAT_VERSION:
        raise ValueError(f"version {record['version']!r}, this command reads {FORMAT_VERSION}")
    extents = [(int(offset), int(length)) for offset, length in record["extents"]]
    if any(offset < 0 or length < 1 for offset, length in extents):
        raise ValueError("an extent that no file has")
    return Trace(
        path=Path(str(record["path"])),
        reads=int(record["reads"]),
        bytes=int(record["bytes"]),
        left_out=int(record["left_out"]),
        extents=extents,
    )


def _joined(openings: list[Trace]) -> list[Extent]:
    different = dict.fromkeys(tuple(trace.extents) for trace in openings)
    return coalesced(extent for extents in different for extent in extents)

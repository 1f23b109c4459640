"""The files that a run's records are in (docs/formats/report.md): their order and checksums."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import xxhash


def in_order(paths: Iterable[Path]) -> list[Path]:
    """Those that are complete, as they were written: a name that begins with a dot is one that is
    being written."""
    complete = (path for path in paths if not path.name.startswith("."))
    return sorted(complete, key=lambda path: (path.stat().st_mtime_ns, path.name))


def fits(content: bytes, checksum: str) -> bool:
    """Whether it is the content that a name with this checksum was made for."""
    return xxhash.xxh64_hexdigest(content) == checksum


def whole(paths: Iterable[Path], rejected: list[str]) -> Iterator[tuple[Path, bytes]]:
    """Each in order, with its content. One that is not whole is added to `rejected`, with the
    reason."""
    for path in in_order(paths):
        content = path.read_bytes()
        if fits(content, path.stem.split("-")[-1]):
            yield path, content
        else:
            rejected.append(f"{path.name}: the checksum does not fit its content")

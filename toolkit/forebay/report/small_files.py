"""Small files that are spread over many servers: each of them is asked for a file that would do
with one. [ARCHER: reading 36 000 files of 300 KB on 48 servers took 2 hours, not 6 minutes]"""

import shlex
from pathlib import PurePosixPath

import numpy as np
from numpy.typing import NDArray

from forebay.report.clue import Clue
from forebay.report.layers import Flags, Ints, Layer
from forebay.trace import tables
from forebay.trace.calls import Kind
from forebay.trace.directory import Trace
from forebay.units import show_bytes, show_count, show_seconds

# Fewer are no pattern, and give no median to compare with.
_LEAST_FILES = 16
# Closing a file that was written waits for its bytes, which one server would have to take as well.
_NEEDS_SERVERS = (Kind.OPEN, Kind.CLOSE, Kind.STAT, Kind.OTHER, Kind.REMOVE, Kind.RENAME)
_PLACES_NAMED = 3
_SMALL = 1 << 20  # bytes; or what fits into a stripe
# Files are alike in size within this factor.
_ALIKE = 4


def striped(trace: Trace, posix: Layer, mpi: Layer) -> Clue | None:
    """What such files took beyond files of like sizes with one stripe in the same run. Without
    these, the part for all servers but one of what is no reading and writing."""
    columns = ["path", "kind", "mount_point", "file_system", "stripe_size", "stripe_count"]
    files = trace.table("files", columns)
    count = tables.integers(files, "stripe_count", 0)
    size = _sizes(trace, posix)
    regular = np.array([kind in (None, "file") for kind in files["kind"].to_pylist()], np.bool_)
    stripe = tables.integers(files, "stripe_size", 0)
    small = regular & (size > 0) & (size <= np.maximum(stripe, _SMALL))
    of_all = _seconds(posix.only(posix.file >= 0), len(count))
    written = np.isin(posix.file, posix.file[(posix.kind == Kind.WRITE) & (posix.moved > 0)])
    asking = np.isin(posix.kind, _NEEDS_SERVERS) & ~((posix.kind == Kind.CLOSE) & written)
    taken = _seconds(posix.only(asking & (posix.file >= 0)), len(count))
    # Ranks that open a file together wait for each other there.
    opening = (mpi.kind == Kind.OPEN) & (mpi.file >= 0)
    together = _seconds(mpi.only(opening), len(count))
    waited = np.maximum(0, together - taken)
    taken += waited
    of_all += waited
    wide = small & (taken > 0) & (count > 1)
    if wide.sum() < _LEAST_FILES:
        return None
    servers = int(np.median(count[wide]))
    paths = files["path"].to_pylist()
    total = float(taken[wide].sum())
    middle = float(np.median(size[wide]))
    evidence = [
        f"{show_count(int(wide.sum()))} files of {show_bytes(middle)} on {servers} servers each "
        "(medians)",
        "opening, asking for and removing them, and closing what was only read, took "
        f"{'with waiting in MPI_File_open ' if waited[wide].any() else ''}"
        f"{show_seconds(total)} of all processes; with reads and writes "
        f"{show_seconds(float(of_all[wide].sum()))}, "
        f"{show_seconds(float(np.median(of_all[wide])))} each (median)",
    ]
    like_size = (size >= middle / _ALIKE) & (size <= middle * _ALIKE)
    alike = (of_all > 0) & (count == 1) & like_size
    alike &= _on_the_same(files["mount_point"].to_pylist(), wide)
    if alike.sum() >= _LEAST_FILES:
        each = float(np.median(of_all[alike]))
        spare = float(of_all[wide].sum()) - each * float(wide.sum())
        confidence = "medium"
        evidence.append(
            f"files of like sizes with one stripe, in the same run and file system, took "
            f"{show_seconds(each)} each (median of {show_count(int(alike.sum()))})"
        )
    else:
        spare = float((taken[wide] * (1 - 1 / count[wide])).sum())
        confidence = "low"
        evidence.append(
            "counted is the part of the former for all servers but one; the run has no such files "
            "with one stripe to compare with"
        )
    types = files["file_system"].to_pylist()
    is_lustre = {types[place] for place in np.flatnonzero(wide).tolist()} == {"lustre"}
    places = _directories(paths, wide, taken)
    evidence.append(f"most of it: {', '.join(places)}")
    return Clue(
        "small-files-striped",
        f"Small files on many servers: {show_count(int(wide.sum()))} on {servers} each",
        spare,
        confidence,
        evidence,
        _advice(places[0] if is_lustre else None),
    )


def _advice(directory: str | None) -> str:
    """With the line for Lustre where they are there."""
    how = f": lfs setstripe -c 1 {shlex.quote(directory)}" if directory is not None else ""
    return (
        f"Try one stripe for the directory in which they are made{how}. It holds for files that "
        "are made after that; whether the run gains by it, a comparison shows."
    )


def _seconds(rows: Layer, files: int) -> NDArray[np.float64]:
    """What calls took, of each file."""
    seconds: NDArray[np.float64] = np.zeros(files)
    np.add.at(seconds, rows.file, rows.seconds)
    return seconds


def _sizes(trace: Trace, posix: Layer) -> Ints:
    """Of each file the most that was seen of its length, bytes."""
    files = trace.table("files", ["size_start", "size_end"])
    size = np.maximum(
        tables.integers(files, "size_start", 0), tables.integers(files, "size_end", 0)
    )
    known = posix.only((posix.file >= 0) & (posix.offset >= 0) & (posix.moved > 0))
    np.maximum.at(size, known.file, known.offset + known.moved)
    return size


def _on_the_same(mounts: list[str | None], wide: Flags) -> Flags:
    """Files on file systems that have `wide` ones."""
    named = {mount for mount, is_wide in zip(mounts, wide.tolist(), strict=True) if is_wide}
    return np.array([mount in named for mount in mounts], np.bool_)


def _directories(paths: list[str], rows: Flags, seconds: NDArray[np.float64]) -> list[str]:
    """Those in which files took longest."""
    total: dict[str, float] = {}
    for place in np.flatnonzero(rows).tolist():
        name = str(PurePosixPath(paths[place]).parent)
        total[name] = total.get(name, 0.0) + float(seconds[place])
    return sorted(total, key=lambda name: (-total[name], name))[:_PLACES_NAMED]

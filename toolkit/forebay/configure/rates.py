"""What storage, network and memory can do, from system.json where it tells, else from the traced
calls themselves."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from forebay import filesystem
from forebay.report import timeline
from forebay.report.layers import Layer
from forebay.system_file import Limit, System
from forebay.trace.calls import Kind
from forebay.trace.directory import Trace

# A program's writes end in the page cache, if there is one; what it reads comes from storage, if
# it has not just been written.
_MODES = {
    ("write", False): ("warm", "fsync", "direct", "cold"),
    ("read", False): ("cold", "direct", "warm"),
    ("read", True): ("warm", "cold", "direct"),
}


@dataclass(frozen=True)
class Point:
    """A measured rate: bytes a second of `processes` together, in requests of `size_bytes`.
    `access` and `engine` are of MPI-IO: `collective`, `independent`; `mpi`, `forebay`."""

    level: str
    path: str
    operation: str
    mode: str
    size_bytes: int
    processes: int
    rate: float
    access: str = "posix"
    engine: str = "mpi"
    mount: str = ""  # that `path` lies on, where it is known
    at_random: bool = False  # else each process in order, or pieces dealt out in turn


def of_system(system: System) -> list[Point]:
    """The limits of a system file."""
    return [_point(limit) for limit in system.limits]


def _point(limit: Limit) -> Point:
    at_random = limit.order == "random"
    return Point(
        level=limit.level,
        path=limit.path,
        operation=limit.operation,
        mode=limit.mode,
        size_bytes=limit.size_bytes,
        # To a storage, requests at random that a process has under way are as those of several.
        processes=limit.processes * (limit.in_flight if at_random else 1),
        rate=limit.median,
        access=limit.access,
        engine=limit.engine,
        mount=filesystem.mount_of(Path(limit.path)).point if Path(limit.path).exists() else "",
        at_random=at_random,
    )


def of_trace(trace: Trace, posix: Layer, mpi: Layer) -> list[Point]:
    """Rates of the run's own calls, by mount point, direction and power of two of the size: while
    any process was in such a call. Of calls to POSIX, else of those of MPI-IO. What a sync or a
    close of written files waits for is a part of writing."""
    mounts = [mount or "/" for mount in trace.table("files")["mount_point"].to_pylist()]
    names = sorted(set(mounts))
    place_of = np.array([names.index(mount) for mount in mounts], np.int64)
    layer = posix if (posix.data & (posix.moved > 0)).any() else mpi
    rows = layer.only((layer.file >= 0) & ~layer.behind)
    ends = rows.only(_ends_writing(rows))
    rows = rows.only(rows.data & (rows.moved > 0))
    writes = rows.kind == Kind.WRITE
    points = []
    power = np.floor(np.log2(np.maximum(rows.moved, 1))).astype(np.int64)
    place = place_of[rows.file]
    for at, name in enumerate(names):
        for operation, directed in (("read", ~writes), ("write", writes)):
            here = (place == at) & directed
            slower = 1.0
            if operation == "write" and here.any():
                slower = _with_ends(rows.only(here), ends.only(place_of[ends.file] == at))
            for each in np.unique(power[here]):
                part = rows.only(here & (power == each))
                busy = timeline.busy_seconds(part.start_ns, part.end_ns) * slower
                if busy > 0:
                    size, count = int(part.moved.mean()), len(np.unique(part.process))
                    rate = float(part.moved.sum()) / busy
                    points.append(
                        Point("file system", name, operation, "traced", size, count, rate)
                    )
    return points


def _ends_writing(rows: Layer) -> NDArray[np.bool_]:
    """Which calls sync or close a file that is written."""
    written = np.unique(rows.file[rows.kind == Kind.WRITE])
    ends: NDArray[np.bool_] = np.isin(rows.kind, (Kind.SYNC, Kind.CLOSE)) & np.isin(
        rows.file, written
    )
    return ends


def _with_ends(writes: Layer, ends: Layer) -> float:
    """The time of writes with that of syncs and closes, in proportion to theirs alone."""
    alone = timeline.busy_seconds(writes.start_ns, writes.end_ns)
    both = timeline.busy_seconds(
        np.concatenate((writes.start_ns, ends.start_ns)),
        np.concatenate((writes.end_ns, ends.end_ns)),
    )
    return both / alone if alone > 0 else 1.0


@dataclass(frozen=True)
class Told:
    """A measured rate, bytes a second, and the size in bytes that it is of."""

    rate: float
    size_bytes: float


class Rates:
    """Answers how fast something goes, by the nearest that was measured; None where nothing like it
    was."""

    def __init__(self, measured: Iterable[Point], traced: Iterable[Point] = ()) -> None:
        self._measured = list(measured)
        self._traced = list(traced)

    def storage(
        self,
        mount: str,
        operation: str,
        size: float,
        processes: float,
        just_written: bool = False,
        traced_too: bool = True,
        at_random: bool = False,
    ) -> float | None:
        """Bytes a second of `processes` that each make requests of `size` bytes, one at a time, on
        the file system at `mount`; with `traced_too` by the traced calls, if nothing else tells."""
        modes = _MODES[operation, just_written and operation == "read"]
        fitting = [
            point
            for point in self._measured
            if point.level in ("file system", "device")
            and point.operation == operation
            and _is_of(point, mount)
        ]
        in_order = _first(modes, [point for point in fitting if not point.at_random])
        jumping = [point for point in fitting if point.at_random] if at_random else []
        if jumping:
            return _at_random(jumping, in_order, modes, size, processes)
        if in_order:
            return interpolated(in_order, size, processes)
        if not traced_too:
            return None
        own = [p for p in self._traced if p.operation == operation and p.path == (mount or "/")]
        return interpolated(own, size, processes) if own else None

    def library(
        self, mount: str, operation: str, access: str, engine: str, piece: float, processes: float
    ) -> Told | None:
        """MPI-IO with its defaults, in contiguous pieces of the size within what was measured that
        is nearest to `piece` bytes. What smaller pieces cost depends on who makes requests of
        them, which is not told here."""
        chosen = self._alike(
            lambda p: p.level == "library" and p.operation == operation and p.access == access
            and p.engine == engine and _is_of(p, mount)
        )  # fmt: skip
        if not chosen:
            return None
        size = _within(chosen, piece)
        return Told(interpolated(chosen, size, processes), size)

    def network(self, size: float) -> float | None:
        """Bytes a second of one pair of processes."""
        chosen = self._alike(lambda p: p.level == "network")
        return interpolated(chosen, size, 1) if chosen else None

    def memory(self, size: float) -> float | None:
        """Bytes a second of copies by one process. Those of fewer bytes than were measured are
        taken to be as fast: a copy is no request."""
        chosen = self._alike(lambda p: p.level == "memory")
        return interpolated(chosen, _within(chosen, size), 1) if chosen else None

    def knows(self, mount: str) -> bool:
        """Whether the system file has anything of the file system at `mount`."""
        return any(p.path and _is_of(p, mount) for p in self._measured)

    def _alike(self, fits: Callable[[Point], bool]) -> list[Point]:
        return [point for point in self._measured if fits(point) and not point.at_random]


def _first(modes: Iterable[str], points: list[Point]) -> list[Point]:
    """Those of the first mode, and of its first level, that there are points of."""
    for mode in modes:
        for level in ("file system", "device"):
            alike = [point for point in points if point.mode == mode and point.level == level]
            if alike:
                return alike
    return []


def _at_random(
    jumping: list[Point], in_order: list[Point], modes: Iterable[str], size: float, processes: float
) -> float | None:
    """The rate of requests that jump about, never more than in order. What is in the page cache is
    not asked of the storage: there, only what was measured of the page cache counts. A request of
    more bytes than were measured at random takes as long as the largest that was, and for the
    bytes beyond as in order."""
    cached = bool(in_order) and in_order[0].mode == "warm"
    chosen = _first(["warm"] if cached else modes, jumping)
    plain = interpolated(in_order, size, processes) if in_order else None
    if not chosen:
        return plain
    measured = _within(chosen, size)
    rate = interpolated(chosen, min(size, measured), processes)
    if plain is None:
        return rate
    beyond = max(0.0, size - measured)
    return min(plain, size / ((size - beyond) / rate + beyond / plain))


def _within(points: Iterable[Point], size: float) -> float:
    """`size`, or what is nearest to it between the least and the most that was measured."""
    sizes = [point.size_bytes for point in points]
    return float(min(max(size, min(sizes)), max(sizes)))


def _is_of(point: Point, mount: str) -> bool:
    """Whether a point was measured on the file system at `mount`: by its path alone, where that is
    not on this host."""
    if point.mount:
        return point.mount == (mount or "/")
    return f"{point.path.rstrip('/')}/".startswith(f"{mount.rstrip('/')}/")


def interpolated(points: Iterable[Point], size: float, processes: float) -> float:
    """Between the sizes and numbers of processes that were measured on logarithmic scales. Below
    the smallest size a request is taken to cost the same, so that the rate goes with the size;
    beyond the largest, and beyond the numbers of processes, the rate stays. Where several points
    are of one size and number, the highest counts."""
    groups: dict[int, dict[int, float]] = {}
    for point in points:
        of_group = groups.setdefault(point.processes, {})
        of_group[point.size_bytes] = max(point.rate, of_group.get(point.size_bytes, 0.0))
    counts = sorted(groups)
    rates = [_of_size(groups[count], max(1.0, size)) for count in counts]
    at = np.interp(np.log(max(1.0, processes)), np.log(counts), np.log(rates))
    return float(np.exp(at))


def _of_size(rates: dict[int, float], size: float) -> float:
    sizes = sorted(rates)
    if size < sizes[0]:
        return rates[sizes[0]] * size / sizes[0]
    logs = np.log([rates[each] for each in sizes])
    return float(np.exp(np.interp(np.log(size), np.log(sizes), logs)))

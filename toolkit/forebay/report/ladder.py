"""What share of each level's limit an application used, for like sizes, modes and operations."""

from dataclasses import dataclass

import numpy as np

from forebay import filesystem
from forebay.report import call_order, metadata_ladder, mpi_ladder, timeline
from forebay.report.layers import Flags, Ints, Layer
from forebay.report.metadata_ladder import MetadataStep
from forebay.report.rung import ALIKE, SHARE_OF_BYTES, Step, distance
from forebay.system_file import LEVELS, Limit, System
from forebay.trace import calls, tables
from forebay.trace.calls import Kind
from forebay.trace.directory import Trace

_O_DIRECT = 0o40000
# With what a program's calls to POSIX reach.
_COMPARED = ("device", "file system", "network")


@dataclass(frozen=True)
class Ladder:
    steps: list[Step]
    metadata: list[MetadataStep]
    warnings: list[str]

    def as_json(self) -> dict[str, object]:
        return {
            "steps": [step.as_json() for step in self.steps],
            "metadata": [step.as_json() for step in self.metadata],
            "warnings": self.warnings,
        }


def of(trace: Trace, posix: Layer, system: System) -> Ladder:
    """By mount point and operation; of reads and writes those with a hundredth of the bytes or
    more."""
    differs = system.differs_from_run("the run was", trace.run.machine)
    warnings = [] if differs is None else [f"{differs}: shares hold only if the two are alike."]
    files = trace.table("files", ["mount_point", "file_system"])
    mounts = [mount or "" for mount in files["mount_point"].to_pylist()]
    types = dict(zip(mounts, files["file_system"].to_pylist(), strict=True))
    names = sorted(set(mounts))
    host = _hosts(trace)[posix.process]
    mount_of = np.array([*(names.index(mount) for mount in mounts), -1])[posix.file]
    direct = _direct_files(trace)[posix.file] if len(posix) else np.zeros(0, np.bool_)
    total = max(1, int(posix.moved.sum()))
    steps: list[Step] = []
    for place, mount in enumerate(names):
        for kind, operation in ((Kind.READ, "read"), (Kind.WRITE, "write")):
            for is_direct in (True, False):
                rows = (mount_of == place) & (posix.kind == kind) & (direct == is_direct)
                rows &= (posix.moved > 0) & posix.timed
                moved = posix.moved[rows]
                if moved.sum() < SHARE_OF_BYTES * total:
                    continue
                rate = _rate(posix, rows)
                if rate is None:
                    continue
                mode = "direct" if is_direct else "buffered"
                size = int(np.median(moved))
                order = "random" if call_order.at_random(posix.only(rows)) else "sequential"
                remote = filesystem.is_over_network(types[mount] or "")
                for limit in _like(system, mount, operation, mode, size, remote, order):
                    reached = rate
                    if limit is not None and limit.level == "network":
                        each = (_rate(posix, rows & (host == one)) for one in np.unique(host))
                        reached = max(one for one in each if one is not None)
                    steps.append(Step(mount, operation, mode, size, reached, limit, order))
    steps += mpi_ladder.of(trace, system)
    return Ladder(steps, metadata_ladder.of(trace, system), warnings)


def _hosts(trace: Trace) -> Ints:
    """Of each process a number for its host; those of which none is known are taken for one."""
    return np.append(tables.codes(trace.table("processes", ["host"]), "host")[0], -1)


def _rate(posix: Layer, rows: Flags) -> float | None:
    """Bytes a second while any process was in one of the calls; None if they took no time."""
    busy = timeline.busy_seconds(posix.start_ns[rows], posix.end_ns[rows])
    return float(posix.moved[rows].sum()) / busy if busy > 0 else None


def _direct_files(trace: Trace) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    """Which files were opened past the page cache, and False for no file."""
    direct = np.zeros(trace.rows("files") + 1, np.bool_)
    table = trace.table("posix", ["file", "call", "argument"])
    flags, files = tables.integers(table, "argument", 0), tables.integers(table, "file")
    opens = calls.kinds(table) == Kind.OPEN
    chosen = files[opens & (flags > 0) & ((flags & _O_DIRECT) != 0)]
    direct[chosen[chosen >= 0]] = True
    return direct


def _like(
    system: System, mount: str, operation: str, mode: str, size: int, remote: bool, order: str
) -> list[Limit | None]:
    """Of each level and mode the measured limit of `order`, else of calls in order, and of those
    the one of nearest size, and then the highest, whatever processes and files it takes; [None] if
    none is alike. `remote`: bytes of the mount go over a network."""

    def rank(limit: Limit) -> tuple[bool, float, float]:
        return limit.order != order, distance(limit, size), -limit.median

    best: dict[tuple[str, str], Limit] = {}
    for limit in system.limits:
        if limit.level not in _COMPARED or limit.order not in ("sequential", order):
            continue
        if distance(limit, size) > ALIKE:
            continue
        if limit.level == "network":
            # A message is read by one and written by the other. Within a host it is none.
            fits = remote and limit.hosts > 1
        else:
            # A device is measured past the page cache alone.
            past_cache = mode == "direct" or limit.level == "device"
            fits = limit.operation == operation and (limit.mode == "direct") == past_cache
            fits = fits and system.is_of(limit.path, mount)
        key = (limit.level, limit.mode)
        if fits and (key not in best or rank(limit) < rank(best[key])):
            best[key] = limit
    ordered = sorted(best.values(), key=lambda each: (LEVELS.index(each.level), each.mode))
    return list(ordered) or [None]

"""What share of each level's limit an application used, for like sizes, modes and operations."""

from dataclasses import dataclass

import numpy as np

from forebay.report import timeline
from forebay.report.layers import Layer
from forebay.system_file import LEVELS, Limit, System
from forebay.trace import tables
from forebay.trace.calls import Kind
from forebay.trace.directory import Trace

# Sizes within this factor of each other are alike.
_ALIKE = 2.0
_SHARE_OF_BYTES = 0.01
_O_DIRECT = 0o40000
# With what a program's calls to POSIX reach.
_COMPARED = ("device", "file system", "network")


@dataclass(frozen=True)
class Step:
    """One rung: the application's rate while any process was in such a call, beside a limit. A
    share above 1 tells of a cache; `limit` None: nothing like it was measured."""

    mount_point: str
    operation: str
    mode: str  # direct or buffered
    size_bytes: int  # median of the application's calls
    rate: float
    limit: Limit | None

    @property
    def share(self) -> float | None:
        return None if self.limit is None else self.rate / self.limit.median

    def as_json(self) -> dict[str, object]:
        limit = None if self.limit is None else dict(vars(self.limit))
        return {**vars(self), "limit": limit, "share": self.share}


@dataclass(frozen=True)
class Ladder:
    steps: list[Step]
    warnings: list[str]

    def as_json(self) -> dict[str, object]:
        return {"steps": [step.as_json() for step in self.steps], "warnings": self.warnings}


def of(trace: Trace, posix: Layer, system: System) -> Ladder:
    """By mount point and operation, those with a hundredth of the bytes or more."""
    hosts = [str(host) for host in trace.run.machine.get("hosts", [])]
    warnings = []
    if hosts and system.host not in hosts:
        warnings.append(
            f"{system.path} was measured on {system.host}, and the run was on "
            f"{', '.join(hosts)}: shares hold only if the two are alike."
        )
    mounts = [mount or "" for mount in trace.table("files")["mount_point"].to_pylist()]
    names = sorted(set(mounts))
    mount_of = np.array([*(names.index(mount) for mount in mounts), -1])[posix.file]
    direct = _direct_files(trace)[posix.file] if len(posix) else np.zeros(0, np.bool_)
    total = max(1, int(posix.moved.sum()))
    steps: list[Step] = []
    for place, mount in enumerate(names):
        for kind, operation in ((Kind.READ, "read"), (Kind.WRITE, "write")):
            for is_direct in (True, False):
                rows = (mount_of == place) & (posix.kind == kind) & (direct == is_direct)
                rows &= posix.moved > 0
                moved = posix.moved[rows]
                if moved.sum() < _SHARE_OF_BYTES * total:
                    continue
                busy = timeline.busy_seconds(posix.start_ns[rows], posix.end_ns[rows])
                if busy <= 0:
                    continue
                mode = "direct" if is_direct else "buffered"
                size, rate = int(np.median(moved)), float(moved.sum()) / busy
                limits = _like(system, mount, operation, mode, size)
                steps += [Step(mount, operation, mode, size, rate, limit) for limit in limits]
    return Ladder(steps, warnings)


def _direct_files(trace: Trace) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    """Which files were opened past the page cache, and False for no file."""
    direct = np.zeros(trace.rows("files") + 1, np.bool_)
    table = trace.table("posix", ["file", "call", "argument"])
    _, words = tables.codes(table, "call")
    if any("open" in word for word in words):
        flags = tables.integers(table, "argument", 0)
        numbers, words = tables.codes(table, "call")
        opens = np.array([*("open" in word for word in words), False])[numbers]
        files = tables.integers(table, "file")
        chosen = files[opens & (flags > 0) & ((flags & _O_DIRECT) != 0)]
        direct[chosen[chosen >= 0]] = True
    return direct


def _like(system: System, mount: str, operation: str, mode: str, size: int) -> list[Limit | None]:
    """Of each level and mode the measured limit of nearest size, and of those the highest, whatever
    processes and files it takes; [None] if none is alike."""
    best: dict[tuple[str, str], Limit] = {}
    for limit in system.limits:
        if limit.level not in _COMPARED or limit.order != "sequential":
            continue
        far = _distance(limit, size)
        if limit.level == "network":
            fits = True
        else:
            below = f"{limit.path.rstrip('/')}/".startswith(f"{mount.rstrip('/')}/")
            fits = below and limit.operation == operation and far <= _ALIKE
            # A device is measured past the page cache alone.
            past_cache = mode == "direct" or limit.level == "device"
            fits = fits and (limit.mode == "direct") == past_cache
        key = (limit.level, limit.mode)
        if fits and (key not in best or _rank(limit, size) < _rank(best[key], size)):
            best[key] = limit
    ordered = sorted(best.values(), key=lambda each: (LEVELS.index(each.level), each.mode))
    return list(ordered) or [None]


def _rank(limit: Limit, size: int) -> tuple[float, float]:
    return _distance(limit, size), -limit.median


def _distance(limit: Limit, size: int) -> float:
    return max(limit.size_bytes / size, size / limit.size_bytes)

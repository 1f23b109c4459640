"""What share of each limit on names an application used: of creating, looking up and removing."""

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from forebay.report import timeline
from forebay.report.layers import Flags
from forebay.system_file import MetadataRate, System
from forebay.trace import calls, places, tables
from forebay.trace.calls import Kind
from forebay.trace.directory import Trace

#: Fewer tell how long one took, and no rate.
FEWEST = 10
_O_CREAT = 0o100
_AT_REMOVEDIR = 0x200
_REMOVALS = ("unlink", "unlinkat")
# By a name, as the limit is; `fstat` has a descriptor, and `access` asks for something else.
_BY_NAME = ("stat", "lstat", "fstatat", "newfstatat", "statx")


@dataclass(frozen=True)
class MetadataStep:
    """A rung: operations a second while any process was in one, beside a limit. `limit` None: it
    was not measured there."""

    mount_point: str
    operation: str  # create, stat or unlink
    count: int
    rate: float
    limit: MetadataRate | None

    @property
    def share(self) -> float | None:
        return None if self.limit is None else self.rate / self.limit.median

    @property
    def remark(self) -> str:
        """On a share above 1."""
        return "a cache effect" if (self.share or 0) > 1 else ""

    def as_json(self) -> dict[str, object]:
        limit = None if self.limit is None else asdict(self.limit)
        return {**vars(self), "limit": limit, "share": self.share}


def of(trace: Trace, system: System) -> list[MetadataStep]:
    """By mount point and operation, of the application's files, where there are FEWEST or more."""
    columns = ["call", "file", "argument", "result", "errno", "start_ns", "duration_ns"]
    table = trace.table("posix", columns)
    file = tables.integers(table, "file")
    start = tables.integers(table, "start_ns", 0)
    end = start + np.maximum(tables.integers(table, "duration_ns", 0), 0)
    failed = (tables.integers(table, "errno", 0) > 0) | (tables.integers(table, "result", 0) < 0)
    own = places.applications(trace)[file] & ~failed
    flags = tables.integers(table, "argument", 0)
    opens = own & (calls.kinds(table) == Kind.OPEN)
    removes = own & calls.marked(table, _REMOVALS) & ((flags & _AT_REMOVEDIR) == 0)
    operations = {
        "create": _first_of_each(file, start, opens & ((flags & _O_CREAT) != 0)),
        "stat": own & calls.marked(table, _BY_NAME),
        "unlink": removes,
    }
    listed = trace.table("files", ["mount_point"])["mount_point"].to_pylist()
    mounts = [mount or "" for mount in listed]
    names = sorted(set(mounts))
    mount_of = np.array([*(names.index(mount) for mount in mounts), -1])[file]
    steps = []
    for place, mount in enumerate(names):
        for operation, marked in operations.items():
            rows = marked & (mount_of == place)
            count = int(np.count_nonzero(rows))
            busy = timeline.busy_seconds(start[rows], end[rows])
            if count >= FEWEST and busy > 0:
                limit = _limit(system, mount, operation)
                steps.append(MetadataStep(mount, operation, count, count / busy, limit))
    return steps


def _first_of_each(file: NDArray[np.int64], start: NDArray[np.int64], rows: Flags) -> Flags:
    """Of the calls that `rows` marks the earliest on each file: only that may have made it."""
    found = np.flatnonzero(rows)
    found = found[np.argsort(start[found], kind="stable")]
    first = np.zeros(len(rows), np.bool_)
    first[found[np.unique(file[found], return_index=True)[1]]] = True
    return first


def _limit(system: System, mount: str, operation: str) -> MetadataRate | None:
    """The highest there, by whatever number of processes and stripes."""
    known = [
        rate
        for rate in system.metadata
        if rate.operation == operation and system.is_of(rate.path, mount)
    ]
    return max(known, key=lambda rate: rate.median, default=None)

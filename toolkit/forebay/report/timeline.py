"""Time without overlaps: of each moment of each process, the one thing that it was doing."""

from dataclasses import dataclass

import numpy as np

from forebay.report.layers import Flags, Ints, Layer
from forebay.trace.calls import Kind

#: What a moment counts as, the first that applies. Compute is what is left.
CATEGORIES = ("write", "read", "metadata", "mpi")
COMPUTE = "compute"
NAMES = {
    "compute": "compute and all else",
    "metadata": "metadata",
    "read": "read",
    "write": "write",
    "mpi": "MPI-IO beyond POSIX",
}
_MPI = CATEGORIES.index("mpi")


@dataclass(frozen=True)
class Segments:
    """Stretches of a process's time in one category, that do not overlap."""

    process: Ints
    category: Ints
    start_ns: Ints
    end_ns: Ints


def segments(posix: Layer, mpi: Layer) -> Segments:
    """Of all moments in which a process was in a call. Inside a call of MPI-IO, the POSIX call that
    runs counts; a process with several threads counts what any of them does. Who waits for a lock
    waits for another process, and not for storage."""
    posix = posix.only(posix.kind != Kind.LOCK)
    category = np.full(len(posix), CATEGORIES.index("metadata"))
    category[posix.kind == Kind.READ] = CATEGORIES.index("read")
    category[posix.kind == Kind.WRITE] = CATEGORIES.index("write")
    front = ~posix.behind
    process = np.concatenate((posix.process[front], mpi.process))
    start = np.concatenate((posix.start_ns[front], mpi.start_ns))
    end = np.concatenate((posix.end_ns[front], mpi.end_ns))
    what = np.concatenate((category[front], np.full(len(mpi), _MPI))).astype(np.int8)
    count = len(start)
    moment = np.concatenate((start, end))
    who = np.tile(process, 2)
    order = np.lexsort((moment, who))
    moment, who = moment[order], who[order]
    step = np.where(order < count, 1, -1).astype(np.int32)
    what = np.tile(what, 2)[order]
    now = np.full(len(order), -1, np.int8)
    for place in range(len(CATEGORIES)):
        active = np.cumsum(np.where(what == place, step, 0)) > 0
        now[(now < 0) & active] = place
    used = np.zeros(len(order), np.bool_)
    used[:-1] = (now[:-1] >= 0) & (moment[1:] > moment[:-1]) & (who[1:] == who[:-1])
    places = np.flatnonzero(used)
    return Segments(who[places], now[places].astype(np.int64), moment[places], moment[places + 1])


def busy_seconds(start_ns: Ints, end_ns: Ints) -> float:
    """Length of the union of spans."""
    order = np.argsort(start_ns, kind="stable")
    start, end = start_ns[order], np.maximum.accumulate(end_ns[order])
    if len(start) == 0:
        return 0.0
    gaps = np.maximum(0, start[1:] - end[:-1])
    return float(end[-1] - start[0] - gaps.sum()) / 1e9


def aside_seconds(found: Segments, start_ns: Ints, end_ns: Ints) -> float:
    """Process-seconds of MPI-IO beyond POSIX in which none of the given spans was under way."""
    mpi = found.category == _MPI
    begin, end = found.start_ns[mpi], found.end_ns[mpi]
    total = float((end - begin).sum()) / 1e9
    if len(start_ns) == 0 or len(begin) == 0:
        return total
    order = np.argsort(start_ns, kind="stable")
    start, reach = start_ns[order], np.maximum.accumulate(end_ns[order])
    first = np.flatnonzero(np.append(True, start[1:] > reach[:-1]))
    last = np.append(first[1:], len(start)) - 1
    edges = np.stack((start[first], reach[last]), axis=1).ravel()
    lengths = np.zeros(len(edges), np.int64)
    lengths[1::2] = edges[1::2] - edges[::2]
    before = np.cumsum(lengths)  # of all spans up to each edge
    busy = np.interp(end, edges, before) - np.interp(begin, edges, before)
    return total - float(busy.sum()) / 1e9


def arrival_wait_seconds(mpi: Layer) -> float:
    """Process-seconds that ranks spent in collective data calls before the last one came. Calls
    are matched by their number in the file; a file on which ranks made different numbers of them
    is left out."""
    rows = mpi.only(mpi.collective & mpi.data)
    total = 0.0
    for file in np.unique(rows.file):
        part = rows.only(rows.file == file)
        users, count = np.unique(part.process, return_counts=True)
        if len(users) < 2 or len(np.unique(count)) > 1:
            continue
        order = np.lexsort((part.start_ns, part.process))
        start = part.start_ns[order].reshape(len(users), count[0])
        end = part.end_ns[order].reshape(len(users), count[0])
        waited = np.minimum(start.max(axis=0), end) - start
        total += float(waited.clip(0).sum()) / 1e9
    return total


def chosen(segments_: Segments, processes: Flags) -> Segments:
    """The stretches of the processes that `processes` marks."""
    rows = processes[segments_.process]
    return Segments(*(values[rows] for values in vars(segments_).values()))

"""The pattern of one process, or of all, in METHOD's five dimensions: spatial, request size,
repetition, temporal and operation."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forebay.characterise.accesses import UNKNOWN, Accesses, OtherCalls
from forebay.characterise.loops import mixed
from forebay.characterise.phases import rhythm

_Ints = NDArray[np.int64]
_Bools = NDArray[np.bool_]

_NEARLY_ALL = 0.9
_MOST = 0.8
_HALF = 0.5
_SHORT_OF_RUN = 0.1
_STEADY = 0.25  # spread of a period that is one
_COMMON = 4
_SECOND = 1e9


@dataclass(frozen=True)
class Followed:
    """How each access follows the one before it of its thread, file and direction."""

    first: _Bools  # follows none
    touches: _Bools  # begins where that ended
    ahead: _Bools  # begins behind its end
    again: _Bools  # begins where that began
    in_loop: _Bools  # is one of at least four at constant distances


def followed(accesses: Accesses, in_loop: _Bools) -> Followed:
    stream = mixed(accesses.process, accesses.thread, accesses.file, accesses.write)
    order = np.argsort(stream, kind="stable")
    offset, end = accesses.offset[order], (accesses.offset + accesses.bytes)[order]
    stream = stream[order]
    new = np.append(True, stream[1:] != stream[:-1])[: len(order)]
    before, begun = np.roll(end, 1), np.roll(offset, 1)

    def placed(values: _Bools) -> _Bools:
        result = np.empty(len(order), np.bool_)
        result[order] = values
        return result

    known = ~new & (offset != UNKNOWN) & (begun != UNKNOWN)
    return Followed(
        first=placed(new),
        touches=placed(known & (offset == before)),
        ahead=placed(known & (offset > before)),
        again=placed(known & (offset == begun) & (offset != before)),
        in_loop=in_loop,
    )


@dataclass(frozen=True)
class Scope:
    """What a pattern is of: accesses, bursts and other calls of one process, or of all."""

    rows: _Ints
    burst_starts_ns: _Ints
    bursts: int
    other_calls: int
    other_ns: int
    processes: int


def scopes(
    accesses: Accesses, burst: _Ints, others: OtherCalls, processes: int
) -> tuple[Scope, list[tuple[int, Scope]]]:
    """That of all, and that of each process that has accesses, by its number."""
    begins = np.searchsorted(accesses.process, np.arange(processes + 1))
    each = []
    starts_of: list[_Ints] = []
    for process in range(processes):
        rows = np.arange(begins[process], begins[process + 1])
        if len(rows) == 0:
            continue
        own = burst[rows]
        starts = accesses.start_ns[rows][np.append(True, np.diff(own) != 0)]
        starts_of.append(starts)
        each.append(
            (
                process,
                Scope(
                    rows,
                    starts,
                    len(starts),
                    int(others.count[process]),
                    int(others.duration_ns[process]),
                    1,
                ),
            )
        )
    most = max((len(starts) for starts in starts_of), default=0)
    together = np.full(most, np.iinfo(np.int64).max)
    for starts in starts_of:
        np.minimum(together[: len(starts)], starts, out=together[: len(starts)])
    whole = Scope(
        np.arange(len(accesses)),
        together,
        most,
        int(others.count.sum()),
        int(others.duration_ns.sum()),
        max(1, len(each)),
    )
    return whole, each


def of(accesses: Accesses, follows: Followed, scope: Scope, wall_ns: int) -> dict[str, Any]:
    """The five dimensions of a scope, as they are in the JSON."""
    return {
        "operation": _operation(accesses, scope, wall_ns),
        "request_size": _request_size(accesses.bytes[scope.rows]),
        "spatial": _spatial(accesses, follows, scope.rows),
        "temporal": _temporal(accesses, scope, wall_ns),
        "repetition": {"bursts": scope.bursts},
    }


def _operation(accesses: Accesses, scope: Scope, wall_ns: int) -> dict[str, Any]:
    rows = scope.rows
    write, amount = accesses.write[rows], accesses.bytes[rows]
    spent = accesses.end_ns[rows] - accesses.start_ns[rows]
    written, read = int(amount[write].sum()), int(amount[~write].sum())
    if not write.any():
        kind = "read only"
    elif write.all():
        kind = "write only"
    else:
        apart = _changes_back(accesses.process[rows], write) < _SHORT_OF_RUN * len(rows)
        kind = "reads and writes" if apart else "reads and writes in turn"
    in_calls = int(spent.sum()) + scope.other_ns
    return {
        "kind": kind,
        "reads": int(np.count_nonzero(~write)),
        "writes": int(np.count_nonzero(write)),
        "other_calls": scope.other_calls,
        "read_bytes": read,
        "written_bytes": written,
        "read_s": float(spent[~write].sum() / _SECOND),
        "write_s": float(spent[write].sum() / _SECOND),
        "other_s": scope.other_ns / _SECOND,
        "share_of_time": in_calls / max(1, wall_ns * scope.processes),
        "collective_share": float(np.mean(accesses.collective[rows])) if len(rows) else 0.0,
    }


def _changes_back(process: _Ints, write: _Bools) -> int:
    """How often processes change between reads and writes. The first change of each is none: to
    write and then to read is no taking turns."""
    changes = (np.diff(process) == 0) & (np.diff(write.astype(np.int8)) != 0)
    by_process = np.bincount(process[1:][changes])
    return int(np.maximum(by_process - 1, 0).sum())


def _request_size(sizes: _Ints) -> dict[str, Any]:
    values, counts = np.unique(sizes, return_counts=True)
    common = np.argsort(-counts, kind="stable")[:_COMMON]
    if len(values) == 1:
        kind = "constant"
    elif counts[common].sum() >= _NEARLY_ALL * len(sizes):
        kind = "few sizes"
    else:
        kind = "varying"
    return {
        "kind": kind,
        "least": int(values[0]),
        "median": int(np.median(sizes)),
        "most": int(values[-1]),
        "distinct": len(values),
        "common": [{"bytes": int(values[i]), "calls": int(counts[i])} for i in common],
    }


def _spatial(accesses: Accesses, follows: Followed, rows: _Ints) -> dict[str, Any]:
    followers = ~follows.first[rows]
    known = accesses.offset[rows] != UNKNOWN
    count = max(1, int(np.count_nonzero(followers & known)))
    touches = np.count_nonzero(follows.touches[rows]) / count
    ahead = np.count_nonzero(follows.ahead[rows]) / count
    again = np.count_nonzero(follows.again[rows]) / count
    in_loop = float(np.mean(follows.in_loop[rows]))
    holes = float(np.mean(accesses.block_bytes[rows] > 0))
    if np.mean(known) < _HALF:
        kind = "unknown"
    elif holes >= _HALF:
        kind = "strided by the file view"
    elif not followers.any():
        kind = "single calls"
    elif touches >= _NEARLY_ALL:
        kind = "contiguous"
    elif touches >= _HALF and in_loop >= _MOST:
        kind = "contiguous stretches"
    elif again >= _NEARLY_ALL:
        kind = "the same place"
    elif in_loop >= _MOST:
        kind = "strided"
    elif touches + ahead >= _NEARLY_ALL:
        kind = "ascending"
    else:
        kind = "random"
    return {
        "kind": kind,
        "contiguous_share": touches,
        "ascending_share": ahead,
        "same_place_share": again,
        "backward_share": max(0.0, 1.0 - touches - ahead - again) if followers.any() else 0.0,
        "in_loops_share": in_loop,
        "with_holes_share": holes,
        "files": len(np.unique(accesses.file[rows])),
    }


def _temporal(accesses: Accesses, scope: Scope, wall_ns: int) -> dict[str, Any]:
    rows = scope.rows
    first, last = int(accesses.start_ns[rows].min()), int(accesses.end_ns[rows].max())
    period, spread = rhythm(scope.burst_starts_ns)
    if scope.bursts == 1:
        continuous = last - first >= _HALF * wall_ns
        kind = "continuous" if continuous else "once"
    elif period is not None and spread is not None and spread <= _STEADY:
        kind = "periodic"
    else:
        kind = "in bursts"
    return {
        "kind": kind,
        "bursts": scope.bursts,
        "period_s": period,
        "period_spread": spread,
        "first_s": first / _SECOND,
        "last_s": last / _SECOND,
    }


def sharing(accesses: Accesses) -> list[dict[str, Any]]:
    """Of each file with most bytes, who uses it and how the processes' bytes lie to each other."""
    files, number = np.unique(accesses.file, return_inverse=True)
    amount = np.bincount(number, accesses.bytes)
    found = []
    for place in np.argsort(-amount, kind="stable")[:_FILES_LISTED]:
        rows = np.flatnonzero(number == place)
        for write in (False, True):
            own = rows[accesses.write[rows] == write]
            if len(own) and files[place] != UNKNOWN:
                found.append(
                    {"file": int(files[place]), "operation": "write" if write else "read"}
                    | _layout(accesses, own)
                )
    return found


_FILES_LISTED = 20


def _layout(accesses: Accesses, rows: _Ints) -> dict[str, Any]:
    process = accesses.process[rows]
    users = np.unique(process)
    offset = accesses.offset[rows]
    end = offset + accesses.bytes[rows]
    touched: int | None = None
    if (accesses.block_bytes[rows] > 0).any():
        kind = "through views with holes"
    elif (offset == UNKNOWN).any():
        kind = "unknown"
    else:
        touched = _covered(offset, end)
        kind = "one process" if len(users) == 1 else _relation(process, offset, end, touched)
    moved = int(accesses.bytes[rows].sum())
    return {
        "processes": len(users),
        "kind": kind,
        "bytes": moved,
        "distinct_bytes": touched,
        "times_each_byte": moved / touched if touched else None,
    }


def _relation(process: _Ints, offset: _Ints, end: _Ints, touched: int) -> str:
    users, number = np.unique(process, return_inverse=True)
    low, high = np.full(len(users), np.iinfo(np.int64).max), np.zeros(len(users), np.int64)
    np.minimum.at(low, number, offset)
    np.maximum.at(high, number, end)
    order = np.argsort(low, kind="stable")
    if (high[order][:-1] <= low[order][1:]).all():
        return "segmented"
    by_process = _covered_by_each(number, offset, end)
    if by_process == touched:
        return "interleaved"
    if (low == low[0]).all() and (high == high[0]).all() and by_process == len(users) * touched:
        return "the same bytes"
    return "overlapping"


def _covered_by_each(number: _Ints, offset: _Ints, end: _Ints) -> int:
    """The sum over processes of the bytes that each covers."""
    order = np.argsort(number, kind="stable")
    begins = np.flatnonzero(np.append(True, np.diff(number[order]) != 0))
    parts = zip(np.split(offset[order], begins[1:]), np.split(end[order], begins[1:]), strict=True)
    return sum(_covered(*part) for part in parts)


def _covered(offset: _Ints, end: _Ints) -> int:
    """Bytes of the union of extents."""
    order = np.argsort(offset, kind="stable")
    offset, end = offset[order], end[order]
    reached = np.append(offset[:1], np.maximum.accumulate(end)[:-1])
    return int(np.maximum(0, end - np.maximum(offset, reached)).sum())

"""What Darshan would have counted of the calls in a trace: one record for each rank and file, and
one for all ranks together of a file that every one of them used."""

import itertools
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from forebay.trace import calls, tables
from forebay.trace.calls import Kind

_Ints = NDArray[np.int64]
_Columns = dict[str, NDArray[np.generic]]

# Upper ends of Darshan's classes of sizes, the last of which is open.
_SIZES = [100, 1 << 10, 10 << 10, 100 << 10, 1 << 20, 4 << 20, 10 << 20, 100 << 20, 1 << 30]
_ENDS = ["0", "100", "1K", "10K", "100K", "1M", "4M", "10M", "100M", "1G", "PLUS"]
_SIZE_NAMES = [f"{first}_{last}" for first, last in itertools.pairwise(_ENDS)]
_COMMON = 4  # sizes and strides that a record names
_ALIGNMENT = 4096  # bytes; of the file, where nothing better is known
_UNKNOWN = -1
# What a trace does not tell; of a rename's source Darshan has 0 if it knows none.
_UNTOLD = {
    "POSIX": "FILENOS DUPS RENAME_SOURCES MODE MEM_NOT_ALIGNED MEM_ALIGNMENT",
    "MPIIO": "HINTS MODE",
    "STDIO": "",
}
_RENAMES = frozenset({"rename", "renameat", "renameat2"})


TOGETHER = -1  # in place of a rank: all of them


@dataclass(frozen=True)
class Counted:
    """Rank and file of each record, and the counters under Darshan's names."""

    ranks: _Ints
    files: _Ints
    columns: _Columns


class _Groups:
    """Calls on files, in the order of process, file and start. `ranks`: of each
    process. A file that the ranks below `size` all used has one record, if they are several."""

    def __init__(self, table: pa.Table, ranks: _Ints, size: int) -> None:
        file = tables.integers(table, "file")
        known = np.flatnonzero(file >= 0)
        table, file = table.take(pa.array(known)), file[known]
        process, start = tables.integers(table, "process"), tables.integers(table, "start_ns")
        order = np.lexsort((start, file, process))
        self.table = table.take(pa.array(order))
        process, file = process[order], file[order]
        turns = np.append(True, (np.diff(process) != 0) | (np.diff(file) != 0))[: len(file)]
        self.part = np.cumsum(turns)  # one for each process and file, within which calls follow
        self.start = start[order]
        self.kind = calls.kinds(self.table)
        # Darshan wraps no call for locks, which wait for other processes.
        duration = tables.integers(self.table, "duration_ns")
        self.duration = np.where(self.of(Kind.LOCK), 0, duration)
        self.bytes = calls.moved_bytes(self.table)
        self.offset = tables.integers(self.table, "offset")
        self.rank = ranks[process]
        owner = np.where(_used_by_all(self.rank, file, size), TOGETHER, self.rank)
        pairs = np.stack([owner, file], axis=1)
        self.keys, self.group = np.unique(pairs, axis=0, return_inverse=True)
        self.group = self.group.reshape(-1)
        self.count = len(self.keys)

    def of(self, *kinds: Kind) -> NDArray[np.bool_]:
        return np.isin(self.kind, kinds)

    def number(self, rows: NDArray[np.bool_]) -> _Ints:
        """How many of `rows` each record has."""
        return np.bincount(self.group[rows], minlength=self.count)

    def total(self, rows: NDArray[np.bool_], values: NDArray[np.generic]) -> _Ints:
        result = np.zeros(self.count, np.int64)
        np.add.at(result, self.group[rows], values[rows])
        return result

    def largest(self, rows: NDArray[np.bool_], values: _Ints) -> _Ints:
        """0 where a record has none of `rows`."""
        result = np.zeros(self.count, np.int64)
        np.maximum.at(result, self.group[rows], values[rows])
        return result

    def first(self, rows: NDArray[np.bool_], values: _Ints) -> _Ints:
        result = np.full(self.count, np.iinfo(np.int64).max)
        np.minimum.at(result, self.group[rows], values[rows])
        return np.where(self.number(rows) > 0, result, 0)


def _used_by_all(rank: _Ints, file: _Ints, size: int) -> NDArray[np.bool_]:
    """Which calls are by one of the ranks below `size` on a file that each of these used."""
    own = rank < size
    users = np.unique(np.stack([file[own], rank[own]], axis=1), axis=0)[:, 0]
    number = np.bincount(users, minlength=int(file.max(initial=-1)) + 1)
    return np.asarray(own & (number[file] == size) & (size > 1), np.bool_)


def posix(table: pa.Table, ranks: _Ints, size: int) -> Counted:
    """The records of module POSIX: calls by descriptor. `ranks`: that of each process; the job has
    `size` of them."""
    groups = _Groups(table.filter(pa.array(~calls.marked(table, calls.STREAMS))), ranks, size)
    reads, writes = groups.of(Kind.READ), groups.of(Kind.WRITE)
    columns: _Columns = {
        "POSIX_OPENS": groups.number(groups.of(Kind.OPEN)),
        "POSIX_READS": groups.number(reads),
        "POSIX_WRITES": groups.number(writes),
        "POSIX_SEEKS": groups.number(groups.of(Kind.SEEK)),
        "POSIX_STATS": groups.number(groups.of(Kind.STAT)),
        "POSIX_MMAPS": _mappings(groups, table),
        "POSIX_FSYNCS": groups.number(calls.marked(groups.table, {"fsync"})),
        "POSIX_FDSYNCS": groups.number(calls.marked(groups.table, {"fdatasync"})),
        "POSIX_RENAME_TARGETS": groups.number(calls.marked(groups.table, _RENAMES)),
        "POSIX_FILE_NOT_ALIGNED": groups.number(
            (reads | writes) & (groups.offset > 0) & (groups.offset % _ALIGNMENT != 0)
        ),
        "POSIX_FILE_ALIGNMENT": np.full(groups.count, _ALIGNMENT),
    }
    for rows, verb in ((reads, "READS"), (writes, "WRITES")):
        follows, touches = _sequential(groups, rows & (groups.offset >= 0))
        columns[f"POSIX_SEQ_{verb}"] = groups.number(follows)
        columns[f"POSIX_CONSEC_{verb}"] = groups.number(touches)
    columns |= _last_bytes(groups, "POSIX")
    columns |= _sizes(groups, "POSIX", "SIZE") | _common_to_all(groups, "POSIX")
    gap, rows = _gaps(groups, reads, writes)
    columns |= _most_common(groups, rows, gap, "POSIX_STRIDE", "STRIDE")
    return Counted(groups.keys[:, 0], groups.keys[:, 1], columns)


def _mappings(groups: _Groups, table: pa.Table) -> _Ints:
    """Of earlier traces they are not known, so that none is not told from some."""
    is_known = bool(calls.marked(table, {"mmap"}).any())
    return groups.number(groups.of(Kind.MAP)) if is_known else np.full(groups.count, _UNKNOWN)


def stdio(table: pa.Table, ranks: _Ints, size: int) -> Counted:
    """The records of module STDIO: calls by stream; the rest as in `posix`."""
    groups = _Groups(table.filter(pa.array(calls.marked(table, calls.STREAMS))), ranks, size)
    columns: _Columns = {
        "STDIO_OPENS": groups.number(groups.of(Kind.OPEN)),
        "STDIO_READS": groups.number(groups.of(Kind.READ)),
        "STDIO_WRITES": groups.number(groups.of(Kind.WRITE)),
        "STDIO_SEEKS": groups.number(groups.of(Kind.SEEK)),
        "STDIO_FLUSHES": groups.number(groups.of(Kind.SYNC)),
    }
    columns |= _last_bytes(groups, "STDIO") | _common_to_all(groups, "STDIO")
    return Counted(groups.keys[:, 0], groups.keys[:, 1], columns)


def mpiio(table: pa.Table, ranks: _Ints, size: int) -> Counted:
    """The records of module MPI-IO; the rest as in `posix`."""
    groups = _Groups(table, ranks, size)
    numbers, words = tables.codes(groups.table, "call")
    split = np.array([*map(calls.is_split, words), False], np.bool_)[numbers]
    alone = np.array([*map(calls.is_nonblocking, words), False], np.bool_)[numbers]
    together = np.asarray(groups.table.column("collective").fill_null(False).to_numpy(), np.bool_)
    opens = groups.of(Kind.OPEN)
    columns: _Columns = {
        "MPIIO_COLL_OPENS": groups.number(opens & together),
        "MPIIO_INDEP_OPENS": groups.number(opens & ~together),
        "MPIIO_SYNCS": groups.number(groups.of(Kind.SYNC)),
        "MPIIO_VIEWS": groups.number(calls.marked(groups.table, {"MPI_File_set_view"})),
    }
    for kind, verb in ((Kind.READ, "READS"), (Kind.WRITE, "WRITES")):
        rows = groups.of(kind)
        columns[f"MPIIO_NB_{verb}"] = groups.number(rows & alone)
        columns[f"MPIIO_SPLIT_{verb}"] = groups.number(rows & split)
        columns[f"MPIIO_COLL_{verb}"] = groups.number(rows & together & ~split & ~alone)
        columns[f"MPIIO_INDEP_{verb}"] = groups.number(rows & ~together & ~split & ~alone)
    columns |= _sizes(groups, "MPIIO", "SIZE", "_AGG") | _common_to_all(groups, "MPIIO")
    return Counted(groups.keys[:, 0], groups.keys[:, 1], columns)


def _last_bytes(groups: _Groups, prefix: str) -> _Columns:
    end = np.maximum(0, groups.offset + groups.bytes - 1)
    return {
        f"{prefix}_MAX_BYTE_{word}": groups.largest(groups.of(kind) & (groups.offset >= 0), end)
        for kind, word in ((Kind.READ, "READ"), (Kind.WRITE, "WRITTEN"))
    }


def _sizes(groups: _Groups, prefix: str, size: str, aggregate: str = "") -> _Columns:
    """Classes of sizes, the usual ones, the slowest calls, and turns between reads and writes."""
    reads, writes = groups.of(Kind.READ), groups.of(Kind.WRITE)
    columns: _Columns = {}
    in_class = np.searchsorted(_SIZES, groups.bytes)
    for rows, word in ((reads, "READ"), (writes, "WRITE")):
        for place, name in enumerate(_SIZE_NAMES):
            column = f"{prefix}_{size}_{word}{aggregate}_{name}"
            columns[column] = groups.number(rows & (in_class == place))
        longest = groups.largest(rows, groups.duration)
        at_longest = rows & (groups.duration == longest[groups.group])
        columns[f"{prefix}_MAX_{word}_TIME_SIZE"] = groups.largest(at_longest, groups.bytes)
        columns[f"{prefix}_F_MAX_{word}_TIME"] = longest / 1e9
    data = reads | writes
    places = np.flatnonzero(data)
    turned = np.zeros(len(data), np.bool_)
    turned[places[1:]] = (np.diff(groups.kind[places]) != 0) & (np.diff(groups.part[places]) == 0)
    columns[f"{prefix}_RW_SWITCHES"] = groups.number(turned)
    columns |= _most_common(groups, data & (groups.bytes > 0), groups.bytes, f"{prefix}_ACCESS")
    return columns


def _common_to_all(groups: _Groups, prefix: str) -> _Columns:
    """Bytes, times, which rank took least and most time for a file that all used, and what is not
    known."""
    reads, writes = groups.of(Kind.READ), groups.of(Kind.WRITE)
    end = groups.start + groups.duration
    columns: _Columns = {
        f"{prefix}_{word}": np.full(groups.count, _UNKNOWN) for word in _UNTOLD[prefix].split()
    }
    for rows, word, done in ((reads, "READ", "READ"), (writes, "WRITE", "WRITTEN")):
        columns[f"{prefix}_BYTES_{done}"] = groups.total(rows, groups.bytes)
        columns[f"{prefix}_F_{word}_TIME"] = groups.total(rows, groups.duration) / 1e9
    data = reads | writes
    spans = {
        "OPEN": groups.of(Kind.OPEN),
        "READ": reads,
        "WRITE": writes,
        "CLOSE": groups.of(Kind.CLOSE),
    }
    for word, rows in spans.items():
        columns[f"{prefix}_F_{word}_START_TIMESTAMP"] = groups.first(rows, groups.start) / 1e9
        columns[f"{prefix}_F_{word}_END_TIMESTAMP"] = groups.largest(rows, end) / 1e9
    columns[f"{prefix}_F_META_TIME"] = groups.total(~data, groups.duration) / 1e9
    return columns | _differences(groups, prefix, data)


def _differences(groups: _Groups, prefix: str, data: NDArray[np.bool_]) -> _Columns:
    """Between the ranks of records that are of all of them; 0 in the others."""
    pairs = np.stack([groups.group, groups.rank], axis=1)
    keys, part = np.unique(pairs, axis=0, return_inverse=True)
    part, group, rank = part.reshape(-1), keys[:, 0], keys[:, 1]
    seconds = np.bincount(part, groups.duration, len(keys)) / 1e9
    moved = np.bincount(part, np.where(data, groups.bytes, 0), len(keys))
    order = np.lexsort((seconds, group))
    last = np.cumsum(np.bincount(group, minlength=groups.count)) - 1
    first = np.append(0, last[:-1] + 1)[: groups.count]
    together = groups.keys[:, 0] == TOGETHER
    columns: _Columns = {}
    for word, place in (("FASTEST", order[first]), ("SLOWEST", order[last])):
        columns[f"{prefix}_{word}_RANK"] = together * rank[place]
        columns[f"{prefix}_{word}_RANK_BYTES"] = together * moved[place].astype(np.int64)
        columns[f"{prefix}_F_{word}_RANK_TIME"] = together * seconds[place]
    number = np.maximum(1, last - first + 1)
    for word, values in (("TIME", seconds), ("BYTES", moved)):
        mean = np.bincount(group, values, groups.count) / number
        squares = np.bincount(group, (values - mean[group]) ** 2, groups.count)
        columns[f"{prefix}_F_VARIANCE_RANK_{word}"] = together * squares / number
    return columns


def _sequential(
    groups: _Groups, rows: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which calls begin behind the end of the one before of their kind, and which right there. As
    in Darshan, nothing is before the first, whose predecessor ends at byte 0."""
    places = np.flatnonzero(rows)
    last = np.zeros(len(places), np.int64)
    last[1:] = (groups.offset + groups.bytes - 1)[places[:-1]]
    last[1:][np.diff(groups.part[places]) != 0] = 0
    follows, touches = np.zeros(len(rows), np.bool_), np.zeros(len(rows), np.bool_)
    follows[places] = groups.offset[places] > last
    touches[places] = groups.offset[places] == last + 1
    return follows, touches


def _gaps(
    groups: _Groups, reads: NDArray[np.bool_], writes: NDArray[np.bool_]
) -> tuple[_Ints, NDArray[np.bool_]]:
    """From the end of the call before of the same kind, where it is positive, and where it is."""
    gap = np.zeros(len(reads), np.int64)
    for rows in (reads, writes):
        places = np.flatnonzero(rows & (groups.offset >= 0))
        end = (groups.offset + groups.bytes)[places[:-1]]
        same = np.diff(groups.part[places]) == 0
        gap[places[1:]] = np.where(same, groups.offset[places[1:]] - end, 0)
    return gap, gap > 0


def _most_common(
    groups: _Groups, rows: NDArray[np.bool_], values: _Ints, prefix: str, word: str = "ACCESS"
) -> _Columns:
    """The four most frequent values of each record, with how often they are there."""
    found = [np.zeros((2, groups.count), np.int64) for _ in range(_COMMON)]
    if rows.any():
        pairs = np.stack([groups.group[rows], values[rows]], axis=1)
        keys, counts = np.unique(pairs, axis=0, return_counts=True)
        order = np.lexsort((keys[:, 1], -counts, keys[:, 0]))
        keys, counts = keys[order], counts[order]
        begins = np.flatnonzero(np.append(True, np.diff(keys[:, 0]) != 0))
        rank = np.arange(len(keys)) - np.repeat(begins, np.diff(np.append(begins, len(keys))))
        for place, each in enumerate(found):
            chosen = rank == place
            each[0, keys[chosen, 0]] = keys[chosen, 1]
            each[1, keys[chosen, 0]] = counts[chosen]
    return {f"{prefix}{i + 1}_{word}": each[0] for i, each in enumerate(found)} | {
        f"{prefix}{i + 1}_COUNT": each[1] for i, each in enumerate(found)
    }

"""Elements: what one thread does to one file in one burst, as far as it is one loop nest, or none
at all."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forebay.characterise import loops
from forebay.characterise.accesses import UNKNOWN, Accesses
from forebay.characterise.loops import mixed

_Ints = NDArray[np.int64]
_Bools = NDArray[np.bool_]

# A stream with more loop nests than this follows no formula, but for those that have a tenth of it.
_NESTS_MAX = 16
_NEST_SHARE_MIN = 0.1
# So few calls are no loop of their own, unless others do the same. One may stand by itself, such as
# a header; so many of one series are no exception but irregular.
_FRAGMENT = 4
_LIKE_IT_MIN = 3
_EXCEPTIONS_MAX = 8
# Where there are so many kinds of them, some are alike by chance. A fiftieth of the calls is none.
_KINDS_MAX = 32
_KIND_SHARE_MIN = 0.02


@dataclass(frozen=True)
class Elements:
    """A row an element, in the order of process and start.

    `counts` and `steps` are the loop nest, the innermost level first, and 1 and 0 where `regular`
    is false. `base` is the first offset, or the lowest without a loop; `key` is the same for
    elements that do the same to files of one series, wherever. Sizes are bytes of a call.
    """

    key: NDArray[np.uint64]
    process: _Ints
    thread: _Ints
    burst: _Ints
    file: _Ints
    write: _Bools
    call: _Ints
    collective: _Bools
    regular: _Bools
    base: _Ints
    end: _Ints
    size_min: _Ints
    size_max: _Ints
    calls: _Ints
    bytes: _Ints
    blocks: _Ints
    block_bytes: _Ints
    stride: _Ints
    counts: _Ints
    steps: _Ints
    start_ns: _Ints
    end_ns: _Ints
    busy_ns: _Ints

    def __len__(self) -> int:
        return len(self.key)


def found_in(accesses: Accesses, burst: _Ints, family: _Ints) -> tuple[Elements, _Bools]:
    """The elements, and which accesses belong to a loop of at least four. `family` is the series of
    each file."""
    series = np.append(family, UNKNOWN)[accesses.file]
    nature = mixed(
        series,
        accesses.write,
        accesses.call,
        accesses.blocks,
        accesses.block_bytes,
        accesses.stride,
    )
    stream = mixed(accesses.process, accesses.thread, burst, accesses.file, nature.view(np.int64))
    order = np.argsort(stream, kind="stable")
    stream, nature = stream[order], nature[order]
    offset, size = accesses.offset[order], accesses.bytes[order]
    nests = loops.found_in(offset, mixed(stream.view(np.int64), size))
    like = mixed(
        nature[nests.first].view(np.int64),
        size[nests.first],
        *nests.counts.T,
        *nests.steps.T,
    )
    loose = _loose(stream[nests.first], nature[nests.first], like, nests.items)
    # Loose nests of a stream are one element; every other nest is one.
    mark = np.where(loose, 0, nests.first + 1)
    identity = mixed(stream[nests.first].view(np.int64), mark)
    _, first_nest, element = np.unique(identity, return_index=True, return_inverse=True)
    of_call = np.repeat(element, nests.items)
    regular = ~loose[first_nest]
    without_loop = mixed(nature[nests.first].view(np.int64)).astype(np.uint64)
    key = np.where(regular, like[first_nest], without_loop[first_nest])
    in_loop = np.empty(len(accesses), np.bool_)
    in_loop[order] = np.repeat(~loose & (nests.items >= _FRAGMENT), nests.items)
    chosen = order[nests.first[first_nest]]
    found = _Aggregate(of_call, len(first_nest))
    start, end = accesses.start_ns[order], accesses.end_ns[order]
    lowest = found.least(offset)
    columns = {
        "key": key,
        "process": accesses.process[chosen],
        "thread": accesses.thread[chosen],
        "burst": burst[chosen],
        "file": accesses.file[chosen],
        "write": accesses.write[chosen],
        "call": accesses.call[chosen],
        "collective": accesses.collective[chosen],
        "regular": regular,
        "base": np.where(regular, accesses.offset[chosen], lowest),
        "end": found.greatest(offset + size),
        "size_min": found.least(size),
        "size_max": found.greatest(size),
        "calls": found.number(),
        "bytes": found.total(size),
        "blocks": accesses.blocks[chosen],
        "block_bytes": accesses.block_bytes[chosen],
        "stride": accesses.stride[chosen],
        "counts": np.where(regular[:, None], nests.counts[first_nest], 1),
        "steps": np.where(regular[:, None], nests.steps[first_nest], 0),
        "start_ns": found.least(start),
        "end_ns": found.greatest(end),
        "busy_ns": found.total(end - start),
    }
    del nests, stream, nature, offset, size, start, end, lowest  # there may be as many elements
    by_start = np.lexsort((columns["start_ns"], columns["process"]))
    for name in columns:  # one by one: all of them twice would be most of what this needs
        columns[name] = columns[name][by_start]
    return Elements(**columns), in_loop


def _loose(
    stream: NDArray[np.uint64],
    nature: NDArray[np.uint64],
    like: NDArray[np.uint64],
    items: _Ints,
) -> _Bools:
    """Which nests are none of their own."""
    _, number, nests = np.unique(stream, return_inverse=True, return_counts=True)
    whole = np.bincount(number, items)
    many = (nests[number] > _NESTS_MAX) & (items < _NEST_SHARE_MIN * whole[number])
    _, first, kind, alike = np.unique(
        like, return_index=True, return_inverse=True, return_counts=True
    )
    fragment = items < _FRAGMENT
    alone = fragment & (alike[kind] < _LIKE_IT_MIN)
    companions = np.bincount(number, alone)[number]
    _, series = np.unique(nature, return_inverse=True)
    exceptions = np.bincount(series, alone)[series]
    kinds = np.bincount(series[first], fragment[first], minlength=int(series.max(initial=0)) + 1)
    share = np.bincount(kind, items)[kind] / np.bincount(series, items)[series]
    by_chance = fragment & (kinds[series] > _KINDS_MAX) & (share < _KIND_SHARE_MIN)
    return many | by_chance | (alone & ((companions >= 2) | (exceptions > _EXCEPTIONS_MAX)))


class _Aggregate:
    """Values of calls, combined for the element that each belongs to."""

    def __init__(self, group: _Ints, count: int) -> None:
        self._order = np.argsort(group, kind="stable")
        self._begins = np.searchsorted(group[self._order], np.arange(count))
        self._group, self._count = group, count

    def number(self) -> _Ints:
        return np.bincount(self._group, minlength=self._count)

    def total(self, values: _Ints) -> _Ints:
        return self._reduced(np.add, values)

    def least(self, values: _Ints) -> _Ints:
        return self._reduced(np.minimum, values)

    def greatest(self, values: _Ints) -> _Ints:
        return self._reduced(np.maximum, values)

    def _reduced(self, combine: np.ufunc, values: _Ints) -> _Ints:
        if self._count == 0:
            return np.empty(0, np.int64)
        reduced: _Ints = combine.reduceat(values[self._order], self._begins)
        return reduced

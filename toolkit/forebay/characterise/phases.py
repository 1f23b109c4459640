"""Phases: elements that do the same, by several processes and again and again [METHOD]."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forebay.characterise import loops
from forebay.characterise.accesses import UNKNOWN
from forebay.characterise.elements import Elements

_Ints = NDArray[np.int64]

LISTED_MAX = 40
_INDEXES = ("i", "j", "k", "l")
_EXACT_ENOUGH = 0.9
_SECOND = 1e9


@dataclass(frozen=True)
class Term:
    """`step` bytes for each turn of an index that counts from 0 to `count` - 1."""

    index: str
    count: int
    step: int


@dataclass(frozen=True)
class Formula:
    """offset = base + the sum of the terms. `exact` is the share of the phase's elements for whose
    first offset that holds. Inside an element it holds for every call; if it does not hold from
    element to element, `base` is None and there are the terms inside alone."""

    base: int | None
    terms: list[Term]
    exact: float

    def __str__(self) -> str:
        base = "first" if self.base is None else str(self.base)
        parts = [base, *(f"{term.index}*{term.step}" for term in self.terms if term.step)]
        return " + ".join(parts).replace("+ -", "- ")


@dataclass(frozen=True)
class Phase:
    """Times in seconds of the run's clock. `repetitions` is the number of elements of the process
    that has most, `period_s` the median distance of their starts, and `period_spread` the distance
    of its quartiles in proportion; None where there are too few. `together` is how many processes
    are in an element at a time, on average."""

    series: str
    files: list[int]
    shared: str  # "one process", "shared", "own files"
    new_file_each_time: bool
    write: bool
    call: str
    collective: bool
    ranks: list[int]
    repetitions: int
    calls_each: float  # of one element
    size_min: int
    size_max: int
    calls: int
    bytes: int
    bytes_share: float
    time_share: float  # of what all data calls took
    order: str  # "contiguous", "strided", "nested", "once", "same place", "irregular", "unknown"
    view: tuple[int, int, int] | None  # pieces, their bytes and distance, if the view leaves holes
    formula: Formula | None
    first_s: float
    last_s: float
    duration_s: float  # median of an element
    period_s: float | None
    period_spread: float | None
    together: float

    def as_json(self) -> dict[str, Any]:
        content = dict(vars(self))
        content["operation"] = "write" if content.pop("write") else "read"
        if self.formula is not None:
            content["formula"] = {
                "text": f"offset = {self.formula}",
                "base": self.formula.base,
                "terms": [dict(vars(term)) for term in self.formula.terms],
                "exact": round(self.formula.exact, 4),
            }
        if self.view is not None:
            pieces, size, apart = self.view
            content["view"] = {"blocks": pieces, "block_bytes": size, "stride": apart or None}
        return content


@dataclass(frozen=True)
class Phases:
    """Those with most bytes, and how many others there are with which share of the bytes."""

    listed: list[Phase]
    others: int
    others_share: float


def found_in(
    elements: Elements, words: list[str], series: list[str], family: _Ints, ranks: _Ints
) -> Phases:
    """`words` are the names of calls, `series` the names of `family`, which each file has, and
    `ranks` those of the processes."""
    if len(elements) == 0:
        return Phases([], 0, 0.0)
    _, number, count = np.unique(elements.key, return_inverse=True, return_counts=True)
    amount = np.bincount(number, elements.bytes)
    busy = np.bincount(number, elements.busy_ns)
    chosen = np.lexsort((-busy, -amount))[:LISTED_MAX]
    members = np.argsort(number, kind="stable")
    begins = np.concatenate(([0], np.cumsum(count)))
    listed = []
    for each in chosen:
        rows = members[begins[each] : begins[each + 1]]
        phase = _phase(elements, rows, ranks)
        phase["series"] = series[family[elements.file[rows[0]]]] if phase["files"] else ""
        phase["call"] = words[elements.call[rows[0]]]
        phase["bytes_share"] = float(amount[each] / max(1.0, amount.sum()))
        phase["time_share"] = float(busy[each] / max(1.0, busy.sum()))
        listed.append(Phase(**phase))
    rest = float(amount.sum() - amount[chosen].sum())
    return Phases(listed, len(amount) - len(chosen), rest / max(1.0, float(amount.sum())))


def _phase(elements: Elements, rows: _Ints, ranks: _Ints) -> dict[str, Any]:
    part = Elements(**{name: values[rows] for name, values in vars(elements).items()})
    rank, turn = ranks[part.process], _turns(part)
    files = np.unique(part.file[part.file >= 0])
    who = np.unique(rank)
    starts = np.full(int(turn.max()) + 1, np.iinfo(np.int64).max)
    np.minimum.at(starts, turn, part.start_ns)
    ends = np.zeros(len(starts), np.int64)
    np.maximum.at(ends, turn, part.end_ns)
    lengths = part.end_ns - part.start_ns
    period, spread = rhythm(starts)
    holes = bool(part.block_bytes[0] > 0)
    return {
        "files": files.tolist(),
        "shared": _shared(part.file, rank),
        "new_file_each_time": len(starts) > 1 and _always_new(part.file, rank, turn),
        "write": bool(part.write[0]),
        "collective": bool(part.collective[0]),
        "ranks": who.tolist(),
        "repetitions": len(starts),
        "calls_each": float(part.calls.mean()),
        "size_min": int(part.size_min.min()),
        "size_max": int(part.size_max.max()),
        "calls": int(part.calls.sum()),
        "bytes": int(part.bytes.sum()),
        "order": _order(part),
        "view": (int(part.blocks[0]), int(part.block_bytes[0]), int(part.stride[0]))
        if holes
        else None,
        "formula": _formula(part, rank, turn),
        "first_s": float(part.start_ns.min() / _SECOND),
        "last_s": float(part.end_ns.max() / _SECOND),
        "duration_s": float(np.median(lengths) / _SECOND),
        "period_s": period,
        "period_spread": spread,
        "together": float(np.bincount(turn, lengths).sum() / max(1, int((ends - starts).sum()))),
    }


def rhythm(starts_ns: _Ints) -> tuple[float | None, float | None]:
    """The median distance of starts in seconds, and that of its quartiles in proportion to it; None
    if there are fewer than two distances."""
    distances = np.diff(np.sort(starts_ns))
    if len(distances) < 2:
        return None, None
    low, middle, high = np.percentile(distances, [25, 50, 75])
    return float(middle / _SECOND), float((high - low) / middle) if middle > 0 else None


def _turns(part: Elements) -> _Ints:
    """The how manieth element of its process and thread each is."""
    order = np.lexsort((part.start_ns, part.thread, part.process))
    process, thread = part.process[order], part.thread[order]
    new = np.append(True, (np.diff(process) != 0) | (np.diff(thread) != 0))
    begins = np.flatnonzero(new)
    turn = np.empty(len(order), np.int64)
    turn[order] = np.arange(len(order)) - np.repeat(begins, np.diff(np.append(begins, len(order))))
    return turn


def _shared(file: _Ints, rank: _Ints) -> str:
    if len(np.unique(rank)) == 1:
        return "one process"
    users = np.unique(np.stack([file, rank], axis=1), axis=0)
    return "own files" if len(np.unique(users[:, 0])) == len(users) else "shared"


def _always_new(file: _Ints, rank: _Ints, turn: _Ints) -> bool:
    """Whether each process has another file at each turn."""
    used = np.unique(np.stack([rank, file], axis=1), axis=0)
    turns = np.unique(np.stack([rank, turn], axis=1), axis=0)
    return len(used) == len(turns)


def _order(part: Elements) -> str:
    if not part.regular[0]:
        return "irregular"
    if part.base[0] == UNKNOWN:
        return "unknown"
    nest = part.counts[0] > 1
    if not nest.any():
        return "once"
    steps = part.steps[0][nest]
    if len(steps) == 1 and steps[0] == part.size_min[0]:
        return "contiguous"
    if len(steps) == 1:
        return "same place" if steps[0] == 0 else "strided"
    return "nested"


def _formula(part: Elements, rank: _Ints, turn: _Ints) -> Formula | None:
    """The offsets as a function of the rank, the turn and the indexes of the loops."""
    if not part.regular[0] or part.base[0] == UNKNOWN:
        return None
    first = turn == 0
    order = np.argsort(rank[first], kind="stable")
    at_first = part.base[first][order]
    who, places = np.unique(rank[first][order], return_index=True)
    by_rank = at_first[places]
    own = np.flatnonzero(rank == who[0])
    own = own[np.argsort(turn[own], kind="stable")]
    _, places = np.unique(turn[own], return_index=True)
    by_turn = part.base[own[places]]
    terms = [*_terms("rank", by_rank, who), *_terms("rep", by_turn, np.arange(len(by_turn)))]
    base = int(by_rank[0])
    index = np.searchsorted(who, rank)
    known = (who[np.minimum(index, len(who) - 1)] == rank) & (turn < len(by_turn))
    expected = (
        by_rank[np.minimum(index, len(who) - 1)]
        + by_turn[np.minimum(turn, len(by_turn) - 1)]
        - base
    )
    exact = float(np.mean(known & (expected == part.base)))
    told = [term for term in terms if term is not None]
    holds = len(told) == len(terms) and exact >= _EXACT_ENOUGH
    if not holds:
        told, exact = [], 0.0
    for level, name in enumerate(_INDEXES):
        if part.counts[0, level] > 1:
            told.append(Term(name, int(part.counts[0, level]), int(part.steps[0, level])))
    return Formula(base if holds else None, told, exact)


def _terms(name: str, values: _Ints, at: _Ints) -> list[Term | None]:
    """The terms of a sequence that is a loop nest; [None] if it is none."""
    nests = loops.found_in(values, np.zeros(len(values), np.uint64))
    if len(nests) != 1:
        return [None]
    regular_places = len(at) < 2 or bool((np.diff(at) == at[1] - at[0]).all())
    if not regular_places:
        return [None] if nests.steps[0].any() else []
    apart = int(at[1] - at[0]) if len(at) > 1 else 1
    start = f"({name}-{at[0]})" if len(at) and at[0] != 0 else name
    turned = start if apart == 1 else f"({start}//{apart})"
    terms: list[Term | None] = []
    inner = 1
    levels = [(int(c), int(s)) for c, s in zip(nests.counts[0], nests.steps[0], strict=True)]
    levels = [level for level in levels if level[0] > 1]
    for place, (count, step) in enumerate(levels):
        index = turned if inner == 1 else f"({turned}//{inner})"
        if place + 1 < len(levels):
            index = f"({index}%{count})"
        inner *= count
        if step:
            terms.append(Term(index, count, step))
    return terms

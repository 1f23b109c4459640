"""How much of what was read was read before."""

from dataclasses import dataclass

import numpy as np

from forebay.report.layers import Ints


@dataclass(frozen=True)
class Coverage:
    """Of each group of spans: its number, the bytes of its spans, and of their union."""

    group: Ints
    bytes: Ints
    distinct: Ints


def coverage(group: Ints, begin: Ints, end: Ints) -> Coverage:
    """Spans `begin` to `end`, each in a group. Places are handled by their order, so that neither
    their size nor the number of groups overflows."""
    groups, number = np.unique(group, return_inverse=True)
    if len(groups) == 0:
        none = np.zeros(0, np.int64)
        return Coverage(none, none, none)
    places, rank = np.unique(np.concatenate((begin, end)), return_inverse=True)
    order = np.lexsort((begin, number))
    shift = number[order] * (len(places) + 1)
    reach = np.maximum.accumulate(rank[len(begin) :][order] + shift) - shift
    before = np.empty_like(reach)
    before[1:], before[0] = reach[:-1], 0
    starts = np.append(True, np.diff(number[order]) != 0)
    before[starts] = 0
    low = np.maximum(begin[order], places[before])
    low[starts] = begin[order][starts]
    fresh = np.maximum(0, end[order] - low)
    return Coverage(
        groups,
        np.bincount(number, end - begin).astype(np.int64),
        np.bincount(number[order], fresh).astype(np.int64),
    )

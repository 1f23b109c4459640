"""Whether calls go through files in order or jump about in them."""

import numpy as np

from forebay.report.layers import Layer

# Fewer that follow another show no order.
_FEWEST = 8
# Of those that may lie anywhere, half begin before the end of the one before.
_BACKWARD = 1 / 3
# A program that reads or writes several places of a file in turn goes on at each.
_STREAMS = 8


def at_random(layer: Layer) -> bool:
    """Whether a third or more of the reads and writes jump back, each in its process, thread and
    file: not to where one of the last few ended or the last one began, nor right before it."""
    rows = layer.only((layer.offset >= 0) & (layer.file >= 0) & (layer.moved > 0))
    order = np.lexsort((rows.start_ns, rows.thread, rows.file, rows.process))
    begin, end = rows.offset[order], (rows.offset + rows.moved)[order]
    columns = [values[order] for values in (rows.process, rows.thread, rows.file)]
    turns = np.any([np.diff(values) != 0 for values in columns], axis=0)
    stream = np.append(0, np.cumsum(turns))[: len(order)]
    follows = ~turns
    goes_on = np.zeros(len(order), np.bool_)
    for lag in range(1, min(_STREAMS + 1, len(order))):
        goes_on[lag:] |= (stream[lag:] == stream[:-lag]) & (begin[lag:] == end[:-lag])
    jumps = follows & (begin[1:] < end[:-1]) & (begin[1:] != begin[:-1])
    jumps &= (end[1:] != begin[:-1]) & ~goes_on[1:]
    count = int(np.count_nonzero(follows))
    return count >= _FEWEST and int(np.count_nonzero(jumps)) >= _BACKWARD * count

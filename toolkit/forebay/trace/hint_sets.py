"""The sets of hints that a trace has, and which of them were in force where."""

import numpy as np

from forebay.trace import tables
from forebay.trace.directory import Trace

Hints = dict[str, str]

#: What a hint asks of the file itself, and the column of files that tells it.
OF_FILES = {"striping_factor": "stripe_count", "striping_unit": "stripe_size"}


_OF_ROMIO = ("romio_", "cb_")


def tells_more(hints: Hints, asked: Hints) -> bool:
    """Whether what an MPI says of its hints names one of ROMIO that nobody asked for: it tells what
    it has, and does not give back what it was given."""
    return any(key.startswith(_OF_ROMIO) for key in hints.keys() - asked.keys())


def of(trace: Trace) -> dict[int, Hints]:
    """By number. One without hints is not in it: the table has a row for each hint."""
    table = trace.table("hints")
    sets: dict[int, Hints] = {}
    columns = (table[name].to_pylist() for name in ("set", "key", "value"))
    for number, key, value in zip(*columns, strict=True):
        sets.setdefault(int(number), {})[key] = value
    return sets


def in_force(trace: Trace, openings: int) -> list[set[int]]:
    """Of each opening, the sets that its calls had."""
    table = trace.table("mpiio", ["opening", "hints"])
    opening, hints = tables.integers(table, "opening"), tables.integers(table, "hints")
    known = (opening >= 0) & (opening < openings) & (hints >= 0)
    sets = int(hints.max(initial=0)) + 1
    found: list[set[int]] = [set() for _ in range(openings)]
    # Sorting pairs as one number each takes a tenth of what sorting rows does.
    for pair in np.unique(opening[known] * sets + hints[known]).tolist():
        found[pair // sets].add(pair % sets)
    return found

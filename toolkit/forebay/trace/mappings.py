"""Files that a run mapped into memory: what it reads and writes there makes no calls."""

import numpy as np

from forebay.trace import calls, places, tables
from forebay.trace.directory import Trace


def mapped_files(trace: Trace) -> int:
    """How many of the application's files were mapped."""
    table = trace.table("posix", ["call", "file", "errno"])
    done = calls.marked(table, {"mmap"}) & (tables.integers(table, "errno") == 0)
    files = np.unique(tables.integers(table, "file")[done])
    return int(np.count_nonzero(places.applications(trace)[files]))


def caveats(trace: Trace) -> list[str]:
    """What is missing in a trace, a sentence each."""
    said = trace.run.caveats()
    if number := mapped_files(trace):
        one = "One file was mapped into memory: what is read and written there"
        several = f"{number} files were mapped into memory: what is read and written there"
        said.append(f"{one if number == 1 else several} makes no calls, and is not in the trace.")
    return said

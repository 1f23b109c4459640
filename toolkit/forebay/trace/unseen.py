"""What moves files without calls that a trace has: mappings, and C streams of wide characters."""

import numpy as np

from forebay.trace import calls, places, tables
from forebay.trace.directory import Trace

_MAPPED = "mapped into memory: what is read and written there makes no calls, and"
_WIDE = "read or written by wide characters (fgetws, fwprintf): what these calls move"


def files_of(trace: Trace, call: str) -> int:
    """How many of the application's files had this call, and it did not fail."""
    table = trace.table("posix", ["call", "file", "errno"])
    done = calls.marked(table, {call}) & (tables.integers(table, "errno") == 0)
    files = np.unique(tables.integers(table, "file")[done])
    return int(np.count_nonzero(places.applications(trace)[files]))


def caveats(trace: Trace) -> list[str]:
    """What is missing in a trace, a sentence each."""
    said = trace.run.caveats()
    for call, done in (("mmap", _MAPPED), ("fwide", _WIDE)):
        if number := files_of(trace, call):
            which = "One file was" if number == 1 else f"{number} files were"
            said.append(f"{which} {done} is not in the trace.")
    return said

"""Which files a traced run wrote, wherever they are: what no record and no directory tells."""

import numpy as np

from forebay.trace import calls, tables
from forebay.trace.calls import Kind
from forebay.trace.directory import Trace


def paths(trace: Trace) -> list[str]:
    """The files that got bytes by POSIX or C streams, sorted; of pipes, terminals and the like
    none."""
    if not trace.rows("posix"):
        return []
    table = trace.table("posix", ["file", "call", "argument", "length", "result"])
    wrote = (calls.kinds(table) == Kind.WRITE) & (calls.moved_bytes(table) > 0)
    written = np.unique(tables.integers(table, "file")[wrote])
    files = trace.table("files", ["path", "kind"])
    names, kinds = files["path"].to_pylist(), files["kind"].to_pylist()
    return sorted(names[file] for file in written.tolist() if file >= 0 and kinds[file] == "file")

"""What an MPI did with files of its own: memory that it shares, its job's directory, locks and
shared file pointers. None of it is the application's, and none of it is left unsaid."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from forebay.trace import calls, places, tables
from forebay.trace.calls import Kind
from forebay.trace.directory import Trace
from forebay.trace.places import Owner
from forebay.units import show_bytes, show_count, show_seconds


@dataclass(frozen=True)
class MpiFiles:
    """Files that were met, and the calls on them, of all processes together."""

    files: int
    calls: int
    seconds: float
    read_bytes: int
    written_bytes: int

    def __str__(self) -> str:
        return (
            f"the MPI's own files (shared memory, its job's directory, locks, shared file "
            f"pointers): {show_count(self.files)} with {show_count(self.calls)} calls, "
            f"{show_seconds(self.seconds)} of all processes, {show_bytes(self.read_bytes)} read, "
            f"{show_bytes(self.written_bytes)} written"
        )

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def of(trace: Trace) -> MpiFiles | None:
    """None where there are none, or no single calls."""
    columns = ["file", "call", "length", "result", "duration_ns"]
    table = trace.table("posix", columns)
    own = (places.owners(trace) == Owner.MPI)[tables.integers(table, "file")]
    if not own.any():
        return None
    table = table.filter(pa.array(own))
    kind, moved = calls.kinds(table), calls.moved_bytes(table)
    return MpiFiles(
        files=len(np.unique(tables.integers(table, "file"))),
        calls=table.num_rows,
        seconds=float(tables.integers(table, "duration_ns", 0).sum()) / 1e9,
        read_bytes=int(moved[kind == Kind.READ].sum()),
        written_bytes=int(moved[kind == Kind.WRITE].sum()),
    )

"""Time that Darshan counted in calls on a file while its process waited for another process.

An opening of a named pipe lasts until another process opens the other end, and Darshan counts it as
metadata of a file like any other. Nothing in a record says that it is a pipe. What tells them
apart is how long such calls take: in the logs of PyDarshan's package those on pipes take 3.8 s to
365 s on average, all others 0.07 s at most, and 0.015 s of files with so few bytes.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from forebay.report.layers import Flags
from forebay.trace import tables
from forebay.units import show_count, show_seconds

_LONG_S = 1.0  # of a metadata call, on average
# Who waits for a word of another process gets a word; a file of data is larger.
_MOST_BYTES = 4096
# Where more files than that are slow to open, the storage is.
_MOST_RECORDS = 64


@dataclass(frozen=True)
class Waiting:
    """Seconds of metadata calls that are left out, in how many files, and the one with most."""

    seconds: float
    files: int
    most: str

    def __str__(self) -> str:
        which = "a file" if self.files == 1 else f"{show_count(self.files)} files"
        return (
            f"Left out are {show_seconds(self.seconds)} in metadata calls on {which}, a second or "
            "more each on average, for at most 4 KiB: so an opening of a named pipe waits for the "
            "process at its other end. Look there first if it is on storage after all; most took "
            f"{self.most}."
        )


def is_waiting(table: pa.Table, prefix: str, metadata_s: NDArray[np.float64], ranks: int) -> Flags:
    """Which records of a module are of files at which a process waited. A pipe is not shared by
    the ranks of a job, so a record of all of them is none."""
    calls = 2 * _counter(table, f"{prefix}_OPENS")  # each is closed, too
    calls += _counter(table, f"{prefix}_STATS") + _counter(table, f"{prefix}_SEEKS")
    moved = _counter(table, f"{prefix}_BYTES_READ") + _counter(table, f"{prefix}_BYTES_WRITTEN")
    of_one = (tables.integers(table, "rank") >= 0) | (ranks < 2)
    found: Flags = of_one & (moved <= _MOST_BYTES) & (metadata_s >= _LONG_S * np.maximum(1, calls))
    return found if found.sum() <= _MOST_RECORDS else np.zeros(len(found), np.bool_)


def _counter(table: pa.Table, column: str) -> NDArray[np.int64]:
    """0 where the module does not count it, or not in this record."""
    if column not in table.column_names:
        return np.zeros(table.num_rows, np.int64)
    return np.maximum(0, tables.integers(table, column, 0))

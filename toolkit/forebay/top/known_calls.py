"""What the calls of a process are, by the ids that it gave them."""

import numpy as np
from numpy.typing import NDArray

from forebay.trace import calls, descriptors, mpi_calls, posix_calls, spills
from forebay.trace.calls import Kind

_MOST = 1024
# Calls after which a descriptor, a directory or an opening is another.
FILE, COPY, CHDIR, FCHDIR, MPI_CLOSE = "is_file", "dup", "chdir", "fchdir", "MPI_File_close"
_CHANGES = (FILE, COPY, CHDIR, FCHDIR, MPI_CLOSE)


class KnownCalls:
    """Looked up by whole arrays of ids. Ids beyond the tables are those of calls of no kind."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self._kind = np.full(_MOST, Kind.OTHER, np.int8)
        self._collective = np.zeros(_MOST, np.bool_)
        self._change = np.zeros(_MOST, np.bool_)
        self._remark = np.zeros(_MOST, np.bool_)
        self._copy = np.zeros(_MOST, np.bool_)
        self._opening = np.zeros(_MOST, np.bool_)

    def define(self, number: int, name: str) -> None:
        if number >= _MOST:
            return
        self.names[number] = name
        self._kind[number] = calls.kind_of(name)
        self._collective[number] = number >= spills.MPI_CALLS_FROM and mpi_calls.is_collective(name)
        self._change[number] = name in _CHANGES
        self._remark[number] = name in posix_calls.REMARKS
        self._copy[number] = name in calls.COPIES
        self._opening[number] = name in descriptors.OPENINGS

    def kinds(self, ids: NDArray[np.uint16], argument: NDArray[np.uint8]) -> NDArray[np.int8]:
        """The Kind of each call, that of copies by their side."""
        ids = self._known(ids)
        side = np.where(argument == 0, Kind.READ, Kind.WRITE).astype(np.int8)
        return np.where(self._copy[ids], side, self._kind[ids])

    def collective(self, ids: NDArray[np.uint16]) -> NDArray[np.bool_]:
        return self._collective[self._known(ids)]

    def remarks(self, ids: NDArray[np.uint16]) -> NDArray[np.bool_]:
        """No calls."""
        return self._remark[self._known(ids)]

    def changes(self, ids: NDArray[np.uint16]) -> NDArray[np.bool_]:
        return self._change[self._known(ids)]

    def is_opening(self, number: int) -> bool:
        return number < _MOST and bool(self._opening[number])

    @staticmethod
    def _known(ids: NDArray[np.uint16]) -> NDArray[np.uint16]:
        return np.minimum(ids, _MOST - 1)

"""The files of a running job, with what is done to each."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from forebay.top.timeline import Floats, Integers, Timeline

UNKNOWN = -1
MOST_FILES = 4096
_FORGOTTEN_AT_ONCE = MOST_FILES // 8


@dataclass
class FileActivity:
    """One file, of all processes."""

    path: bytes
    timeline: Timeline = field(default_factory=Timeline)
    processes: set[int] = field(default_factory=set)


class LiveFiles:
    """Each by a number that no other file gets. Of a job with very many files those are forgotten
    to which nothing was done for the longest time."""

    def __init__(self) -> None:
        self.known: dict[int, FileActivity] = {}
        self.forgotten = 0
        self._numbers: dict[bytes, int] = {}
        self._next = 0

    def number(self, path: bytes) -> int:
        known = self._numbers.get(path)
        if known is not None:
            return known
        if len(self.known) >= MOST_FILES:
            self._forget()
        number = self._next
        self._next += 1
        self._numbers[path] = number
        self.known[number] = FileActivity(path)
        return number

    def add(
        self,
        process: int,
        files: NDArray[np.int64],
        begin_ns: Integers,
        duration_ns: Integers,
        amounts: Floats,
    ) -> None:
        """Calls of a process, each on the file of a number or UNKNOWN."""
        for number in np.unique(files):
            file = self.known.get(int(number))
            if file is None:
                continue
            these = files == number
            file.timeline.add(begin_ns[these], duration_ns[these], amounts[these])
            file.processes.add(process)

    def _forget(self) -> None:
        by_age = sorted(self.known, key=lambda number: self.known[number].timeline.newest)
        for number in by_age[:_FORGOTTEN_AT_ONCE]:
            del self._numbers[self.known.pop(number).path]
            self.forgotten += 1

"""Where bytes go that are written at the end of a file (`O_APPEND`): known while one process alone
has the file open for writing, and by one opening at a time."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forebay.trace import calls
from forebay.trace.calls import Kind
from forebay.trace.spills import MPI_CALLS_FROM, Image, is_one_of

_RESIZES = ("ftruncate", "truncate", "fallocate", "posix_fallocate")
_NONE = -1

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Appending:
    """An open file description whose writes go to the end. `is_shared`: so do or may others."""

    file: int
    size: int  # when it was opened, in bytes
    since: int  # ticks
    is_shared: bool


class Writers:
    """Which processes of a run have which files open for writing."""

    def __init__(self, images: Iterable[tuple[int, Image]]) -> None:
        """Of each image with the number of its process. Hosts may number devices differently: then
        two files of one number count as one."""
        images = list(images)
        self._is_one_host = len({image.process.host for _, image in images}) == 1
        self._writer: dict[tuple[int, int], int] = {}
        self._shared: set[tuple[int, int]] = set()
        for process, image in images:
            for found in image.found:
                if may_write(found.flags):
                    self._saw(process, found.device, found.inode)
            for thread in image.threads.values():
                for device, inode in _opened_for_writing(image, thread.events()):
                    self._saw(process, device, inode)

    def _saw(self, process: int, device: int, inode: int) -> None:
        key = self._key(device, inode)
        if self._writer.setdefault(key, process) != process:
            self._shared.add(key)

    def _key(self, device: int, inode: int) -> tuple[int, int]:
        return (device if self._is_one_host else 0, inode)

    def are_several(self, device: int, inode: int) -> bool:
        return self._key(device, inode) in self._shared


def may_write(flags: int) -> bool:
    return flags & os.O_ACCMODE != os.O_RDONLY


def _opened_for_writing(image: Image, events: NDArray[Any]) -> set[tuple[int, int]]:
    """Device and inode of each file that a thread opened so, or may have: of some the opening was
    lost."""
    places = np.flatnonzero(is_one_of(image, events, ("is_file",)))
    told, before = events[places], events[places - 1]
    is_lost = (places == 0) | (before["result"] != told["descriptor"])
    writes = is_lost | (before["offset"] & os.O_ACCMODE != os.O_RDONLY)
    devices, inodes = told["duration"][writes], told["offset"][writes]
    return set(zip(devices.tolist(), inodes.tolist(), strict=True))


def ends(
    image: Image,
    events: NDArray[Any],
    description: Integers,
    file: Integers,
    appending: dict[int, Appending],
) -> tuple[NDArray[np.bool_], Integers]:
    """Which events append, and where the bytes of each begin, -1 where that is not known. `file`
    and `description`: of each event, -1 where it has none; `appending`: those that do, by their
    number."""
    result = np.full(len(events), _NONE, np.int64)
    if not appending:
        return np.zeros(len(events), np.bool_), result
    writing = (name for name in image.calls.values() if calls.kind_of(name) == Kind.WRITE)
    writes = is_one_of(image, events, writing) & (events["call"] < MPI_CALLS_FROM)
    writes |= is_one_of(image, events, calls.COPIES) & (events["argument"] == 1)
    changes = writes | is_one_of(image, events, _RESIZES)
    by_file: dict[int, list[int]] = {}
    for own, each in appending.items():
        if not each.is_shared:
            by_file.setdefault(each.file, []).append(own)
    for number, owners in by_file.items():
        places = np.flatnonzero(changes & (file == number))
        places = places[np.argsort(events["begin"][places], kind="stable")]
        who = np.where(writes[places], description[places], _NONE)
        begins = events["begin"][places].astype(np.int64)
        turns = np.flatnonzero(np.append(np.diff(who) != 0, True)) + 1
        for own in owners:
            each = appending[own]
            first = int(np.searchsorted(begins, each.since))
            if first == len(places) or who[first] != own:
                continue
            last = int(turns[np.searchsorted(turns, first, side="right")])
            run = places[first:last]
            moved = np.maximum(events["result"][run], 0)
            result[run] = each.size + np.cumsum(moved) - moved
    appends = writes & np.isin(description, list(appending))
    return appends, result

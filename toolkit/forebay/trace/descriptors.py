"""Which file is behind a descriptor, and where it stands: found by following a process's calls, for
a traced call says no more than its number."""

import os
import posixpath
import stat
from bisect import bisect_right
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forebay.trace import appends, calls
from forebay.trace.appends import Appending, Writers
from forebay.trace.spills import Found, Image, is_one_of

OPENINGS = (
    *("open", "openat", "creat", "fopen", "freopen", "tmpfile"),
    *("mkstemp", "mkostemp", "mkstemps", "mkostemps"),
)
RENAMES = ("rename", "renameat")
_NAMED = (
    *OPENINGS,
    *RENAMES,
    *(
        "stat",
        "lstat",
        "fstatat",
        "statx",
        "access",
        "truncate",
        "unlink",
        "unlinkat",
        "mkdir",
        "rmdir",
    ),
    *("opendir", "chdir"),
)
_BY_DESCRIPTOR = (
    *("read", "readv", "write", "writev", "preadv2", "pwritev2", "dprintf"),
    *("copy_file_range", "sendfile", "splice"),
)
_SEEKS = ("lseek", "fseek")
HERE = -100  # AT_FDCWD
_NONE = -1

Integers = NDArray[np.int64]


@dataclass
class KnownFile:
    """What was seen of a file, by its path."""

    path: bytes
    mode: int = 0
    device: int = 0
    inode: int = 0
    size_start: int | None = None
    size_end: int | None = None

    def saw(self, mode: int, device: int, inode: int, size: int) -> None:
        if self.size_start is None or (device, inode) != (self.device, self.inode):
            self.mode, self.device, self.inode, self.size_start = mode, device, inode, size
        self.size_end = size

    @property
    def kind(self) -> str | None:
        for test, name in ((stat.S_ISREG, "file"), (stat.S_ISDIR, "directory")):
            if test(self.mode):
                return name
        return "device" if stat.S_ISBLK(self.mode) else None


class KnownFiles:
    """The files of a run, each once."""

    def __init__(self) -> None:
        self.files: list[KnownFile] = []
        self._places: dict[bytes, int] = {}

    def place(self, path: bytes) -> int:
        """The file's number."""
        place = self._places.setdefault(path, len(self.files))
        if place == len(self.files):
            self.files.append(KnownFile(path))
        return place


@dataclass(frozen=True)
class Resolved:
    """Of each event of an image: the file's number or -1, the descriptor that an opening made or
    that the call was given or -1, where its bytes begin or -1, whose call opened the descriptor
    (a place in posix_calls.WITHIN; 0 where that was not seen), and of a rename the file's number by
    its old name, else -1."""

    file: Integers
    descriptor: Integers
    offset: Integers
    opened_within: Integers
    renamed: Integers


def resolve(image: Image, events: NDArray[Any], files: KnownFiles, writers: Writers) -> Resolved:
    """`events` are those of all threads, each thread's in the order in which they ended, one thread
    after the other."""
    return _Resolution(image, events, files, writers).carry_out()


class _Resolution:
    def __init__(
        self, image: Image, events: NDArray[Any], files: KnownFiles, writers: Writers
    ) -> None:
        self._image = image
        self._events = events
        self._files = files
        self._writers = writers
        takes_no_time = is_one_of(image, events, ("is_file",))
        self._end = events["begin"] + np.where(takes_no_time, 0, events["duration"]).astype("u8")
        # Open file descriptions: the file, and the position to begin with (-1: not known).
        self._description_files: list[int] = []
        self._description_starts: list[int] = []
        self._appending: dict[int, Appending] = {}  # of them those that write at the end
        self._description_within: list[int] = []
        # What a descriptor is: from which moments on (ticks, rising), and which descriptions.
        self._changes: dict[int, tuple[list[int], list[int]]] = {}
        self._moves = [0]  # as above, of the working directory
        self._directories = [image.process.directory]

    def carry_out(self) -> Resolved:
        events = self._events
        count = len(events)
        named = np.flatnonzero(is_one_of(self._image, events, _NAMED))
        file = np.full(count, _NONE, np.int64)
        descriptor = events["descriptor"].astype(np.int64)
        self._follow()
        description = self._descriptions(descriptor)
        opened = is_one_of(self._image, events, OPENINGS)
        description[opened] = _NONE
        is_known = description != _NONE
        of_description = np.array([*self._description_files, _NONE], np.int64)
        file[is_known] = of_description[description[is_known]]
        descriptor[named] = _NONE
        descriptor[opened] = np.where(events["result"][opened] >= 0, events["result"][opened], -1)
        file[named] = self._files_named(named, "length")
        renames = np.flatnonzero(is_one_of(self._image, events, RENAMES))
        renamed = np.full(count, _NONE, np.int64)
        renamed[renames] = self._files_named(renames, "offset")
        opened_within = np.array([*self._description_within, 0], np.int64)[description]
        offsets = self._offsets(description, file)
        return Resolved(file, descriptor, offsets, opened_within, renamed)

    def _follow(self) -> None:
        """Collects what descriptors are, in the order of time: a duplicate is of the description
        that its original has then, and a name beside a directory of that directory."""
        steps = [(f.ticks, partial(self._add_found, f)) for f in self._image.found]
        for name, step in (
            ("is_file", self._add_opened),
            ("dup", self._add_copy),
            ("chdir", self._change_directory),
            ("fchdir", self._change_to_descriptor),
        ):
            for place in np.flatnonzero(is_one_of(self._image, self._events, (name,))):
                steps.append((int(self._end[place]), partial(step, int(place))))
        for _, carry_out in sorted(steps, key=lambda item: item[0]):
            carry_out()

    def _set(self, descriptor: int, ticks: int, description: int) -> None:
        since, descriptions = self._changes.setdefault(descriptor, ([], []))
        since.append(ticks)
        descriptions.append(description)

    def _move(self, place: int, path: bytes) -> None:
        self._moves.append(int(self._end[place]))
        self._directories.append(path)

    def _describe(self, file: int, start: int, within: int = 0) -> int:
        self._description_files.append(file)
        self._description_starts.append(start)
        self._description_within.append(within)
        return len(self._description_files) - 1

    def _add_found(self, found: Found) -> None:
        place = self._files.place(found.name)
        self._files.files[place].saw(found.mode, found.device, found.inode, found.size)
        description = self._describe(place, found.position)
        if found.flags & os.O_APPEND:
            self._append(description, found.ticks, found.device, found.inode, found.size)
        self._set(found.descriptor, found.ticks, description)

    def _add_opened(self, place: int) -> None:
        """The opening is the event before, by the same thread, unless it was lost."""
        told = self._events[place]
        descriptor, size = int(told["descriptor"]), int(told["length"])
        path, flags, within = b"", 0, 0
        if place > 0:
            opening = self._events[place - 1]
            if (
                self._image.calls.get(int(opening["call"])) in OPENINGS
                and int(opening["result"]) == descriptor
            ):
                path = self._path(opening, int(opening["length"]))
                flags = int(opening["offset"])
                within = int(opening["within"])
        path = path or path_by_inode(told)
        file = self._files.place(path)
        device, inode = int(told["duration"]), int(told["offset"])
        self._files.files[file].saw(int(told["result"]), device, inode, size)
        description = self._describe(file, 0, within)
        if flags & os.O_APPEND:
            self._append(description, int(told["begin"]), device, inode, size)
        self._set(descriptor, int(told["begin"]), description)

    def _append(self, description: int, since: int, device: int, inode: int, size: int) -> None:
        self._appending[description] = Appending(
            file=self._description_files[description],
            size=size,
            since=since,
            is_shared=self._writers.are_several(device, inode),
        )

    def _add_copy(self, place: int) -> None:
        told = self._events[place]
        made, end = int(told["result"]), int(self._end[place])
        description = self._description_of(int(told["descriptor"]), end)
        if made >= 0 and description is not None:
            self._set(made, end, description)

    def _change_directory(self, place: int) -> None:
        told = self._events[place]
        if told["result"] == 0:
            self._move(place, self._path(told, int(told["length"])))

    def _change_to_descriptor(self, place: int) -> None:
        told = self._events[place]
        description = self._description_of(int(told["descriptor"]), int(self._end[place]))
        if told["result"] == 0 and description is not None:
            self._move(place, self._files.files[self._description_files[description]].path)

    def _path(self, event: np.void, key: int) -> bytes:
        """A name that an event refers to, made absolute. Empty: its definition is not there."""
        name = self._image.names.get(key % (1 << 64), b"")
        if not name or name.startswith(b"/"):
            return tidied(name)
        directory = int(event["descriptor"])
        begin = int(event["begin"])
        if directory == HERE:
            beside = self._directories[bisect_right(self._moves, begin) - 1]
        else:
            description = self._description_of(directory, begin)
            beside = (
                unknown_directory(directory)
                if description is None
                else self._files.files[self._description_files[description]].path
            )
        return tidied(posixpath.join(beside, name))

    def _description_of(self, descriptor: int, ticks: int) -> int | None:
        since, descriptions = self._changes.get(descriptor, ([], []))
        place = bisect_right(since, ticks)
        return descriptions[place - 1] if place else None

    def _files_named(self, named: Integers, key: str) -> Integers:
        """The files that calls name by their field `key`. Most names come again and again, beside
        the same directory."""
        events = self._events[named]
        moves = np.array(self._moves, np.int64)
        where = np.searchsorted(moves, events["begin"].astype(np.int64), side="right")
        # What a directory's descriptor is may change at any time: such names are looked up singly.
        single = np.where(events["descriptor"] == HERE, 0, np.arange(1, len(named) + 1))
        keys = np.stack([events[key], where, single], axis=1)
        _, firsts, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        found = [self._path(events[place], int(events[place][key])) for place in firsts]
        places = np.array([self._files.place(p) if p else _NONE for p in found] or [0], np.int64)
        return places[inverse.ravel()]

    def _descriptions(self, descriptor: Integers) -> Integers:
        """The description behind the descriptor of each event when it began."""
        result = np.full(len(descriptor), _NONE, np.int64)
        begin = self._events["begin"].astype(np.int64)
        order = np.argsort(descriptor, kind="stable")
        numbers = descriptor[order]
        for number, (since, descriptions) in self._changes.items():
            a, b = np.searchsorted(numbers, [number, number + 1])
            if a == b:
                continue
            events = order[a:b]
            place = np.searchsorted(np.array(since, np.int64), begin[events], side="right")
            result[events] = np.array([_NONE, *descriptions], np.int64)[place]
        return result

    def _offsets(self, description: Integers, file: Integers) -> Integers:
        """Where each call's bytes begin: as it said, at the file's end, or at the position that the
        calls before it by the same description left."""
        events = self._events
        offset = np.where(events["offset"] >= 0, events["offset"], _NONE).astype(np.int64)
        offset[is_one_of(self._image, events, _NAMED)] = _NONE
        seeks = is_one_of(self._image, events, _SEEKS)
        offset[seeks] = np.maximum(events["result"][seeks], _NONE)
        appended, ends = appends.ends(self._image, events, description, file, self._appending)
        offset[appended] = ends[appended]
        by_stream = is_one_of(self._image, events, calls.STREAM_MOVES)
        by_descriptor = is_one_of(self._image, events, _BY_DESCRIPTOR)
        moves = by_stream | (by_descriptor & (events["offset"] == _NONE))
        places = np.flatnonzero((moves | seeks) & (description != _NONE))
        if len(places) == 0:
            return offset
        places = places[np.lexsort((events["begin"][places], description[places]))]
        which = description[places]
        moved = np.where(moves[places], np.maximum(events["result"][places], 0), 0)
        before = np.cumsum(moved) - moved
        is_first = np.ones(len(places), np.bool_)
        is_first[1:] = which[1:] != which[:-1]
        # Calls that say where they are, or that nobody knows it. A stream says so if it was moved
        # by what is not traced.
        sought = seeks[places] & (events["result"][places] >= 0)
        told = sought | appended[places] | (by_stream & (events["offset"] != _NONE))[places]
        starts = np.array(self._description_starts, np.int64)[which]
        stands = np.where(told, offset[places], np.where(is_first, starts, _NONE))
        since = np.maximum.accumulate(np.where(told | is_first, np.arange(len(places)), 0))
        position = np.where(stands[since] >= 0, stands[since] + before - before[since], _NONE)
        # What a stream has read or not written yet is known to it alone.
        streamed = _count_since(by_stream[places], since) > 0
        mixed = _count_since(streamed & ~by_stream[places] & moves[places], since) > 0
        position[mixed] = _NONE
        by_position = moves[places]
        offset[places[by_position]] = position[by_position]
        return offset


def _count_since(marked: NDArray[np.bool_], since: Integers) -> Integers:
    """How many are marked from the place `since` on, of each place up to it."""
    count: Integers = np.cumsum(marked, dtype=np.int64)
    return count - count[since] + marked[since]


def path_by_inode(told: np.void) -> bytes:
    """What a file is called whose opening is not known, of an `is_file`."""
    return b"inode %d of device %d" % (int(told["offset"]), int(told["duration"]))


def unknown_directory(descriptor: int) -> bytes:
    """What the directory behind a descriptor is called that is not known."""
    return b"(directory %d)" % descriptor


def tidied(path: bytes) -> bytes:
    """Without what changes nothing; `..` stays, for behind a link it is not the place before."""
    if b".." in path:
        return path
    return posixpath.normpath(path) if path else path

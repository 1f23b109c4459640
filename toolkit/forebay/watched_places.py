"""Directories in which a program may leave files by other ways than MPI, and what a run changed
there. Nothing tells of such writes but the directories themselves."""

import itertools
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from forebay import filesystem

MOST_ENTRIES = 10_000  # in a place; looking through more would cost more than it is worth

# Their files change by themselves, or block who reads them.
_OF_THE_KERNEL = frozenset({"proc", "sysfs", "devtmpfs", "devpts", "cgroup", "cgroup2", "tracefs"})

# Inode, size, and the times of the last change of content and of status.
_State = tuple[int, int, int, int]


class WatchedPlaces:
    """Places, and the state of their files when the run began. Of each place it sees this user's
    regular files and those in directories made since it is watched; names that begin with a dot
    belong to editors and the like, and are left out."""

    def __init__(self, places: Iterable[Path]) -> None:
        self.crowded: list[Path] = []  # places that hold too much to be watched
        self._old_directories: dict[Path, set[str]] = {}  # of each place
        self._followed: set[str] = set()
        self._before: dict[str, _State] = {}
        for place in places:
            self.watch(place)

    @property
    def places(self) -> frozenset[Path]:
        """Directories, and single files."""
        return frozenset(self._old_directories) | frozenset(map(Path, self._followed))

    def watch(self, place: Path) -> None:
        """From the next `begin` on, `place` is looked at."""
        if place in self._old_directories or place in self.crowded:
            return
        if filesystem.mount_of(place).type in _OF_THE_KERNEL:
            return
        entries = list(itertools.islice(_entries(place), MOST_ENTRIES + 1))
        if len(entries) > MOST_ENTRIES:
            self.crowded.append(place)
            return
        self._old_directories[place] = {entry.name for entry in entries if _is_directory(entry)}

    def follow(self, files: Iterable[str]) -> list[str]:
        """From the next `begin` on, these files are looked at, too, wherever they are, by the same
        rules. Returns those that are there now and that no place shows."""
        shown = self._states()
        found = {os.path.realpath(file) for file in files} - shown.keys()
        new = [
            path
            for path in sorted(found)
            if not any(part.startswith(".") for part in Path(path).parts)
            and _state_of(path) is not None
            and filesystem.mount_of(Path(path)).type not in _OF_THE_KERNEL
        ]
        new = new[: max(0, MOST_ENTRIES - len(self._followed))]
        self._followed.update(new)
        return new

    def begin(self) -> None:
        """A run begins: what changes from now on is its work, or somebody else's."""
        self._before = self._states()

    def changed(self) -> list[str]:
        """Files that are new or changed since `begin`, sorted."""
        return sorted(
            path for path, state in self._states().items() if self._before.get(path) != state
        )

    def _states(self) -> dict[str, _State]:
        found: dict[str, _State] = {}
        for place, old in list(self._old_directories.items()):
            states = dict(itertools.islice(_files(place, old), MOST_ENTRIES + 1))
            if len(states) > MOST_ENTRIES:
                del self._old_directories[place]
                self.crowded.append(place)
            else:
                found |= states
        for path in self._followed:
            state = _state_of(path)
            if state is not None:
                found[path] = state
        return found


def _state_of(path: str) -> _State | None:
    """That of a regular file of this user; None of what is none, or not there."""
    try:
        return _state(Path(path).lstat())
    except (OSError, ValueError):  # a name of lost bytes, too
        return None


def _state(status: os.stat_result) -> _State | None:
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _files(place: Path, left_out: set[str]) -> Iterator[tuple[str, _State]]:
    """The files in `place` and below, but for directories named in `left_out`."""
    for entry in _entries(place):
        if _is_directory(entry):
            if entry.name not in left_out:
                yield from _files(Path(entry.path), set())
            continue
        try:
            state = _state(entry.stat(follow_symlinks=False))
        except OSError:  # gone by now
            continue
        if state is not None:
            yield entry.path, state


def _entries(place: Path) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(place) as entries:
            yield from (entry for entry in entries if not entry.name.startswith("."))
    except OSError:  # gone, or not ours to read
        return


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False

"""The files that a command writes through MPI: what they hold after a run, and how they are put
back before the next, so that every run starts alike. No file that was there before is ever removed.
"""

import os
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import xxhash

from forebay import filesystem

_CHUNK = 4 * 1024 * 1024
# Where a file's birth time comes from this node's own clock.
_LOCAL_CLOCK = frozenset({"ext4", "xfs", "btrfs", "tmpfs"})
_CLOCK_GRAIN_S = 0.02  # birth times come from the kernel's tick, up to 10 ms behind


@dataclass(frozen=True)
class FileHash:
    """Size in bytes and XXH3-128 of a file's content."""

    bytes: int
    digest: str


def hash_file(path: Path) -> FileHash | None:
    """The file's content as a hash; None if there is no such file."""
    state = xxhash.xxh3_128()
    size = 0
    buffer = memoryview(bytearray(_CHUNK))
    try:
        with path.open("rb", buffering=0) as file:
            while count := file.readinto(buffer):
                state.update(buffer[:count])
                size += count
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        return None
    return FileHash(size, state.hexdigest())


class WrittenFiles:
    """What existed when this was made (before the first run), and which files the runs wrote."""

    def __init__(self, command: Iterable[str]) -> None:
        self._start = time.time()
        self._listing = {
            place: {entry.name for entry in place.iterdir()} for place in named_places(command)
        }
        self._paths: dict[str, bool] = {}  # path -> existed before

    @property
    def paths(self) -> list[str]:
        return list(self._paths)

    @property
    def kept(self) -> list[str]:
        """Written files that were there before the first run, or may have been: never removed."""
        return [path for path, existed in self._paths.items() if existed]

    def add(self, paths: Iterable[str]) -> None:
        """Takes note of files that a run wrote."""
        for path in paths:
            if path not in self._paths:
                self._paths[path] = self._existed(Path(path))

    def clear(self) -> None:
        """Removes the written files that were not there before the first run."""
        for path, existed in self._paths.items():
            if not existed and Path(path).is_file():
                Path(path).unlink()

    def hashes(self) -> dict[str, FileHash | None]:
        """What the written files hold now."""
        return {path: hash_file(Path(path)) for path in self._paths}

    def _existed(self, path: Path) -> bool:
        """Whether `path` was there before; yes where that cannot be told."""
        path = Path(os.path.realpath(path.parent)) / path.name
        for child in (path, *path.parents):
            names = self._listing.get(child.parent)
            if names is None:
                continue
            if child.name not in names:
                return False
            if child == path:
                return True
            break  # it is in a directory that was there, and whose content is not known
        return not self._born_since_start(path)

    def _born_since_start(self, path: Path) -> bool:
        if filesystem.mount_of(path).type not in _LOCAL_CLOCK:
            return False
        answer = subprocess.run(
            ["stat", "-c", "%.6W", str(path)], capture_output=True, text=True, check=False
        )
        try:
            born = float(answer.stdout)
        except ValueError:
            return False
        return born > 0 and born >= self._start - _CLOCK_GRAIN_S


def named_places(command: Iterable[str]) -> set[Path]:
    """Directories in which the command may create files, as far as its words tell."""
    places = {Path.cwd().resolve()}
    for word in command:
        for text in {word, word.partition("=")[2]} - {""}:
            path = Path(text)
            for place in (path, path.parent):
                try:
                    if place.is_dir():
                        places.add(place.resolve())
                except OSError:  # a word too long for a name
                    continue
    return {place for place in places if os.access(place, os.R_OK | os.X_OK)}

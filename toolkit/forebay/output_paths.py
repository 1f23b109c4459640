"""The files that a verb is asked to leave: refused before the work, not after an hour of it."""

import os
from collections.abc import Iterable
from pathlib import Path

from forebay.errors import ForebayError


def require_file(path: Path) -> None:
    """Raises ForebayError unless a file can be written at `path`."""
    if path.is_dir():
        raise ForebayError(
            f"{path} is a directory", f"Name a file, such as {path / 'result.json'}."
        )
    if path.exists():
        _require_access(path)
    elif path.parent.is_dir():
        _require_access(path.parent)
    else:
        raise ForebayError(
            f"{path} cannot be written: there is no directory {path.parent}",
            f"Make it first: mkdir -p {path.parent}",
        )


def require_other(path: Path, sources: Iterable[Path]) -> None:
    """Raises ForebayError if `path` is one of the files that are read, which it would replace."""
    if path.exists() and any(path.samefile(source) for source in sources):
        raise ForebayError(f"{path} is what is to be read", "Name another file to write.")


def require_directory(path: Path) -> None:
    """Raises ForebayError unless `path` is a directory that can be written to, or can be made."""
    place = path.absolute()
    while not place.exists():
        place = place.parent
    if not place.is_dir():
        raise ForebayError(f"{place} is no directory", "Choose another place for the report.")
    _require_access(place)


def require_new_directory(path: Path) -> None:
    """Raises ForebayError unless `path` is an empty directory, or one can be made there."""
    if path.is_dir() and any(path.iterdir()):
        raise ForebayError(
            f"{path} is not empty", "Name a new directory, or remove what is in this one."
        )
    if any(parent.exists() and not parent.is_dir() for parent in (path, *path.parents)):
        raise ForebayError(f"{path} cannot be a directory", "Name another place.")


def _require_access(path: Path) -> None:
    if not os.access(path, os.W_OK):
        raise ForebayError(f"{path} is not writable", "Choose another place, or change its mode.")

"""The files that a verb is asked to leave: refused before the work, not after an hour of it."""

import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from forebay.errors import ForebayError

#: What stands between options and a command. An option without its value takes it as that.
BEFORE_COMMAND = "--"


def require_file(path: Path) -> None:
    """Raises ForebayError unless a file can be written at `path`."""
    _require_name(path)
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


def _require_name(path: Path) -> None:
    if path == Path(BEFORE_COMMAND):
        raise ForebayError(
            f"the last option before '{BEFORE_COMMAND}' lacks its name",
            f"Write it between the option and '{BEFORE_COMMAND}'.",
        )


def require_other(path: Path, sources: Iterable[Path]) -> None:
    """Raises ForebayError if `path` is one of the files that are read, or in a directory that is,
    which it would replace."""
    if not path.exists():
        return
    if any(one.exists() and path.samefile(one) for source in sources for one in _files_of(source)):
        raise ForebayError(f"{path} is what is to be read", "Name another file to write.")


# What commands read of directories, in which they may leave results, too.
_READ = ("run.json", "*.parquet", "*.sqlite")


def _files_of(source: Path) -> Iterable[Path]:
    return [file for name in _READ for file in source.glob(name)] if source.is_dir() else [source]


def require_apart(paths: Iterable[Path]) -> None:
    """Raises ForebayError if two of the files that are to be written are one."""
    seen: set[Path] = set()
    for path in (path.resolve() for path in paths):
        if path in seen:
            raise ForebayError(f"{path} would be written twice", "Name two files.")
        seen.add(path)


_MOST_LINKS = 40  # that the kernel follows [path_resolution(7)]


@contextmanager
def unfinished(out: Path) -> Iterator[Path]:
    """Where to write what becomes `out` when all is there; an exception leaves `out` as it was.
    What is no file (a pipe), is one that this process has open (/dev/stdout), or is where no other
    file can be made, is written to as it is."""
    target = Path(os.path.realpath(out))
    is_other = target.exists() and not target.is_file()
    if is_other or _is_open(out) or not os.access(target.parent, os.W_OK):
        yield out
        return
    place = target.with_name(f".forebay-{os.getpid()}")
    try:
        yield place
        if target.exists():
            place.chmod(stat.S_IMODE(target.stat().st_mode))
        try:
            place.replace(target)
        except PermissionError:  # another user's file in a directory with the sticky bit
            shutil.copyfile(place, target)
    except OSError as error:
        if error.filename in (None, str(place)):
            error.filename = str(out)  # which the user knows
        raise
    finally:
        place.unlink(missing_ok=True)


def _is_open(path: Path) -> bool:
    """Whether a name leads to what a process has open, by way of /dev or /proc: a file put there in
    its place would reach nobody."""
    path = path.absolute()
    for _ in range(_MOST_LINKS):
        in_memory = path.is_relative_to("/dev/shm")
        if path.is_relative_to("/proc") or (path.is_relative_to("/dev") and not in_memory):
            return True
        if not path.is_symlink():
            return False
        path = Path(os.path.normpath(path.parent / path.readlink()))
    return False


def write_text(out: Path, text: str) -> None:
    """Replaces the file as a whole. What is no character of UTF-8 becomes '?'. Raises OSError,
    which leaves it as it was."""
    with unfinished(out) as place:
        place.write_text(text, encoding="utf-8", errors="replace")


def require_directory(path: Path) -> None:
    """Raises ForebayError unless `path` is a directory that can be written to, or can be made."""
    _require_name(path)
    place = path.absolute()
    while not place.exists():
        place = place.parent
    if not place.is_dir():
        raise ForebayError(f"{place} is no directory", "Choose another place for the report.")
    _require_access(place)


def require_new_directory(path: Path) -> None:
    """Raises ForebayError unless `path` is an empty directory, or one can be made there."""
    _require_name(path)
    if path.is_dir() and any(path.iterdir()):
        raise ForebayError(
            f"{path} is not empty", "Name a new directory, or remove what is in this one."
        )
    if any(parent.exists() and not parent.is_dir() for parent in (path, *path.parents)):
        raise ForebayError(f"{path} cannot be a directory", "Name another place.")


def _require_access(path: Path) -> None:
    if not os.access(path, os.W_OK):
        raise ForebayError(f"{path} is not writable", "Choose another place, or change its mode.")

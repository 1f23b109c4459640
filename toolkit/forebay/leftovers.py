"""Files that Forebay makes for itself and that stay behind when a run is killed."""

import contextlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")
TRACE_INSTANCES = Path("/sys/kernel/tracing/instances")

# What a name says of its purpose.
_PURPOSES = (
    (re.compile(r"\..+\.forebay-pointer-\d+"), "a shared file pointer"),
    (re.compile(r"\.forebay-records-\w+"), "the records of a run"),
    (re.compile(r"\.forebay-(probe|limit)-[0-9a-f]{32}"), "a trial file"),
)
# [core/engine/collective/shared_memory.cpp]
_SHARED_BUFFER = re.compile(r"forebay-(\d+)-[0-9a-f]{16}")
# [core/engine/prefetch/node_readers.cpp, window_memory.cpp]
_READERS = re.compile(r"forebay-(reads-\d+-\d+(-[0-9a-f]+){4,5}|window-\d+-\d+(-[0-9a-f]+){5,6})")

# [toolkit/native/page_events.cpp]
_TRACE_INSTANCE = re.compile(r"forebay-(\d+)")


@dataclass(frozen=True)
class Leftover:
    """One file or directory, and what it was for."""

    path: Path
    what: str


def in_directory(directory: Path) -> list[Leftover]:
    """What stands in `directory`, sorted by name: of runs that were killed or that go on, which
    cannot be told apart."""
    return [
        Leftover(directory / name, what)
        for name in _names(directory)
        for pattern, what in _PURPOSES
        if pattern.fullmatch(name)
    ]


def orphaned_buffers(directory: Path = SHARED_MEMORY) -> list[Leftover]:
    """This user's buffers in shared memory whose process is gone, sorted by name."""
    return _of_ended(directory, _SHARED_BUFFER, "a shared buffer")


def orphaned_readers(directory: Path = SHARED_MEMORY) -> list[Leftover]:
    """What this user's readers of a file knew of each other, and the memory that they shared, where
    none has it mapped any more; sorted by name."""
    left = [
        directory / name
        for name in _names(directory)
        if _READERS.fullmatch(name) and _is_ours(directory / name)
    ]
    mapped = _mapped() if left else ""
    return [Leftover(path, "readers of a file") for path in left if f" {path}\n" not in mapped]


def remove_orphaned_readers(directory: Path = SHARED_MEMORY) -> None:
    """Removes the same. Whoever is about to map it reads alone."""
    for left in orphaned_readers(directory):
        with contextlib.suppress(OSError):  # gone, or not to be removed
            left.path.unlink()


def orphaned_traces(directory: Path = TRACE_INSTANCES) -> list[Leftover]:
    """Where the kernel still writes reads down for this user's forebay-pages that is gone, sorted
    by name."""
    return _of_ended(directory, _TRACE_INSTANCE, "reads written down by the kernel")


def remove_orphaned_traces(directory: Path = TRACE_INSTANCES) -> None:
    """Removes the same: the kernel takes no event for them any more."""
    for left in orphaned_traces(directory):
        with contextlib.suppress(OSError):  # somebody looks into it, or has removed it
            left.path.rmdir()


def _of_ended(directory: Path, pattern: re.Pattern[str], what: str) -> list[Leftover]:
    """This user's, whose names have the number of a process that is gone."""
    found = []
    for name in _names(directory):
        match = pattern.fullmatch(name)
        path = directory / name
        if match and _is_ours(path) and not Path(f"/proc/{match[1]}").exists():
            found.append(Leftover(path, what))
    return found


def _mapped() -> str:
    """/proc/PID/maps of all processes that may be looked at."""
    found = []
    for name in _names(Path("/proc")):
        if name.isdecimal():
            with contextlib.suppress(OSError):  # it ended, or belongs to somebody else
                found.append(Path(f"/proc/{name}/maps").read_text(errors="replace"))
    return "".join(found)


def _names(directory: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in os.scandir(directory))
    except OSError:
        return []


def _is_ours(path: Path) -> bool:
    try:
        return path.lstat().st_uid == os.geteuid()
    except OSError:
        return False

"""What the kernel of this host says of a process: whether it lives, and what it is at."""

import os
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
TRACE_VARIABLE = "FOREBAY_TRACE_DIR"


@dataclass(frozen=True)
class Life:
    """`state`: R runs, S sleeps, D waits for a device, Z has ended."""

    state: str
    parent: int
    started_jiffies: int


def life_of(pid: int) -> Life | None:
    """None: there is no such process. [proc(5)]"""
    try:
        text = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    fields = text[text.rfind(")") + 2 :].split()
    return Life(fields[0], int(fields[1]), int(fields[19]))


def pids() -> list[int]:
    return [int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit()]


def traced_into(pid: int) -> Path | None:
    """The directory that a process traces into, or None. Raises PermissionError for another
    user's, FileNotFoundError for one that is gone."""
    for word in (_PROC / str(pid) / "environ").read_bytes().split(b"\0"):
        name, _, value = word.partition(b"=")
        if name == TRACE_VARIABLE.encode() and value:
            return Path(os.fsdecode(value))
    return None


def own_traces() -> list[Path]:
    """The directories that processes of this user trace into, each once, sorted."""
    found = set()
    for pid in pids():
        try:
            if (_PROC / str(pid)).stat().st_uid == os.geteuid() and (place := traced_into(pid)):
                found.add(place)
        except OSError:  # gone, or not ours to look into
            continue
    return sorted(found)


def descendants(pid: int) -> list[int]:
    """A process and those that it started, and so on."""
    parents = {p: life.parent for p in pids() if (life := life_of(p)) is not None}
    found = [pid]
    for each in found:
        found += [child for child, parent in parents.items() if parent == each]
    return found

"""Control groups of version 1: what the processes in one may take of a device or of memory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

_MOUNTS = Path("/proc/self/mounts")

# Writes its own number, which the kernel takes from 0, and becomes the command.
_ENTER = 'echo 0 > "$1" && shift && exec "$@"'


class CannotBeDoneError(Exception):
    """What is missing here, in words for who started the measurement."""


def hierarchy_of(controller: str) -> Path:
    """Where the groups of this controller are. Raises CannotBeDoneError where there are none."""
    for line in _MOUNTS.read_text().splitlines():
        _, place, kind, options, *_ = line.split(" ")
        if kind == "cgroup" and controller in options.split(","):
            return Path(place)
    raise CannotBeDoneError(
        f"the controller {controller} of control groups, version 1, is not mounted"
    )


@contextmanager
def control_group(controller: str, settings: Mapping[str, str]) -> Iterator[Path]:
    """A group with these files written, for the time. Raises CannotBeDoneError where there can be
    none, or where a setting is not taken."""
    hierarchy = hierarchy_of(controller)
    group = hierarchy / f"forebay-experiment-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        raise CannotBeDoneError(f"no control group can be made in {hierarchy}: {error}") from error
    try:
        for name, value in settings.items():
            try:
                (group / name).write_text(value)
            except OSError as error:
                raise CannotBeDoneError(f"{group / name} takes no '{value}': {error}") from error
        yield group
    finally:
        # Whoever is left in it after a failure would keep it.
        for process in (group / "cgroup.procs").read_text().split():
            (hierarchy / "cgroup.procs").write_text(process)
        group.rmdir()


def entering(group: Path, command: list[str]) -> list[str]:
    """The command, run by a process that enters the group first."""
    return ["sh", "-c", _ENTER, "sh", str(group / "cgroup.procs"), *command]

"""`forebay testbed status|down`: file systems that `up` has mounted on this machine, of each kind:
emulated and real."""

from pathlib import Path
from typing import Protocol

from rich.console import Console

from forebay import emulated_testbed, gluster_testbed, testbed_state
from forebay.errors import ForebayError
from forebay.testbed_state import State


class Kind(Protocol):
    """What a module does for testbeds of its kind."""

    def refreshed(self, state: State, file: Path) -> State:
        """The state as it is now, of what `file` said; "running" is false where it has ended."""

    def remains(self, state: State) -> bool:
        """Whether there is something to end, running or not."""

    def down(self, state: State) -> State:
        """Ends it, and returns its last state. Raises ForebayError where it is in use."""

    def show(self, console: Console, state: State) -> None:
        """Prints its parameters and counters."""


_KINDS: dict[str, Kind] = {"emulated": emulated_testbed, "glusterfs": gluster_testbed}


def _kind(state: State) -> Kind:
    return _KINDS[state["kind"]]


def states(mount: Path | None = None) -> list[State]:
    """Fresh states of all testbeds of this user, or of the one at `mount`. Those that ended without
    saying so have "running": false."""
    if mount is not None:
        files = [testbed_state.file_of(mount.resolve())]
    else:
        files = sorted(testbed_state.directory().glob("*.json"))
    found = []
    for file in files:
        if file.is_file():
            state = testbed_state.read(file)
            found.append(_kind(state).refreshed(state, file))
    return found


def down(mount: Path | None = None) -> State:
    """Unmounts the testbed at `mount`, or the only one there is, and returns its last state. Raises
    ForebayError where it is still in use or there is none."""
    there = [state for state in states(mount) if state["running"] or _kind(state).remains(state)]
    if not there:
        where = f" at {mount}" if mount else ""
        raise ForebayError(f"no testbed is up{where}", "'forebay testbed status' lists them.")
    if len(there) > 1:
        raise ForebayError(
            "several testbeds are up: " + ", ".join(state["mount"] for state in there),
            "Name one with --mount DIR.",
        )
    return _kind(there[0]).down(there[0])


def show(console: Console, state: State) -> None:
    """Prints one testbed's parameters and counters."""
    _kind(state).show(console, state)

"""The emulated parallel file system: a daemon of Forebay's own, mounted by FUSE, whose servers have
the pace that it is told."""

import itertools
import os
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from forebay import native, testbed_report, testbed_state
from forebay.errors import ForebayError
from forebay.testbed_state import State
from forebay.units import (
    parse_rate,
    parse_seconds,
    parse_size,
    show_bytes,
    show_count,
    show_seconds,
)


@dataclass(frozen=True)
class EmulatedOptions:
    """One `forebay testbed up` command line; quantities as the user wrote them."""

    mount: Path
    backing: Path | None = None
    servers: int = 4
    bandwidth: str = "4MiB/s"
    latency: str = "3ms"
    stripe: str = "64KiB"
    slots: int = 10
    lock_cost: str = "0ms"
    object_cost: str = "0ms"
    page_cache: bool = False
    read_ahead: str | None = None  # of the kernel; None: as it is


def up(options: EmulatedOptions) -> State:
    """Mounts it and returns its state. The files lie in `backing`, by default beside the
    mount point with '.files' added, and stay there. Raises ForebayError."""
    program = native.testbed_program()
    paces = _paces(options)
    caching = _caching(options)
    mount, backing = testbed_state.prepare_directories(options.mount, options.backing)
    state_file = testbed_state.file_of(mount)
    state_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    state_file.unlink(missing_ok=True)
    arguments = {
        "--backing": str(backing),
        "--servers": str(options.servers),
        "--slots": str(options.slots),
        **paces,
        "--state": str(state_file),
    }
    # To a file, not a pipe: the daemon keeps the descriptor, and a pipe would never end.
    with tempfile.TemporaryFile() as errors:
        done = subprocess.run(
            [str(program), *itertools.chain(*arguments.items()), *caching, str(mount)],
            stdin=subprocess.DEVNULL,
            stdout=errors,
            stderr=errors,
            check=False,
        )
        errors.seek(0)
        said = errors.read().decode(errors="replace").strip()
    if done.returncode != 0:
        raise ForebayError(
            f"the testbed did not start: {said or f'exit status {done.returncode}'}",
            "It needs fusermount3 (Debian: apt-get install fuse3), a mount point of your own, and "
            "root for --read-ahead.",
            exit_code=1,
        )
    return testbed_state.read(state_file)


def _paces(options: EmulatedOptions) -> dict[str, str]:
    """The quantities as the daemon reads them, whatever the user's units. Raises ForebayError."""
    rate = parse_rate(options.bandwidth)
    stripe = parse_size(options.stripe)
    if rate < 1 or stripe < 1:
        raise ForebayError(
            "servers need some bandwidth and stripes some bytes",
            "Write at least 1 of each: --bandwidth 4MiB/s --stripe 64KiB.",
        )
    return {
        "--bandwidth": f"{rate}B/s",
        "--stripe": f"{stripe}B",
        "--latency": f"{round(parse_seconds(options.latency) * 1e9)}ns",
        "--lock-cost": f"{round(parse_seconds(options.lock_cost) * 1e9)}ns",
        "--object-cost": f"{round(parse_seconds(options.object_cost) * 1e9)}ns",
    }


def _caching(options: EmulatedOptions) -> list[str]:
    """The page cache as the daemon is told of it. Raises ForebayError."""
    if options.read_ahead is None:
        return ["--page-cache"] if options.page_cache else []
    read_ahead = parse_size(options.read_ahead)
    if not options.page_cache:
        raise ForebayError(
            "--read-ahead is the kernel's, which reads ahead into its page cache only",
            "Add --page-cache, or leave it out.",
        )
    if read_ahead % 1024:
        raise ForebayError(
            f"a read-ahead of {read_ahead} bytes is no multiple of 1 KiB",
            "Write a multiple: --read-ahead 128KiB.",
        )
    return ["--page-cache", "--read-ahead", f"{read_ahead}B"]


def refreshed(state: State, file: Path) -> State:
    """The state as the daemon now writes it, or with "running": false where it is gone."""
    if not state.get("running"):
        return state
    before = file.stat().st_mtime_ns
    try:
        _signal_daemon(state, signal.SIGUSR1)
    except ProcessLookupError:
        return {**state, "running": False}
    testbed_state.wait_until(lambda: file.stat().st_mtime_ns != before)
    return testbed_state.read(file)


def _signal_daemon(state: State, number: signal.Signals) -> None:
    """Raises ProcessLookupError if the daemon is gone; its process number may be another's now."""
    pid = int(state["pid"])
    try:
        name = Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError as error:
        raise ProcessLookupError(pid) from error
    if not name.startswith("forebay-testbed"[:15]):
        raise ProcessLookupError(pid)
    os.kill(pid, number)


def remains(state: State) -> bool:
    """Whether it is still mounted, be its daemon gone."""
    return testbed_state.mounted(state)


def down(state: State) -> State:
    """Unmounts it, and returns its last state. Raises ForebayError where it is in use."""
    testbed_state.unmount(state)
    file = testbed_state.file_of(Path(state["mount"]))

    def ended() -> bool:
        return not file.is_file() or not testbed_state.read(file).get("running")

    if state["running"] and testbed_state.wait_until(ended) and file.is_file():
        state = testbed_state.read(file)
    file.unlink(missing_ok=True)
    return {**state, "running": False}


def _read_ahead_of(parameters: dict[str, Any]) -> str:
    read_ahead = parameters["read_ahead_bytes"]
    return "" if read_ahead is None else f" with a read-ahead of {show_bytes(read_ahead)}"


def show(console: Console, state: State) -> None:
    """Prints one testbed's parameters and counters."""
    parameters = state["parameters"]
    about = (
        f"{parameters['servers']} servers x "
        f"{show_bytes(parameters['bandwidth_bytes_per_s'])}/s, "
        f"latency {show_seconds(parameters['latency_s'])}, "
        f"stripe {show_bytes(parameters['stripe_bytes'])}, "
        f"{parameters['slots']} slots, "
        f"lock cost {show_seconds(parameters['lock_cost_s'])}"
    )
    if parameters.get("object_cost_s"):  # none of an earlier version's
        about += f", object cost {show_seconds(parameters['object_cost_s'])}"
    if parameters["page_cache"]:
        about += f", page cache{_read_ahead_of(parameters)}"
    more: list[testbed_report.Column] = [
        ("lock conflicts", lambda server: show_count(server["lock_conflicts"])),
        ("busy", lambda server: show_seconds(server["busy_s"])),
        ("queue", lambda server: f"{server['queue']} (max {server['queue_max']})"),
    ]
    testbed_report.show(console, state, "files", about, "server", more)

"""`forebay testbed up|status|down`: an emulated parallel file system on this machine."""

import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from forebay import native
from forebay.errors import ForebayError
from forebay.units import (
    parse_rate,
    parse_seconds,
    parse_size,
    show_bytes,
    show_count,
    show_seconds,
)

_ANSWER_S = 5.0  # for a daemon to write its state, or to end
_POLL_S = 0.01


@dataclass(frozen=True)
class TestbedOptions:
    """One `forebay testbed up` command line; quantities as the user wrote them."""

    mount: Path
    backing: Path | None = None
    servers: int = 4
    bandwidth: str = "4MiB/s"
    latency: str = "3ms"
    stripe: str = "64KiB"
    slots: int = 10
    lock_cost: str = "0ms"


def state_directory() -> Path:
    """Where this user's testbeds leave their state, a file each."""
    base = os.environ.get("XDG_RUNTIME_DIR")
    if base and os.access(base, os.W_OK):
        return Path(base) / "forebay-testbed"
    return Path(tempfile.gettempdir()) / f"forebay-testbed-{os.getuid()}"


def _state_file(mount: Path) -> Path:
    name = hashlib.sha256(str(mount).encode()).hexdigest()[:16]
    return state_directory() / f"{name}.json"


def up(options: TestbedOptions) -> dict[str, Any]:
    """Mounts the testbed and returns its state. The files lie in `backing`, by default beside the
    mount point with '.files' added, and stay there. Raises ForebayError."""
    program = native.testbed_program()
    paces = _paces(options)
    if not Path("/dev/fuse").exists():
        raise ForebayError(
            "this machine has no /dev/fuse",
            "Load the module (modprobe fuse), or give the container the device "
            "(--device /dev/fuse --cap-add SYS_ADMIN).",
            exit_code=1,
        )
    mount = options.mount.resolve()
    backing = (options.backing or mount.with_name(mount.name + ".files")).resolve()
    for directory in (mount, backing):
        directory.mkdir(parents=True, exist_ok=True)
    if os.path.ismount(mount):
        raise ForebayError(
            f"{mount} is a mount point already",
            f"End it with 'forebay testbed down --mount {mount}', or choose another directory.",
        )
    state_file = _state_file(mount)
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
            [str(program), *(part for pair in arguments.items() for part in pair), str(mount)],
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
            "It needs fusermount3 (Debian: apt-get install fuse3) and a mount point of your own.",
            exit_code=1,
        )
    return _read(state_file)


def _paces(options: TestbedOptions) -> dict[str, str]:
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
    }


def states(mount: Path | None = None) -> list[dict[str, Any]]:
    """Fresh states of all testbeds of this user, or of the one at `mount`. Those that ended without
    saying so have "running": false."""
    if mount is not None:
        files = [_state_file(mount.resolve())]
    else:
        files = sorted(state_directory().glob("*.json")) if state_directory().is_dir() else []
    return [_refreshed(file) for file in files if file.is_file()]


def _refreshed(file: Path) -> dict[str, Any]:
    state = _read(file)
    if not state.get("running"):
        return state
    before = file.stat().st_mtime_ns
    try:
        _signal_daemon(state, signal.SIGUSR1)
    except ProcessLookupError:
        return {**state, "running": False}
    _wait_until(lambda: file.stat().st_mtime_ns != before)
    return _read(file)


def _signal_daemon(state: dict[str, Any], number: signal.Signals) -> None:
    """Raises ProcessLookupError if the daemon is gone; its process number may be another's now."""
    pid = int(state["pid"])
    try:
        name = Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError as error:
        raise ProcessLookupError(pid) from error
    if not name.startswith("forebay-testbed"[:15]):
        raise ProcessLookupError(pid)
    os.kill(pid, number)


def down(mount: Path | None = None) -> dict[str, Any]:
    """Unmounts the testbed at `mount`, or the only one there is, and returns its last state. Raises
    ForebayError where it is still in use or there is none."""
    running = [state for state in states(mount) if state["running"] or _mounted(state)]
    if not running:
        where = f" at {mount}" if mount else ""
        raise ForebayError(f"no testbed is up{where}", "'forebay testbed status' lists them.")
    if len(running) > 1:
        raise ForebayError(
            "several testbeds are up: " + ", ".join(state["mount"] for state in running),
            "Name one with --mount DIR.",
        )
    state = running[0]
    point = state["mount"]
    tool = shutil.which("fusermount3") or shutil.which("fusermount")
    command = [tool, "-u", point] if tool else ["umount", point]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0 and _mounted(state):
        raise ForebayError(
            f"{point} cannot be unmounted: {done.stderr.strip()}",
            f"Something uses it; 'fuser -vm {point}' says what.",
            exit_code=1,
        )
    file = _state_file(Path(point))

    def ended() -> bool:
        return not file.is_file() or not _read(file).get("running")

    if state["running"] and _wait_until(ended) and file.is_file():
        state = _read(file)
    file.unlink(missing_ok=True)
    return {**state, "running": False}


def _mounted(state: dict[str, Any]) -> bool:
    return any(
        line.split(" ")[4] == state["mount"]
        for line in Path("/proc/self/mountinfo").read_text().splitlines()
    )


def _wait_until(done: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + _ANSWER_S
    while not done():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
    return True


def _read(file: Path) -> dict[str, Any]:
    """A state file's content (testbed/README.md)."""
    with contextlib.suppress(OSError, ValueError):
        content = json.loads(file.read_text())
        if isinstance(content, dict):
            return content
    raise ForebayError(
        f"the state file {file} cannot be read", "Remove it and start the testbed again."
    )


def show(console: Console, state: dict[str, Any]) -> None:
    """Prints one testbed's parameters and counters."""
    parameters = state["parameters"]
    console.print(
        f"[bold]{escape(state['mount'])}[/bold]  "
        f"{'up' if state['running'] else 'down'}, files in {escape(state['backing'])}",
        soft_wrap=True,
    )
    console.print(
        f"  {parameters['servers']} servers x "
        f"{show_bytes(parameters['bandwidth_bytes_per_s'])}/s, "
        f"latency {show_seconds(parameters['latency_s'])}, "
        f"stripe {show_bytes(parameters['stripe_bytes'])}, "
        f"{parameters['slots']} slots, "
        f"lock cost {show_seconds(parameters['lock_cost_s'])}"
    )
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 2))
    for name in ("server", "writes", "written", "reads", "read", "lock conflicts", "busy", "queue"):
        table.add_column(name, justify="right")
    for number, server in enumerate(state["servers"]):
        table.add_row(
            str(number),
            show_count(server["write_requests"]),
            show_bytes(server["write_bytes"]),
            show_count(server["read_requests"]),
            show_bytes(server["read_bytes"]),
            show_count(server["lock_conflicts"]),
            show_seconds(server["busy_s"]),
            f"{server['queue']} (max {server['queue_max']})",
        )
    console.print(table)

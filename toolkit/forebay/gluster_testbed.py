"""A real network file system on this machine: GlusterFS as Debian packages it, with bricks on
loopback, mounted by FUSE."""

import errno
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from forebay import filesystem, gluster_volume, testbed_report, testbed_state
from forebay.errors import ForebayError
from forebay.gluster_daemons import Daemons, require_programs
from forebay.gluster_volume import HOST, NAME, Kind, Layout
from forebay.testbed_state import State
from forebay.units import show_count

_DEFAULT_SERVERS = {Kind.DISTRIBUTED: 4, Kind.DISPERSED: 3}
_DEFAULT_REDUNDANCY = {Kind.DISTRIBUTED: 0, Kind.DISPERSED: 1}


@dataclass(frozen=True)
class GlusterOptions:
    """One `forebay testbed up --real glusterfs` command line."""

    mount: Path
    backing: Path | None = None
    kind: Kind = Kind.DISTRIBUTED
    servers: int | None = None
    redundancy: int | None = None

    def layout(self) -> Layout:
        """Raises ForebayError where GlusterFS has no such volume."""
        servers = _DEFAULT_SERVERS[self.kind] if self.servers is None else self.servers
        redundancy = _DEFAULT_REDUNDANCY[self.kind] if self.redundancy is None else self.redundancy
        return Layout(self.kind, servers, redundancy)


def up(options: GlusterOptions) -> State:
    """Mounts it and returns its state. Bricks and the volume's description lie in `backing`, stay
    there, and are what a later `up` with the same layout begins with. Raises ForebayError, and then
    has left nothing."""
    layout = options.layout()
    if os.geteuid() != 0:
        raise ForebayError(
            "GlusterFS needs root: its bricks keep attributes that only root may set",
            "Run it as root (sudo forebay testbed up ...), or emulate: leave --real out.",
            exit_code=1,
        )
    require_programs()
    named = (options.mount, *([options.backing] if options.backing else []))
    new = [place for place in named if not place.exists()]
    mount, backing = testbed_state.prepare_directories(options.mount, options.backing)
    new += [backing] if not options.backing and not any(backing.iterdir()) else []
    try:
        return _up(Daemons(mount, backing), layout)
    except BaseException:
        for place in new:
            if not os.path.ismount(place) and not any(place.iterdir()):
                place.rmdir()
        raise


def _up(daemons: Daemons, layout: Layout) -> State:
    if daemons.run.exists():
        raise ForebayError(
            f"{daemons.mount} has a testbed that is not whole",
            f"End it with 'forebay testbed down --mount {daemons.mount}'.",
        )
    _require_attributes(daemons.backing)
    bricks = [daemons.backing / "bricks" / str(number) for number in range(layout.servers)]
    new = not (daemons.backing / "glusterd").exists()
    if new and (daemons.backing / "bricks").exists():
        raise ForebayError(
            f"{daemons.backing} has bricks, and not the description of their volume",
            "Name an empty directory with --backing DIR.",
        )
    file = testbed_state.file_of(daemons.mount)
    state = {
        "version": 1,
        "kind": "glusterfs",
        "running": True,
        "mount": str(daemons.mount),
        "backing": str(daemons.backing),
        "parameters": {
            "layout": layout.kind.value,
            "servers": layout.servers,
            "redundancy": layout.redundancy,
        },
        "servers": [],
    }
    testbed_state.write(file, state)  # first, so that `down` finds what a killed `up` leaves
    try:
        daemons.start()
        if new:
            for brick in bricks:
                brick.mkdir(parents=True)
            paths = [f"{HOST}:{brick}" for brick in bricks]
            # "force": bricks of one host, and beside other files, are not for production.
            daemons.command("volume", "create", NAME, *layout.words(), *paths, "force")
        else:
            _require_same(daemons, layout)
        daemons.command("volume", "start", NAME, "force")  # "force": also where it is started
        if new:  # the volume's description keeps it
            daemons.command("volume", "profile", NAME, "start")
        daemons.mount_volume()
        if new:
            _give_to_user(daemons.mount)
        state = refreshed({**state, "pid": daemons.glusterd()}, file)
        testbed_state.write(file, state)
    except BaseException:
        down(state)
        if new:
            for part in ("bricks", "glusterd", "log"):
                shutil.rmtree(daemons.backing / part, ignore_errors=True)
        raise
    return state


def _give_to_user(mount: Path) -> None:
    """Who asked by sudo is to write there without it."""
    if "SUDO_UID" in os.environ:
        os.chown(mount, int(os.environ["SUDO_UID"]), int(os.environ.get("SUDO_GID", "-1")))


def _require_attributes(backing: Path) -> None:
    """Raises ForebayError where GlusterFS could not mark bricks."""
    try:
        os.setxattr(backing, "trusted.forebay", b"1")
        os.removexattr(backing, "trusted.forebay")
    except OSError as error:
        if error.errno == errno.EPERM:
            raise ForebayError(
                "root may not set trusted attributes here, which GlusterFS needs",
                "In a container: --cap-add SYS_ADMIN.",
                exit_code=1,
            ) from error
        kind = filesystem.mount_of(backing).type
        raise ForebayError(
            f"{backing} is on {kind}, which keeps no trusted attributes ({error.strerror}): "
            "GlusterFS can have no bricks there",
            "Name a directory on ext4 or xfs with --backing DIR; in a container, one on a volume.",
            exit_code=1,
        ) from error


def _require_same(daemons: Daemons, layout: Layout) -> None:
    """Raises ForebayError where the volume that is there has another layout."""
    there = gluster_volume.layout_in(daemons.command("volume", "info", NAME))
    if there != layout:
        raise ForebayError(
            f"{daemons.backing} has a volume of {there}, not of {layout}",
            "Ask for the same, or name an empty directory with --backing DIR.",
        )


def _daemons(state: State) -> Daemons:
    return Daemons(Path(state["mount"]), Path(state["backing"]))


def refreshed(state: State, file: Path) -> State:
    """The state with what each brick has done so far, or with "running": false where it is not
    whole any more. `file` is left as it is."""
    daemons = _daemons(state)
    if daemons.glusterd() is None or not testbed_state.mounted(state):
        return {**state, "running": False}
    status = daemons.command("volume", "status", NAME)
    profile = daemons.command("volume", "profile", NAME, "info", "cumulative")
    return {**state, "servers": gluster_volume.bricks_in(status, profile)}


def remains(state: State) -> bool:
    """Whether there is something to end: also of one that came up in part only."""
    return testbed_state.mounted(state) or _daemons(state).run.exists()


def down(state: State) -> State:
    """Unmounts it and ends its daemons. Raises ForebayError where it is in use, and leaves it."""
    if testbed_state.mounted(state):
        testbed_state.unmount(state)
    _daemons(state).end()
    testbed_state.file_of(Path(state["mount"])).unlink(missing_ok=True)
    return {**state, "running": False}


def show(console: Console, state: State) -> None:
    """Prints its layout, and the counters of each brick."""
    parameters: dict[str, Any] = state["parameters"]
    layout = Layout(Kind(parameters["layout"]), parameters["servers"], parameters["redundancy"])
    more: list[testbed_report.Column] = [
        ("syncs", lambda brick: show_count(brick["sync_requests"])),
        ("state", lambda brick: "online" if brick["online"] else "offline"),
    ]
    testbed_report.show(console, state, "bricks", f"GlusterFS, {layout}", "brick", more)

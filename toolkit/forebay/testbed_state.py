"""The state of testbeds: a file each, which `up` leaves for `status` and `down`. And what
the kernel says of their mounts."""

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from forebay import filesystem
from forebay.errors import ForebayError

State = dict[str, Any]

_ANSWER_S = 5.0  # for a daemon to write its state, or to end
_POLL_S = 0.01


def directory() -> Path:
    """Where this user's testbeds leave their state, a file each. Raises ForebayError where somebody
    else has made it, who could then say what is unmounted."""
    base = os.environ.get("XDG_RUNTIME_DIR")
    if base and os.access(base, os.W_OK):
        return Path(base) / "forebay-testbed"
    place = Path(tempfile.gettempdir()) / f"forebay-testbed-{os.getuid()}"
    if place.is_symlink() or (place.exists() and place.stat().st_uid != os.getuid()):
        raise ForebayError(f"{place} belongs to somebody else", "Have it removed.", exit_code=1)
    return place


def name_of(mount: Path) -> str:
    """A short name that no other mount point has."""
    return hashlib.sha256(str(mount).encode()).hexdigest()[:16]


def file_of(mount: Path) -> Path:
    """The state file of the testbed at `mount`, which is resolved."""
    return directory() / f"{name_of(mount)}.json"


def read(file: Path) -> State:
    """A state file's content (testbed/README.md), with the "kind" that an emulated file system's
    daemon leaves out. Raises ForebayError."""
    with contextlib.suppress(OSError, ValueError):
        content = json.loads(file.read_text())
        if isinstance(content, dict):
            return {"kind": "emulated", **content}
    raise ForebayError(
        f"the state file {file} cannot be read", "Remove it and start the testbed again."
    )


def write(file: Path, state: State) -> None:
    """Replaces a state file as a whole."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = file.with_suffix(".new")
    new.write_text(json.dumps(state, indent=2))
    new.replace(file)


def prepare_directories(mount: Path, backing: Path | None) -> tuple[Path, Path]:
    """Makes the mount point and the backing directory, by default beside it with '.files' added,
    and returns both resolved. Raises ForebayError where they cannot be used."""
    if not Path("/dev/fuse").exists():
        raise ForebayError(
            "this machine has no /dev/fuse",
            "Load the module (modprobe fuse), or give the container the device "
            "(--device /dev/fuse --cap-add SYS_ADMIN).",
            exit_code=1,
        )
    mount = mount.resolve()
    backing = (backing or mount.with_name(mount.name + ".files")).resolve()
    for place in (mount, backing):
        place.mkdir(parents=True, exist_ok=True)
    if os.path.ismount(mount):
        raise ForebayError(
            f"{mount} is a mount point already",
            f"End it with 'forebay testbed down --mount {mount}', or choose another directory.",
        )
    return mount, backing


def mounted(state: State) -> bool:
    """Whether anything is mounted on the testbed's mount point, be its daemon alive or not."""
    return any(mount.point == state["mount"] for mount in filesystem.mounts())


def unmount(state: State) -> None:
    """Raises ForebayError where somebody uses it."""
    point = state["mount"]
    tool = shutil.which("fusermount3") or shutil.which("fusermount")
    command = [tool, "-u", point] if tool else ["umount", point]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0 and mounted(state):
        raise ForebayError(
            f"{point} cannot be unmounted: {done.stderr.strip()}",
            f"Something uses it; 'fuser -vm {point}' says what.",
            exit_code=1,
        )


def wait_until(done: Callable[[], bool], seconds: float = _ANSWER_S) -> bool:
    """Asks `done` again and again, for so long; returns whether it came true."""
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
    return True

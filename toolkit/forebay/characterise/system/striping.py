"""Directories whose new files are striped as asked: Lustre's by `lfs`, BeeGFS's by `beegfs-ctl`."""

import shutil
import subprocess
from pathlib import Path

from forebay.filesystem import Stripe

_ASKED_S = 60.0
ALL = 0  # servers, as the system file has it


def settable(kind: str) -> bool:
    """Whether directories of a file system of this type can be striped by their user."""
    program = {"lustre": "lfs", "beegfs": "beegfs-ctl"}.get(kind)
    return program is not None and shutil.which(program) is not None


def counts(present: Stripe | None) -> list[int]:
    """Numbers of servers to measure beside the present one: one, and all."""
    known = None if present is None else max(ALL, present.count)
    return [count for count in (1, ALL) if count != known]


def command(kind: str, directory: Path, count: int, size: int) -> list[str]:
    """What stripes the new files of `directory` over `count` servers, in stripes of `size`
    bytes."""
    if kind == "lustre":
        wanted = -1 if count == ALL else count
        return ["lfs", "setstripe", "-c", str(wanted), "-S", str(size), str(directory)]
    # BeeGFS takes as many as there are, if asked for more.
    wanted = _MANY if count == ALL else count
    return [
        "beegfs-ctl", "--setpattern", f"--numtargets={wanted}", f"--chunksize={size}",
        str(directory),
    ]  # fmt: skip


_MANY = 65535


def set_stripe(kind: str, directory: Path, count: int, size: int) -> str:
    """Stripes an empty directory. Returns why it could not be, or nothing."""
    try:
        done = subprocess.run(
            command(kind, directory, count, size), stdin=subprocess.DEVNULL, capture_output=True,
            text=True, errors="replace", timeout=_ASKED_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return ""
    said = (done.stderr or done.stdout).strip().splitlines()
    return said[-1] if said else f"exit status {done.returncode}"

"""Goal: what a sync has promised is there after a loss of power, of the node, of the file system,
or of both: by a recovery that goes by nothing but the file, hence by what lies beside it. Where
logs are protected against the loss of nodes, it is there also if one node of two comes back empty.

Method: file and logs are on file systems of their own, in loop devices. A program syncs turn after
turn and says so; after some turn its ranks are stopped, so that none sees one file system without
the other, which is another failure; both stop at once, without writing out what they have in memory
(FS_IOC_SHUTDOWN), the ranks are killed, and what reached the devices is mounted again.
After a recovery each byte is that of the last turn that was told, or of the one after it. What is
mounted is seen here alone, and goes with this process. Needs root, loop devices and ext4; else it
is skipped.

Usage: intercept_cache_power_check.py FOREBAY_CACHE DIRECTORY RANKS COMMAND...
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import recovering

BLOCK = 4096
BLOCKS = 32
TURNS = 40
#: After so many turns power goes.
LOST_AFTER = (1, 2, 7)
#: Of protected logs, the node that comes back empty.
EMPTY_NODE = 1

#: A run takes about a second.
PATIENCE_S = 60

CLONE_NEWNS = 0x20000  # linux/sched.h
# linux/fs.h of Linux 6.10, fs/ext4/ext4.h before.
FS_IOC_SHUTDOWN = 0x8004587D
WITHOUT_LOG_FLUSH = 2


class CannotBeDoneError(Exception):
    """What is missing."""


def run_if_possible(*command: str | Path) -> None:
    try:
        subprocess.run(command, capture_output=True, text=True, check=True)
    except OSError as error:
        raise CannotBeDoneError(str(error)) from error
    except subprocess.CalledProcessError as error:
        raise CannotBeDoneError(f"{command[0]}: {error.stderr.strip()}") from error


def leave_the_mounts_of_others() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) != 0:
        raise CannotBeDoneError(f"unshare: {os.strerror(ctypes.get_errno())}")
    run_if_possible("mount", "--make-rprivate", "/")


def stops_at_once(mount: Path) -> None:
    """As by a loss of power."""
    descriptor = os.open(mount, os.O_RDONLY)
    try:
        fcntl.ioctl(descriptor, FS_IOC_SHUTDOWN, struct.pack("I", WITHOUT_LOG_FLUSH))
    finally:
        os.close(descriptor)


@dataclass
class Disk:
    """ext4 in a file."""

    image: Path
    mount: Path

    def make(self) -> None:
        with self.image.open("wb") as image:
            image.truncate(96 << 20)
        run_if_possible("mkfs.ext4", "-q", "-F", self.image)
        self.mount.mkdir()
        run_if_possible("mount", "-o", "loop", self.image, self.mount)

    def come_back(self) -> None:
        self.leave()
        subprocess.run(["mount", "-o", "loop", self.image, self.mount], check=True)

    def leave(self) -> None:
        """Once nobody uses it any more."""
        if not self.mount.is_mount():
            return
        deadline = time.monotonic() + PATIENCE_S
        while subprocess.run(["umount", self.mount], capture_output=True, check=False).returncode:
            assert time.monotonic() < deadline, f"{self.mount} stays in use"
            time.sleep(0.02)


@contextlib.contextmanager
def disks(directory: Path) -> Iterator[dict[str, Disk]]:
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    made = {name: Disk(directory / f"{name}.ext4", directory / name) for name in ("node", "files")}
    with contextlib.ExitStack() as at_the_end:
        at_the_end.callback(shutil.rmtree, directory)
        for disk in made.values():
            disk.make()
            at_the_end.callback(disk.leave)
        yield made


def require_shutdown(directory: Path) -> None:
    """Whether a file system can be made to stop here."""
    with disks(directory) as all_disks:
        try:
            stops_at_once(all_disks["node"].mount)
        except OSError as error:
            raise CannotBeDoneError(f"FS_IOC_SHUTDOWN: {error}") from error


def freeze(pids: list[int]) -> None:
    """Until none of their threads makes another step."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    deadline = time.monotonic() + PATIENCE_S

    def runs(task: Path) -> bool:
        try:
            return (task / "stat").read_text().rpartition(")")[2].split()[0] != "T"
        except OSError:  # It has ended.
            return False

    for pid in pids:
        while any(runs(task) for task in Path(f"/proc/{pid}/task").iterdir()):
            assert time.monotonic() < deadline, f"process {pid} does not stop"
            time.sleep(0.001)


def run_until(
    after: int, lost: list[Disk], environment: dict[str, str], command: list[str], path: Path
) -> tuple[int, list[str]]:
    """The last turn that was told, and what the program said besides. Power goes after a turn."""
    told = 0
    rest: list[str] = []
    pids: list[int] = []

    def kill(more: tuple[int, ...] = ()) -> None:
        for pid in (*pids, *more):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    with subprocess.Popen(
        [*command, str(TURNS), str(path)],
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        hangs = threading.Timer(PATIENCE_S, kill, [(process.pid,)])
        hangs.daemon = True
        hangs.start()
        for line in process.stdout:
            word, _, number = line.partition(" ")
            if word == "process":
                pids.append(int(number))
            elif word == "synced":
                told = int(number)
                if told == after:
                    freeze(pids)
                    for disk in lost:
                        stops_at_once(disk.mount)
                    kill()
            else:
                rest.append(line)
        process.wait()
        hangs.cancel()
    return told, rest


def recover(program: str, path: Path, *words: str) -> None:
    files = recovering.recover(program, "--file", str(path), *words)
    assert all(file["state"] == "recovered" and not file["damage"] for file in files), files


def written(turn: int, ranks: int) -> bytes:
    content = bytearray()
    for i in range(BLOCKS):
        for rank in range(ranks):
            first = turn * 50 + rank * 7
            content += bytes((first + j % 50) % 256 for j in range(i * BLOCK, (i + 1) * BLOCK))
    return bytes(content)


@dataclass
class Setting:
    """What a sync promises, which file systems lose power, and how logs are protected."""

    scope: str
    lost: tuple[str, ...]
    redundancy: str = "none"

    def environment(self, logs: Path) -> dict[str, str]:
        """With ranks of one node, or of a node each where some is to be lost."""
        hints = (
            f"forebay_cache=enable;forebay_cache_path={logs};forebay_cache_sync={self.scope};"
            f"forebay_cache_redundancy={self.redundancy};forebay_cache_capacity=16MiB;"
            "romio_cb_write=enable;cb_buffer_size=65536"
        )
        nodes = {} if self.redundancy == "none" else {"FOREBAY_RANKS_PER_NODE": "1"}
        return {"FOREBAY_HINTS": hints, **nodes}


SETTINGS = (
    Setting("file", ("node", "files")),
    Setting("node", ("node", "files")),
    Setting("node", ("node",)),
    Setting("node", ("files",)),
    Setting("node", ("node", "files"), "partner"),
    Setting("node", ("node", "files"), "parity:1+1"),
)


def lose_power(
    setting: Setting, after: int, directory: Path, program: str, ranks: int, command: list[str]
) -> None:
    with disks(directory) as all_disks:
        path = all_disks["files"].mount / "data"
        logs = all_disks["node"].mount / "logs"
        logs.mkdir()
        lost = [all_disks[name] for name in setting.lost]
        told, rest = run_until(after, lost, setting.environment(logs), command, path)
        here = f"{setting}, lost after {after}: {told} turns told"
        assert told >= after, f"{here}: {''.join(rest)}"
        for disk in lost:
            disk.come_back()
        words: list[str] = []
        if setting.redundancy != "none":
            shutil.rmtree(logs / f"node-{EMPTY_NODE}")
            words = ["--lost", f"{socket.gethostname()}:{EMPTY_NODE}"]
        recover(program, path, *words)
        content = path.read_bytes()
        last, next_one = written(told, ranks), written(told + 1, ranks)
        assert len(content) == len(last), f"{here}: {len(content)} bytes"
        wrong = [
            at
            for at, (a, b, c) in enumerate(zip(content, last, next_one, strict=True))
            if a not in (b, c)
        ]
        assert not wrong, f"{here}: {len(wrong)} bytes are older, from {wrong[0]} on"
        print(here)


def main() -> int:
    program, directory, ranks = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    leave_the_mounts_of_others()
    require_shutdown(directory)
    for setting in SETTINGS:
        for after in LOST_AFTER:
            lose_power(setting, after, directory, program, ranks, sys.argv[4:])
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except CannotBeDoneError as missing:
        print(f"skipped: {missing}")
        sys.exit(77)

"""The daemons of a private GlusterFS: a glusterd of its own, its bricks and the mounted client.
They know nothing of a system's glusterd, nor it of them: they live in a network namespace of their
own, with loopback alone, and keep their files in directories of their own."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from forebay import gluster_volume, testbed_state
from forebay.errors import ForebayError

# What a command needs, and the Debian package that has it.
_PACKAGES = {
    "glusterd": "glusterfs-server",
    "gluster": "glusterfs-server",
    "glusterfs": "glusterfs-client",
    "unshare": "util-linux",
    "nsenter": "util-linux",
    "ip": "iproute2",
}
_DAEMONS = frozenset({"glusterd", "glusterfs", "glusterfsd"})
_CLIENT = "--process-name=fuse"
# For a command to end. gluster gives up after 120 s by itself. glusterd begins with some twenty
# small programs for geo-replication, which take minutes where the machine is busy.
_ANSWER_S = 600
_START_S = 60.0  # for bricks to be reached
_END_S = 20.0  # from SIGTERM to SIGKILL
# What volume files and gluster's own file names can hold unquoted.
_PLAIN_PATH = re.compile(r"[A-Za-z0-9/._+=@-]+")


def require_programs() -> None:
    """Raises ForebayError, with what to install, where GlusterFS is not here."""
    missing = [name for name in _PACKAGES if shutil.which(name) is None]
    if not missing:
        return
    if any(_PACKAGES[name].startswith("glusterfs") for name in missing):
        said = "GlusterFS is not installed"
    else:
        said = f"not installed: {', '.join(missing)}"
    packages = dict.fromkeys(_PACKAGES[name] for name in missing)
    raise ForebayError(said, f"Debian: apt-get install {' '.join(packages)}", exit_code=1)


@dataclass(frozen=True)
class Daemon:
    """A process of a private GlusterFS."""

    pid: int
    words: Sequence[str]


@dataclass(frozen=True)
class Daemons:
    """Those of one testbed. `backing` keeps what outlives them: bricks, the volume's description,
    logs. Raises ForebayError where GlusterFS cannot name files in it."""

    mount: Path
    backing: Path

    def __post_init__(self) -> None:
        if not _PLAIN_PATH.fullmatch(str(self.backing)):
            raise ForebayError(
                f"GlusterFS cannot have bricks in {self.backing}",
                "Name a directory of plain letters, digits and ./_-+=@ with --backing DIR.",
            )

    @property
    def run(self) -> Path:
        """Sockets and process numbers. A short path, as a socket's may have 107 bytes at most; and
        all daemons have it on their command lines, by which they are found."""
        return Path("/run") / f"forebay-gluster-{testbed_state.name_of(self.mount)}"

    @property
    def log(self) -> Path:
        """The directory of all logs."""
        return self.backing / "log"

    def volume_file(self) -> str:
        """What glusterd is started with (in place of /etc/glusterfs/glusterd.vol)."""
        options = {
            "working-directory": self.backing / "glusterd",
            "run-directory": self.run,
            "logging-directory": self.log,
            "glusterd-sockfile": self.run / "glusterd.socket",
            "transport-type": "socket",
            "transport.address-family": "inet",
            "transport.socket.bind-address": gluster_volume.HOST,
            "ping-timeout": 0,
            "event-threads": 1,
        }
        lines = "".join(f"    option {key} {value}\n" for key, value in options.items())
        return f"volume management\n    type mgmt/glusterd\n{lines}end-volume\n"

    def start(self) -> None:
        """Starts glusterd, which starts bricks when it is told to. Raises ForebayError."""
        for directory in (self.backing / "glusterd", self.log):
            directory.mkdir(parents=True, exist_ok=True)
        self.run.mkdir(mode=0o700)
        file = self.run / "glusterd.vol"
        file.write_text(self.volume_file())
        # The namespace has a loopback device, which is down.
        command = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
        command += ["glusterd", f"--volfile={file}", f"--pid-file={self.run / 'glusterd.pid'}"]
        command += [f"--log-file={self.log / 'glusterd.log'}"]
        done = _run(command)
        if done.returncode != 0:
            raise ForebayError(
                f"glusterd did not start: {_why(done, self.log / 'glusterd.log')}",
                "It needs a network namespace of its own; in a container, the right to make one "
                "(--cap-add SYS_ADMIN).",
                exit_code=1,
            )

    def glusterd(self) -> int | None:
        """Its process number, while it runs."""
        found = (one.pid for one in self.running() if Path(one.words[0]).name == "glusterd")
        return next(found, None)

    def command(self, *words: str) -> ElementTree.Element:
        """What `gluster WORDS...` answers. Raises ForebayError where it refuses or fails."""
        done = _run(
            [
                "gluster",
                "--mode=script",
                "--xml",
                f"--glusterd-sock={self.run / 'glusterd.socket'}",
                f"--log-file={self.log / 'cli.log'}",
                *words,
            ]
        )
        return gluster_volume.answer(done.stdout.strip() or done.stderr)

    def mount_volume(self) -> None:
        """Mounts the volume, and returns when it answers. Raises ForebayError."""
        log = self.log / "mount.log"
        done = _run(
            [
                "nsenter",
                f"--net=/proc/{self.glusterd()}/ns/net",
                "glusterfs",
                f"--volfile-server={gluster_volume.HOST}",
                f"--volfile-id=/{gluster_volume.NAME}",
                f"--pid-file={self.run / 'mount.pid'}",
                f"--log-file={log}",
                _CLIENT,
                str(self.mount),
            ]
        )
        if done.returncode != 0:
            raise ForebayError(f"it cannot be mounted: {_why(done, log)}", exit_code=1)

        def answers() -> bool:
            """Not before it has connected to enough bricks."""
            with contextlib.suppress(OSError):
                os.statvfs(self.mount)
                return os.path.ismount(self.mount)
            return False

        if not testbed_state.wait_until(answers, _START_S):
            raise ForebayError(f"the mount does not answer: {_why(done, log)}", exit_code=1)

    def running(self) -> list[Daemon]:
        """The processes of this testbed, whatever has become of its state."""
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            except OSError:  # it has ended
                continue
            ours = any(f"{self.run}/" in word for word in words)
            if ours and Path(words[0]).name in _DAEMONS:
                found.append(Daemon(int(entry.name), words))
        return found

    def end(self) -> None:
        """Ends all that is still running, and removes what is of no use without it. The volume must
        be unmounted: its client then ends when all that was written is with the bricks."""
        testbed_state.wait_until(
            lambda: not any(_CLIENT in daemon.words for daemon in self.running()), _END_S
        )
        daemons = self.running()
        sockets = [
            Path(one.words[one.words.index("-S") + 1]) for one in daemons if "-S" in one.words
        ]
        if self.glusterd() is not None:
            with contextlib.suppress(ForebayError):  # there may be no volume, or it is stopped
                self.command("volume", "stop", gluster_volume.NAME, "force")
        for number in (signal.SIGTERM, signal.SIGKILL):
            for daemon in self.running():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(daemon.pid, number)
            if testbed_state.wait_until(lambda: not self.running(), _END_S):
                break
        for socket in sockets:  # in /run/gluster, which GlusterFS has compiled in
            socket.unlink(missing_ok=True)
        shutil.rmtree(self.run, ignore_errors=True)


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    """Raises ForebayError where it does not end by itself."""
    try:
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=_ANSWER_S,
        )
    except subprocess.TimeoutExpired:
        raise ForebayError(f"{command[0]} does not end", exit_code=1) from None


def _why(done: subprocess.CompletedProcess[str], log: Path) -> str:
    """What went wrong, as far as it was said: printed, or the last error in the log."""
    printed = done.stderr.strip() or done.stdout.strip()
    if printed:
        return printed.splitlines()[-1]
    errors = []
    with contextlib.suppress(OSError):
        errors = [line for line in log.read_text().splitlines() if "] E [" in line]
    return errors[-1] if errors else f"exit status {done.returncode}, see {log}"

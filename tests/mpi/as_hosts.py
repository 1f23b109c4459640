"""Hosts that are emulated on this machine, for tests: their ranks see a /dev/shm and a host name of
their own, so that Forebay takes them for ranks of different machines, and MPIs are told to go by
TCP. The network is one, and so are the numbers of processes.

Needs the right to make mount namespaces: that of root, or of anybody where the kernel lets users
have namespaces of their own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

#: ctest takes this status for a test that was left out.
LEFT_OUT = 77

#: Run in namespaces of a host: MEMORY NAME COMMAND...
_ON_HOST = 'mount --bind "$1" /dev/shm && hostname "$2" && shift 2 && exec "$@"'

#: Run by each rank in front of its program: DIRECTORY RANKS_PER_HOST COMMAND...
_RANK = f"""
rank=${{PMI_RANK:-$OMPI_COMM_WORLD_RANK}}
host=$((rank / $2))
memory=$1/host-$host
shift 2
exec unshare --mount --uts sh -c \
  '{_ON_HOST}' \
  sh "$memory" "node$host" "$@"
"""

#: What makes MPICH and Open MPI go by TCP, where ranks cannot share memory.
ENVIRONMENT = {"MPIR_CVAR_NOLOCAL": "1", "OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "tcp,self"}


def enter() -> None:
    """Goes on in a mount namespace of its own, whose mounts end with it; or leaves the test out."""
    if os.environ.get("FOREBAY_TEST_NAMESPACE") == "1":
        return
    for more in ([], ["--user", "--map-root-user"]):
        words = ["unshare", "--mount", *more]
        tried = subprocess.run(
            [*words, "unshare", "--mount", "--uts", "mount", "-t", "tmpfs", "none", "/dev/shm"],
            capture_output=True,
            text=True,
            check=False,
        )
        if tried.returncode == 0:
            os.environ["FOREBAY_TEST_NAMESPACE"] = "1"
            os.execvp(words[0], [*words, sys.executable, *sys.argv])
    print(f"left out: no mount namespaces are to be had here ({tried.stderr.strip()})")
    sys.exit(LEFT_OUT)


class Hosts:
    """`count` of them, each with an empty /dev/shm of `megabytes`."""

    def __init__(self, directory: Path, count: int, megabytes: int = 256) -> None:
        self.directory = directory
        self.names = [f"node{number}" for number in range(count)]
        for number in range(count):
            memory = self.memory(number)
            memory.mkdir(parents=True, exist_ok=True)
            options = f"size={megabytes}m,mode=1777"
            mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(memory)]
            subprocess.run(mount, check=True)

    def memory(self, number: int) -> Path:
        """Where the host's /dev/shm is seen from here."""
        return self.directory / f"host-{number}"

    def lose(self, number: int) -> None:
        """With all that was in its memory."""
        subprocess.run(["umount", str(self.memory(number))], check=True)

    def end(self) -> None:
        for number in range(len(self.names)):
            subprocess.run(["umount", str(self.memory(number))], check=False, capture_output=True)

    def of_ranks(self, ranks_per_host: int) -> list[str]:
        """What stands before a rank's command."""
        return ["sh", "-c", _RANK, "sh", str(self.directory), str(ranks_per_host)]

    def on(self, number: int, command: Sequence[str]) -> list[str]:
        """The command, to be run on that host."""
        place = [str(self.memory(number)), self.names[number]]
        return ["unshare", "--mount", "--uts", "sh", "-c", _ON_HOST, "sh", *place, *command]

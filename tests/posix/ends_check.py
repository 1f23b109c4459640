"""Goal: a program that ends by _exit, or by another program, leaves the records of what it had
open, and nothing in shared memory that wants bytes; one that fails to, or starts another beside
it, goes on as before.

Method: a script that has a declared file open reads some of it, and ends in each way. The program
that takes its place says so before it is looked for what was left.

usage: ends_check.py LIBRARY uring|threads
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from preloaded import Preloaded, evict, make_file, total, wait_until_settled

SIZE = 8_000_000
READS = """
import os, subprocess, sys, zlib
file = os.open("events", os.O_RDONLY)
def read(begin):
    for offset in range(begin, begin + 2_000_000, 40_000):
        print(zlib.crc32(os.pread(file, 40_000, offset)), flush=True)
read(0)
"""
AT_ONCE = READS + "os._exit(3)"
BY_A_CHILD = (
    """
import os
parents = os.open("events", os.O_RDONLY)
if os.fork() == 0:
"""
    + "".join(f"    {line}\n" for line in AT_ONCE.splitlines())
    + "os._exit(os.wait()[1] >> 8)"
)
ANOTHER = READS + "os.execv('/bin/sh', ['sh', '-c', 'echo ready; read word; exit 3'])"
#: The same by the calls that Python does not make.
BY_THE_LIBRARY = (
    READS
    + """
import ctypes
libc = ctypes.CDLL(None)
each = [b"sh", b"-c", b"echo ready; read word; exit 3", None]
words = (ctypes.c_char_p * 4)(*each)
environment = ctypes.c_void_p.in_dll(libc, "environ")
at_cwd = -100
"""
)
CALLS = (
    'libc.execveat(at_cwd, b"/bin/sh", words, environment, 0)',
    'libc.execvp(b"sh", words)',
    'libc.execvpe(b"sh", words, environment)',
    'libc.fexecve(os.open("/bin/sh", os.O_RDONLY), words, environment)',
    'libc.execl(b"/bin/sh", *each)',
    'libc.execlp(b"sh", *each)',
    'libc.execle(b"/bin/sh", *each, environment)',
)
GOES_ON = (
    READS
    + """
subprocess.run(["true"], check=True, close_fds=False)
read(2_000_000)
try:
    os.execvp("no such program", ["none"])
except OSError:
    pass
read(4_000_000)
os._exit(3)
"""
)


class Checks:
    """What is wrong."""

    def __init__(self, preloaded: Preloaded) -> None:
        self.failures: list[str] = []
        self._preloaded = preloaded
        status = (preloaded.directory / "events").stat()
        self._left = f"forebay-*-{os.geteuid()}-{status.st_dev:x}-{status.st_ino:x}-*"

    def ends(self, what: str, script: str, least: int, key: str = "bytes_served") -> None:
        """With the same output as by itself; its records add up to so much at least."""
        command = [sys.executable, "-c", script]
        plain = self._preloaded.run(command, with_library=False)
        emptied = evict(self._preloaded.directory / "events")
        answer, records = self._preloaded.run(command), self._preloaded.take_records()
        print(f"{what}: {total(records, 'bytes_served')} bytes served")
        if answer != plain or answer[0] != 3:
            self.failures.append(f"{what}: {plain} without the library, {answer} with it")
        if not records or (emptied and total(records, key) < least):
            self.failures.append(f"{what}: {records}")
        self.look(what)

    def is_replaced(self, script: str) -> None:
        """What was open counts no more when the other program has begun."""
        by = script.splitlines()[-1]
        with self._preloaded.start([sys.executable, "-c", script]) as process:
            assert process.stdout is not None
            while process.stdout.readline() not in ("ready\n", ""):
                pass
            if len(records := self._preloaded.take_records()) != 1:
                self.failures.append(f"{by}: {records}")
            self.look(by)
            process.communicate("go\n")
            if process.returncode != 3:
                self.failures.append(f"{by}: no other program, but status {process.returncode}")

    def is_recorded(self) -> None:
        """What was read before the end."""
        self._preloaded.environment["FOREBAY_RECORD_READS"] = "1"
        for what, script in (("at once", AT_ONCE), ("another program", ANOTHER)):
            self._preloaded.run([sys.executable, "-c", script], told="go\n")
            traces = list(self._preloaded.records.glob("*.trace"))
            read = [record for trace in traces if "/events" in (record := trace.read_text())]
            if len(read) != 1:
                self.failures.append(f"recorded, {what}: {read}")
            for trace in traces:
                trace.unlink()

    def look(self, what: str) -> None:
        if left := list(Path("/dev/shm").glob(self._left)):
            self.failures.append(f"{what}: in shared memory is left {left}")


def main() -> int:
    library, queue = sys.argv[1:3]
    with tempfile.TemporaryDirectory(dir=".", prefix="posix-ends-") as name:
        directory = Path(name).resolve()
        make_file(directory / "events", SIZE, 1)
        preloaded = Preloaded(library, queue, directory, "")
        wait_until_settled(directory)
        checks = Checks(preloaded)
        for policy in ("auto", "page-cache"):
            (directory / "intent.toml").write_text(
                f'[[file]]\npath = "events"\nwillneed = [[0, 0]]\npolicy = "{policy}"\n'
            )
            by_memory = 1_000_000 if policy == "auto" else 0
            checks.ends(f"{policy}, at once", AT_ONCE, by_memory)
            checks.ends(f"{policy}, by a child", BY_A_CHILD, by_memory)
            # Served before and after another program was started, but not after it was not.
            checks.ends(f"{policy}, goes on", GOES_ON, 3 * by_memory)
            checks.is_replaced(ANOTHER)
            checks.is_replaced(BY_THE_LIBRARY + CALLS[0])
        for call in CALLS[1:]:
            checks.is_replaced(BY_THE_LIBRARY + call)
        checks.is_recorded()
    print("\n".join(checks.failures) or "all is told")
    return 1 if checks.failures else 0


if __name__ == "__main__":
    sys.exit(main())

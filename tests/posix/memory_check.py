"""Goal: a program that may have little memory runs as it does without the library.

Method: `cat` of a declared file with a limit on its address space (RLIMIT_AS) that grows by small
steps, from where it cannot start to where all is read ahead, and by single pages around where a
thread gets its stack: each time it must copy all bytes, or say itself, or the loader, that there is
no memory.

usage: memory_check.py LIBRARY uring|threads
"""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from preloaded import Preloaded, evict, make_file, total, wait_until_settled

SIZE = 2 << 20
STEP = 256 << 10
STEPS = 160
PAGE = 4 << 10
STACK = 8 << 20
# The loader's two ways of saying it, and that of cat.
WORDS = (b"error while loading shared libraries", b"out of memory", b"memory exhausted")
INTENT = '[[file]]\npath = "events"\nwillneed = [{}]\nbudget = "1MiB"\n'


class Check:
    """Runs `cat` again and again."""

    def __init__(self, preloaded: Preloaded, content: bytes) -> None:
        self.preloaded = preloaded
        self.content = content
        self.failures: list[str] = []
        self.started = 0
        self.starts_at = 0  #: With the smallest limit.
        self.emptied = False

    @staticmethod
    def limit(most: int) -> None:
        resource.setrlimit(resource.RLIMIT_STACK, (STACK, resource.RLIM_INFINITY))
        resource.setrlimit(resource.RLIMIT_AS, (most, most))

    def run(self, most: int) -> int:
        """With a limit of `most` bytes; how many were served."""
        directory = self.preloaded.directory
        self.emptied = evict(directory / "events")
        done = subprocess.run(
            ["cat", "events"],
            cwd=directory,
            env=self.preloaded.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=120,
            preexec_fn=lambda: self.limit(most),
        )
        is_right = done.returncode == 0 and done.stdout == self.content
        self.started += is_right
        if is_right and self.starts_at == 0:
            self.starts_at = most
        # Where too little is left for anything, the stack cannot grow either.
        is_stack = done.returncode == -signal.SIGSEGV and self.started == 0
        if not is_right and not is_stack and not any(word in done.stderr for word in WORDS):
            self.failures.append(
                f"{most >> 10} KiB: status {done.returncode}, {len(done.stdout)} bytes: "
                f"{done.stderr!r}"
            )
        return total(self.preloaded.take_records(), "bytes_served")


def main() -> int:
    library, queue = sys.argv[1:3]
    with tempfile.TemporaryDirectory(dir=".", prefix="posix-memory-") as name:
        directory = Path(name).resolve()
        content = make_file(directory / "events", SIZE, 11)
        extents = ", ".join(f"[{at}, 4096]" for at in range(0, SIZE, 4096))
        preloaded = Preloaded(library, queue, directory, INTENT.format(extents))
        wait_until_settled(directory)
        check = Check(preloaded, content)
        served = sum(check.run(step * STEP) for step in range(1, STEPS + 1))
        with_stack = check.starts_at + STACK
        for most in range(with_stack - 2 * STEP, with_stack + 2 * STEP, PAGE):
            check.run(most)
    failures = check.failures
    if check.started == 0 or (check.emptied and served == 0):
        failures.append(f"{check.started} started, {served} bytes served")
    print("\n".join(failures) or f"all as it should be, {check.started} started")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

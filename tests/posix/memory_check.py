"""Goal: a program that may have little memory runs as it does without the library.

Method: `cat` of a declared file with a limit on its address space (RLIMIT_AS) that grows by small
steps, from where it cannot start to where all is read ahead: each time it must copy all bytes, or
say itself, or the loader, that there is no memory.

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
# The loader's two ways of saying it, and that of cat.
WORDS = (b"error while loading shared libraries", b"out of memory", b"memory exhausted")
INTENT = '[[file]]\npath = "events"\nwillneed = [{}]\nbudget = "1MiB"\n'


def main() -> int:
    library, queue = sys.argv[1:3]
    failures = []
    served = started = 0
    emptied = False
    with tempfile.TemporaryDirectory(dir=".", prefix="posix-memory-") as name:
        directory = Path(name).resolve()
        content = make_file(directory / "events", SIZE, 11)
        extents = ", ".join(f"[{at}, 4096]" for at in range(0, SIZE, 4096))
        preloaded = Preloaded(library, queue, directory, INTENT.format(extents))
        wait_until_settled(directory)
        for step in range(1, STEPS + 1):
            most = step * STEP
            emptied = evict(directory / "events")
            done = subprocess.run(
                ["cat", "events"],
                cwd=directory,
                env=preloaded.environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                timeout=120,
                preexec_fn=lambda most=most: resource.setrlimit(  # type: ignore[misc]
                    resource.RLIMIT_AS, (most, most)
                ),
            )
            served += total(preloaded.take_records(), "bytes_served")
            is_right = done.returncode == 0 and done.stdout == content
            started += is_right
            # Where too little is left for anything, the stack cannot grow either.
            is_stack = done.returncode == -signal.SIGSEGV and started == 0
            if not is_right and not is_stack and not any(word in done.stderr for word in WORDS):
                failures.append(
                    f"{most >> 10} KiB: status {done.returncode}, {len(done.stdout)} bytes: "
                    f"{done.stderr!r}"
                )
    if started == 0 or (emptied and served == 0):
        failures.append(f"{started} started, {served} bytes served")
    print("\n".join(failures) or f"all as it should be, {started} started")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

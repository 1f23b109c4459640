"""Goal: programs that know nothing of Forebay give the same output under libforebay-posix.so, and
their reads are served from memory.

Method: each command runs without and with the library, over files that are in no cache; output,
messages and exit status must be the same. Records say whether anything was served: only where the
file system lets the page cache be emptied, else nothing is left to read ahead.

usage: real_programs_check.py LIBRARY uring|threads
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from preloaded import Preloaded, evict, make_file, total, wait_until_settled

MIB = 1024 * 1024
INTENT = """
[[file]]
path = "whole*.dat"
willneed = [[0, 0]]

[[file]]
path = "changed.dat"
willneed = [[0, 0]]

[[file]]
path = "pattern*.dat"
cache = "4MiB"

[[file]]
path = "wrong.dat"
willneed = [[0, "1MiB"], [-5, 3], [99999999999, 10], ["2MiB", 9223372036854775807]]
"""

PYTHON_READS = """
import hashlib, os, subprocess, sys
digest = hashlib.sha256()
with open("whole.dat", "rb", buffering=0) as file:
    while True:
        piece = file.read(100_003)
        if not piece:
            break
        digest.update(piece)
        if file.tell() < 300_000:  # A child that closes what it inherits, by vfork.
            digest.update(subprocess.check_output(["echo", "child"]))
            pid = os.fork()
            if pid == 0:
                os.lseek(file.fileno(), 0, os.SEEK_CUR)
                os._exit(0)
            os.waitpid(pid, 0)
print(digest.hexdigest())
"""

PYTHON_CLOSES_ALL = """
import hashlib, os
first = os.open("whole.dat", os.O_RDONLY)
digest = hashlib.sha256(os.read(first, 5_000_000))
os.closerange(3, 5000)
again = os.open("whole.dat", os.O_RDONLY)
for offset in range(0, 10_000_000, 1_000_000):
    digest.update(os.pread(again, 1_000_000, offset))
copy = os.dup(again)
os.close(again)
os.lseek(copy, 123, os.SEEK_SET)
digest.update(os.read(copy, 2_000_000))
print(first, again, copy, digest.hexdigest())
"""

PYTHON_WRITES = """
import os
reader = os.open("changed.dat", os.O_RDONLY)
os.read(reader, 1000)
writer = os.open("changed.dat", os.O_WRONLY)
os.pwrite(writer, b"new bytes", 500_000)
print(os.pread(reader, 20, 499_995))
os.ftruncate(writer, 600_000)
print(os.lseek(reader, 599_990, os.SEEK_SET), os.read(reader, 100))
"""

#: Command, file, and whether its reads must have been served.
CASES: list[tuple[list[str], str, bool]] = [
    (["cat", "whole.dat"], "whole.dat", True),
    (["dd", "if=whole.dat", "bs=70001", "status=none"], "whole.dat", True),
    (["dd", "if=pattern.dat", "bs=64k", "status=none"], "pattern.dat", True),
    (["dd", "if=whole.dat", "bs=1M", "iflag=direct", "count=3", "status=none"], "whole.dat", False),
    (["sha256sum", "whole.dat", "pattern.dat"], "whole.dat", False),
    (["sh", "-c", "head -c 3000000 whole.dat | cksum; tail -c 999 whole.dat"], "whole.dat", False),
    (["sh", "-c", "exec 9<whole.dat; cat <&9 | cksum; exec 9<&-"], "whole.dat", False),
    (["tar", "-cf", "-", "whole.dat", "pattern.dat"], "whole.dat", False),
    (["cmp", "whole.dat", "whole2.dat"], "whole.dat", True),
    (["cat", "wrong.dat"], "wrong.dat", True),
    (["cat", "not there.dat"], "whole.dat", False),
    ([sys.executable, "-c", PYTHON_READS], "whole.dat", True),
    ([sys.executable, "-c", PYTHON_CLOSES_ALL], "whole.dat", True),
]


def main() -> int:
    library, queue = sys.argv[1:3]
    failures = []
    with tempfile.TemporaryDirectory(dir=".", prefix="posix-programs-") as name:
        directory = Path(name).resolve()
        for seed, file in enumerate(("whole", "pattern", "wrong", "changed")):
            content = make_file(directory / f"{file}.dat", 12 * MIB + 4321, seed)
            if file == "whole":
                (directory / "whole2.dat").write_bytes(content)
        preloaded = Preloaded(library, queue, directory, INTENT)
        wait_until_settled(directory)
        for command, file, must_serve in CASES:
            plain = preloaded.run(command, with_library=False)
            emptied = [evict(path) for path in directory.glob("*.dat")]
            answer = preloaded.run(command)
            records = preloaded.take_records()
            served = total(records, "bytes_served")
            if file == "wrong.dat":
                if b"intent.toml:16" not in answer[2]:
                    failures.append(f"the mistake in the intent was not told: {answer[2]!r}")
                answer = (*answer[:2], plain[2])
            if answer != plain:
                failures.append(
                    f"{command}: {plain[0]}, {plain[2]!r} without the library, but "
                    f"{answer[0]}, {answer[2]!r} with it, "
                    f"output {'the same' if answer[1] == plain[1] else 'differs'}"
                )
            if must_serve and all(emptied) and served == 0:
                failures.append(f"{command}: nothing was served: {records}")
            print(f"{command[:2]}: {len(records)} openings, {served} bytes served")
        failures += changed(preloaded, directory)
    print("\n".join(failures) or "all the same")
    return 1 if failures else 0


def changed(preloaded: Preloaded, directory: Path) -> list[str]:
    """A program that changes what it reads sees what it wrote."""
    content = (directory / "changed.dat").read_bytes()
    _, output, errors = preloaded.run([sys.executable, "-c", PYTHON_WRITES])
    mixed = content[499_995:500_000] + b"new bytes" + content[500_009:500_015]
    expected = f"{mixed!r}\n{599_990} {content[599_990:600_000]!r}\n".encode()
    return [] if output == expected else [f"stale bytes: {output!r} {errors!r}"]


if __name__ == "__main__":
    sys.exit(main())

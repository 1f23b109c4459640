"""Goal: programs that know nothing of Forebay give the same output under libforebay-posix.so, and
their reads are served from memory.

Method: each command runs without and with the library, over files that are in no cache; output,
messages and exit status must be the same. Records say whether anything was served: only where the
file system lets the page cache be emptied, else nothing is left to read ahead.

usage: real_programs_check.py LIBRARY uring|threads
"""

from __future__ import annotations

import shutil
import subprocess
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
path = "emptied.dat"
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

#: A duplicate of a descriptor that reads past every cache does so, too, and may not at odd places.
PYTHON_READS_PAST_CACHES = """
import fcntl, os, zlib
first = os.open("whole.dat", os.O_RDONLY)
copy = os.dup(first)
print(zlib.crc32(os.read(first, 1_000_000)))
fcntl.fcntl(copy, fcntl.F_SETFL, os.O_DIRECT)
for descriptor in (first, copy):
    try:
        print(zlib.crc32(os.pread(descriptor, 1001, 1_000_001)))
    except OSError as error:
        print(error)
"""

#: A descriptor that was closed behind the library's back, and is then that of the same file again,
#: which is read past every cache.
PYTHON_OPENS_AGAIN_PAST_CACHES = """
import ctypes, os
file = os.open("whole.dat", os.O_RDONLY)
print(len(os.read(file, 1_000_000)))
close_range = 436
ctypes.CDLL(None).syscall(close_range, file, file, 0)
again = os.open("whole.dat", os.O_RDONLY | os.O_DIRECT)
try:
    print(again == file, len(os.pread(again, 1001, 1_000_001)))
except OSError as error:
    print(error)
"""

#: Numbers of descriptors that the program has not opened, and takes for its own.
PYTHON_TAKES_NUMBERS = """
import ctypes, errno, fcntl, os, zlib
file = os.open("whole.dat", os.O_RDONLY)
print(zlib.crc32(os.read(file, 1_000_000)))
for number in range(100, 120):
    for call in (
        os.dup,
        lambda number: fcntl.fcntl(number, fcntl.F_GETFD),
        lambda number: os.dup2(number, 200),
        lambda number: os.dup2(number, 200, inheritable=False),
        lambda number: ctypes.CDLL(None, use_errno=True).dup3(number, number, 0),
    ):
        try:
            print(number, call(number), ctypes.get_errno())
        except OSError as error:
            print(number, errno.errorcode[error.errno])
    os.dup2(file, number)
    print(os.read(number, 5))
"""

#: Pieces of every length, over the end, while the position goes on.
PYTHON_READS_PIECES = """
import os, random, zlib
file = os.open("whole.dat", os.O_RDONLY)
draw, sum, at = random.Random(1), 0, 0
pieces = [bytearray(draw.randrange(30_000)) for _ in range(7)]
for turn in range(1000):
    if turn % 2:
        count = os.readv(file, pieces)
    else:
        count = os.preadv(file, pieces, at, os.RWF_HIPRI)
        os.lseek(file, count, os.SEEK_CUR)
    at += count
    for piece in pieces:
        sum = zlib.crc32(piece[:count], sum)
        count = max(count - len(piece), 0)
    if os.lseek(file, 0, os.SEEK_CUR) != at or count:
        print("wrong position", at)
print(at, sum)
"""

#: Reads its file, all of which is in memory then, and empties it by the call that is asked for.
PYTHON_EMPTIES = """
import ctypes, os, sys
reader = os.open("emptied.dat", os.O_RDONLY)
print(len(os.read(reader, 299_000)))
if sys.argv[1] == "open":
    os.open("emptied.dat", os.O_WRONLY | os.O_TRUNC)
else:
    getattr(ctypes.CDLL(None), sys.argv[1])(b"emptied.dat", 0o644)
print(os.read(reader, 100), os.pread(reader, 100, 5))
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
    ([sys.executable, "-c", PYTHON_READS_PAST_CACHES], "whole.dat", True),
    ([sys.executable, "-c", PYTHON_OPENS_AGAIN_PAST_CACHES], "whole.dat", True),
    ([sys.executable, "-c", PYTHON_READS_PIECES], "whole.dat", True),
    ([sys.executable, "-c", PYTHON_TAKES_NUMBERS], "whole.dat", True),
]


def java_case(directory: Path) -> list[tuple[list[str], str, bool]]:
    """The one in Java, compiled in `directory`; none where there is no compiler."""
    if shutil.which("java") is None or shutil.which("javac") is None:
        print("not in Java: there is no compiler")
        return []
    source = Path(__file__).with_name("Reads.java")
    subprocess.run(["javac", "-d", str(directory), str(source)], check=True, timeout=120)
    quick = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    return [(["java", *quick, "-cp", ".", "Reads", "whole.dat"], "whole.dat", True)]


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
        for command, file, must_serve in CASES + java_case(directory):
            plain = preloaded.run(command, with_library=False)
            emptied = [evict(path) for path in directory.glob("*.dat")]
            answer = preloaded.run(command)
            records = preloaded.take_records()
            served = total(records, "bytes_served")
            if file == "wrong.dat":
                if b"intent.toml:20" not in answer[2]:
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
        failures += emptied_by_itself(preloaded, directory)
    print("\n".join(failures) or "all the same")
    return 1 if failures else 0


def changed(preloaded: Preloaded, directory: Path) -> list[str]:
    """A program that changes what it reads sees what it wrote."""
    content = (directory / "changed.dat").read_bytes()
    _, output, errors = preloaded.run([sys.executable, "-c", PYTHON_WRITES])
    mixed = content[499_995:500_000] + b"new bytes" + content[500_009:500_015]
    expected = f"{mixed!r}\n{599_990} {content[599_990:600_000]!r}\n".encode()
    return [] if output == expected else [f"stale bytes: {output!r} {errors!r}"]


def emptied_by_itself(preloaded: Preloaded, directory: Path) -> list[str]:
    """Whatever call empties a file, nothing of what was there is served any more."""
    failures = []
    preloaded.take_records()
    file = directory / "emptied.dat"
    for call in ("open", "creat", "creat64"):
        make_file(file, 300_000, 5)
        in_no_cache = evict(file)
        wait_until_settled(directory)
        code, output, errors = preloaded.run([sys.executable, "-c", PYTHON_EMPTIES, call])
        if code != 0 or output != b"299000\nb'' b''\n":
            failures.append(f"emptied by {call}: status {code}: {output!r} {errors!r}")
        why = [record["stopped"] for record in preloaded.take_records()]
        if in_no_cache and why != ["it was opened for writing"]:
            failures.append(f"emptied by {call}: {why}")
    return failures


if __name__ == "__main__":
    sys.exit(main())

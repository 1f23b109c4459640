"""Goal: what a program reads is written down in its order, however it reads, and when that is
declared the next run is served from memory.

Method: the analysis workload declares its own reads: the trace must say the same. Other programs
read by pread, by a copied descriptor and in a row, by C streams, and of a file that openat2 opened.
Then a run with the trace as intent, on the file that was recorded and on another one of its size,
which at last is cut and written anew.

usage: record_check.py LIBRARY uring|threads PROGRAM
"""

from __future__ import annotations

import json
import sys
import tempfile
import tomllib
from pathlib import Path

from preloaded import Preloaded, evict, make_file, wait_until_settled

OPTIONS = ["--size", "8MiB", "--reads", "60", "--mean", "50KiB", "--backward", "7"]

PYTHON_READS = """
import os, sys
file = os.open(sys.argv[1], os.O_RDONLY)
os.read(file, 1000), os.read(file, 2000)
os.pread(file, 5000, 1_000_000)
copy = os.dup(file)
os.close(file)
os.lseek(copy, 500_000, os.SEEK_SET)
os.read(copy, 10_000)
os.preadv(copy, [bytearray(100), bytearray(200)], 2_000_000)
os.readv(copy, [bytearray(300), bytearray(400)])
os.pread(copy, 1000, 3_999_900)
"""
#: What was served must not hide what is written.
REWRITES = """
import os, sys
file = os.open(sys.argv[1], os.O_RDONLY)
os.read(file, 1000)
with open(sys.argv[1], "wb") as again:
    again.write(b"n" * 4_000_000)
assert os.pread(file, 5000, 1_000_000) == b"n" * 5000
"""
#: By a C stream, as programs do that are built with _FORTIFY_SOURCE.
STREAM_READS = """
import ctypes
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
stream = ctypes.c_void_p(libc.fopen(b"stream.dat", b"r"))
for read in (libc.__fread_chk, libc.__fread_unlocked_chk):
    read.argtypes = [ctypes.c_void_p, *[ctypes.c_size_t] * 3, ctypes.c_void_p]
    into = ctypes.create_string_buffer(40_960)
    assert read(into, 40_960, 1, 40_960, stream) == 40_960
libc.fclose(stream)
"""
#: By the other calls of C streams; the last one is never closed.
TEXT_READS = """
import ctypes
libc = ctypes.CDLL(None)
for name in ("fopen", "fgets"):
    getattr(libc, name).restype = ctypes.c_void_p
libc.fseek.argtypes = [ctypes.c_void_p, ctypes.c_long, ctypes.c_int]
stream = ctypes.c_void_p(libc.fopen(b"text.dat", b"r"))
line = ctypes.create_string_buffer(100_000)
for offset in (1_000_000, 500_000, 3_000_000):
    assert libc.fseek(stream, offset, 0) == 0
    for _ in range(100):
        assert libc.fgets(line, 100_000, stream) and libc.getc(stream) >= 0
    libc.fscanf(stream, b"%*[^q]")
"""
#: Opened by a call that Python does not have.
HOW_READS = """
import ctypes, os
how = (ctypes.c_uint64 * 3)(os.O_RDONLY, 0, 0)
file = ctypes.CDLL(None).openat2(-100, b"how.dat", how, 24)
os.pread(file, 5000, 1_000_000)
"""
READ_THERE = [
    [0, 3000],
    [1_000_000, 5000],
    [500_000, 10_000],
    [2_000_000, 300],
    [510_000, 700],
    [3_999_900, 100],
]


def traces(preloaded: Preloaded) -> dict[str, list[list[int]]]:
    """The extents of each file, by its path."""
    found = {}
    for path in preloaded.records.glob("*.trace"):
        record = json.loads(path.read_bytes())
        found[record["path"]] = record["extents"]
        path.unlink()
    return found


def wrong_text(extents: list[list[int]]) -> list[str]:
    """A hundred lines of a few hundred bytes on average from each place on."""
    begins = [offset for offset, _ in extents]
    is_right = begins == [1_000_000, 500_000, 3_000_000] and all(
        5_000 < length < 200_000 for _, length in extents
    )
    return [] if is_right else [f"not what was read as text: {extents}"]


def main() -> int:
    library, queue = sys.argv[1:3]
    program = str(Path(sys.argv[3]).absolute())
    failures = []
    with tempfile.TemporaryDirectory(dir=".", prefix="posix-record-") as name:
        directory = Path(name).resolve()
        make_file(directory / "other.dat", 4_000_000, 1)
        make_file(directory / "stream.dat", 4_000_000, 2)
        make_file(directory / "text.dat", 4_000_000, 3)
        make_file(directory / "how.dat", 4_000_000, 6)
        preloaded = Preloaded(library, queue, directory, "")
        command = [program, *OPTIONS, "--compute-us", "100", "events"]
        for words in (["--create"], ["--intent", "declared.toml"]):
            preloaded.run([*command, *words], with_library=False)
        declared = tomllib.loads((directory / "declared.toml").read_text())["file"][0]["willneed"]

        preloaded.environment["FOREBAY_RECORD_READS"] = "1"
        read = (PYTHON_READS, STREAM_READS, TEXT_READS, HOW_READS)
        scripts = [[sys.executable, "-c", script, "other.dat"] for script in read]
        for words in (command, *scripts):
            code, _, errors = preloaded.run(words)
            if code != 0:
                failures.append(f"{words}: {code}, {errors!r}")
        found = traces(preloaded)
        if found.get(str(directory / "events")) != declared:
            failures.append(f"not what was read: {found.get(str(directory / 'events'))}")
        if found.get(str(directory / "other.dat")) != READ_THERE:
            failures.append(f"not what was read: {found.get(str(directory / 'other.dat'))}")
        if found.get(str(directory / "stream.dat")) != [[0, 81_920]]:
            failures.append(f"not what was read: {found.get(str(directory / 'stream.dat'))}")
        if found.get(str(directory / "how.dat")) != [[1_000_000, 5000]]:
            failures.append(f"not what was read: {found.get(str(directory / 'how.dat'))}")
        failures += wrong_text(found.get(str(directory / "text.dat"), []))
        if preloaded.take_records():
            failures.append("something was read ahead")

        del preloaded.environment["FOREBAY_RECORD_READS"]
        replay = "[[file]]\npath = 'other.dat'\nsame_size = 4000000\n"
        (directory / "intent.toml").write_text(f"{replay}willneed = {READ_THERE}\n")
        make_file(directory / "next.dat", 4_000_000, 4)
        make_file(directory / "longer.dat", 4_000_001, 5)
        wait_until_settled(directory)
        print(f"{len(found)} files recorded")
        for name in ("other.dat", "next.dat"):
            emptied = evict(directory / name)
            preloaded.run([sys.executable, "-c", PYTHON_READS, name])
            (record,) = preloaded.take_records()
            print(f"{name}: {record['bytes_served']} bytes served in the replay")
            if emptied and record["bytes_served"] == 0:
                failures.append(f"nothing was served: {record}")
        preloaded.run([sys.executable, "-c", PYTHON_READS, "longer.dat"])
        if preloaded.take_records():
            failures.append("a file of another size was read ahead")
        evict(directory / "next.dat")
        code, _, errors = preloaded.run([sys.executable, "-c", REWRITES, "next.dat"])
        (record,) = preloaded.take_records()
        # Either may be seen first.
        if code != 0 or record["stopped"] not in (
            "it was opened for writing",
            "the file was changed",
        ):
            failures.append(f"not what was written: {errors!r}, {record}")
    print("\n".join(failures) or "all as it was read")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

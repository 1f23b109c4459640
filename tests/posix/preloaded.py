"""What the checks of this folder share: files that have settled and are in no cache, a file system
of their own, and programs with the library preloaded."""

from __future__ import annotations

import ctypes
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SETTLING_S = 2.1  # core/storage/file_version.hpp
_CACHESTAT = 451

#: Makes the calls that its input tells.
TOLD_READS = [sys.executable, str(Path(__file__).resolve().with_name("told_reads.py"))]

#: Reads pieces of a file, given as a list of offsets and lengths, by a C stream each.
BY_STREAMS = """
import ast, ctypes, sys, zlib
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
libc.fread.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_void_p]
libc.fseek.argtypes = [ctypes.c_void_p, ctypes.c_long, ctypes.c_int]
libc.fclose.argtypes = [ctypes.c_void_p]
into = ctypes.create_string_buffer(1_000_000)
sum = 0
for offset, length in ast.literal_eval(sys.argv[2]):
    stream = libc.fopen(sys.argv[1].encode(), b"r")
    libc.fseek(stream, offset, 0)
    sum = zlib.crc32(into.raw[:libc.fread(into, 1, length, stream)], sum)
    libc.fclose(stream)
print(sum)
"""

#: Opens the file, and tells what it read of it for each line "OFFSET LENGTH". With a word it looks
#: at its beginning before, by an opening of its own.
_READER = """
import os, sys, zlib
if sys.argv[1:]:
    first = os.open("events", os.O_RDONLY)
    os.read(first, 8)
    os.close(first)
file = os.open("events", os.O_RDONLY)
print("open", flush=True)
for line in sys.stdin:
    offset, length = map(int, line.split())
    print(zlib.crc32(os.pread(file, length, offset)), flush=True)
"""


def make_file(path: Path, size: int, seed: int) -> bytes:
    """A file with content that no two places share, on the device."""
    content = random.Random(seed).randbytes(size)
    path.write_bytes(content)
    return content


def wait_until_settled(directory: Path) -> None:
    """Until no file in `directory` was changed lately: before that nothing is served."""
    last = max(path.stat().st_ctime for path in directory.iterdir() if path.is_file())
    while time.time() < last + SETTLING_S:
        time.sleep(0.05)


def evict(path: Path) -> bool:
    """Takes the file out of the page cache. Whether that worked: not on tmpfs, nor on a kernel that
    does not tell."""
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        return _resident_pages(descriptor) == 0
    finally:
        os.close(descriptor)


def wait_until_resident(path: Path, size: int, offset: int = 0, length: int = 0) -> bool:
    """Until the page cache has `size` bytes of the file, or for 20 s: whether it has. Of `length`
    bytes from `offset`; 0: of all from there."""
    descriptor = os.open(path, os.O_RDONLY)
    last = time.time() + 20
    try:
        while (_resident_pages(descriptor, offset, length) or 0) * os.sysconf("SC_PAGESIZE") < size:
            if time.time() > last:
                return False
            time.sleep(0.005)
        return True
    finally:
        os.close(descriptor)


def resident_bytes(path: Path, offset: int = 0, length: int = 0) -> int:
    """Of the file in the page cache: of `length` bytes from `offset`; 0: of all from there."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        pages = _resident_pages(descriptor, offset, length) or 0
        return pages * os.sysconf("SC_PAGESIZE")
    finally:
        os.close(descriptor)


def _resident_pages(descriptor: int, offset: int = 0, length: int = 0) -> int | None:
    extent = (ctypes.c_uint64 * 2)(offset, length)
    counts = (ctypes.c_uint64 * 5)()
    libc = ctypes.CDLL(None, use_errno=True)
    failed = libc.syscall(_CACHESTAT, descriptor, extent, counts, 0) != 0
    return None if failed else int(counts[0])


@contextmanager
def testbed(program: str, backing: Path, options: list[str]) -> Iterator[Path]:
    """A mounted one."""
    mount = backing.with_name("mount")
    mount.mkdir(exist_ok=True)
    rates = ["--bandwidth", "400MB/s", "--latency", "1ms", "--stripe", "1MiB"]
    subprocess.run([program, "--backing", backing, *rates, *options, mount], check=True)
    try:
        yield mount
    finally:
        # In the background: the kernel closes what a ring of io_uring has after its process ended.
        subprocess.run(["fusermount3", "-u", "-z", mount], check=True)


def total(records: list[dict[str, object]], key: str) -> int:
    """Of all records together."""
    return sum(int(str(record[key])) for record in records)


class Preloaded:
    """Runs programs in `directory` with the library, an intent file and a place for records. They
    have it within them if `library` is "within"."""

    def __init__(self, library: str, queue: str, directory: Path, intent: str) -> None:
        self.directory = directory
        self.records = directory / "records"
        self.records.mkdir(parents=True)
        (directory / "intent.toml").write_text(intent)
        self.environment = {
            **os.environ,
            **({} if library == "within" else {"LD_PRELOAD": library}),
            "FOREBAY_INTENT": str(directory / "intent.toml"),
            "FOREBAY_REPORT_DIR": str(self.records),
            "FOREBAY_IO_URING": "1" if queue == "uring" else "0",
        }

    def run(
        self, command: list[str], with_library: bool = True, told: str = ""
    ) -> tuple[int, bytes, bytes]:
        """Exit status, output and messages of a program with `told` as its input."""
        done = subprocess.run(
            command,
            cwd=self.directory,
            env=self.environment if with_library else os.environ,
            input=told.encode(),
            capture_output=True,
            check=False,
            timeout=120,
        )
        return done.returncode, done.stdout, done.stderr

    def start(self, command: list[str]) -> subprocess.Popen[str]:
        """A program that is talked to line by line."""
        return subprocess.Popen(
            command,
            cwd=self.directory,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def take_records(self) -> list[dict[str, object]]:
        """The records since the last call."""
        found = []
        for path in sorted(self.records.glob("*.reads")):
            found.append(json.loads(path.read_bytes()))
            path.unlink()
        return found


def start_reader(
    preloaded: Preloaded, *before: str, looks_first: bool = False
) -> subprocess.Popen[str]:
    """A process that has the file `events` open; by a command after these words."""
    words = ["looks first"] if looks_first else []
    process = preloaded.start([*before, sys.executable, "-c", _READER, *words])
    assert process.stdout is not None
    process.stdout.readline()
    return process

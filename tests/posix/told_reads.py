"""Makes the calls that its input tells, a line each, and prints what each gave: the number of bytes
and their checksum, or the error, and where the descriptor stands then.

open PATH | close | read COUNT | pread AT COUNT | readv COUNT... | preadv AT COUNT... | lseek AT
stream PATH | fread COUNT | fseek AT   by a C stream
map PATH | show AT COUNT               by a mapping
fork LINES                             the lines that follow are for a child
fork_past_handlers LINES               the same by _Fork
forbid CALL...                         system calls, which fail with EPERM then, in all threads
closefrom                              all descriptors above that of the file
close_behind FIRST                     all descriptors from there on, by the kernel's own call
open_many COUNT                        and close them again: how often that fails
idle                                   until no other thread of this process runs
unshare                                its namespaces, before which our threads end
block_signals | signals                all of them; how many are blocked
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import signal
import sys
import threading
import time
import zlib
from collections.abc import Callable
from pathlib import Path

from forbidden import forbid

libc = ctypes.CDLL(None, use_errno=True)
libc.fopen.restype = ctypes.c_void_p
libc.fread.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_void_p]
libc.fread.restype = ctypes.c_size_t
libc.fseek.argtypes = [ctypes.c_void_p, ctypes.c_long, ctypes.c_int]
for of_stream in (libc.ftell, libc.ferror, libc.fileno, libc.clearerr):
    of_stream.argtypes = [ctypes.c_void_p]
libc.ftell.restype = ctypes.c_long


class Calls:
    """Each by its name."""

    descriptor = -1

    def open(self, path: str) -> str:
        self.descriptor = os.open(path, os.O_RDONLY)
        return "open"

    def close(self) -> str:
        os.close(self.descriptor)
        self.descriptor = -1
        return "closed"

    def read(self, count: int) -> bytes:
        return os.read(self.descriptor, count)

    def pread(self, at: int, count: int) -> bytes:
        return os.pread(self.descriptor, count, at)

    def readv(self, *counts: int) -> bytes:
        pieces = [bytearray(count) for count in counts]
        moved = os.readv(self.descriptor, pieces)
        return b"".join(pieces)[:moved]

    def preadv(self, at: int, *counts: int) -> bytes:
        pieces = [bytearray(count) for count in counts]
        moved = os.preadv(self.descriptor, pieces, at)
        return b"".join(pieces)[:moved]

    def lseek(self, at: int) -> str:
        return str(os.lseek(self.descriptor, at, os.SEEK_SET))

    def stream(self, path: str) -> str:
        self.file = libc.fopen(path.encode(), b"r")
        self.descriptor = libc.fileno(self.file)
        return "open"

    def fread(self, count: int) -> str:
        room = ctypes.create_string_buffer(count)
        found = room.raw[: libc.fread(room, 1, count, self.file)]
        state = "an error" if libc.ferror(self.file) else "no error"
        return f"{told(found)}, {state}, next {libc.ftell(self.file)}"

    def fseek(self, at: int) -> str:
        libc.clearerr(self.file)
        return str(libc.fseek(self.file, at, os.SEEK_SET))

    def map(self, path: str) -> str:
        self.open(path)
        self.shown = mmap.mmap(self.descriptor, 0, prot=mmap.PROT_READ)
        return "mapped"

    def show(self, at: int, count: int) -> bytes:
        return self.shown[at : at + count]

    def fork(self, lines: int) -> str:
        return in_child(os.fork, lines)

    def fork_past_handlers(self, lines: int) -> str:
        return in_child(libc._Fork, lines)

    def forbid(self, *calls: str) -> str:
        return "forbidden" if forbid(errno.EPERM, calls) else "cannot be forbidden"

    def close_behind(self, first: int) -> str:
        """Past the C library, and past whatever stands before it."""
        close_range = 436
        return str(libc.syscall(close_range, first, 0xFFFFFFFF, 0))

    def closefrom(self) -> str:
        libc.closefrom(self.descriptor + 1)
        return "closed"

    def open_many(self, count: int) -> str:
        opened = [os.open("/dev/null", os.O_RDONLY) for _ in range(count)]
        return f"{sum(libc.close(descriptor) != 0 for descriptor in opened)} cannot be closed"

    def idle(self) -> str:
        own = str(threading.get_native_id())
        deadline = time.monotonic() + 20

        def runs(task: Path) -> bool:
            try:
                return (task / "syscall").read_text().startswith("running")
            except OSError:  # It has ended; or the kernel does not tell.
                return False

        tasks = Path("/proc/self/task")
        while any(runs(task) for task in tasks.iterdir() if task.name != own):
            if time.monotonic() > deadline:
                return "another thread runs on"
            time.sleep(0.001)
        return "idle"

    def unshare(self) -> str:
        clone_fs = 0x200
        return str(libc.unshare(clone_fs))

    def block_signals(self) -> str:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        return self.signals()

    def signals(self) -> str:
        return f"{len(signal.pthread_sigmask(signal.SIG_BLOCK, []))} are blocked"


calls = Calls()


def told(found: bytes) -> str:
    return f"{len(found)} bytes {zlib.crc32(found)}"


def make(line: str) -> None:
    name, *words = line.split()
    try:
        answer = getattr(calls, name)(*(int(word) if word.isdigit() else word for word in words))
        if isinstance(answer, bytes):
            answer = told(answer)
        if calls.descriptor >= 0:
            answer += f", at {os.lseek(calls.descriptor, 0, os.SEEK_CUR)}"
    except OSError as error:
        answer = errno.errorcode[error.errno]
    print(f"{line.strip()}: {answer}", flush=True)


def in_child(fork: Callable[[], int], count: int) -> str:
    lines = [sys.stdin.readline() for _ in range(count)]
    child = fork()
    if child == 0:
        for line in lines:
            make(line)
        os._exit(0)
    return f"a child ended with {os.waitpid(child, 0)[1]}"


while line := sys.stdin.readline():
    make(line)

"""Goal: a file server that does not answer any more holds up nobody but who reads its files.

Method: the testbed over a declared file that two threads read, by openings of their own and by one,
and is stopped (SIGSTOP) in the middle. When both threads wait for it, the program must read another
declared file and open a third one for writing; in one run it must also open all that it may, and
be told so, though requests are under way, for which we have descriptors. Then the testbed goes on,
and all bytes must be right. So must they where what waits is the first read of a file that was open
before. Another program maps its file where the testbed is stopped: what reads ahead waits for it,
with a lock. It must open and read the other file, too, and leave a record that nothing was read
ahead any more.

usage: silent_check.py LIBRARY uring|threads FUSE_PROBE TESTBEDFS
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

from preloaded import Preloaded, evict, make_file, wait_until_settled

SIZE = 4_000_000
LONGEST_S = 40
INTENT = """
[[file]]
path = "*.dat"
willneed = [[0, 0]]
block = "64KiB"
budget = "1MiB"
"""
#: What both programs have.
COMMON = """
import errno, os, resource, sys, threading, time, zlib
PIECE = 50_000
in_middle, go = threading.Semaphore(0), threading.Semaphore(0)

def say(word):
    print(word, flush=True)
    sys.stdin.readline()

def waits_for_server(thread):
    with open(f"/proc/self/task/{thread.native_id}/wchan") as file:
        return file.read().startswith(("request_wait", "fuse", "__fuse", "folio"))

def wait_in_server(threads):
    for thread in threads:
        thread.start()
    for thread in threads:
        in_middle.acquire()
    say("in the middle")
    for thread in threads:
        go.release()
    last = time.monotonic() + 20
    while not all(map(waits_for_server, threads)):
        if time.monotonic() > last:
            sys.exit("the threads do not wait for the server, or the kernel does not tell")
        time.sleep(0.01)

def read_other():
    file, found = os.open("other.dat", os.O_RDONLY), 0
    while piece := os.read(file, PIECE):
        found = zlib.crc32(piece, found)
    os.close(file)
    return found
"""
READING = f"""{COMMON}
sums = {{}}
shared = os.open("mount/silent.dat", os.O_RDONLY) if sys.argv[1] != "two" else -1

def read(number):
    file = shared if shared >= 0 else os.open("mount/silent.dat", os.O_RDONLY)
    found, at = 0, 0
    while piece := os.pread(file, PIECE, at):
        found, at = zlib.crc32(piece, found), at + len(piece)
        if at == 4 * PIECE:
            in_middle.release()
            go.acquire()
    sums[number] = found

threads = [threading.Thread(target=read, args=(number,)) for number in range(2)]
wait_in_server(threads)
found = read_other()
os.close(os.open("written.dat", os.O_RDWR | os.O_CREAT))
if sys.argv[1] == "all descriptors":
    resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
    taken = []
    try:
        while True:
            taken.append(os.open("/dev/null", os.O_RDONLY))
    except OSError as error:
        print(errno.errorcode[error.errno], end=" ")
    for descriptor in taken:
        os.close(descriptor)
say(found)
for thread in threads:
    thread.join()
print(*sums.values())
"""
#: Of a file that is mapped, what reads ahead asks the server, with a lock that other openings want.
#: Not by Python's own mapping, which asks before, and is shared, which the kernel refuses of a file
#: that is read past its page cache.
LOCKING = f"""{COMMON}
import ctypes, mmap

def map_file():
    file = os.open("mount/silent.dat", os.O_RDONLY)
    in_middle.release()
    go.acquire()
    words = [None, ctypes.c_size_t(PIECE), mmap.PROT_READ, mmap.MAP_PRIVATE, file, ctypes.c_long(0)]
    ctypes.CDLL(None).mmap(*words)

wait_in_server([threading.Thread(target=map_file, daemon=True)])
print(read_other())
"""
#: Of what is opened once more, its first read asks the server: without a lock.
READING_AGAIN = f"""{COMMON}
def read_again():
    os.close(os.open("mount/silent.dat", os.O_RDONLY))
    file = os.open("mount/silent.dat", os.O_RDONLY)
    in_middle.release()
    go.acquire()
    os.pread(file, PIECE, 0)

wait_in_server([threading.Thread(target=read_again, daemon=True)])
print(read_other())
"""


def main() -> int:
    library, queue, fuse_probe, testbedfs = sys.argv[1:5]
    if (probed := subprocess.run([fuse_probe], check=False).returncode) != 0:
        return probed
    failures = []
    with tempfile.TemporaryDirectory(dir=".", prefix="posix-silent-") as name:
        directory = Path(name).resolve()
        mount, backing = directory / "mount", directory / "backing"
        mount.mkdir()
        backing.mkdir()
        silent = zlib.crc32(make_file(backing / "silent.dat", SIZE, 1))
        other = zlib.crc32(make_file(directory / "other.dat", SIZE, 2))
        wait_until_settled(backing)
        preloaded = Preloaded(library, queue, directory, INTENT)
        for what in ("one", "two", "all descriptors", "again", "locked"):
            state = directory / f"{what}.json"
            rates = ["--bandwidth", "400MB/s", "--latency", "1ms", "--state", str(state)]
            words = [testbedfs, "--foreground", "--backing", str(backing), *rates, str(mount)]
            with subprocess.Popen(words) as server:
                while not os.path.ismount(mount):
                    if server.poll() is not None:
                        return server.returncode or 1
                    time.sleep(0.01)
                evict(directory / "other.dat")
                try:
                    if what == "locked":
                        failures += lock_out(preloaded, server, other)
                    elif what == "again":
                        failures += pass_by(preloaded, server, other)
                    else:
                        failures += silence(preloaded, server, what, silent, other)
                finally:
                    server.send_signal(signal.SIGCONT)
                    subprocess.run(["fusermount3", "-u", "-z", mount], check=True)
    print("\n".join(failures) or "all as it should be")
    return 1 if failures else 0


@contextlib.contextmanager
def started(preloaded: Preloaded, program: str, *words: str) -> Iterator[subprocess.Popen[str]]:
    """A program, which is ended if it hangs: a line that does not come is empty."""
    with preloaded.start([sys.executable, "-c", program, *words]) as process:
        signal.signal(signal.SIGALRM, lambda *_: process.kill())
        signal.alarm(LONGEST_S)
        yield process
        signal.alarm(0)


def stop_in_the_middle(program: subprocess.Popen[str], server: subprocess.Popen[bytes]) -> str:
    """What the program says before and after the server is stopped."""
    assert program.stdin is not None
    assert program.stdout is not None
    before = program.stdout.readline().strip()
    server.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, server.pid, os.WSTOPPED | os.WNOWAIT)
    program.stdin.write("go on\n")
    program.stdin.flush()
    return f"{before}, {program.stdout.readline().strip()}"


def silence(
    preloaded: Preloaded, server: subprocess.Popen[bytes], openings: str, silent: int, other: int
) -> list[str]:
    """One run in which two threads read. What is wrong with it."""
    with started(preloaded, READING, openings) as program:
        said = [stop_in_the_middle(program, server)]
        server.send_signal(signal.SIGCONT)
        said.append(program.communicate("go on\n")[0].strip())
    before = "EMFILE " if openings == "all descriptors" else ""
    right = [f"in the middle, {before}{other}", f"{silent} {silent}"]
    if said == right and program.returncode == 0:
        return []
    return [f"by {openings}: {said}, not {right}, status {program.returncode}"]


def pass_by(preloaded: Preloaded, server: subprocess.Popen[bytes], other: int) -> list[str]:
    """One run in which a first read waits without a lock. What is wrong with it."""
    with started(preloaded, READING_AGAIN) as program:
        said = stop_in_the_middle(program, server)
        server.send_signal(signal.SIGCONT)
        program.communicate()
    told = [path.read_text() for path in preloaded.records.glob("[!.]*.gave-up")]
    if said == f"in the middle, {other}" and program.returncode == 0 and not told:
        return []
    return [f"again: {said}, not {other}, status {program.returncode}, told {told}"]


def lock_out(preloaded: Preloaded, server: subprocess.Popen[bytes], other: int) -> list[str]:
    """One run in which what reads ahead waits with a lock. What is wrong with it."""
    told: list[str] = []
    with started(preloaded, LOCKING) as program:
        said = stop_in_the_middle(program, server)
        # The kernel ends the program when the server has heard of what is closed, and not before.
        last = time.monotonic() + LONGEST_S / 2
        while not told and time.monotonic() < last:
            told = [path.read_text() for path in preloaded.records.glob("[!.]*.gave-up")]
            time.sleep(0.01)
        server.send_signal(signal.SIGCONT)
        program.communicate()
    if said == f"in the middle, {other}" and "nothing was read ahead any more" in "".join(told):
        return []
    return [f"locked: {said}, not {other}, status {program.returncode}, told {told}"]


if __name__ == "__main__":
    sys.exit(main())

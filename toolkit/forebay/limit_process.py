"""One process of the limit measurement: its part of a file, by plain large calls.

Run as a script: PATH OFFSET LENGTH TOTAL write|read SYNC. It says "ready" on standard output, reads
a time (of time.perf_counter, which all processes of a machine share) from standard input, starts
then, and answers with its seconds. TOTAL bytes are moved, going round in [OFFSET, OFFSET + LENGTH).
It imports nothing of the package, so it starts from anywhere.
"""

import os
import sys
import time

import numpy as np

CALL_BYTES = 4 * 1024 * 1024
# The data comes from memory as a program's does, not from the processor's cache.
_BUFFER_BYTES = 256 * 1024 * 1024


def move(path: str, offset: int, length: int, total: int, kind: str, sync: bool) -> None:
    """Moves the bytes once, and speaks to the parent as the module says."""
    generator = np.random.default_rng(offset + 1)
    size = max(1, min(length, _BUFFER_BYTES))
    buffer = memoryview(bytearray(generator.bytes(size)))
    descriptor = os.open(path, os.O_WRONLY if kind == "write" else os.O_RDONLY)
    print("ready", flush=True)
    begin_at = float(sys.stdin.readline())
    # Awake when it comes: who starts later than the others meets less of their traffic.
    while (start := time.perf_counter()) < begin_at:
        pass
    done = 0
    while done < total and length > 0:
        at = done % length
        begin = at % size
        piece = min(CALL_BYTES, length - at, total - done, size - begin)
        part = buffer[begin : begin + piece]
        if kind == "write":
            moved = os.pwrite(descriptor, part, offset + at)
        else:
            moved = os.preadv(descriptor, [part], offset + at)
        if moved == 0:
            raise EOFError(f"{path} ends at {offset + at}")
        done += moved
    if sync:
        os.fsync(descriptor)
    os.close(descriptor)
    print(time.perf_counter() - start, flush=True)


if __name__ == "__main__":
    move(
        sys.argv[1],
        int(sys.argv[2]),
        int(sys.argv[3]),
        int(sys.argv[4]),
        sys.argv[5],
        sys.argv[6] == "1",
    )

"""One process of the memory measurement: copies between two buffers.

Run as a script: BYTES SECONDS, as one of those that start together (started_together.py). It
answers bytes copied and seconds. It imports nothing of the package, so it starts from anywhere.
"""

import sys
import time


def main(size: int, seconds: float) -> None:
    source, target = memoryview(bytearray(b"\1" * size)), memoryview(bytearray(size))
    target[:] = source  # now its pages are there
    print("ready", flush=True)
    begin_at = float(sys.stdin.readline())
    while (start := time.perf_counter()) < begin_at:
        pass
    copies = 0
    while (spent := time.perf_counter() - start) < seconds or copies == 0:
        target[:] = source
        copies += 1
    print(copies * size, spent, flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))

"""Goal: who is not told what the page cache has of a file (it is neither his, nor may he write it)
reads it ahead where it is not there, and is not kept from it where it is.

Method: a filter forbids to ask (seccomp). Files are read by a program, once out of the page cache
and, as often, with everything in it, read ahead into memory of the process or into the page cache.
Of what is not there most is served; or the first of it is brought before the program reads, which
waits for that. Of what is there little is fetched, and it stays. Left out (77) where the page cache
cannot be emptied, or nothing be forbidden.

usage: untold_check.py LIBRARY uring|threads
"""

from __future__ import annotations

import sys
import tempfile
import zlib
from pathlib import Path

import forbidden
from preloaded import (
    Preloaded,
    evict,
    make_file,
    resident_bytes,
    total,
    wait_until_resident,
    wait_until_settled,
)

SKIPPED = 77
SIZE, PIECE = 16 << 20, 1 << 16
FILES = 4
INTENT = f"""
[[file]]
path = "*.dat"
willneed = [[0, 0]]
block = {PIECE}
budget = {16 * PIECE}
gap = 0
"""
BY_PAGE_CACHE = "by the page cache"
WAYS = {"in memory": "", BY_PAGE_CACHE: 'policy = "page-cache"\n'}
#: Runs a command that cannot ask what the page cache has, by cachestat (of no name yet) or mincore.
UNTOLD = [sys.executable, forbidden.__file__, "EPERM", "451", "mincore", "--"]
READING = f"""
import os, sys, zlib
for path in sys.argv[1:]:
    file = os.open(path, os.O_RDONLY)
    print("open", flush=True)
    sys.stdin.readline()
    found = 0
    for at in range(0, {SIZE}, {PIECE}):
        found = zlib.crc32(os.pread(file, {PIECE}, at), found)
    os.close(file)
    print(found, flush=True)
"""


def check(preloaded: Preloaded, contents: dict[Path, bytes], is_there: bool) -> list[str]:
    """What is wrong."""
    is_by_page_cache = preloaded.directory.name == BY_PAGE_CACHE
    for path in contents:
        if not evict(path):
            return ["left out"]
        if is_there:
            path.read_bytes()
    where = f"{preloaded.directory.name}, {'in the page cache' if is_there else 'on the device'}"
    command = [*UNTOLD, sys.executable, "-c", READING, *map(str, contents)]
    with preloaded.start(command) as reader:
        assert reader.stdin is not None
        assert reader.stdout is not None
        for path, content in contents.items():
            if reader.stdout.readline() != "open\n":
                return ["left out"]
            is_brought = is_by_page_cache and not is_there
            if is_brought and not wait_until_resident(path, PIECE):
                return [f"{where}: nothing is brought"]
            reader.stdin.write("go on\n")
            reader.stdin.flush()
            if int(reader.stdout.readline()) != zlib.crc32(content):
                return [f"{where}: wrong bytes of {path}"]
    records = preloaded.take_records()
    fetched = total(records, "bytes_fetched")
    served = total(records, "bytes_served")
    print(f"{where}: {served} bytes served, {fetched} fetched")
    amount = FILES * SIZE
    if not is_there and not is_by_page_cache and served < amount * 3 // 4:
        return [f"{where}: so little is served: {records}"]
    if is_there and fetched > amount // 4:
        return [f"{where}: that much is fetched again: {records}"]
    if is_there and sum(map(resident_bytes, contents)) < amount * 3 // 4:
        return [f"{where}: it is not there any more: {records}"]
    return []


def main() -> int:
    library, queue = sys.argv[1:3]
    failures = []
    with tempfile.TemporaryDirectory(dir=".", prefix="posix-untold-") as name:
        directory = Path(name).resolve()
        names = [directory / f"{number}.dat" for number in range(FILES)]
        contents = {path: make_file(path, SIZE, seed) for seed, path in enumerate(names)}
        wait_until_settled(directory)
        for way, policy in WAYS.items():
            preloaded = Preloaded(library, queue, directory / way, INTENT + policy)
            for is_there in (False, True):
                found = check(preloaded, contents, is_there)
                if found == ["left out"]:
                    print("left out: the kernel does not allow it")
                    return SKIPPED
                failures += found
    print("\n".join(failures) or "fetched where it is worth it")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

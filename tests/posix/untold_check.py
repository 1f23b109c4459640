"""Goal: who is not told what the page cache has of a file (it is neither his, nor may he write it)
reads it ahead where it is not there, and is not kept from it where it is.

Method: a filter forbids to ask (seccomp). Files are read by a program each, once out of the page
cache and, as often, with everything in it, read ahead into memory of the process or into the page
cache. Of what is not there most is served or brought. Of what is there little is fetched, and it
stays. Left out (77) where the page cache cannot be emptied, or nothing be
forbidden.

usage: untold_check.py LIBRARY uring|threads
"""

from __future__ import annotations

import sys
import tempfile
import zlib
from pathlib import Path

from preloaded import Preloaded, evict, make_file, resident_bytes, total, wait_until_settled

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
#: Runs a command that cannot ask what the page cache has, by either call.
UNTOLD = """
import ctypes, errno, os, sys
seccomp = ctypes.CDLL("libseccomp.so.2")
seccomp.seccomp_init.restype = ctypes.c_void_p
allow, fail = 0x7FFF0000, 0x00050000 | errno.EPERM
rules = ctypes.c_void_p(seccomp.seccomp_init(allow))
cachestat = 451
mincore = seccomp.seccomp_syscall_resolve_name(b"mincore")
if any(seccomp.seccomp_rule_add_array(rules, fail, call, 0, None) for call in (cachestat, mincore)):
    sys.exit("cannot be forbidden")
if seccomp.seccomp_load(rules):
    sys.exit("cannot be forbidden")
os.execvp(sys.argv[1], sys.argv[1:])
"""
READING = f"""
import os, sys, zlib
for path in sys.argv[1:]:
    file = os.open(path, os.O_RDONLY)
    found = 0
    for at in range(0, {SIZE}, {PIECE}):
        found = zlib.crc32(os.pread(file, {PIECE}, at), found)
    os.close(file)
    print(found)
"""


def check(preloaded: Preloaded, contents: dict[Path, bytes], is_there: bool) -> list[str]:
    """What is wrong."""
    is_by_page_cache = preloaded.directory.name == BY_PAGE_CACHE
    for path in contents:
        if not evict(path):
            return ["left out"]
        if is_there:
            path.read_bytes()
    command = [sys.executable, "-c", UNTOLD, sys.executable, "-c", READING, *map(str, contents)]
    status, output, messages = preloaded.run(command)
    if "cannot be forbidden" in messages.decode():
        return ["left out"]
    where = f"{preloaded.directory.name}, {'in the page cache' if is_there else 'on the device'}"
    expected = [str(zlib.crc32(content)) for content in contents.values()]
    if status != 0 or output.decode().split() != expected:
        return [f"{where}: status {status}, wrong bytes, or {messages.decode()}"]
    records = preloaded.take_records()
    fetched = total(records, "bytes_fetched")
    of_use = fetched if is_by_page_cache else total(records, "bytes_served")
    print(f"{where}: {of_use} bytes of use, {fetched} fetched")
    amount = FILES * SIZE
    if not is_there and of_use < amount * 3 // 4:
        return [f"{where}: so little is of use: {records}"]
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

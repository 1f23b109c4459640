"""Goal: the records of what was read ahead tell the truth where reading ahead does not help: every
read is counted, those that the kernel carried out with their time, and what is not known is not
told; a declared file of which nothing can be fetched leaves the reason.

Method: programs that read elsewhere than was declared, through the page cache, by a C stream, by
two mappings, by more openings than there is memory for, and for reading and writing, also of more
files than are told of one by one. The records are held against what was read, and how often opened.

usage: told_check.py LIBRARY uring|threads
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from preloaded import Preloaded, evict, make_file, total, wait_until_settled

SIZE = 12_000_000
PIECE = 10_000
READS = 300
OPENINGS = 60
FILES, MOST_FILES = 1100, 1024

#: Backwards, in steps that no pattern has.
PLACES = """
import os, random, sys
draw, at = random.Random(1), 11_900_000
places = []
while len(places) < 300:
    places.append(at)
    at -= draw.randrange(10_000, 39_000)
"""
READS_ON = (
    PLACES
    + """
file = os.open(sys.argv[1], os.O_RDONLY)
for at in places:
    os.pread(file, 10_000, at)
"""
)
REOPENS = (
    PLACES
    + """
for at in places:
    file = os.open(sys.argv[1], os.O_RDONLY)
    os.pread(file, 10_000, at)
    os.close(file)
"""
)
STREAMS = """
import ctypes, sys
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
libc.fgets.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
libc.fclose.argtypes = [ctypes.c_void_p]
stream = libc.fopen(sys.argv[1].encode(), b"r")
libc.fgets(ctypes.create_string_buffer(100), 100, stream)
libc.fclose(stream)
"""
MANY = """
import os, sys
files = [os.open(sys.argv[1], os.O_RDONLY) for _ in range(60)]
for at in range(0, 50_000, 10_000):
    for file in files:
        os.pread(file, 10_000, at)
"""
MAPS = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + 3 * [ctypes.c_int] + [ctypes.c_long]
file = os.open(sys.argv[1], os.O_RDONLY)
for _ in range(2):
    libc.mmap(None, 10_000, 1, 2, file, 0)
os.close(file)
"""
UPDATES_MANY = """
import os, sys
names = [name for name in sorted(os.listdir()) if name.startswith(sys.argv[1])]
for name in names + names:
    file = os.open(name, os.O_RDWR)
    os.pread(file, 100, 0)
    os.close(file)
"""
UPDATES = """
import os, sys
for flags in (os.O_RDWR, os.O_RDWR, os.O_RDONLY | os.O_SYNC):
    os.pread(os.open(sys.argv[1], flags), 10_000, 0)
"""
WAITING = ("stalls", "seconds_waited", "bytes_unused")
DECLARED = "".join(
    f'[[file]]\npath = "{name}.dat"\nwillneed = {extents}\n{more}\n'
    for name, extents, more in (
        ("wrong", [[0, 9000], [500_000, 9000], [1_000_000, 9000]], ""),
        ("reopened", [[0, 9], [2 * SIZE, 9]], ""),
        ("cached", [[0, 0]], 'policy = "page-cache"'),
        ("stream", [[0, 0]], ""),
        ("many", [[0, 0]], ""),
        ("updated", [[0, 0]], ""),
        ("mapped", [[0, 0]], ""),
        ("small-*", [[0, 0]], ""),
    )
)


class Checks:
    """What is wrong."""

    def __init__(self, preloaded: Preloaded) -> None:
        self.failures: list[str] = []
        self._preloaded = preloaded

    def records_of(self, name: str, script: str) -> list[dict[str, object]]:
        """Of a program that reads this file, which is in no cache where that can be."""
        evict(self._preloaded.directory / f"{name}.dat")
        code, _, errors = self._preloaded.run([sys.executable, "-c", script, f"{name}.dat"])
        if code != 0:
            self.failures.append(f"{name}: {errors!r}")
        return self._preloaded.take_records()

    def is_so(self, name: str, holds: bool, records: list[dict[str, object]]) -> None:
        if not holds:
            self.failures.append(f"{name}: {records}")

    def elsewhere(self, name: str, script: str) -> None:
        """All is counted, in few records; most of it went to the kernel, for some time."""
        records = self.records_of(name, script)
        asked = total(records, "reads") == READS and total(records, "bytes_asked") == READS * PIECE
        by_kernel = total(records, "kernel_reads")
        seconds = sum(float(str(record["kernel_seconds"])) for record in records)
        print(f"{name}: {len(records)} records, {by_kernel} reads of the kernel in {seconds} s")
        is_timed = seconds > 0 and READS // 2 < by_kernel <= READS
        self.is_so(name, asked and is_timed and len(records) <= 4, records)
        openings = READS if script == REOPENS else 1
        self.is_so(name, total(records, "openings") == openings, records)

    def by_page_cache(self) -> None:
        records = self.records_of("cached", READS_ON)
        (record,) = records
        is_told = record["reads"] == record["kernel_reads"] == READS
        unknown = all(record[key] is None for key in WAITING)
        self.is_so("cached", is_told and unknown and not record["has_unseen_reads"], records)
        records = self.records_of("stream", STREAMS)
        self.is_so("stream", len(records) == 1 and records[0]["has_unseen_reads"] is True, records)
        records = self.records_of("mapped", MAPS)
        shown = [record for record in records if record["has_unseen_reads"]]
        self.is_so("mapped", total(records, "openings") == 1 == len(shown), records)

    def without_memory(self) -> None:
        """The first of many openings have all the memory, but not at once."""
        records = self.records_of("many", MANY)
        without = [record for record in records if "no memory is left" in str(record["stopped"])]
        print(f"many: {len(records)} records of {OPENINGS} openings")
        self.is_so("many", total(records, "reads") == 5 * OPENINGS, records)
        self.is_so("many", total(records, "openings") == OPENINGS, records)
        if len(without) != 1 or without[0]["reads"] != without[0]["kernel_reads"]:
            self.failures.append(f"many: {without} tell that there was no memory")
        self.is_so("many", len(records) > 8 + 1, records)

    def for_writing(self) -> None:
        records = self.records_of("updated", UPDATES)
        why = [record["stopped"] for record in records]
        self.is_so("updated", why == ["it was opened for writing"], records)
        self.is_so("updated", total(records, "openings") == 3, records)

    def of_many_files(self) -> None:
        """Those without a record of their own are told of together."""
        for number in range(FILES):
            (self._preloaded.directory / f"small-{number}.dat").write_bytes(b"x")
        code, _, errors = self._preloaded.run([sys.executable, "-c", UPDATES_MANY, "small-"])
        records = self._preloaded.take_records()
        further = [json.loads(p.read_bytes()) for p in self._preloaded.records.glob("*.left-alone")]
        told = [len(records), *(record["openings"] for record in further)]
        if code != 0 or told != [MOST_FILES, 2 * (FILES - MOST_FILES)]:
            self.failures.append(f"many files: {code}, {told}, {errors!r}")
        self.is_so("many files", total(records, "openings") == 2 * MOST_FILES, records[:9])


def main() -> int:
    library, queue = sys.argv[1:3]
    with tempfile.TemporaryDirectory(dir=".", prefix="posix-told-") as name:
        directory = Path(name).resolve()
        names = ("wrong", "reopened", "cached", "stream", "many", "updated", "mapped")
        for seed, file in enumerate(names):
            make_file(directory / f"{file}.dat", SIZE, seed)
        preloaded = Preloaded(library, queue, directory, DECLARED)
        wait_until_settled(directory)
        checks = Checks(preloaded)
        checks.elsewhere("wrong", READS_ON)
        checks.elsewhere("reopened", REOPENS)
        checks.by_page_cache()
        checks.without_memory()
        checks.for_writing()
        checks.of_many_files()
    print("\n".join(checks.failures) or "all is told as it was")
    return 1 if checks.failures else 0


if __name__ == "__main__":
    sys.exit(main())

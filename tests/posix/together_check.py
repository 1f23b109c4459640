"""Goal: processes that read one file by the same intent fetch each byte once, into memory that they
share, whoever of them comes late, is stopped or is killed; and those that read by another plan
disturb nobody.

Method: processes that read what they are told, so that they come and go on in any order: together;
those that look at the file first, by an opening of its own; one that comes later; one that is
stopped, or killed, whether it is the one that fetches or not; and one that reads everywhere. All
bytes are compared. Those that read together are served from memory, and fetch little more than one
of them would. Nothing stays in shared memory but what a killed one left.

usage: together_check.py LIBRARY uring|threads
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import zlib
from collections.abc import Sequence
from pathlib import Path

from preloaded import Preloaded, evict, make_file, start_reader, total, wait_until_settled

SIZE = 24_000_000
BUDGET = 2 << 20
#: Read in this order: extents with gaps between them, some of them behind their predecessor.
EXTENTS = [(at, 90_000) for at in range(0, 23_000_000, 150_000)]
for place in range(8, len(EXTENTS) - 4, 9):
    EXTENTS.insert(place + 4, EXTENTS.pop(place))
NEEDED = sum(length for _, length in EXTENTS)


class Reader:
    """A process that has the file open."""

    def __init__(self, preloaded: Preloaded, content: bytes, looks_first: bool = False) -> None:
        self._content = content
        self.process = start_reader(preloaded, looks_first=looks_first)

    def read(self, extents: Sequence[tuple[int, int]]) -> bool:
        """Whether all bytes are right."""
        self.ask(extents)
        return self.is_right(extents)

    def ask(self, extents: Sequence[tuple[int, int]]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("".join(f"{at} {length}\n" for at, length in extents))
        self.process.stdin.flush()

    def is_right(self, extents: Sequence[tuple[int, int]]) -> bool:
        """Of what was asked for."""
        expected = [str(zlib.crc32(self._content[at : at + length])) for at, length in extents]
        return [self._answer() for _ in extents] == expected

    def end(self) -> None:
        self.process.communicate()

    def _answer(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()


class Checks:
    """What is wrong."""

    def __init__(self, preloaded: Preloaded, content: bytes) -> None:
        self.failures: list[str] = []
        self._preloaded = preloaded
        self._content = content

    def readers(self, count: int, looks_first: bool = False) -> list[Reader]:
        """That have the file open, which is in no cache."""
        evict(self._preloaded.directory / "events")
        self._preloaded.take_records()
        return [Reader(self._preloaded, self._content, looks_first) for _ in range(count)]

    def expect(self, holds: bool, what: str) -> None:
        if not holds:
            self.failures.append(what)

    def end(
        self,
        what: str,
        readers: Sequence[Reader],
        fetched_at_most: float,
        served_at_least: int = 0,
    ) -> None:
        """They fetched so much at most, and were served so much from memory."""
        for reader in readers:
            reader.end()
        records = self._preloaded.take_records()
        fetched = total(records, "bytes_fetched")
        print(f"{what}: {fetched} bytes fetched, of {NEEDED}")
        self.expect(fetched <= fetched_at_most, f"{what}: {fetched} bytes fetched: {records}")
        served = total(records, "bytes_served")
        self.expect(served >= served_at_least, f"{what}: {served} bytes served: {records}")


def together(checks: Checks) -> None:
    """All go through the file in step, more or less."""
    readers = checks.readers(3)
    for n in range(0, len(EXTENTS), 5):
        for reader in readers:
            checks.expect(reader.read(EXTENTS[n : n + 5]), f"together: wrong from {n} on")
    # What the first one fetched before it saw another is fetched again, and what went when it read
    # before the others had begun.
    checks.end("together", readers, 1.1 * NEEDED + 2 * BUDGET, NEEDED)


def all_look_first(checks: Checks) -> None:
    """They had the file open before: what they read then says that they read it together."""
    readers = checks.readers(3, looks_first=True)
    for n in range(0, len(EXTENTS), 5):
        for reader in readers:
            checks.expect(reader.read(EXTENTS[n : n + 5]), f"look first: wrong from {n} on")
    # Each began anew when it had looked, with some of the first pieces on their way.
    checks.end("all look first", readers, 1.1 * NEEDED + 3 * BUDGET, NEEDED)


def at_once(checks: Checks) -> None:
    """As fast as they can."""
    readers = checks.readers(4)
    for reader in readers:
        reader.ask(EXTENTS)
    for reader in readers:
        checks.expect(reader.is_right(EXTENTS), "at once: wrong")
    checks.end("at once", readers, 5 * NEEDED, NEEDED)


def one_is_late(checks: Checks) -> None:
    """When it comes the others have read more than the memory holds."""
    late, *others = checks.readers(3)
    for reader in others:
        checks.expect(reader.read(EXTENTS[:60]), "late: wrong before it came")
    checks.expect(late.read(EXTENTS[:60]), "late: what it read first is wrong")
    for reader in (late, *others):
        checks.expect(reader.read(EXTENTS[60:]), "late: wrong afterwards")
    checks.end("one is late", [late, *others], 4 * NEEDED)


def one_is_stopped(checks: Checks, which: int) -> None:
    """It goes on later. The first one to read is the one that fetches."""
    readers = checks.readers(3)
    for reader in readers:
        checks.expect(reader.read(EXTENTS[:20]), "stopped: wrong before")
    os.kill(readers[which].process.pid, signal.SIGSTOP)
    for n, reader in enumerate(readers):
        if n != which:
            checks.expect(reader.read(EXTENTS[20:]), f"stopped {which}: the others are wrong")
    os.kill(readers[which].process.pid, signal.SIGCONT)
    checks.expect(readers[which].read(EXTENTS[20:]), f"stopped {which}: it is wrong")
    checks.end(f"{which} is stopped", readers, 4 * NEEDED)


def one_is_killed(checks: Checks, which: int) -> None:
    """In the midst of its reads."""
    readers = checks.readers(3)
    for reader in readers:
        checks.expect(reader.read(EXTENTS[:20]), "killed: wrong before")
    readers[which].ask(EXTENTS[20:])
    readers[which].process.kill()
    readers[which].end()
    for n, reader in enumerate(readers):
        if n != which:
            checks.expect(reader.read(EXTENTS[20:]), f"killed {which}: the others are wrong")
    checks.end(f"{which} is killed", readers, 4 * NEEDED)


def one_reads_elsewhere(checks: Checks) -> None:
    """In an order of its own, and what was not declared."""
    readers = checks.readers(3)
    draw = random.Random(1)
    strange = [(draw.randrange(SIZE), draw.randrange(1, 50_000)) for _ in EXTENTS]
    strange = [(at, min(length, SIZE - at)) for at, length in strange]
    readers[2].ask(strange)
    for reader in readers[:2]:
        checks.expect(reader.read(EXTENTS), "elsewhere: the others are wrong")
    checks.expect(readers[2].is_right(strange), "elsewhere: it is wrong")
    checks.end("one reads elsewhere", readers, 4 * NEEDED)


def left_of(file: Path) -> list[Path]:
    """What its readers have left in shared memory."""
    status = file.stat()
    name = f"forebay-window-2-{os.geteuid()}-{status.st_dev:x}-{status.st_ino:x}-*"
    return list(Path("/dev/shm").glob(name))


def main() -> int:
    library, queue = sys.argv[1:3]
    with tempfile.TemporaryDirectory(dir=".", prefix="posix-together-") as name:
        directory = Path(name).resolve()
        pairs = [list(extent) for extent in EXTENTS]
        intent = f'[[file]]\npath = "events"\nbudget = {BUDGET}\ngap = 0\nwillneed = {pairs}\n'
        preloaded = Preloaded(library, queue, directory, intent)
        content = make_file(directory / "events", SIZE, 1)
        wait_until_settled(directory)
        if not evict(directory / "events"):
            print("this file system, or kernel, does not tell what is in the page cache")
            return 77
        checks = Checks(preloaded, content)
        together(checks)
        all_look_first(checks)
        at_once(checks)
        one_is_late(checks)
        one_reads_elsewhere(checks)
        left = left_of(directory / "events")
        checks.expect(not left, f"in shared memory is left {left}")
        for which in range(2):
            one_is_stopped(checks, which)
            one_is_killed(checks, which)
        for path in left_of(directory / "events"):
            path.unlink()
    print("\n".join(checks.failures) or "all as it should be")
    return 1 if checks.failures else 0


if __name__ == "__main__":
    sys.exit(main())

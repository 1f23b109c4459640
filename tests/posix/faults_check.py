"""Goal: what cannot be read, is answered in parts or is cut off while it is read ahead is met by a
program only where it asks for it, and then as without the library: the same counts, bytes, errors
and positions.

Method: the testbed over a file of which some bytes cannot be read, with a page cache and past it,
and one that answers reads in parts. A program makes the same calls without the library and with it,
only beside those bytes, and across their edges and in them: by descriptors, by a C stream and by a
mapping, where all of the file is declared, and where what cannot be read comes first. Records say
that the faults were met in reading ahead. Then files are cut off and made longer between two reads,
with requests under way, by one program, by two that read in step, and through the page cache.

usage: faults_check.py LIBRARY uring|threads FUSE_PROBE TESTBEDFS
"""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

from preloaded import TOLD_READS, Preloaded, evict, make_file, testbed, total, wait_until_settled

SIZE = 4_000_000
KIB = 1024
PAGE = 4096
BROKEN = [(640 * KIB, 64 * KIB), (2000 * KIB, 4 * KIB), (3000 * KIB + 100, 1)]
DECLARED = {"all": [[0, 0]], "the worst first": [*map(list, BROKEN), [0, 0]]}
LONGEST_READ = 20_000
FILE = "mount/broken.dat"
PIECE = 50_000
#: Reads before a file gets these lengths, one after the other.
CUTS = [
    (reads, lengths)
    for reads in (0, 1, 4)
    for lengths in ([0], [120_000], [10_000, 3_000_000], [300_000, 300_001], [5_000_000])
]


def is_broken(at: int, count: int) -> bool:
    """Whether a page of these bytes cannot be read."""
    return any(
        at < -(-(offset + length) // PAGE) * PAGE and offset // PAGE * PAGE < at + count
        for offset, length in BROKEN
    )


def calls_of(seed: int, beside: bool) -> list[str]:
    """Calls that read `file`, mostly one behind the other; only beside what cannot be read, or
    anywhere."""
    draw = random.Random(seed)
    calls, at = [f"open {FILE}"], 0
    while at < SIZE and len(calls) < 300:
        count = draw.choice([500, 4096, 30_000, 65_536, 150_000])
        if beside and is_broken(at, count):
            at += PAGE
            continue
        halves = f"{count // 3} {count - count // 3}"
        pairs = [f"lseek {at}", f"read {count}"], [f"lseek {at}", f"readv {halves}"]
        calls += draw.choice([*pairs, [f"pread {at} {count}"], [f"preadv {at} {halves}"]])
        at += count
        if not beside and draw.random() < 0.1:
            offset, length = draw.choice(BROKEN)
            at = draw.randrange(max(offset - 200_000, 0), offset + length)
    return calls


def stream_calls() -> list[str]:
    """A C stream that reads on, past each place that cannot be read."""
    calls = [f"stream {FILE}"]
    for count in (100, 300_000, 700_000, 600_000):
        calls += [f"fread {count}"] * 3
    for offset, length in BROKEN:
        calls += [f"fseek {offset - 50_000}", "fread 60000", "fread 10", f"fseek {offset + PAGE}"]
        calls += [f"fread {length}", f"fseek {-(-(offset + length) // PAGE) * PAGE}", "fread 90000"]
    return calls


def mapped_calls() -> list[str]:
    """Ends at what cannot be read, as a mapping does."""
    beside = [f"show {at} 30000" for at in range(0, SIZE, 60_000) if not is_broken(at, 30_000)]
    return [f"map {FILE}", *beside, f"show {BROKEN[0][0] - 9000} 20000", "show 0 1"]


class Checks:
    """What is wrong is added to `failures`."""

    def __init__(self, library: str, queue: str, directory: Path, testbedfs: str) -> None:
        self.preloaded = Preloaded(library, queue, directory, "")
        self.directory = directory
        self.testbedfs = testbedfs
        self.failures: list[str] = []

    def run(self, calls: list[str], with_library: bool = True) -> tuple[int, bytes, bytes]:
        evict(self.directory / FILE)
        return self.preloaded.run(TOLD_READS, with_library, "\n".join(calls))

    def declare(self, extents: list[list[int]], policy: str) -> None:
        (self.directory / "intent.toml").write_text(
            f'[[file]]\npath = "*.dat"\nwillneed = {extents}\nblock = "64KiB"\nbudget = "1MiB"\n'
            + (f'policy = "{policy}"\n' if policy else "")
        )

    def compare(self, calls: dict[str, list[str]], policy: str = "") -> None:
        """Each kind of calls, without the library and with it."""
        records = []
        for kind, lines in calls.items():
            plain = self.run(lines, with_library=False)
            is_met = b"EIO" in plain[1] or b"an error" in plain[1] or plain[0] < 0
            if plain[2] or is_met == ("beside" in kind):
                self.failures.append(f"{kind} without the library: {plain}")
            for order, extents in DECLARED.items():
                self.declare(extents, policy)
                answer = self.run(lines)
                records += self.preloaded.take_records()
                if answer != plain:
                    differ = zip(plain[1].splitlines(), answer[1].splitlines(), strict=False)
                    self.failures.append(
                        f"{kind}, {order} {policy}: status {plain[0]} and {answer[0]}, "
                        f"{answer[2]!r}: {[pair for pair in differ if pair[0] != pair[1]]}"
                    )
        failed, served = total(records, "requests_failed"), total(records, "bytes_served")
        fetched = total(records, "bytes_fetched")
        print(f"{failed} requests failed, {fetched} bytes fetched, {served} served: {[*calls]}")
        # What the page cache is advised of does not tell whether it came.
        is_told = policy == "" and "a stream" not in calls
        if fetched == 0 or (is_told and (failed == 0 or served == 0)):
            self.failures.append(f"no fault was met in reading ahead: {records}")

    def in_parts(self) -> None:
        """Reads that are answered in parts bring all bytes, one behind the other."""
        content = (self.directory / FILE).read_bytes()
        self.declare([[0, 0]], "")
        command = ["cat", str(self.directory / FILE)]
        code, said, errors = self.preloaded.run(command)
        records = self.preloaded.take_records()
        if (code, said) != (0, content) or total(records, "requests_failed") == 0:
            self.failures.append(f"in parts: {code}, {len(said)} bytes, {errors!r}: {records}")

    def cut_off(self, first: int, readers: int = 1, policy: str = "") -> None:
        """Files, from number `first` on, get other lengths while requests are under way."""
        self.declare([[0, 0]], policy)
        for number, (reads, lengths) in enumerate(CUTS, first):
            path = self.directory / f"mount/cut{number}.dat"
            content = path.read_bytes()
            evict(path)
            with contextlib.ExitStack() as running:
                programs = [
                    running.enter_context(self.preloaded.start(TOLD_READS)) for _ in range(readers)
                ]
                for program in programs:
                    self.ask(program, f"open {path}")
                at = 0
                for turn in range(20):
                    if turn == reads:
                        for length in lengths:
                            os.truncate(path, length)
                            content = content[:length].ljust(length, b"\0")
                    found = content[at : at + PIECE]
                    at += len(found)
                    right = f"{len(found)} bytes {zlib.crc32(found)}, at {at}"
                    for program in programs:
                        if (answer := self.ask(program, f"read {PIECE}")) != right:
                            self.failures.append(
                                f"cut to {lengths}, read {turn} of {readers} {policy}: {answer}, "
                                f"not {right}"
                            )
        records = self.preloaded.take_records()
        brought = "bytes_fetched" if policy else "bytes_served"
        if total(records, brought) == 0:
            self.failures.append(f"nothing was read ahead of files that were cut off: {records}")

    @staticmethod
    def ask(program: subprocess.Popen[str], call: str) -> str:
        """What a call gives."""
        assert program.stdin is not None
        assert program.stdout is not None
        program.stdin.write(call + "\n")
        program.stdin.flush()
        return program.stdout.readline().strip().removeprefix(f"{call}: ")


def main() -> int:
    library, queue, fuse_probe, testbedfs = sys.argv[1:5]
    if (probed := subprocess.run([fuse_probe], check=False).returncode) != 0:
        return probed
    with tempfile.TemporaryDirectory(dir=".", prefix="posix-faults-") as name:
        directory = Path(name).resolve()
        backing = directory / "backing"
        backing.mkdir()
        make_file(backing / "broken.dat", SIZE, 3)
        cutting: list[tuple[list[str], int, str]] = [
            ([], 1, ""),
            (["--page-cache"], 1, ""),
            (["--page-cache"], 2, ""),
            (["--page-cache"], 1, "page-cache"),
        ]
        for number in range(len(cutting) * len(CUTS)):
            make_file(backing / f"cut{number}.dat", SIZE // 4, number)
        checks = Checks(library, queue, directory, testbedfs)
        wait_until_settled(backing)
        unreadable = [word for at, n in BROKEN for word in ("--unreadable", f"{at}+{n}")]
        calls = {"beside": calls_of(1, beside=True), "anywhere": calls_of(2, beside=False)}
        others = {"a stream": stream_calls(), "a mapping": mapped_calls()}
        with testbed(testbedfs, backing, unreadable):
            checks.compare(calls)
        with testbed(testbedfs, backing, [*unreadable, "--page-cache"]):
            checks.compare(calls)
            checks.compare(calls, "page-cache")
            checks.compare(others)
        with testbed(testbedfs, backing, ["--longest-read", str(LONGEST_READ)]):
            checks.in_parts()
        for number, (options, readers, policy) in enumerate(cutting):
            with testbed(testbedfs, backing, options):
                checks.cut_off(number * len(CUTS), readers, policy)
    print("\n".join(checks.failures) or "all as it should be")
    return 1 if checks.failures else 0


if __name__ == "__main__":
    sys.exit(main())

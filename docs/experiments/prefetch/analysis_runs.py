"""Measures the analysis workload on an emulated parallel file system: alone, read ahead by Forebay,
and with wrong declarations. One JSON document a round."""

from __future__ import annotations

import json
import os
import platform
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "docs" / "experiments"))

import awake as awake  # noqa: E402  modules of this folder take it from here

LATENCY_MS = 3
BANDWIDTH = 400_000_000  # bytes a second
SLOTS = 10  # requests in service at once

SIZE = 1280 << 20
SETTLING_S = 2.1  # core/storage/file_version.hpp: a file written just now is not read ahead
COMPUTE_US = {"compute-bound": 1000, "I/O-bound": 0}


@dataclass(frozen=True)
class Case:
    """One way of reading the same bytes."""

    name: str
    intent: str | None = None  # of the file names below


CASES = [
    Case("no hints"),
    Case("Forebay, exact extents", intent="exact.toml"),
    Case("Forebay, wrong extents", intent="wrong.toml"),
]


@dataclass(frozen=True)
class Tools:
    """What is measured with."""

    forebay: Path
    analysis: Path


class Testbed:
    """One emulated server, mounted; the file lies in memory behind it."""

    def __init__(self, tools: Tools, place: Path, *options: str) -> None:
        self._tools = tools
        self.mount = place / "mount"
        paces = ("--servers", "1", "--latency", f"{LATENCY_MS}ms", "--slots", str(SLOTS))
        self._command("up", *paces, *options)

    def _command(self, verb: str, *options: str) -> str:
        words = [self._tools.forebay, "testbed", verb, "--mount", self.mount]
        if verb == "up":
            words += ["--bandwidth", f"{BANDWIDTH / 1e6:g}MB/s", "--stripe", "1GiB"]
        words += options
        done = subprocess.run([*map(str, words)], capture_output=True, text=True, check=True)
        return done.stdout

    def served(self) -> tuple[int, int]:
        """Read requests and bytes that the server has served."""
        (found,) = json.loads(self._command("status", "--json"))
        (server,) = found["servers"]
        return server["read_requests"], server["read_bytes"]

    def set_read_ahead(self, count: int) -> None:
        """How far the kernel reads ahead, in bytes. Needs root, and a page cache."""
        device = self.mount.stat().st_dev
        place = Path(f"/sys/class/bdi/{os.major(device)}:{os.minor(device)}/read_ahead_kb")
        place.write_text(str(count >> 10))
        if int(place.read_text()) << 10 != count:
            raise RuntimeError(f"{place} did not take {count >> 10}")

    def within(self, command: list[str]) -> list[str]:
        """The command: nothing needs to be said for it to use the testbed."""
        return command

    def down(self) -> None:
        self._command("down")


@contextmanager
def testbed(tools: Tools, memory: Path, *options: str) -> Iterator[Testbed]:
    """Up for the time, in a fresh directory below `memory`; with more `options` of `up`."""
    place = Path(tempfile.mkdtemp(prefix="forebay-experiment-", dir=memory))
    try:
        up = Testbed(tools, place, *options)
        try:
            yield up
        finally:
            up.down()
    finally:
        shutil.rmtree(place)


def write_wrong(exact: Path, wrong: Path, size: int) -> None:
    """As many extents of the same lengths, in the gaps between those that are read."""
    pairs = [tuple(map(int, found)) for found in re.findall(r"\[(\d+), (\d+)\]", exact.read_text())]
    draw = random.Random(1)
    rising = sorted(pairs)
    gaps = [
        (offset + length, after[0])
        for (offset, length), after in zip(rising, [*rising[1:], (size, 0)], strict=True)
    ]
    lines = ["[[file]]", "path = '*'", "willneed = ["]
    for begin, end in gaps:
        if end - begin > 8192:
            length = min(end - begin, draw.choice(pairs)[1])
            lines.append(f"  [{begin}, {length}],")
    wrong.write_text("\n".join([*lines, "]"]) + "\n")


# What a measurement depends on; a change elsewhere leaves the commit's name true.
_CODE = ("CMakeLists.txt", "CMakePresets.json", "cmake", "core", "proxies", "testbed", "toolkit")


def measure_round(tools: Tools, memory: Path, kind: str, shuffle: random.Random) -> dict[str, Any]:
    """Every case once, in shuffled order, on an empty page cache each time."""
    options = ["--compute-us", str(COMPUTE_US[kind])]
    with testbed(tools, memory) as bed, tempfile.TemporaryDirectory() as name:
        file = bed.mount / "events"
        intents = Path(name)
        analysis = [str(tools.analysis), str(file)]
        subprocess.run([*analysis, "--create"], check=True)
        subprocess.run([*analysis, "--intent", str(intents / "exact.toml")], check=True)
        write_wrong(intents / "exact.toml", intents / "wrong.toml", SIZE)
        time.sleep(SETTLING_S)
        order = list(CASES)
        shuffle.shuffle(order)
        runs = [_run(tools, bed, case, intents, [*analysis, *options]) for case in order]
    return {
        "kind": kind,
        **circumstances(),
        "compute_seconds": COMPUTE_US[kind] * 1e-6,
        "runs": runs,
    }


def circumstances() -> dict[str, Any]:
    """When and where it is measured, and what."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "kernel": platform.release(),
        "cores": len(os.sched_getaffinity(0)),
        "load_average": os.getloadavg()[0],
        "kept_awake": awake.is_kept(),
        "commit": subprocess.run(
            ["git", "-C", str(ROOT), "log", "-1", "--format=%h", "--", *_CODE],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip(),
    }


TOLD = re.compile(r"read (\d+) bytes in (\d+) reads: ([\d.]+) s, of which ([\d.]+) s")


def what_was_read(told: tuple[str, ...]) -> dict[str, Any]:
    """Of one process of the analysis program, as TOLD finds it."""
    count, reads, seconds, in_reads = told
    return {
        "bytes": int(count),
        "reads": int(reads),
        "seconds": float(seconds),
        "seconds_in_reads": float(in_reads),
    }


def evict(path: Path) -> None:
    """Empties the page cache of this file."""
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


def with_intent(tools: Tools, intent: Path, summary: Path, command: list[str]) -> list[str]:
    """The command under `forebay run`, which writes `summary`."""
    return [
        *(str(tools.forebay), "run", "--quiet", "--json", str(summary)),
        *("--intent", str(intent), "--", *command),
    ]


def prefetched(summary: Path) -> list[dict[str, Any]]:
    """What a summary says of files that were read ahead."""
    found: list[dict[str, Any]] = json.loads(summary.read_text())["prefetch"]["files"]
    return found


def observe(
    name: str,
    told: re.Pattern[str],
    served: Callable[[], tuple[int, int]],
    command: list[str],
    summary: Path | None,
    processes: int = 1,
) -> tuple[list[tuple[str, ...]], dict[str, Any]]:
    """Runs a program of so many processes that each say that all bytes are right. Returns what
    `told` finds in the words of each, and what was `served` meanwhile, with what `forebay run` left
    in `summary`, if it did. Raises RuntimeError if it fails; `name` is for that."""
    before = served()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    after = served()
    said = told.findall(done.stdout)
    right = done.stdout.count("all bytes are right")
    if done.returncode != 0 or len(said) != processes or right != processes:
        raise RuntimeError(f"{name}: {done.returncode}, {done.stdout} {done.stderr}")
    seen: dict[str, Any] = {
        "requests": after[0] - before[0],
        "bytes_served": after[1] - before[1],
    }
    if summary is not None:
        seen["prefetch"] = prefetched(summary)
    return said, seen


def _run(
    tools: Tools, bed: Testbed, case: Case, intents: Path, command: list[str]
) -> dict[str, Any]:
    evict(Path(command[1]))
    summary = intents / "summary.json" if case.intent is not None else None
    if case.intent is not None and summary is not None:
        command = with_intent(tools, intents / case.intent, summary, command)
    (said,), seen = observe(case.name, TOLD, bed.served, command, summary)
    return {"case": case.name, **what_was_read(said), **seen}

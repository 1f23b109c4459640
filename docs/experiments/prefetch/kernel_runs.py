"""Measures the analysis workload on an emulated parallel file system with a page cache, with much
memory or little, and on a throttled disk: with the kernel's read-ahead at several settings, with
the published method tuned by hand, and read ahead by Forebay; one process and several on one file.
One JSON document a round."""

from __future__ import annotations

import random
import subprocess
import tempfile
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from analysis_runs import (
    COMPUTE_US,
    SETTLING_S,
    TOLD,
    Tools,
    circumstances,
    evict,
    observe,
    testbed,
    what_was_read,
    with_intent,
    write_wrong,
)
from control_groups import control_group, entering
from page_cache import PeakPages
from throttled_ext4 import throttled_ext4


@dataclass(frozen=True)
class Workload:
    """Of the analysis program."""

    size: int  # bytes
    reads: int
    backward: int


PUBLISHED = Workload(1280 << 20, 2627, 97)
# A fifth of it: a round of all runs takes minutes, and what is read is still 15 times
# the budget.
SMALL = Workload(256 << 20, 525, 19)
BUDGET = 8 << 20  # docs/formats/intent.md: of one opening, where nothing else is said

KERNEL_DEFAULT = 128 << 10
KERNEL_SETTINGS = (KERNEL_DEFAULT, 1 << 20, 4 << 20, 16 << 20)
MERCURY_READ_AHEAD = 20 << 20


@dataclass(frozen=True)
class Case:
    """One way of reading the same bytes."""

    name: str
    read_ahead: int = KERNEL_DEFAULT  # of the kernel, bytes
    intent: str | None = None  # of the file names below


def _size(count: int) -> str:
    return f"{count >> 20} MiB" if count >= 1 << 20 else f"{count >> 10} KiB"


KERNEL = [Case(f"kernel, {_size(setting)}", setting) for setting in KERNEL_SETTINGS]
MERCURY = Case("published method, tuned by hand", MERCURY_READ_AHEAD, "mercury.toml")
EXACT = Case("Forebay", intent="exact.toml")
SHARED = Case("Forebay, shared memory", intent="exact.toml")  # of several processes
PAGES = Case("Forebay, through the page cache", intent="pages.toml")
WRONG = Case("Forebay, wrong extents", intent="wrong.toml")
WRONG_PAGES = Case("Forebay, wrong extents, through the page cache", intent="wrong-pages.toml")
JOINED = Case("Forebay, gap = 256 KiB", intent="joined.toml")
APART = Case("Forebay, gap = 0", intent="apart.toml")
PAGES_JOINED = Case("Forebay, through the page cache, gap = 256 KiB", intent="pages-joined.toml")

# By processes on the one file. Several share memory, or meet in the page cache.
_SHARING = [*KERNEL, MERCURY, SHARED, PAGES, WRONG]
CASES = {
    1: [*KERNEL, MERCURY, EXACT, PAGES, WRONG],
    2: _SHARING,
    4: [*_SHARING, WRONG_PAGES],
    8: _SHARING,
}
EXT4_CASES = {
    1: [*KERNEL, MERCURY, EXACT, JOINED, APART, PAGES, WRONG],
    2: [*KERNEL, SHARED, PAGES, WRONG],
    4: [*KERNEL, MERCURY, SHARED, PAGES, PAGES_JOINED, WRONG, WRONG_PAGES],
    8: [*KERNEL, SHARED, PAGES, WRONG],
}


class Place(Protocol):
    """Where the file is."""

    mount: Path

    def set_read_ahead(self, count: int) -> None: ...
    def served(self) -> tuple[int, int]: ...
    def within(self, command: list[str]) -> list[str]: ...


class LittleMemory:
    """A place whose readers, and what the page cache holds of their files, are limited."""

    def __init__(self, place: Place, group: Path) -> None:
        self.mount = place.mount
        self.set_read_ahead = place.set_read_ahead
        self.served = place.served
        self._place = place
        self._group = group

    def within(self, command: list[str]) -> list[str]:
        """The command, limited."""
        return entering(self._group, self._place.within(command))


def measure_round(
    tools: Tools,
    memory: Path,
    workload: Workload,
    processes: Collection[int],
    shuffle: random.Random,
) -> dict[str, Any]:
    """Every case of so many processes once, in shuffled order, on an empty page cache each time.
    Needs root, which sets the kernel's read-ahead."""
    with testbed(tools, memory, "--page-cache") as bed:
        return measure_at(tools, bed, workload, _of(processes, CASES), shuffle)


def measure_limited(
    tools: Tools,
    memory: Path,
    workload: Workload,
    limit: int,
    processes: Collection[int],
    shuffle: random.Random,
) -> dict[str, Any]:
    """The same by programs that have `limit` bytes of memory, all together and the page cache
    included. Raises CannotBeDoneError."""
    with (
        testbed(tools, memory, "--page-cache") as bed,
        control_group("memory", {"memory.limit_in_bytes": str(limit)}) as group,
    ):
        limited = LittleMemory(bed, group)
        found = measure_at(tools, limited, workload, _of(processes, CASES), shuffle)
    return {**found, "memory_limit": limit}


def measure_ext4(
    tools: Tools, memory: Path, processes: Collection[int], shuffle: random.Random
) -> dict[str, Any]:
    """The published workload on a throttled disk. Raises CannotBeDoneError."""
    with throttled_ext4(memory, PUBLISHED.size) as disk:
        return measure_at(tools, disk, PUBLISHED, _of(processes, EXT4_CASES), shuffle)


def _of(processes: Collection[int], cases: dict[int, list[Case]]) -> dict[int, list[Case]]:
    return {count: some for count, some in cases.items() if count in processes}


def measure_at(
    tools: Tools,
    place: Place,
    workload: Workload,
    cases: dict[int, list[Case]],
    shuffle: random.Random,
) -> dict[str, Any]:
    """Every case once, in shuffled order."""
    with tempfile.TemporaryDirectory() as name:
        intents = Path(name)
        shape = ["--size", str(workload.size), "--reads", str(workload.reads)]
        shape += ["--backward", str(workload.backward)]
        analysis = [str(tools.analysis), str(place.mount / "events"), *shape]
        subprocess.run([*analysis, "--create"], check=True)
        subprocess.run([*analysis, "--intent", str(intents / "exact.toml")], check=True)
        _write_intents(intents, workload.size)
        time.sleep(SETTLING_S)
        todo = [
            (kind, processes, case)
            for kind in COMPUTE_US
            for processes, some in cases.items()
            for case in some
        ]
        shuffle.shuffle(todo)
        runs = [
            {
                "kind": kind,
                "processes": processes,
                **_run(
                    tools,
                    place,
                    case,
                    intents,
                    [*analysis, "--compute-us", str(COMPUTE_US[kind])],
                    processes,
                ),
            }
            for kind, processes, case in todo
        ]
    return {**circumstances(), "runs": runs}


def _write_intents(intents: Path, size: int) -> None:
    exact = intents / "exact.toml"
    wrong = intents / "wrong.toml"
    write_wrong(exact, wrong, size)
    through_pages = 'policy = "page-cache"\n'
    (intents / "pages.toml").write_text(exact.read_text() + through_pages)
    (intents / "wrong-pages.toml").write_text(wrong.read_text() + through_pages)
    (intents / "apart.toml").write_text(exact.read_text() + "gap = 0\n")
    (intents / "joined.toml").write_text(exact.read_text() + 'gap = "256KiB"\n')
    (intents / "pages-joined.toml").write_text(
        exact.read_text() + through_pages + 'gap = "256KiB"\n'
    )
    # 32 blocks that are not given up, 8 of them ahead: what serves this workload best.
    (intents / "mercury.toml").write_text(
        exact.read_text() + 'policy = "mercury"\nblock = "4MiB"\nbudget = "128MiB"\nahead = 8\n'
    )


def _run(
    tools: Tools,
    place: Place,
    case: Case,
    intents: Path,
    command: list[str],
    processes: int,
) -> dict[str, Any]:
    place.set_read_ahead(case.read_ahead)
    file = Path(command[1])
    evict(file)
    # The shell waits for all, and fails if one does.
    together = 'n=$1; shift; for i in $(seq "$n"); do "$@" & all="$all $!"; done; '
    together += "for one in $all; do wait $one || exit; done"
    command = place.within(["sh", "-c", together, "sh", str(processes), *command])
    summary = intents / "summary.json" if case.intent is not None else None
    if case.intent is not None and summary is not None:
        command = with_intent(tools, intents / case.intent, summary, command)
    with PeakPages(file) as pages:
        told, seen = observe(case.name, TOLD, place.served, command, summary, processes)
    # All read the same; the slowest counts.
    slowest = max(map(what_was_read, told), key=lambda read: read["seconds"])
    return {"case": case.name, **slowest, **seen, "page_cache_peak": pages.peak}

"""Measures the analysis workload on an emulated parallel file system with a page cache: with the
kernel's own read-ahead at several settings, with the published method tuned by hand, and read ahead
by Forebay; one process and several on one file. One JSON document a round."""

from __future__ import annotations

import os
import random
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis_runs import (
    COMPUTE_US,
    SETTLING_S,
    TOLD,
    Testbed,
    Tools,
    circumstances,
    evict,
    prefetched,
    testbed,
    with_intent,
    write_wrong,
)
from page_cache import PeakPages

# A fifth of the published workload: a round of all runs takes a minute and a half, and what is read
# is still 15 times the budget.
SIZE = 256 << 20
READS = 525
BACKWARD = 19
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
PAGES = Case("Forebay, through the page cache", intent="pages.toml")
WRONG = Case("Forebay, wrong extents", intent="wrong.toml")
WRONG_PAGES = Case("Forebay, wrong extents", intent="wrong-pages.toml")

# By processes on the one file. Several share through the page cache.
CASES = {
    1: [*KERNEL, MERCURY, EXACT, PAGES, WRONG],
    4: [*KERNEL, MERCURY, PAGES, WRONG_PAGES],
}


def measure_round(tools: Tools, memory: Path, shuffle: random.Random) -> dict[str, Any]:
    """Every case once, in shuffled order, on an empty page cache each time. Needs root, which sets
    the kernel's read-ahead."""
    with (
        testbed(tools, memory, "--page-cache") as bed,
        tempfile.TemporaryDirectory() as name,
    ):
        intents = Path(name)
        shape = ["--size", str(SIZE), "--reads", str(READS), "--backward", str(BACKWARD)]
        analysis = [str(tools.analysis), str(bed.mount / "events"), *shape]
        subprocess.run([*analysis, "--create"], check=True)
        subprocess.run([*analysis, "--intent", str(intents / "exact.toml")], check=True)
        _write_intents(intents)
        time.sleep(SETTLING_S)
        todo = [
            (kind, processes, case)
            for kind in COMPUTE_US
            for processes, cases in CASES.items()
            for case in cases
        ]
        shuffle.shuffle(todo)
        runs = [
            {
                "kind": kind,
                "processes": processes,
                **_run(
                    tools,
                    bed,
                    case,
                    intents,
                    [*analysis, "--compute-us", str(COMPUTE_US[kind])],
                    processes,
                ),
            }
            for kind, processes, case in todo
        ]
    return {**circumstances(), "runs": runs}


def _write_intents(intents: Path) -> None:
    exact = intents / "exact.toml"
    wrong = intents / "wrong.toml"
    write_wrong(exact, wrong, SIZE)
    through_pages = 'policy = "page-cache"\n'
    (intents / "pages.toml").write_text(exact.read_text() + through_pages)
    (intents / "wrong-pages.toml").write_text(wrong.read_text() + through_pages)
    # 32 blocks that are not given up, 8 of them ahead: what serves this workload best.
    (intents / "mercury.toml").write_text(
        exact.read_text() + 'policy = "mercury"\nblock = "4MiB"\nbudget = "128MiB"\nahead = 8\n'
    )


def set_read_ahead(mount: Path, count: int) -> None:
    """Of the kernel on this file system, in bytes. Needs root."""
    device = mount.stat().st_dev
    place = Path(f"/sys/class/bdi/{os.major(device)}:{os.minor(device)}/read_ahead_kb")
    place.write_text(str(count >> 10))
    if int(place.read_text()) << 10 != count:
        raise RuntimeError(f"{place} did not take {count >> 10}")


def _run(
    tools: Tools,
    bed: Testbed,
    case: Case,
    intents: Path,
    command: list[str],
    processes: int,
) -> dict[str, Any]:
    set_read_ahead(bed.mount, case.read_ahead)
    file = Path(command[1])
    evict(file)
    summary = intents / "summary.json"
    # The shell waits for all, and fails if one does.
    together = 'n=$1; shift; for i in $(seq "$n"); do "$@" & all="$all $!"; done; '
    together += "for one in $all; do wait $one || exit; done"
    command = ["sh", "-c", together, "sh", str(processes), *command]
    if case.intent is not None:
        command = with_intent(tools, intents / case.intent, summary, command)
    before = bed.served()
    with PeakPages(file) as pages:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    after = bed.served()
    told = TOLD.findall(done.stdout)
    right = done.stdout.count("all bytes are right")
    if done.returncode != 0 or len(told) != processes or right != processes:
        raise RuntimeError(f"{case.name}: {done.returncode}, {done.stdout} {done.stderr}")
    slowest = max(told, key=lambda one: float(one[2]))
    result: dict[str, Any] = {
        "case": case.name,
        "bytes": int(slowest[0]),  # of each process: all read the same
        "reads": int(slowest[1]),
        "seconds": float(slowest[2]),
        "seconds_in_reads": float(slowest[3]),
        "requests": after[0] - before[0],
        "bytes_served": after[1] - before[1],
        "page_cache_peak": pages.peak,
    }
    if case.intent is not None:
        result["prefetch"] = prefetched(summary)
    return result

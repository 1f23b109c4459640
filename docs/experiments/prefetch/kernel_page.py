"""The page that compares reading ahead with the kernel's, made of the results."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from analysis_runs import BANDWIDTH, COMPUTE_US, LATENCY_MS, SLOTS
from kernel_picture import Panel, draw_by_processes, drawn
from kernel_runs import (
    BUDGET,
    CASES,
    EXACT,
    EXT4_CASES,
    JOINED,
    KERNEL,
    MERCURY,
    PAGES,
    PAGES_JOINED,
    PUBLISHED,
    SHARED,
    SMALL,
    WRONG,
    WRONG_PAGES,
    Case,
)
from page_claims import (
    MADE_BY,
    NOT_MEASURED,
    Claim,
    bar_of,
    bound,
    circumstances_of,
    memory_of,
    notes_of,
    row_of,
    stored_rounds,
    table_of,
)
from throttled_ext4 import BANDWIDTH as DISK_BANDWIDTH
from throttled_ext4 import OPERATIONS

DEFAULT = KERNEL[0].name

Run = dict[str, Any]


@dataclass(frozen=True)
class Subject:
    """What a page is about."""

    stem: str  # of its name and of its results'
    title: str
    place: str  # one or two sentences
    bandwidth: int  # bytes a second
    cases: dict[int, list[Case]]  # by processes
    storage: str = "server"
    ways: str = ""  # more about Forebay's


_BED = (
    "[`analysis`](../../guide/proxies.md) on the [testbed](../../guide/command.md#testbed) "
    f"with a page cache and one server: {LATENCY_MS} ms a request, {BANDWIDTH / 1e6:g} MB/s, "
    f"{SLOTS} requests in service."
)
_ALL_READ = "Several processes all read the same."
ON_TESTBED = (
    f"{_BED} The file has {SMALL.size >> 20} MiB, a fifth of the published "
    f"workload in size and in reads: what is read is 15 times the {BUDGET >> 20} MiB of "
    f"Forebay's budget, and a round of all runs takes minutes. {_ALL_READ}"
)
IN_FULL = (
    f"{_BED} The file has {PUBLISHED.size >> 20} MiB, and {PUBLISHED.reads} parts of it are read, "
    f"{PUBLISHED.backward} of them before the one before: as published, and five times as long as "
    f"[against the kernel](kernel.md), where all else is the same. {_ALL_READ}"
)
_LITTLE = (
    "The programs, with what the page cache holds of their file, have a quarter of its size (a "
    "control group of version 1, `memory.limit_in_bytes`)."
)
KERNEL_PAGE = Subject(
    "kernel",
    "Reading ahead: against the kernel and the published method",
    ON_TESTBED,
    BANDWIDTH,
    CASES,
)
FULL_PAGE = Subject(
    "full",
    "Reading ahead: the published workload in full",
    IN_FULL,
    BANDWIDTH,
    CASES,
)
MEMORY_PAGE = Subject(
    "memory",
    "Reading ahead: with little memory",
    f"{ON_TESTBED} {_LITTLE}",
    BANDWIDTH,
    CASES,
)
FULL_MEMORY_PAGE = Subject(
    "full-memory",
    "Reading ahead: the published workload with little memory",
    f"{IN_FULL} {_LITTLE}",
    BANDWIDTH,
    CASES,
)
EXT4_PAGE = Subject(
    "ext4",
    "Reading ahead: on a throttled disk",
    "[`analysis`](../../guide/proxies.md) on ext4 in a file, on a loop device that the kernel "
    f"throttles for its readers to {OPERATIONS} operations a second and "
    f"{DISK_BANDWIDTH / 1e6:g} MB/s (a control group of version 1, `blkio.throttle`). The file has "
    f"{PUBLISHED.size >> 20} MiB, as published. Several processes all read the same.",
    DISK_BANDWIDTH,
    EXT4_CASES,
    "device",
    "; gaps are fetched along as measured (`gap = auto`), if nothing else is said",
)
SUBJECTS = (KERNEL_PAGE, FULL_PAGE, MEMORY_PAGE, FULL_MEMORY_PAGE, EXT4_PAGE)


def write(output: Path, subject: Subject = KERNEL_PAGE) -> Path:
    """Writes the page of a subject and its pictures. Returns the page's path."""
    rounds = stored_rounds(output, subject.stem)
    lines = [
        f"# {subject.title}",
        "",
        MADE_BY,
        "",
        subject.place,
        "",
        "- *kernel*: no hints; how far the kernel reads ahead, at most. 128 KiB is its default.",
        f'- *{MERCURY.name}*: `policy = "mercury"`, blocks of 4 MiB, 8 announced ahead, 32 kept, '
        "the kernel's read-ahead raised to 20 MiB, without which it announces in vain.",
        "- *Forebay*: exact extents, read into memory of the process, past the page cache; "
        "*shared memory*: the same of several processes, which have that memory in common; "
        '*through the page cache*: `policy = "page-cache"`, which several processes share, in '
        "pieces as long as the kernel takes advice; *wrong extents*: as many, in the gaps between "
        f"those that are read{subject.ways}.",
        "",
        "The page cache is empty before each run, the runs of a round are in shuffled order. Times "
        "are the programs' own, from the first read to the last, of the slowest process; medians, "
        "least and most in brackets. Every byte that was read is checked. *page cache* is the most "
        "that it held of the file when looked at, 20 times a second; *memory* that of Forebay's "
        "buffers.",
    ]
    if rounds:
        lines += ["", f"Rounds: {len(rounds)}, {circumstances_of(rounds, 3)}"]
        lines += _measured(output, subject, [run for one in rounds for run in one["runs"]])
    lines += notes_of(output, subject.stem)
    page = output / f"{subject.stem}.md"
    page.write_text("\n".join(lines) + "\n")
    return page


def _measured(output: Path, subject: Subject, runs: list[Run]) -> list[str]:
    """Writes the pictures. Returns the part of the page that shows them, and the tables."""
    kinds: dict[str, dict[int, Panel]] = {}
    panels = []
    tables = []
    for processes in subject.cases:
        for kind in COMPUTE_US:
            some = [run for run in runs if run["kind"] == kind and run["processes"] == processes]
            if not some:  # Not measured yet, so many processes.
                continue
            table, panel = _part(subject, kind, processes, some)
            tables += ["", *table]
            panels.append(panel)
            kinds.setdefault(kind, {})[processes] = panel
    lines = []
    if any(len(by_processes) > 1 for by_processes in kinds.values()):
        name = f"{subject.stem}-processes.svg"
        draw_by_processes(output / name, kinds, subject.storage)
        lines += ["", f"![Run time and requests by processes]({name})"]
    return [*lines, *drawn(output, subject.stem, panels, subject.storage), *tables]


def _part(subject: Subject, kind: str, processes: int, runs: list[Run]) -> tuple[list[str], Panel]:
    needed, reads = runs[0]["bytes"], runs[0]["reads"]
    # Outside of reads: waiting as if it computed, and checking the bytes.
    computing = median(run["seconds"] - run["seconds_in_reads"] for run in runs)
    fastest = bound(computing, needed, subject.bandwidth)
    title = f"{kind}, " + ("one process" if processes == 1 else f"{processes} processes")
    lines = [
        f"## {title}",
        "",
        f"{reads} reads of {needed / 1e6:.0f} MB in all"
        + (", each" if processes > 1 else "")
        + f", {computing:.2f} s of computing and checking; "
        f"what nobody can beat is {fastest:.2f} s.",
        "",
        f"| case | seconds | requests | MB read at the {subject.storage} | page cache, MB "
        "| memory, MB |",
        "|---|---|---|---|---|---|",
    ]
    by_case: dict[str, list[Run]] = {}
    bars = []
    for name in [case.name for case in subject.cases[processes]]:
        found = [run for run in runs if run["case"] == name]
        if not found:
            lines.append(f"| {name} | {NOT_MEASURED} | | | | |")
            continue
        by_case[name] = found
        bars.append(bar_of(name, found))
        lines.append(
            f"{row_of(name, found)} {max(run['page_cache_peak'] for run in found) / 1e6:.0f} "
            f"| {max(map(memory_of, found)) / 1e6:.0f} |"
        )
    rounds = min(len(found) for found in by_case.values())
    claims_of = _ext4_claims if subject is EXT4_PAGE else _claims
    claims = claims_of(kind, processes, by_case, fastest, needed)
    claims += _wrong_claims(subject.cases[processes], by_case)
    lines += table_of(claims, rounds)
    return lines, Panel(title, fastest, needed / 1e6, bars)


def _claims(
    kind: str, processes: int, by_case: dict[str, list[Run]], nobody: float, needed: int
) -> list[Claim]:
    seconds = {name: median(run["seconds"] for run in runs) for name, runs in by_case.items()}
    served = {name: median(run["bytes_served"] for run in runs) for name, runs in by_case.items()}
    forebay = next(case.name for case in (EXACT, SHARED, PAGES) if case.name in by_case)
    best = min(KERNEL, key=lambda case: seconds[case.name]).name
    holds = max(memory_of(run) + run["page_cache_peak"] for run in by_case[forebay])
    default, fastest, published = (seconds[name] for name in (DEFAULT, best, MERCURY.name))
    time = seconds[forebay]
    claims = [
        Claim("time / what nobody can beat", time / nobody, 1.15),
        Claim(f"{DEFAULT} / Forebay", default / time, 6, is_least=True, reach=default / nobody),
        Claim(
            f"best of the kernel ({best.removeprefix('kernel, ')}) / Forebay",
            fastest / time,
            4,
            is_least=True,
            reach=fastest / nobody,
        ),
    ]
    if kind == "I/O-bound":
        fewer = served[MERCURY.name] / served[forebay]
        claims += [
            Claim(
                "published method / Forebay, time",
                published / time,
                2,
                is_least=True,
                reach=published / nobody,
            ),
            Claim("published method / Forebay, bytes", fewer, 2, is_least=True),
        ]
    claims += [
        Claim("bytes read / bytes needed", served[forebay] / needed, 1.05),
        Claim(
            f"memory and page cache / {BUDGET >> 20} MiB a process", holds / BUDGET / processes, 1
        ),
    ]
    if PAGES.name in by_case and forebay != PAGES.name:
        way = PAGES.name.removeprefix("Forebay, ")
        held = max(run["page_cache_peak"] for run in by_case[PAGES.name])  # its memory lies there
        claims += [
            Claim(f"{way}: bytes read / bytes needed", served[PAGES.name] / needed, 1.05),
            Claim(
                f"{way}: held there / {BUDGET >> 20} MiB a process", held / BUDGET / processes, 1
            ),
        ]
    return claims


def _wrong_claims(cases: list[Case], by_case: dict[str, list[Run]]) -> list[Claim]:
    """What wrong hints cost, by each way that is measured or has yet to be."""
    seconds = {name: median(run["seconds"] for run in runs) for name, runs in by_case.items()}
    return [
        Claim(
            f"{case.name.removeprefix('Forebay, ')} / no hints",
            seconds[case.name] / seconds[DEFAULT] if case.name in seconds else None,
            1.1,
        )
        for case in (WRONG, WRONG_PAGES)
        if case in cases
    ]


def _ext4_claims(
    kind: str, processes: int, by_case: dict[str, list[Run]], bound: float, needed: int
) -> list[Claim]:
    seconds = {name: median(run["seconds"] for run in runs) for name, runs in by_case.items()}
    best = min(KERNEL, key=lambda case: seconds[case.name]).name
    of_kernel = f"best of the kernel ({best.removeprefix('kernel, ')})"
    others = (JOINED,) if processes == 1 else (SHARED, PAGES, PAGES_JOINED)
    ways = [case.name for case in (EXACT, *others) if case.name in by_case]
    claims = [
        Claim(
            f"{of_kernel} / {way}",
            seconds[best] / seconds[way],
            1.5,
            is_least=True,
            reach=seconds[best] / bound,
        )
        for way in ways
    ]
    holds = max(memory_of(run) + run["page_cache_peak"] for run in by_case[ways[0]])
    served = {way: median(run["bytes_served"] for run in by_case[way]) / needed for way in ways}
    claims += [Claim(f"{way}: bytes read / bytes needed", served[way], 1.05) for way in ways]
    what = f"memory and page cache / {BUDGET >> 20} MiB a process"
    return [*claims, Claim(what, holds / BUDGET / processes, 1)]

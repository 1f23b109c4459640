"""The page that compares reading ahead with the kernel's, made of the results."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import Any

from analysis_runs import BANDWIDTH, COMPUTE_US, LATENCY_MS, SLOTS
from kernel_picture import Bar, Panel, draw
from kernel_runs import BUDGET, CASES, EXACT, KERNEL, MERCURY, PAGES, SIZE, WRONG
from page_claims import MADE_BY, Claim, bound, circumstances_of, memory_of, spread, table_of

DEFAULT = KERNEL[0].name

Run = dict[str, Any]


def write(output: Path) -> Path:
    """Writes kernel.md and kernel.svg. Returns the page's path."""
    found = sorted((output / "results").glob("kernel-*.json"))
    rounds = [json.loads(path.read_text()) for path in found]
    lines = [
        "# Reading ahead: against the kernel and the published method",
        "",
        MADE_BY,
        "",
        "[`analysis`](../../guide/proxies.md) on the [testbed](../../guide/command.md#testbed) "
        f"with a page cache and one server: {LATENCY_MS} ms a request, {BANDWIDTH / 1e6:g} MB/s, "
        f"{SLOTS} requests in service. The file has {SIZE >> 20} MiB, a fifth of the published "
        f"workload in size and in reads: what is read is 15 times the {BUDGET >> 20} MiB of "
        "Forebay's budget, and a round of all runs takes a minute and a half. Several processes "
        "all read the same.",
        "",
        "- *kernel*: no hints; how far the kernel reads ahead, at most. 128 KiB is its default.",
        f'- *{MERCURY.name}*: `policy = "mercury"`, blocks of 4 MiB, 8 announced ahead, 32 kept, '
        "the kernel's read-ahead raised to 20 MiB, without which it announces in vain.",
        "- *Forebay*: exact extents, read into memory of the process, past the page cache; "
        '*through the page cache*: `policy = "page-cache"`, which several processes share, in '
        "pieces as long as the kernel takes advice; *wrong extents*: as many, in the "
        "gaps between those that are read.",
        "",
        "The page cache is empty before each run, the runs of a round are in shuffled order. Times "
        "are the programs' own, from the first read to the last, of the slowest process; medians, "
        "least and most in brackets. Every byte that was read is checked. *page cache* is the most "
        "that it held of the file when looked at, 20 times a second; *memory* that of Forebay's "
        "buffers.",
    ]
    panels = []
    if rounds:
        lines += [
            "",
            f"Rounds: {len(rounds)}, {circumstances_of(rounds, 3)}",
            "",
            "![Run time and bytes by case](kernel.svg)",
        ]
        for processes in CASES:
            for kind in COMPUTE_US:
                lines.append("")
                runs = [
                    run
                    for one in rounds
                    for run in one["runs"]
                    if run["kind"] == kind and run["processes"] == processes
                ]
                part, panel = _part(kind, processes, runs)
                lines += part
                panels.append(panel)
        draw(output / "kernel.svg", panels)
    page = output / "kernel.md"
    page.write_text("\n".join(lines) + "\n")
    return page


def _part(kind: str, processes: int, runs: list[Run]) -> tuple[list[str], Panel]:
    needed, reads = runs[0]["bytes"], runs[0]["reads"]
    # Outside of reads: waiting as if it computed, and checking the bytes.
    computing = median(run["seconds"] - run["seconds_in_reads"] for run in runs)
    fastest = bound(computing, needed)
    title = f"{kind}, " + ("one process" if processes == 1 else f"{processes} processes")
    lines = [
        f"## {title}",
        "",
        f"{reads} reads of {needed / 1e6:.0f} MB in all"
        + (", each" if processes > 1 else "")
        + f", {computing:.2f} s of computing and checking; "
        f"what nobody can beat is {fastest:.2f} s.",
        "",
        "| case | seconds | requests | MB read at the server | page cache, MB | memory, MB |",
        "|---|---|---|---|---|---|",
    ]
    by_case = {
        case.name: [run for run in runs if run["case"] == case.name] for case in CASES[processes]
    }
    bars = []
    for name, found in by_case.items():
        seconds = [run["seconds"] for run in found]
        served = median(run["bytes_served"] for run in found) / 1e6
        bars.append(Bar(name, median(seconds), min(seconds), max(seconds), served))
        lines.append(
            f"| {name} | {spread(seconds)} "
            f"| {median(run['requests'] for run in found):.0f} | {served:.0f} "
            f"| {max(run['page_cache_peak'] for run in found) / 1e6:.0f} "
            f"| {max(map(memory_of, found)) / 1e6:.0f} |"
        )
    rounds = min(len(found) for found in by_case.values())
    lines += table_of(_claims(kind, processes, by_case, fastest, needed), rounds)
    return lines, Panel(title, fastest, needed / 1e6, bars)


def _claims(
    kind: str, processes: int, by_case: dict[str, list[Run]], nobody: float, needed: int
) -> list[Claim]:
    seconds = {name: median(run["seconds"] for run in runs) for name, runs in by_case.items()}
    served = {name: median(run["bytes_served"] for run in runs) for name, runs in by_case.items()}
    forebay = EXACT.name if processes == 1 else PAGES.name
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
    return [
        *claims,
        Claim("bytes read / bytes needed", served[forebay] / needed, 1.05),
        Claim(
            f"memory and page cache / {BUDGET >> 20} MiB a process", holds / BUDGET / processes, 1
        ),
        Claim("wrong extents / no hints", seconds[WRONG.name] / default, 1.1),
    ]

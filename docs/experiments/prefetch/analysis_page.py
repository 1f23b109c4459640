"""The page of the analysis workload, made of the results."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import Any

from analysis_runs import BANDWIDTH, CASES, COMPUTE_US, LATENCY_MS, SLOTS

REFERENCE = CASES[0].name
EXACT = "Forebay, exact extents"
WRONG = "Forebay, wrong extents"

FEWEST_ROUNDS = 5  # for a verdict


def write(output: Path) -> Path:
    """Writes analysis.md and its picture. Returns the page's path."""
    lines = [
        "# Reading ahead: an analysis on an emulated parallel file system",
        "",
        "Made by `docs/experiments/prefetch/run.py table` from `results/`; no figure is typed by "
        "hand.",
        "",
        "[`analysis`](../../guide/proxies.md), one process, on the "
        "[testbed](../../guide/command.md#testbed) with one server: "
        f"{LATENCY_MS} ms a request, {BANDWIDTH / 1e6:g} MB/s, {SLOTS} requests in service. The "
        "page cache is empty before each run, the cases of a round run in shuffled order. Times "
        "are the program's own, from its first read to its last; medians, least and most in "
        "brackets. Every byte that was read is checked.",
        "",
        "Every read is handed to the server as the program makes it: there is no page cache, and "
        "hence no read-ahead of the kernel; [kernel.md](kernel.md) compares with that.",
    ]
    for kind in COMPUTE_US:
        stem = kind.replace("/", "")
        found = sorted((output / "results").glob(f"{stem}-*.json"))
        rounds = [json.loads(path.read_text()) for path in found]
        if rounds:
            lines += _part(kind, rounds)
    page = output / "analysis.md"
    page.write_text("\n".join(lines) + "\n")
    return page


def _part(kind: str, rounds: list[dict[str, Any]]) -> list[str]:
    by_case: dict[str, list[dict[str, Any]]] = {}
    for one in rounds:
        for run in one["runs"]:
            by_case.setdefault(run["case"], []).append(run)
    needed, reads = rounds[0]["runs"][0]["bytes"], rounds[0]["runs"][0]["reads"]
    # Outside of reads: waiting as if it computed, and checking the bytes. The same in all cases.
    computing = median(
        run["seconds"] - run["seconds_in_reads"] for runs in by_case.values() for run in runs
    )
    bound = max(computing, needed / BANDWIDTH)
    first, last = rounds[0], rounds[-1]
    loads = [one["load_average"] for one in rounds]
    lines = [
        "",
        f"## {kind}",
        "",
        f"{reads} reads of {needed / 1e6:.0f} MB in all, {computing:.2f} s of computing and "
        f"checking; what nobody can beat is {bound:.2f} s. {len(rounds)} rounds, "
        f"{first['date']} to {last['date']}, commit {last['commit']}, Linux {last['kernel']}, "
        f"{last['cores']} cores, load average {min(loads):.1f} to {max(loads):.1f}: "
        "above 2 others had the machine, too.",
        "",
        "| case | seconds | requests | MB read at the server |",
        "|---|---|---|---|",
    ]
    middle: dict[str, float] = {}
    for case in CASES:
        runs = by_case.get(case.name, [])
        if not runs:
            continue
        seconds = [run["seconds"] for run in runs]
        middle[case.name] = median(seconds)
        requests = median(run["requests"] for run in runs)
        served = median(run["bytes_served"] for run in runs) / 1e6
        lines.append(
            f"| {case.name} | {middle[case.name]:.2f} [{min(seconds):.2f}, {max(seconds):.2f}] "
            f"| {requests:.0f} | {served:.0f} |"
        )
    exact = by_case.get(EXACT, [])
    if not exact or REFERENCE not in middle:
        return lines
    fetched = median(run["bytes_served"] for run in exact) / needed
    memory = max(file["memory_peak"] for run in exact for file in run["prefetch"])
    claims = [
        ("time / what nobody can beat", middle[EXACT] / bound, 1.15),
        ("bytes read / bytes needed", fetched, 1.05),
        ("memory / 8 MiB", memory / (8 << 20), 1.0),
    ]
    if WRONG in middle:
        claims.append(("wrong extents / no hints", middle[WRONG] / middle[REFERENCE], 1.1))
    slower = middle[REFERENCE] / middle[EXACT]
    lines += [
        "",
        f"Without hints it takes {slower:.1f} times as long as with exact extents.",
        "",
        "| claim | at most | measured | |",
        "|---|---|---|---|",
    ]
    for what, value, bar in claims:
        verdict = "met" if value <= bar else "missed"
        if len(rounds) < FEWEST_ROUNDS:
            verdict += f", by fewer than {FEWEST_ROUNDS} rounds"
        lines.append(f"| {what} | {bar:g} | {value:.2f} | {verdict} |")
    return lines

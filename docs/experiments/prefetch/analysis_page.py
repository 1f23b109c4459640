"""The page of the analysis workload, made of the results."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

from analysis_runs import BANDWIDTH, CASES, COMPUTE_US, LATENCY_MS, SLOTS
from kernel_picture import Panel, drawn
from page_claims import (
    MADE_BY,
    Claim,
    bar_of,
    bound,
    circumstances_of,
    memory_of,
    row_of,
    runs_by_case,
    stored_rounds,
)

REFERENCE = CASES[0].name
EXACT = "Forebay, exact extents"
WRONG = "Forebay, wrong extents"


def write(output: Path) -> Path:
    """Writes analysis.md and its picture. Returns the page's path."""
    lines = [
        "# Reading ahead: an analysis on an emulated parallel file system",
        "",
        MADE_BY,
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
    panels = []
    picture_at = len(lines)
    for kind in COMPUTE_US:
        rounds = stored_rounds(output, kind.replace("/", ""))
        if rounds:
            part, panel = _part(kind, rounds)
            lines += part
            panels.append(panel)
    lines[picture_at:picture_at] = drawn(output, "analysis", panels)
    page = output / "analysis.md"
    page.write_text("\n".join(lines) + "\n")
    return page


def _part(kind: str, rounds: list[dict[str, Any]]) -> tuple[list[str], Panel]:
    by_case = runs_by_case(rounds)
    needed, reads = rounds[0]["runs"][0]["bytes"], rounds[0]["runs"][0]["reads"]
    # Outside of reads: waiting as if it computed, and checking the bytes. The same in all cases.
    computing = median(
        run["seconds"] - run["seconds_in_reads"] for runs in by_case.values() for run in runs
    )
    fastest = bound(computing, needed)
    lines = [
        "",
        f"## {kind}",
        "",
        f"{reads} reads of {needed / 1e6:.0f} MB in all, {computing:.2f} s of computing and "
        f"checking; what nobody can beat is {fastest:.2f} s. {len(rounds)} rounds, "
        + circumstances_of(rounds, 2),
        "",
        "| case | seconds | requests | MB read at the server |",
        "|---|---|---|---|",
    ]
    middle: dict[str, float] = {}
    bars = []
    for case in CASES:
        runs = by_case.get(case.name, [])
        if not runs:
            continue
        middle[case.name] = median(run["seconds"] for run in runs)
        lines.append(row_of(case.name, runs))
        bars.append(bar_of(case.name, runs))
    panel = Panel(kind, fastest, needed / 1e6, bars)
    exact = by_case.get(EXACT, [])
    if not exact or REFERENCE not in middle:
        return lines, panel
    fetched = median(run["bytes_served"] for run in exact) / needed
    memory = max(map(memory_of, exact))
    claims = [
        Claim("time / what nobody can beat", middle[EXACT] / fastest, 1.15),
        Claim("bytes read / bytes needed", fetched, 1.05),
        Claim("memory / 8 MiB", memory / (8 << 20), 1.0),
    ]
    if WRONG in middle:
        claims.append(Claim("wrong extents / no hints", middle[WRONG] / middle[REFERENCE], 1.1))
    slower = middle[REFERENCE] / middle[EXACT]
    lines += [
        "",
        f"Without hints it takes {slower:.1f} times as long as with exact extents.",
        "",
        "| claim | at most | measured | |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {claim.what} | {claim.bar:g} | {claim.value:.2f} | {claim.verdict(len(rounds))} |"
        for claim in claims
    ]
    return lines, panel

"""tracing.md: what a trace costs, made of the results."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import Any

import page_parts as parts
from forebay.statistics import median_ratio
from forebay.units import show_bytes
from results import Result
from toolkit_pages import SCRIPT, spread, stolen_text, stored_rounds
from tracing_runs import MILLION, PAIRS, PROGRAMS, RANKS

#: Bars.
CALL_NS = 150.0
WALL_SHARE = 0.01
REPORT_S = 10.0
REPORT_BYTES = 10**9

#: No bar of a call: what no tracer can do without, or two calls.
_NO_BAR = ("fstat_after_open", "open_and_close")


def write(output: Path) -> Path:
    """Writes tracing.md. Returns its path."""
    rounds = stored_rounds(output, "tracing")
    lines = parts.head("What a trace costs", "tracing", rounds, SCRIPT)
    lines += [
        "A [trace](../../guide/traces.md) keeps every call, so what a call costs is what a run "
        "costs. Medians of the rounds [least, most].",
        "",
    ]
    if rounds:
        lines += [stolen_text(rounds), ""]
    lines += parts.notes(output, "tracing")
    raw = [one.raw for one in rounds]
    lines += _calls(rounds)
    lines += _programs(raw)
    lines += _million(raw)
    page = output / "tracing.md"
    page.write_text("\n".join(lines).rstrip() + "\n")
    return page


def verdict(values: Iterable[float], bar: float) -> str:
    """By the median."""
    return "met" if median(values) <= bar else "**missed**"


def _calls(rounds: list[Result]) -> list[str]:
    lines = [
        "## A call",
        "",
        f"The same call in turns with and without tracing, spilling included; nanoseconds. The bar "
        f"is {CALL_NS:.0f} ns. Calls of MPI-IO are those of one rank on a file in memory; what is "
        "added is all that lies between the program and the MPI.",
        "",
    ]
    if not rounds:
        return lines + parts.NOTHING
    # Nanoseconds of two processors have no median.
    for processor in dict.fromkeys(one.experiment["cpu"] for one in rounds):
        found = [one.raw for one in rounds if one.experiment["cpu"] == processor]
        lines += [f"### {processor}", "", f"Rounds: {len(found)}.", "", *_on_one(found), ""]
    return lines


def _on_one(rounds: list[dict[str, Any]]) -> list[str]:
    """A row a call."""
    tables = [{"C library": one["libc_calls"], **one["mpi_calls"]} for one in rounds]
    rows = []
    for title in tables[0]:
        for name in dict.fromkeys(name for of in tables for name in of[title]):
            # Earlier rounds lack calls that were added to the benchmark since.
            told = [of[title][name] for of in tables if name in of[title]]
            plain, added = ([one[key] for one in told] for key in ("plain_ns", "added_ns"))
            bar = "-" if name in _NO_BAR else verdict(added, CALL_NS)
            rows.append([f"{title}: `{name}`", spread(plain), spread(added), bar])
    return parts.table(["call", "untraced", "added", "verdict"], rows)


def _programs(rounds: list[dict[str, Any]]) -> list[str]:
    place = rounds[0]["file_system"] if rounds else "a local file system"
    lines = [
        "## A run",
        "",
        f"Workloads of {RANKS} ranks on {place}, with and without a trace in shuffled order, "
        f"medians of {PAIRS} runs each in a round. *Said*: the "
        "part of its time that the run itself says tracing took. *Traced / not*: of the wall "
        "time of the command, its launcher included; the trace directory is made behind that. "
        f"The bar is {100 * WALL_SHARE:.0f} % as said.",
        "",
    ]
    # Earlier rounds timed the untraced command to the next 50 ms.
    rounds = [one for one in rounds if "untraced_s" in one["programs"][PROGRAMS[0].name]]
    if not rounds:
        return lines + parts.NOTHING
    lines += [f"Rounds: {len(rounds)}.", ""]
    rows = []
    for workload in PROGRAMS:
        runs = [one["programs"][workload.name] for one in rounds]
        shares = [run["share_of_wall"] for run in runs]
        rows.append(
            [
                f"`{workload.name}`",
                spread(run["calls"] for run in runs),
                spread(run["traced_s"] for run in runs),
                spread(100 * share for share in shares),
                parts.ratio_text(
                    median_ratio([run["traced_s"] / run["untraced_s"] for run in runs])
                ),
                verdict(shares, WALL_SHARE),
            ]
        )
    names = ["", "calls", "seconds", "said, %", "traced / not", "verdict"]
    return [*lines, *parts.table(names, rows), ""]


def _million(rounds: list[dict[str, Any]]) -> list[str]:
    lines = [
        "## A million calls",
        "",
        f"`{MILLION.program} {' '.join(MILLION.arguments)}` by {RANKS} ranks. Bars: "
        f"{REPORT_S:.0f} s and {show_bytes(REPORT_BYTES)} of memory for the report.",
        "",
    ]
    if not rounds:
        return lines + parts.NOTHING
    found = [one["million"] for one in rounds]
    rows = []
    for name, key, bars in (
        ("`forebay report`", "report", True),
        ("`forebay characterise app`", "characterise", False),
    ):
        seconds = [one[key]["seconds"] for one in found]
        peaks = [one[key]["peak_bytes"] for one in found]
        told = f"{verdict(seconds, REPORT_S)}, {verdict(peaks, REPORT_BYTES)}" if bars else "-"
        rows.append([name, spread(seconds), show_bytes(int(median(peaks))), told])
    calls, page = (int(median(one[key] for one in found)) for key in ("calls", "report_bytes"))
    return [
        *lines,
        f"{calls} calls; the page has {show_bytes(page)}.",
        "",
        *parts.table(["", "seconds", "memory at most", "verdict"], rows),
        "",
    ]

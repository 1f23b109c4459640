"""The page of real programs that read, made of the results."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

from analysis_runs import BANDWIDTH, LATENCY_MS, SLOTS
from kernel_picture import Panel, drawn
from kernel_runs import BUDGET, KERNEL
from page_claims import (
    MADE_BY,
    Claim,
    bar_of,
    bound,
    circumstances_of,
    notes_of,
    row_of,
    runs_by_case,
    stored_rounds,
    table_of,
)
from readers_runs import ALL, APART, FOREBAY, SEVERAL, WARM, WRONG, Reader

DEFAULT = KERNEL[0].name

Run = dict[str, Any]

ABOUT = {
    "uproot": "8 of 40 branches of a TTree in baskets of 32 kB, compressed, as whole columns. "
    "uproot opens the file for every basket, and reads five parts of it at a time.",
    "uproot-mapped": "The same file through `uproot.MemmapSource`, one column after the other.",
    "h5py": "Two bands of each plane of a dataset in chunks of 64 KiB: a chunk is read, three are "
    "not.",
    "h5py-field": "One of four datasets that were written step by step, a chunk of 64 KiB of each "
    "in turn, as models write: between two chunks that are read lie three that are not.",
    "memmap": "64 KiB somewhere in every 256 KiB, in rising order.",
    "fromfile": "The same pieces, each through a C stream that numpy makes for it.",
    "parquet": "8 of 40 columns in row groups of 320 kB a column, compressed. pyarrow reads with "
    "eight threads, without waiting for one piece before the next: there is less to gain.",
    "tar": "5,000 files of 32 KiB on average, each declared whole. Nothing is fetched of a file "
    "before it is opened, and then tar asks for it at once: what is gained is that no file takes "
    "two requests, one after the other, as larger ones do with the kernel. Reading ahead *across* "
    "files, which would take away most of the time, does not exist.",
}


def write(output: Path) -> Path:
    """Writes readers.md and readers.svg. Returns the page's path."""
    lines = [
        "# Reading ahead: real programs",
        "",
        MADE_BY,
        "",
        "[Programs](../../guide/proxies.md#readers) in Python, and `tar`, on the "
        "[testbed](../../guide/command.md#testbed) with a page cache and one server: "
        f"{LATENCY_MS} ms a request, {BANDWIDTH / 1e6:g} MB/s, {SLOTS} requests in service. The "
        "file system asks for buffers of 4 KiB, as those of a node do.",
        "",
        "- *kernel*: no hints; how far the kernel reads ahead, at most. 128 KiB is its default.",
        "- *Forebay*: exact extents, from where it is said below; *gap = 0*: nothing that lies "
        "between them, which is fetched along else where requests count for more than bytes; "
        "*wrong extents*: as many, in the gaps between those that are read.",
        f"- *{WARM}*: no hints, the whole file is there: what the program itself takes. What "
        "nobody can beat is that, or the declared bytes at the full bandwidth.",
        "",
        "The page cache is empty before each run, but for the last case; a round is in "
        "shuffled order. Times are the programs' own, from opening the file to the last byte in "
        "their memory, without starting the interpreter; medians, least and most in brackets. All "
        "that was read is checked. *memory* is the most that Forebay's buffers took for an opening "
        "of a file. *Several processes* are forked from one, begin at once, and all read the same; "
        "the slowest counts.",
    ]
    panels = []
    picture_at = len(lines)
    for reader in ALL:
        rounds = stored_rounds(output, f"reader-{reader.name}")
        if rounds:
            part, panel = _part(reader, rounds)
            lines += part
            lines += _together(reader, stored_rounds(output, f"together-{reader.name}"))
            panels.append(panel)
    lines[picture_at:picture_at] = drawn(output, "readers", panels)
    lines += notes_of(output, "readers")
    page = output / "readers.md"
    page.write_text("\n".join(lines) + "\n")
    return page


def _part(reader: Reader, rounds: list[dict[str, Any]]) -> tuple[list[str], Panel]:
    by_case = runs_by_case(rounds)
    order = (*(c.name for c in KERNEL), FOREBAY, APART, WRONG, WARM)
    names = [name for name in order if name in by_case]
    seconds = {name: median(run["seconds"] for run in by_case[name]) for name in names}
    declared = rounds[0]["bytes_declared"]
    nobody = bound(seconds[WARM], declared)
    lines = [
        "",
        f"## {reader.title}",
        "",
        f"{ABOUT[reader.name]} Extents from {reader.plan.value}: {declared / 1e6:.0f} MB. What "
        f"nobody can beat is {nobody:.2f} s.",
        "",
        f"Rounds: {len(rounds)}, {circumstances_of(rounds, 3)}",
        "",
        "| case | seconds | requests | MB read at the server | memory, MB |",
        "|---|---|---|---|---|",
    ]
    bars = []
    for name in names:
        runs = by_case[name]
        bars.append(bar_of(name, runs))
        lines.append(f"{row_of(name, runs)} {max(map(_memory, runs)) / 1e6:.0f} |")
    best = min((c.name for c in KERNEL if c.name in seconds), key=lambda name: seconds[name])
    slower = seconds[DEFAULT] / seconds[FOREBAY]
    lines += [
        "",
        f"The kernel's default takes {slower:.1f} times as long as Forebay, its best setting "
        f"({best.removeprefix('kernel, ')}) {seconds[best] / seconds[FOREBAY]:.1f} times.",
    ]
    claims = []
    if reader.bar is not None:
        reach = seconds[DEFAULT] / nobody
        what = f"{DEFAULT} / Forebay"
        claims.append(Claim(what, slower, reader.bar, is_least=True, reach=reach))
    for name in (FOREBAY, APART):
        if name in by_case:
            served = median(run["bytes_served"] for run in by_case[name]) / declared
            claims.append(Claim(f"{name}: bytes read / bytes declared", served, 1.05))
    budget = max(map(_memory, by_case[FOREBAY])) / BUDGET
    claims += [
        Claim(f"memory / {BUDGET >> 20} MiB", budget, 1),
        Claim("right extents / no hints", 1 / slower, 1.1),
    ]
    if WRONG in by_case:
        claims.append(Claim("wrong extents / no hints", seconds[WRONG] / seconds[DEFAULT], 1.1))
    lines += table_of(claims, len(rounds))
    return lines, Panel(reader.title, nobody, declared / 1e6, bars)


def _together(reader: Reader, rounds: list[dict[str, Any]]) -> list[str]:
    """Several processes, if they were measured."""
    if not rounds:
        return []
    runs = [run for one in rounds for run in one["runs"]]
    lines = [
        "",
        "### Several processes",
        "",
        f"Rounds: {len(rounds)}, {circumstances_of(rounds, 3)}",
        "",
        "| processes, case | seconds | requests | MB read at the server |",
        "|---|---|---|---|",
    ]
    claims = []
    for count in SEVERAL:
        seconds = {}
        for name in (KERNEL[0].name, KERNEL[-1].name, FOREBAY, WRONG, WARM):
            some = [run for run in runs if (run["processes"], run["case"]) == (count, name)]
            if some:
                seconds[name] = median(run["seconds"] for run in some)
                lines.append(row_of(f"{count}, {name}", some))
        if seconds:
            nobody = bound(seconds[WARM], rounds[0]["bytes_declared"])
            claims += _claims_together(reader, count, seconds, nobody)
    return [*lines, *table_of(claims, len(rounds))]


def _claims_together(
    reader: Reader, count: int, seconds: dict[str, float], nobody: float
) -> list[Claim]:
    """Of so many processes."""
    default = seconds[DEFAULT]
    assert reader.bar is not None, "only those with a bar are measured so"
    return [
        Claim(
            f"{count} processes: {DEFAULT} / Forebay",
            default / seconds[FOREBAY],
            reader.bar,
            is_least=True,
            reach=default / nobody,
        ),
        Claim(f"{count} processes: wrong extents / no hints", seconds[WRONG] / default, 1.1),
    ]


def _memory(run: Run) -> int:
    return max((int(file["memory_peak"]) for file in run.get("prefetch", [])), default=0)

"""striping.md: the experiments of [ARCHER], made of the results."""

from __future__ import annotations

from pathlib import Path

import page_parts as parts
from forebay.units import parse_rate, show_bytes
from measuring import FOREBAY, STOCK
from results import Result
from striping_figures import (
    Array,
    Claim,
    array_claims,
    collect_array,
    collect_files,
    files_claims,
    spread_costs,
)
from striping_picture import draw
from striping_runs import (
    ALL,
    BANDWIDTH,
    BRICKS,
    BYTES,
    CALLS,
    FILE_BYTES,
    FILES,
    LOCK_COST,
    ONE,
    PROCESSES,
    SERVERS,
    SIZE,
    TASKS,
    Case,
)
from toolkit_pages import SCRIPT, shown, spread, stolen_text, stored_rounds

PICTURE = "striping.svg"


def write(output: Path) -> Path:
    """Writes striping.md and its picture. Returns the page's path."""
    arrays, files = (stored_rounds(output, stem) for stem in ("striping", "files"))
    every = [*arrays, *files]
    lines = parts.head("Stripes: for one array, and for small files", "striping", every, SCRIPT)
    lines += [
        "EPCC's advice on parallel I/O comes from two experiments: a 3-D array that ever more "
        "processes write, each with a part of its own size, over 1, 4 and 48 stripes, collectively "
        "or not; and many small files with one stripe each or many [ARCHER]. This repeats both on "
        "one machine.",
        "",
    ]
    if every:
        lines += [stolen_text(every), ""]
    lines += parts.notes(output, "striping")
    lines += _array_section(output, arrays)
    lines += _files_section(files)
    page = output / "striping.md"
    page.write_text("\n".join(lines).rstrip() + "\n")
    return page


def _array_section(output: Path, rounds: list[Result]) -> list[str]:
    size = "x".join(map(str, SIZE))
    lines = [
        "## One array",
        "",
        f"`block3d`, {size} doubles ({show_bytes(BYTES)}) of each process with a halo in memory, "
        f"on the [testbed](../../guide/command.md#testbed): servers of {BANDWIDTH}, 3 ms a "
        f"request, stripes of 64 KiB, {LOCK_COST} lost whenever a stripe's writer changes. The "
        "file is over all servers that there are, as it would be with so many stripes. `write_all` "
        "is collective, `write` the same views by independent calls. Open MPI, whose processes "
        "yield the processor while they wait: there are 2 cores. Times are of `MPI_File_write` and "
        "`MPI_File_close`, which waits for the servers; rates are of all processes together. Every "
        "file is compared with one that the program has read and found right.",
        "",
    ]
    if not rounds:
        return lines + parts.NOTHING
    array = collect_array(rounds)
    draw(output / PICTURE, array, {count: count * parse_rate(BANDWIDTH) for count in SERVERS})
    lines += [f"Rounds: {array.rounds}.", "", f"![Rates by processes]({PICTURE})", ""]
    lines += _rates(array)
    lines += ["", _identical(array), ""]
    lines += _claims(array_claims(array, STOCK))
    return lines + _engines(array)


def _identical(array: Array) -> str:
    if array.identical:
        return "All files of all runs are right, byte for byte."
    return "**Some files are not as they should be.**"


def _rates(array: Array) -> list[str]:
    names = ["servers, processes"]
    names += [f"`{call}`, {_NAMES[engine]}, MiB/s" for call in CALLS for engine in _NAMES]
    return parts.table(
        names,
        [
            [
                f"{servers}, {processes}",
                *(
                    spread(
                        rate / 2**20 for rate in array.rates(Case(servers, processes, call, engine))
                    )
                    for call in CALLS
                    for engine in _NAMES
                ),
            ]
            for servers in SERVERS
            for processes in PROCESSES
        ],
    )


_NAMES = {STOCK: "stock", FOREBAY: "Forebay"}


def _claims(claims: list[Claim]) -> list[str]:
    return [
        *parts.table(
            ["[ARCHER]", "measured", "ratio", "verdict"],
            [
                [claim.sentence, claim.measured, parts.ratio_text(claim.ratio), claim.verdict]
                for claim in claims
            ],
            left=2,
        ),
        "",
    ]


def _engines(array: Array) -> list[str]:
    """The same program under Forebay."""
    rows = []
    for servers in SERVERS:
        for processes in PROCESSES[1:]:
            for call in CALLS:
                ours, theirs = (
                    Case(servers, processes, call, engine) for engine in (FOREBAY, STOCK)
                )
                ratio = array.ratio(ours, theirs)
                name = f"{servers}, {processes}, `{call}`"
                rows.append([name, parts.ratio_text(ratio), shown(ratio)])
    return [
        "The rate of Forebay / that of the stock MPI:",
        "",
        *parts.table(["servers, processes, call", "ratio", "shown"], rows),
        "",
    ]


def _files_section(rounds: list[Result]) -> list[str]:
    lines = [
        "## Small files",
        "",
        f"{FILES} files of {FILE_BYTES // 1000} kB, written, read and packed by `tar` one after "
        "the other, and one file of as many bytes. What stripes cost small files is mostly the "
        "metadata's, and on the emulated testbed a number that we would choose; so these lie on "
        f"GlusterFS, a real file system, with {BRICKS} bricks in memory. *{ONE}*: each file lies "
        "whole on one of them. "
        f"*{ALL}*: each file lies over all of them, as an erasure code that survives the loss of "
        "two: plain striping is not in GlusterFS any more, so what the code costs the processor is "
        "in the figures. Before they are read, files are dropped from the client's page cache; "
        "bricks are in memory. What is read and packed is compared with what was written. Seconds.",
        "",
    ]
    if not rounds:
        return lines + parts.NOTHING
    files = collect_files(rounds)
    return [
        *lines,
        f"Rounds: {len(rounds)}.",
        "",
        *parts.table(
            ["", ONE, ALL, f"{ALL} / {ONE}"],
            [
                [
                    f"{data}, {task}",
                    spread(files[ONE, data, task]),
                    spread(files[ALL, data, task]),
                    parts.ratio_text(spread_costs(files, data, task)),
                ]
                for data, task in TASKS
            ],
        ),
        "",
        *_claims(files_claims(files)),
    ]

"""methodology.md: the experiment of [METHOD], made of the results."""

from __future__ import annotations

from pathlib import Path

import page_parts as parts
from disks import BANDWIDTH, DIRTY, OPERATIONS
from forebay.units import show_bytes
from methodology_figures import (
    PUBLISHED_COLLECTIVE,
    PUBLISHED_INDEPENDENT,
    Factor,
    Found,
    Turn,
    collect,
    disk_factors,
    io_time,
    network_factors,
    operations,
    operations_per_s,
    rate,
    run_time,
    sentences,
    share,
    turns,
    way_factors,
)
from methodology_picture import draw
from methodology_runs import (
    BT_IO,
    INDEPENDENT,
    MADBENCH,
    PROCESSES,
    PROGRAMS,
    RAID_DISKS,
    RATE,
    STEPS,
    WRITTEN,
    Program,
)
from results import Result
from toolkit_pages import (
    LESS,
    MORE,
    SAME,
    SCRIPT,
    percents,
    shown,
    spread,
    stolen_text,
    stored_rounds,
)

ABOUT = {
    BT_IO.name: f"Class W of NAS BT-IO, the first {STEPS} of its 200 time steps, of which "
    f"{WRITTEN} are written; all that was written is read at the end. *Collective* is its variant "
    "`full`, *independent* its `simple`: a call for each row of each cell. What is computed is "
    "slept in one piece between writing and reading, as long as NAS's own count of operations "
    f"takes at {RATE / 1e9:g} Gflop/s a process.",
    MADBENCH.name: "S, W and C of MADBench2 without computing, as in its I/O mode: 8 matrices of "
    "512² doubles are written, read and written, and read, by independent calls, into a shared "
    "file or a file of each process.",
}


def write(output: Path) -> Path:
    """Writes methodology.md and its pictures. Returns the page's path."""
    by_program = {
        program.name: stored_rounds(output, f"methodology-{program.name}") for program in PROGRAMS
    }
    every = [one for rounds in by_program.values() for one in rounds]
    lines = parts.head("Configuring an I/O system, by experiment", "methodology", every, SCRIPT)
    lines += _about()
    if every:
        lines += [stolen_text(every), ""]
    lines += parts.notes(output, "methodology")
    for program in PROGRAMS:
        lines += [f"## {program.title}", "", ABOUT[program.name], ""]
        if by_program[program.name]:
            lines += _section(output, program, by_program[program.name])
        else:
            lines += parts.NOTHING
    page = output / "methodology.md"
    page.write_text("\n".join(lines).rstrip() + "\n")
    return page


def _about() -> list[str]:
    return [
        "Mendez and others configure an I/O system by running the application in each "
        "configuration and relating what they measure to the factors [METHOD]. This repeats their "
        "experiment: NAS BT-IO and MADBench2 on 4 and 9 processes, in 8 configurations each.",
        "",
        "- *Local*: btrfs that writes in place, on files in memory that the kernel paces as disks "
        f"of {BANDWIDTH / 1e6:g} MB/s and {OPERATIONS} operations a second each: *one disk*, or "
        f"*RAID 5* of {RAID_DISKS}. {show_bytes(DIRTY)} may wait in memory to be written, so "
        "writers wait for the disks, as where files are larger than memory.",
        "- *Network*: GlusterFS of one server, which keeps its files on such a volume. Nothing "
        "paces the network itself. What is read is not in the client's memory any more, and may be "
        "in the server's.",
        "- Open MPI, whose processes yield the processor while they wait: there are 2 cores. The "
        "I/O is the stock MPI's; Forebay only [traces](../../guide/traces.md) it.",
        "- All figures come from traces, by [`forebay report`](../../guide/report.md), as means of "
        "the processes: *run time* from the start of a process to its end; *I/O time* in MPI-IO, "
        "waiting for other processes included, or in calls on files beside it, such as making the "
        "file durable before it is read; *operations* are reads and writes of the file system that "
        "the MPI makes; *transfer rate* is the program's bytes, and *IOPs* are operations, by I/O "
        "time. Medians of rounds in shuffled order; least and most in brackets. Every byte that a "
        "program reads is checked.",
        "",
    ]


def _section(output: Path, program: Program, rounds: list[Result]) -> list[str]:
    found = collect(program, rounds)
    picture = f"methodology-{program.name}.svg"
    draw(output / picture, found)
    lines = [f"Rounds: {found.rounds}.", ""]
    lines += [f"![Five kinds of figures by configuration]({picture})", ""]
    for processes in PROCESSES:
        compute_s = program.compute_s(processes)
        computing = f", which compute for {compute_s:.2f} s" if compute_s else ""
        lines += [f"### {program.title} on {processes} processes{computing}", ""]
        lines += _table(found, processes)
        lines += ["", *(f"- {sentence}" for sentence in sentences(found, processes)), ""]
    if program is BT_IO:
        lines += _share_of_io(turns(found))
    else:
        lines += _factors("A file of each process", way_factors(found), found)
    lines += _factors("RAID 5", disk_factors(found), found)
    lines += _factors("The network", network_factors(found), found)
    return lines


def _table(found: Found, processes: int) -> list[str]:
    names = ["configuration", "run time, s", "I/O time, s", "share of I/O", "operations"]
    return parts.table(
        [*names, "MB/s", "IOPs"],
        [
            [
                case.name,
                spread(found.of(case, run_time)),
                spread(found.of(case, io_time)),
                percents(found.of(case, share)),
                f"{found.median(case, operations):,.0f}",
                spread(value / 1e6 for value in found.of(case, rate)),
                f"{found.median(case, operations_per_s):,.0f}",
            ]
            for case in found.cases(processes)
        ],
    )


def _share_of_io(made: list[Turn]) -> list[str]:
    reproduced = sum(turn.verdict == "reproduced" for turn in made)
    reached = sum((turn.of_published or 1) <= PUBLISHED_COLLECTIVE for turn in made)
    return [
        "### From most of the time to a minority",
        "",
        f"Published: collective I/O takes BT-IO from {100 * PUBLISHED_INDEPENDENT:.0f} % of the "
        f"time in I/O to {100 * PUBLISHED_COLLECTIVE:.0f} %. Here it is *reproduced* where in "
        "every round independent I/O takes more than half of the time, and collective I/O less. "
        "How much is computed decides on that share; the last column but one does without: what "
        "collective I/O would take if independent I/O took "
        f"{100 * PUBLISHED_INDEPENDENT:.0f} %.",
        "",
        *parts.table(
            [
                "processes, place",
                "independent",
                "collective",
                "I/O time, independent / collective",
                f"of {100 * PUBLISHED_INDEPENDENT:.0f} % would be",
                "verdict",
            ],
            [
                [
                    f"{turn.processes}, {turn.place.name}",
                    percents(turn.independent),
                    percents(turn.collective),
                    parts.ratio_text(turn.ratio),
                    "-" if turn.of_published is None else f"{100 * turn.of_published:.0f} %",
                    turn.verdict,
                ]
                for turn in made
            ],
        ),
        "",
        f"From most of the time to a minority: in {reproduced} of {len(made)}. The published "
        f"{100 * PUBLISHED_INDEPENDENT:.0f} to {100 * PUBLISHED_COLLECTIVE:.0f} %, which take a "
        f"ratio of 21: in {reached} of {len(made)}.",
        "",
    ]


# Whether what is shown is what [METHOD] says of RAID 5, by what is shown of one disk / RAID 5. That
# it does not help is not shown by a difference that is not.
_SMALL_AND_MANY = {MORE: "as published", LESS: "not as published", SAME: "not shown"}
_COLLECTIVE = {MORE: "not as published", LESS: "as published", SAME: "not contradicted"}


def _as_published(factor: Factor) -> str:
    """What [METHOD] says of this factor against what is shown here; - if nothing is."""
    judged = _SMALL_AND_MANY if factor.way is INDEPENDENT else _COLLECTIVE
    return judged.get(shown(factor.ratio), "-")


def _factors(title: str, factors: list[Factor], found: Found) -> list[str]:
    names = ["processes, all else", f"I/O time, {factors[0].what}", "shown"]
    is_published = title == "RAID 5" and found.program is BT_IO
    rows = []
    for factor in factors:
        place = f"{factor.processes}, {factor.rest}"
        row = [place, parts.ratio_text(factor.ratio), shown(factor.ratio)]
        rows.append([*row, _as_published(factor)] if is_published else row)
    lines = [f"### {title}", ""]
    if is_published:
        names.append("[METHOD]")
        lines += [
            "Published: RAID 5 helps many small writes and reads, not collective writes.",
            "",
        ]
    lines += [*parts.table(names, rows), ""]
    first, second = factors[0].what.split(" / ")
    more = sum(shown(factor.ratio) == MORE for factor in factors)
    less = sum(shown(factor.ratio) == LESS for factor in factors)
    lines += [
        f"I/O takes longer with {first} than with {second} in {more} of {len(factors)} cases, "
        f"shorter in {less}; in the others no difference is shown.",
        "",
    ]
    return lines

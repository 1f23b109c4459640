"""configure.md: `forebay configure` on pairs of a program and a system, made of the results."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

import page_parts as parts
from configure_figures import NEAR, Found, OfPair, collect
from configure_pairs import PAIRS, PLACE, SYSTEMS
from configure_planted import FAULTS, QUIET, TRIED, Fault
from configure_planted import SYSTEMS as PLANTED_ON
from configure_runs import FASTEST, FINAL_PASSES, FINALISTS, MORE_PASSES, PASSES, RUNS_MOST
from forebay.units import show_seconds, show_share
from results import Result
from toolkit_pages import SCRIPT, STOLEN_MUCH, spread, stolen_text, stored_rounds

FOUND_AT_LEAST = 4
NAME = "configure"


def write(output: Path) -> Path:
    """Writes configure.md. Returns its path."""
    rounds = [one for pair in PAIRS for one in stored_rounds(output, f"configure-{pair.name}")]
    planted = stored_rounds(output, "planted")
    every = [*rounds, *planted]
    lines = parts.head("What `forebay configure` finds", "configure", every, SCRIPT)
    lines += [
        "Five programs, each on a system with settings that were planted, and a best that is known "
        f"by trying all: [`forebay configure`](../../guide/configure.md) has {RUNS_MOST} runs to "
        f"find it, and is to land within {show_share(NEAR - 1)} of the best in {FOUND_AT_LEAST} of "
        "the 5. It is to claim no gain where there is next to no I/O; and "
        "[`forebay report`](../../guide/report.md) is to find three planted faults.",
        "",
    ]
    if every:
        lines += [stolen_text(every), ""]
    lines += parts.notes(output, NAME)
    found = collect(output)
    lines += _pairs_section(found)
    lines += _planted_section(planted)
    page = output / f"{NAME}.md"
    page.write_text("\n".join(lines).rstrip() + "\n")
    return page


def _pairs_section(found: list[OfPair]) -> list[str]:
    lines = ["## Known best", ""]
    lines += parts.table(
        ["pair", "program", "system", "what is planted"],
        [
            [f"*{pair.name}*", _program(pair.program, pair.arguments, pair.ranks, pair.mpi),
             f"*{pair.system.name}*", pair.planted]
            for pair in PAIRS
        ],
        left=4,
    )  # fmt: skip
    lines += ["", *[f"- *{system.name}*: {system.described}." for system in SYSTEMS], ""]
    lines += [
        "The best is looked for by running **a grid** of all factors that `configure` has to "
        "choose from, numbers with the least and the most of their values beside the default: all "
        f"of it {_times(PASSES)} in shuffled order, the {FASTEST} fastest {_times(MORE_PASSES)} "
        f"more. What decides are {FINAL_PASSES} fresh runs each of the default, the proposal and "
        f"the grid's {FINALISTS} fastest, in turn: *the best* is whichever of these has the least "
        "median, the proposal included. Where `configure` proposes nothing, the default stands for "
        "the proposal. Times are of the whole command, as `configure` has them; starting the "
        "processes is about half a second of it, so the ratio inside MPI-IO calls is shown, too.",
        "",
        "**What counts** is the same for all pairs, whatever came of them. Within a round nothing "
        "is left out: a run that takes 20 s is ended, and it and one that fails count as one of "
        f"20 s. A round counts unless the host took more than "
        f"{show_share(STOLEN_MUCH)} of the processors' time in it; those that do not are shown all "
        "the same. A pair stands by the median of its rounds that count. Figures are medians over "
        "these rounds [least, most], seconds the medians of each.",
        "",
    ]
    if not found:
        return lines + parts.NOTHING
    lines += parts.table(
        ["pair", "rounds", "default, s", "proposed, s", "best, s", "proposed / best", "in calls",
         "default / proposed", "rounds within 10 %", "verdict"],
        [_row(one) for one in found],
    )  # fmt: skip
    lines += ["", _verdict(found), "", "Each round:", ""]
    places = [(f"/dev/shm/{PLACE}/{system.name}/mount", system.name) for system in SYSTEMS]
    lines += parts.table(
        ["pair", "round", "proposed", "best", "why it ended", "feasible", "grid", "runs",
         "proposed / best", "not ended", "host took"],
        [
            _round_row(number, one, places)
            for each in found
            for number, one in enumerate(each.rounds)
        ],
        left=5,
    )  # fmt: skip
    return [*lines, ""]


def _verdict(found: list[OfPair]) -> str:
    held = sum(one.is_near for one in found)
    near = sum(one.near_rounds for one in found)
    counted = sum(len(one.counted) for one in found)
    verdict = "**met**" if held >= FOUND_AT_LEAST else "**missed**"
    return (
        f"Within {show_share(NEAR - 1)} of the best in {held} of {len(PAIRS)}: {verdict}. "
        f"Of the rounds that count, in {near} of {counted}. The default is as near by itself in "
        f"{sum(one.default_is_near for one in found)}: there a search has only to propose nothing "
        f"that is worse. {_identical(found)}"
    )


def _program(name: str, arguments: tuple[str, ...], ranks: int, mpi: str) -> str:
    return f"`{name} {' '.join(arguments)}`, {ranks} processes, {mpi}"


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def _row(one: OfPair) -> list[str]:
    name, told = f"*{one.pair.name}*", f"{len(one.counted)} of {len(one.rounds)}"
    if not one.counted:
        return [name, told, *("-" for _ in range(7)), "**no round counts**"]
    ways = [[found.default, found.proposed, found.best] for found in one.counted]
    return [
        name,
        told,
        *(spread(median(way.wall) for way in each) for each in zip(*ways, strict=True)),
        spread(found.distance for found in one.counted),
        spread(found.distance_in_calls for found in one.counted),
        parts.ratio_text(one.gain),
        f"{one.near_rounds} of {len(one.counted)}",
        "within 10 %" if one.is_near else "**missed**",
    ]


def _round_row(number: int, one: Found, places: list[tuple[str, str]]) -> list[str]:
    return [
        f"*{one.pair.name}*",
        str(number),
        one.told(one.proposed, places),
        one.told(one.best, places) if one.best is not one.proposed else "the same",
        one.raw["configure"]["stopped"],
        str(one.raw["configure"]["feasible"]),
        str(len(one.raw["grid"])),
        str(one.runs),
        f"{one.distance:.3f}" if one.is_near else f"**{one.distance:.3f}**",
        str(one.not_ended),
        _stolen(one.stolen_share),
    ]


def _stolen(share: float) -> str:
    """What the host took of a round, and whether the round counts for it."""
    text = f"{100 * share:.1f} %"
    return text if share <= STOLEN_MUCH else f"**{text}: does not count**"


def _identical(found: list[OfPair]) -> str:
    if all(one.raw["identical"] for each in found for one in each.rounds):
        return "All runs of a round left the same bytes."
    return "**Some runs of a round left other bytes.**"


def _planted_section(rounds: list[Result]) -> list[str]:
    lines = [
        "## No gain where there is none",
        "",
        f"{_about(QUIET)}, with pauses in which it computes. Before anything is run, `configure` "
        "is to say that nothing can be gained; and `evaluate`, asked all the same about "
        f"{', '.join(f'*{name}*' for name in [*TRIED, 'stock'])} against the default, is to claim "
        "no gain. Which rounds count is the rule for pairs; it is to be so in each of them.",
        "",
    ]
    if not rounds:
        return lines + parts.NOTHING
    lines += parts.table(
        ["round", "I/O", "`configure`", "runs", "verdicts of `evaluate`", "claim", "host took"],
        [_quiet_row(number, one) for number, one in enumerate(rounds)],
        left=6,
    )
    lines += ["", _no_gain_verdict(rounds), "", "## Planted faults", ""]
    lines += [f"- *{fault.title}*: {fault.about} ({_about(fault)})." for fault in FAULTS]
    lines += [
        f"- *{system.name}*: {system.described}." for system in PLANTED_ON if system not in SYSTEMS
    ]
    for fault in FAULTS:
        if fault.without is not None:
            lines.append(
                f"- *Without*: the same run where there is no such fault, on *{fault.without.name}*"
                ": the difference is what the fault costs."
            )
    lines += ["", *_faults(rounds), "", _faults_verdict(rounds), ""]
    return lines


def _about(fault: Fault) -> str:
    program = _program(fault.program, fault.arguments, fault.ranks, fault.mpi)
    return f"{program}, on *{fault.system.name}*"


def _counted(rounds: list[Result]) -> list[Result]:
    """By the rule for pairs: which rounds count has nothing to do with what came of them."""
    return [one for one in rounds if one.raw["stolen_share"] <= STOLEN_MUCH]


def _claims(quiet: dict[str, Any]) -> list[str]:
    """What was claimed of the program with hardly any I/O; there is nothing to be claimed."""
    claims = [name for name, told in quiet["verdicts"].items() if told["verdict"] == "improved"]
    if quiet["best"] is not None:
        claims.append(f"proposed: {quiet['best']}")
    return claims


def _quiet_row(number: int, one: Result) -> list[str]:
    quiet = one.raw["quiet"]
    verdicts = "; ".join(
        f"{name}: {told['verdict']} ({_interval(told)})" for name, told in quiet["verdicts"].items()
    )
    claims = _claims(quiet)
    return [
        str(number),
        f"{100 * quiet['ceiling']['io_share']:.1f} %",
        "stops at the ceiling" if quiet["stopped"] == "ceiling" else quiet["stopped"],
        str(quiet["runs"]),
        verdicts,
        f"**{', '.join(claims)}**" if claims else "none: as it should be",
        _stolen(one.raw["stolen_share"]),
    ]


def _no_gain_verdict(rounds: list[Result]) -> str:
    counted = _counted(rounds)
    right = sum(not _claims(one.raw["quiet"]) for one in counted)
    return _verdict_of_all("No gain is claimed", right, len(counted))


def _verdict_of_all(text: str, right: int, count: int) -> str:
    """What is to be so in each round that counts."""
    verdict = "**met**" if 0 < count == right else "**missed**"
    return f"{text} in {right} of the {count} rounds that count: {verdict}."


def _interval(told: dict[str, Any]) -> str:
    low, high = (
        "?" if told[end] is None else f"{100 * told[end]:+.1f} %" for end in ("low", "high")
    )
    return f"gain {low} to {high}, {told['blocks']} blocks"


def _found_fault(told: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
    """Place among the findings, from 1, and the one that names what was planted."""
    findings = enumerate(told["findings"], start=1)
    return next((each for each in findings if each[1]["key"] == told["key"]), None)


def _faults(rounds: list[Result]) -> list[str]:
    rows = []
    for number, one in enumerate(rounds):
        for fault, told in zip(FAULTS, one.raw["faults"], strict=True):
            found = _found_fault(told)
            if found is None:
                rows.append([str(number), fault.title, "**not found**", "-", "-", "-", "-"])
                continue
            place, finding = found
            rows.append(
                [
                    str(number),
                    fault.title,
                    finding["title"],
                    f"{place} of {len(told['findings'])}",
                    f"{show_seconds(finding['seconds'])} of {show_seconds(told['run_s'])}",
                    show_seconds(told["without_s"]) if told.get("without_s") else "-",
                    finding["confidence"],
                ]
            )
    return parts.table(
        ["round", "planted", "found", "place", "at most, of the run", "without", "confidence"],
        rows,
        left=3,
    )


def _faults_verdict(rounds: list[Result]) -> str:
    counted = _counted(rounds)
    right = sum(all(_found_fault(told) for told in one.raw["faults"]) for one in counted)
    return _verdict_of_all("All that was planted is found", right, len(counted))

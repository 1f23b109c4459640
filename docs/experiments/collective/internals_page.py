"""internals.md: the tables of the campaign "internals"."""

from pathlib import Path
from typing import Any

import page_parts as parts
import results
from campaign import QUANTITIES, Campaign, Mpi
from forebay.statistics import median
from forebay.units import show_bytes, show_count, show_seconds
from measuring import FOREBAY, STOCK
from results import Result


def write(directory: Path, campaign: Campaign) -> Path:
    """Writes internals.md from what `directory`/results holds."""
    described = campaign.internals
    mpis = [campaign.mpis[key] for key in described.mpis if key in campaign.mpis]
    stored: dict[str, dict[str, Result]] = {}
    for mpi in mpis:
        base = directory / "results" / f"{mpi.key}-internals"
        names = [workload.name for workload in described.exchange.workloads]
        stored[mpi.key] = {
            name: result
            for name in [*names, "pieces"]
            if (result := results.load(base / f"{name}.json")) is not None
        }
    every = [result for found in stored.values() for result in found.values()]
    lines = parts.head("What the collective engine costs inside", "internals", every)
    lines += parts.notes(directory, "internals")
    lines += _exchange(campaign, mpis, stored)
    lines += _pieces(campaign, mpis, stored)
    path = directory / "internals.md"
    path.write_text("\n".join(lines).rstrip() + "\n")
    return path


def _exchange(
    campaign: Campaign, mpis: list[Mpi], stored: dict[str, dict[str, Result]]
) -> list[str]:
    described = campaign.internals
    setting = described.exchange
    nodes = setting.ranks // (setting.ranks_per_node or 1)
    names = ["workload", "", "calls exchanged / direct", "aggregators", "rounds"]
    names += ["copied / payload", "sent / payload", "messages per round", "metadata per call"]
    lines = [
        f"## Copies, messages and metadata with {nodes} emulated nodes",
        "",
        f"{setting.ranks} ranks on tmpfs; counts, no times. *Copied*: payload bytes copied in "
        f"memory by Forebay, each copy counted, at most {described.copies_at_most:g} for each byte "
        f"of payload is the aim. *Sent*: between nodes, before compression. *Metadata*: bytes that "
        f"all ranks together send to agree on one collective call.",
        "",
    ]
    for mpi in mpis:
        rows = []
        for workload in setting.workloads:
            result = stored[mpi.key].get(workload.name)
            if result is None:
                rows.append([workload.name, "", parts.NOT_MEASURED, *[""] * 6])
                continue
            for quantity in QUANTITIES:
                row = exchange_row(result.raw["records"], quantity, described.copies_at_most)
                rows += [[workload.name, quantity, *row]] if row else []
        lines += [f"### {mpi.title}", "", *parts.table(names, rows, left=2), ""]
    return lines


def exchange_row(records: list[dict[str, Any]], quantity: str, copies_at_most: float) -> list[str]:
    """The columns after the name, over the openings that only wrote or only read; empty if there
    are none. Counters: core/model/counters.hpp."""
    other = "read" if quantity == "write" else "write"
    openings = [r for r in records if r["calls"][quantity] > 0 and r["calls"][other] == 0]
    if not openings:
        return []

    def total(name: str) -> int:
        return sum(int(record["counters"][name]) for record in openings)

    payload = total("bytes_written" if quantity == "write" else "bytes_read")
    rounds = total("rounds")
    # `collective_calls` counts each rank's; a call is one for all of them.
    calls = total("collective_calls") / openings[0]["ranks"]
    copied = total("bytes_copied") / payload if payload else 0.0
    copied_text = f"{copied:.2f}"
    return [
        f"{total('exchanged_calls')} / {total('direct_calls')}",
        str(len({rank for record in openings for rank in record["aggregators"]})),
        str(rounds),
        copied_text if copied <= copies_at_most else f"**{copied_text}**",
        f"{total('message_bytes_raw') / payload:.2f}" if payload else "-",
        f"{total('messages') / rounds:.1f}" if rounds else "-",
        show_bytes(total("metadata_bytes") / calls) if calls else "-",
    ]


def _pieces(campaign: Campaign, mpis: list[Mpi], stored: dict[str, dict[str, Result]]) -> list[str]:
    described = campaign.internals.pieces
    lines = [
        "## Schedule time and memory against the number of pieces",
        "",
        f"`interleave` on tmpfs, {described.ranks} ranks, {show_bytes(described.total_bytes)} in "
        f"ever smaller pieces: one regular view, so both should stay flat. Schedule time: "
        f"describing views and computing the schedule, slowest rank, median of "
        f"{described.repeats} runs [least, most]; waiting for the other rank is not in it. Memory: "
        f"largest resident set of a rank (shared memory that it touched included), median for "
        f"Forebay, one run of the stock MPI.",
        "",
    ]
    for mpi in mpis:
        lines += [f"### {mpi.title}: pieces", ""]
        result = stored[mpi.key].get("pieces")
        if result is None:
            lines += parts.NOTHING
            continue
        points = result.raw["points"]
        rows = [
            [
                show_count(point["pieces"]),
                *(spread_text(point["schedule_ns"][quantity]) for quantity in QUANTITIES),
                *(show_bytes(median(point["rss_max_bytes"][side])) for side in (FOREBAY, STOCK)),
            ]
            for point in points
        ]
        names = ["pieces in the file", "schedule, write", "schedule, read"]
        names += ["memory, Forebay", "memory, stock"]
        lines += [*parts.table(names, rows), ""]
        slopes = ", ".join(
            f"{name} {memory_per_piece(points, side, result.raw['ranks']):.2f}"
            for side, name in ((FOREBAY, "Forebay"), (STOCK, "stock"))
        )
        lines += [
            f"Bytes of memory for each further piece of a rank, from the fewest pieces to the "
            f"most: {slopes}.",
            "",
        ]
    return lines


def spread_text(nanoseconds: list[int]) -> str:
    """1.2 ms [0.9 ms, 3.4 ms]"""
    low, middle, high = min(nanoseconds), median(nanoseconds), max(nanoseconds)
    shown = [show_seconds(value / 1e9) for value in (middle, low, high)]
    return f"{shown[0]} [{shown[1]}, {shown[2]}]"


def memory_per_piece(points: list[dict[str, Any]], side: str, ranks: int) -> float:
    """Bytes of a rank's memory that each further piece of that rank costs, from the first point to
    the last. Worked example: 32 MiB more for 2 Mi pieces more of a rank: 16."""
    first, last = points[0], points[-1]
    grown = median(last["rss_max_bytes"][side]) - median(first["rss_max_bytes"][side])
    return grown * ranks / float(last["pieces"] - first["pieces"])

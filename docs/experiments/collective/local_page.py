"""local.md: the tables of the campaigns "local" and "independent"."""

from dataclasses import dataclass
from pathlib import Path

import page_parts as parts
import pictures
import results
import verdicts
from campaign import QUANTITIES, Campaign, Mpi, Setting, Workload
from forebay.units import show_bytes, show_seconds
from measuring import FOREBAY, STOCK
from results import Result
from verdicts import Verdict

_KINDS = ("testbed", "internals")  # directories of results that have pages of their own


@dataclass(frozen=True)
class Section:
    """The results of one MPI on one file system."""

    mpi: Mpi
    file_system: str
    found: dict[str, Result]  # by workload

    @property
    def key(self) -> str:
        return f"{self.mpi.key}-{self.file_system}"


def write(directory: Path, campaign: Campaign) -> Path:
    """Writes local.md and its pictures from what `directory`/results holds."""
    collective = sections(directory, campaign, campaign.local, "")
    independent = sections(directory, campaign, campaign.independent, "independent-")
    every = [result for section in (*collective, *independent) for result in section.found.values()]
    rules = campaign.rules
    lines = parts.head("Collective I/O on a local file system", "local --local DIR", every)
    lines += [
        f"Two ranks on two cores. Ratios are stock time / Forebay time inside MPI-IO, median of "
        f"interleaved pairs [interval], above 1 where Forebay is faster; writing includes the "
        f"closing of the file. A bar is *met* by the median, and *met by limit* where Forebay "
        f"reaches at least {parts.percent(rules.limit_in_place_of_bar)} of the physical limit, "
        f"which is the same bytes by plain large `pwrite` and `pread` from the same number of "
        f"processes, measured beside each pair. *Floor* is the least part of that limit which is "
        f"claimed. The [campaign](campaign.toml) has the arguments of each workload.",
        "",
    ]
    lines += parts.notes(directory, "local")
    for section in collective:
        lines += _section(directory, campaign, section)
    if not collective:
        lines += _unmeasured("Against stock collective calls", campaign.local)
    lines += [
        "## Never slower than independent calls",
        "",
        "The stock MPI's *independent* calls against the same program's collective calls through "
        "Forebay, which must notice when exchanging data between ranks does not pay.",
        "",
    ]
    lines += parts.notes(directory, "independent")
    for section in independent:
        lines += _independent_section(directory, campaign, section)
    if not independent:
        lines += _unmeasured("", campaign.independent)
    path = directory / "local.md"
    path.write_text("\n".join(lines).rstrip() + "\n")
    return path


def sections(directory: Path, campaign: Campaign, setting: Setting, prefix: str) -> list[Section]:
    """In the order of the page: each file system that was measured at all, with each MPI, so that
    what is missing shows."""
    root = directory / "results"
    names = [f"{prefix}{workload.name}.json" for workload in setting.workloads]
    kinds = {
        place.name.removeprefix(f"{mpi.key}-")
        for mpi in campaign.mpis.values()
        for place in root.glob(f"{mpi.key}-*")
        if any((place / name).is_file() for name in names)
    }
    # Memory first: what a file system costs cannot hide anything there.
    ordered = sorted(kinds - set(_KINDS), key=lambda kind: (kind != "tmpfs", kind))
    return [
        Section(mpi, kind, _stored(root / f"{mpi.key}-{kind}", setting, prefix))
        for kind in ordered
        for mpi in campaign.mpis.values()
    ]


def _stored(place: Path, setting: Setting, prefix: str) -> dict[str, Result]:
    return {
        workload.name: result
        for workload in setting.workloads
        if (result := results.load(place / f"{prefix}{workload.name}.json")) is not None
    }


def _unmeasured(title: str, setting: Setting) -> list[str]:
    rows = [[workload.name, workload.about, parts.NOT_MEASURED] for workload in setting.workloads]
    heading = [f"## {title}", ""] if title else []
    return [*heading, *parts.table(["workload", "", ""], rows, left=3), ""]


def _section(directory: Path, campaign: Campaign, section: Section) -> list[str]:
    rows, held, drawn = [], [], []
    for workload in campaign.local.workloads:
        result = section.found.get(workload.name)
        if result is None or result.failure:
            why = f"**{result.failure}**" if result else parts.NOT_MEASURED
            rows.append([workload.name, "", why, *[""] * 8])
            held += [Verdict.MISSED] * len(workload.bars) if result else []
            continue
        for quantity in QUANTITIES:
            row, found = bar_row(campaign, section, workload, result, quantity)
            if not row:
                continue
            rows.append(row)
            held += found
            ratio = result.ratio(quantity)
            assert ratio is not None
            bar = workload.bar(quantity, section.mpi.key)
            drawn.append(pictures.Line(workload.name, quantity, ratio, bar))
    names = ["workload", "", "stock / Forebay", "bar", "verdict", "limit"]
    names += ["stock of limit", "Forebay of limit", "floor", "all MPI-IO", "identical"]
    title = f"{section.mpi.title} on {section.file_system}"
    lines = [f"## {title}", "", parts.tally(held), ""]
    if drawn:
        picture = f"local-{section.key}.svg"
        pictures.draw(directory / picture, title, drawn)
        lines += [f"![Ratios, their intervals and the bars]({picture})", ""]
    lines += [*parts.table(names, rows, left=2), ""]
    return [*lines, *_engine_table(campaign.local, section)]


def bar_row(
    campaign: Campaign, section: Section, workload: Workload, result: Result, quantity: str
) -> tuple[list[str], list[Verdict]]:
    """One row of the table and the verdicts in it; empty if there are no such calls."""
    ratio = result.ratio(quantity)
    if ratio is None:
        return [], []
    stock, forebay = (result.fraction(side, quantity) for side in (STOCK, FOREBAY))
    bar = workload.bar(quantity, section.mpi.key)
    of_limit = forebay.median if forebay else None
    verdict = verdicts.of_bar(campaign.rules, ratio, bar, of_limit, identical=result.identical)
    floor = workload.floors.get(section.file_system)
    floor_verdict = verdicts.of_floor(campaign.rules, forebay, floor)
    limit = result.limit_seconds(quantity)
    every = result.ratio("mpiio")
    row = [
        workload.name,
        quantity,
        parts.ratio_text(ratio),
        "-" if bar is None else f"{bar:g}",
        parts.verdict_text(verdict),
        "-" if limit is None else show_seconds(limit),
        parts.percent(stock),
        parts.percent(forebay),
        "-" if floor is None
        else f"{parts.percent(floor)}: {parts.verdict_text(floor_verdict)}",
        parts.ratio_text(every),
        parts.identical_text([result]),
    ]  # fmt: skip
    return row, [verdict, floor_verdict]


def _engine_table(setting: Setting, section: Section) -> list[str]:
    """What Forebay did in the untimed pair, so that a missed bar can be traced."""
    rows = []
    for workload in setting.workloads:
        result = section.found.get(workload.name)
        for file in result.raw["engine"] if result else []:
            if file["bytes_asked"] is None or file["seconds"] is None:
                continue
            counters = file["counters"]
            asked = sum(file["bytes_asked"].values())
            rows.append(
                [
                    workload.name,
                    show_bytes(asked),
                    *(
                        show_seconds(file["seconds"][kind])
                        for kind in ("exchange", "storage", "waiting", "schedule")
                    ),
                    _per(counters["bytes_copied"], asked),
                    f"{counters['exchanged_calls']} / {counters['direct_calls']}",
                    f"{counters['schedules_built']} / {counters['schedules_reused']}",
                ]
            )
    if not rows:
        return []
    names = ["where Forebay's time went", "asked", "exchange", "storage", "waiting", "schedule"]
    names += ["copied / asked", "calls exchanged / direct", "schedules built / reused"]
    return [
        "Of the untimed pair, writing and reading together; times of the slowest rank, counts over "
        "all ranks. Waiting and storage overlap where storage works in the background.",
        "",
        *parts.table(names, rows),
        "",
    ]


def _per(amount: float, whole: float) -> str:
    return f"{amount / whole:.2f}" if whole else "-"


def _independent_section(directory: Path, campaign: Campaign, section: Section) -> list[str]:
    rows: list[list[str]] = []
    held: list[Verdict] = []
    drawn: list[pictures.Line] = []
    for workload in campaign.independent.workloads:
        result = section.found.get(workload.name)
        if result is None:
            rows.append([workload.name, "", parts.NOT_MEASURED, *[""] * 4])
            continue
        for quantity in QUANTITIES:
            ratio = result.ratio(quantity)
            if ratio is None:
                continue
            bar = workload.bar(quantity, section.mpi.key)
            verdict = verdicts.of_bar(campaign.rules, ratio, bar, None, identical=result.identical)
            held.append(verdict)
            drawn.append(pictures.Line(workload.name, quantity, ratio, bar))
            rows.append(
                [
                    workload.name,
                    quantity,
                    parts.ratio_text(ratio),
                    "-" if bar is None else f"{bar:g}",
                    parts.verdict_text(verdict),
                    decision(result, quantity),
                    parts.identical_text([result]),
                ]
            )
    names = ["workload", "", "stock independent / Forebay collective", "bar", "verdict"]
    names += ["Forebay's way", "identical"]
    title = f"{section.mpi.title} on {section.file_system}, independent"
    lines = [f"### {title}", "", parts.tally(held), ""]
    if drawn:
        picture = f"independent-{section.key}.svg"
        pictures.draw(directory / picture, title, drawn)
        lines += [f"![Ratios, their intervals and the bars]({picture})", ""]
    return [*lines, *parts.table(names, rows, left=2), ""]


def decision(result: Result, quantity: str) -> str:
    """Whether the calls of this kind went through aggregators or directly."""
    counted: list[dict[str, int]] = [
        record["counters"] for record in result.raw["records"] if record["calls"][quantity] > 0
    ]
    ways = {
        "exchange": sum(counters["exchanged_calls"] for counters in counted),
        "direct": sum(counters["direct_calls"] for counters in counted),
    }
    return " and ".join(way for way, calls in ways.items() if calls) or "-"

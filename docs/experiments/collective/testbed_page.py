"""testbed.md: the tables of the campaign "testbed"."""

from dataclasses import dataclass
from pathlib import Path

import page_parts as parts
import pictures
import results
import verdicts
from campaign import QUANTITIES, Campaign, Hints, Mpi, Workload
from forebay.statistics import Ratio, median_ratio
from forebay.units import parse_rate, show_bytes
from measuring import FOREBAY, STOCK
from results import Result
from testbed_runs import against
from verdicts import Verdict


@dataclass(frozen=True)
class Found:
    """The results of one workload: against the defaults, the sweep, against the best hints."""

    default: Result
    sweep: Result | None
    best: dict[str, Result]  # by the hints as text

    @property
    def comparisons(self) -> list[Result]:
        return [self.default, *self.best.values()]


def write(directory: Path, campaign: Campaign) -> Path:
    """Writes testbed.md and its pictures from what `directory`/results holds."""
    described = campaign.testbed
    by_mpi = {
        mpi.key: {
            workload.name: found
            for workload in described.setting.workloads
            if (found := _load(directory / "results" / f"{mpi.key}-testbed", workload)) is not None
        }
        for mpi in campaign.mpis.values()
    }
    every = [
        result
        for stored in by_mpi.values()
        for found in stored.values()
        for result in (*found.comparisons, *([found.sweep] if found.sweep else []))
    ]
    nodes = described.setting.ranks // (described.setting.ranks_per_node or 1)
    aggregate = described.servers * parse_rate(described.bandwidth)
    lines = parts.head("Collective I/O on an emulated parallel file system", "testbed", every)
    lines += [
        f"{described.setting.ranks} ranks on {nodes} emulated nodes; {described.servers} servers "
        f"of {described.bandwidth}, latency {described.latency}, stripes of {described.stripe}, "
        f"{described.lock_cost} lost whenever a stripe's writer changes. The servers together "
        f"move {show_bytes(aggregate)}/s; percentages are of that. *Plain calls* are the same "
        f"bytes by plain large `pwrite` and `pread` from as many processes. Ratios are stock time "
        f"/ Forebay time inside MPI-IO, median of interleaved pairs [interval]; writing includes "
        f"the closing of the file, which waits for the servers. The stock MPI runs with its "
        f"defaults and with the best hints of the sweep below, for writing and for reading; the "
        f"bar is on the smallest of these ratios. A bar is *met by limit* where Forebay reaches "
        f"{parts.percent(campaign.rules.limit_in_place_of_bar)} of what the servers can do: then "
        f"the stock MPI is near their limit as well.",
        "",
    ]
    lines += parts.notes(directory, "testbed")
    for mpi in campaign.mpis.values():
        lines += _section(directory, campaign, mpi, by_mpi[mpi.key], aggregate)
    path = directory / "testbed.md"
    path.write_text("\n".join(lines).rstrip() + "\n")
    return path


def _load(base: Path, workload: Workload) -> Found | None:
    default = results.load(base / f"{workload.name}.json")
    if default is None:
        return None
    sweep = results.load(base / f"{workload.name}-sweep.json")
    best = {}
    for hints, path in against(sweep.raw["best"], base, workload.name) if sweep else []:
        result = results.load(path)
        if result is not None and result.raw["hints"]["stock"] == hints:
            best[hints_text(hints)] = result
    return Found(default, sweep, best)


def hints_text(hints: Hints) -> str:
    """The hints as they are written for --stock-hints."""
    return ";".join(f"{key}={value}" for key, value in hints.items()) or "defaults"


def _section(
    directory: Path, campaign: Campaign, mpi: Mpi, stored: dict[str, Found], aggregate: float
) -> list[str]:
    rows: list[list[str]] = []
    held: list[Verdict] = []
    drawn: list[pictures.Line] = []
    for workload in campaign.testbed.setting.workloads:
        found = stored.get(workload.name)
        if found is None or found.default.failure:
            why = f"**{found.default.failure}**" if found else parts.NOT_MEASURED
            rows.append([workload.name, "", why, *[""] * 9])
            held += [Verdict.MISSED] * len(workload.bars) if found else []
            continue
        for quantity in QUANTITIES:
            row, verdicts_found, ratio = bar_row(
                campaign, mpi, workload, found, quantity, aggregate
            )
            rows.append(row)
            held += verdicts_found
            if ratio is not None:
                bar = workload.bar(quantity, mpi.key)
                drawn.append(pictures.Line(workload.name, quantity, ratio, bar))
    names = ["workload", "", "plain calls", "stock, defaults", "stock, best hints", "Forebay"]
    names += ["bandwidth", "ratio, defaults", "ratio, best hints", "bar", "verdict", "identical"]
    lines = [f"## {mpi.title}", "", parts.tally(held), ""]
    if drawn:
        picture = f"testbed-{mpi.key}.svg"
        title = f"{mpi.title}, testbed: against the better of defaults and best hints"
        pictures.draw(directory / picture, title, drawn)
        lines += [f"![Ratios, their intervals and the bars]({picture})", ""]
    lines += [*parts.table(names, rows, left=2), ""]
    for workload in campaign.testbed.setting.workloads:
        swept = stored.get(workload.name)
        if swept is not None and swept.sweep is not None:
            lines += _sweep_table(workload, swept, aggregate)
    return lines


def bar_row(
    campaign: Campaign,
    mpi: Mpi,
    workload: Workload,
    found: Found,
    quantity: str,
    aggregate: float,
) -> tuple[list[str], list[Verdict], Ratio | None]:
    """One row of the table, the verdicts in it, and the ratio that counts: the smallest one.

    The columns of the best hints show the campaign whose ratio is the smaller, of those with the
    hints best for writing and best for reading."""
    sound = [result for result in found.best.values() if not result.failure]
    best = min(sound, key=lambda result: _median(result.ratio(quantity)), default=None)
    against_default = found.default.ratio(quantity)
    against_best = best.ratio(quantity) if best else None
    ratio = verdicts.smallest([against_default, against_best])
    forebay = median_ratio(
        [
            rate / aggregate
            for result in (found.default, *sound)
            for rate in result.rates(FOREBAY, quantity)
        ]
    )
    bar = workload.bar(quantity, mpi.key)
    verdict = verdicts.of_bar(
        campaign.rules,
        ratio,
        bar,
        forebay.median if forebay else None,
        identical=all(result.identical for result in (found.default, *sound)),
    )
    bandwidth = verdicts.of_floor(campaign.rules, forebay, campaign.testbed.aggregate_at_least)
    row = [
        workload.name,
        quantity,
        rate_text(median_ratio(found.default.rates("limit", quantity)), aggregate),
        rate_text(median_ratio(found.default.rates(STOCK, quantity)), aggregate),
        rate_text(median_ratio(best.rates(STOCK, quantity)), aggregate) if best else "-",
        "-" if forebay is None else f"{parts.percent(forebay)}",
        parts.verdict_text(bandwidth),
        parts.ratio_text(against_default),
        parts.ratio_text(against_best),
        "-" if bar is None else f"{bar:g}",
        parts.verdict_text(verdict),
        parts.identical_text([found.default, *sound]),
    ]
    return row, [verdict, bandwidth], ratio


def _median(ratio: Ratio | None) -> float:
    return float("inf") if ratio is None else ratio.median


def rate_text(rate: Ratio | None, aggregate: float) -> str:
    """A median rate as part of the servers' bandwidth."""
    return "-" if rate is None else parts.percent(rate.median / aggregate)


def _sweep_table(workload: Workload, found: Found, aggregate: float) -> list[str]:
    """What the stock MPI did with each set of hints: one run each, so read them coarsely."""
    assert found.sweep is not None
    asked = {
        quantity: sum(file["bytes_asked"][quantity] for file in found.default.raw["engine"])
        for quantity in QUANTITIES
    }
    best = found.sweep.raw["best"]
    rows = []
    for tried in found.sweep.raw["tried"]:
        row = [f"`{hints_text(tried['hints'])}`"]
        for quantity in QUANTITIES:
            seconds = tried[quantity]
            text = "failed or too slow"
            if seconds:
                rate = asked[quantity] / seconds
                text = f"{show_bytes(rate)}/s ({parts.percent(rate / aggregate)})"
            row.append(f"**{text}**" if tried["hints"] == best[quantity] else text)
        rows.append(row)
    return [
        f"The sweep for `{workload.name}`, one run each, the best in bold:",
        "",
        *parts.table(["stock hints", *QUANTITIES], rows),
        "",
    ]

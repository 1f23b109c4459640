"""cache.md: the tables and pictures of the campaign "cache"."""

from dataclasses import dataclass
from pathlib import Path
from statistics import median

import cache_picture
import page_parts as parts
import results
from cache_case import MODES, NEVER, STOCK
from cache_rates import Rates
from cache_runs import result_path
from campaign import Cache, Campaign, Device, Mpi, Workload
from forebay.units import parse_rate, show_bytes
from verdicts import Verdict

# How MODES are called in tables and pictures.
NAMES = ("stock", "Forebay, no cache", "cache", "never flushed")


@dataclass(frozen=True)
class Case(Rates):
    """With so many aggregators and such buffers."""

    aggregators: int
    buffer: str

    def bound(self, global_rate: float) -> float:
        """What can be had at most if the last flush is waited for: every file at the rate of a
        cache that never flushes, and the last one once more at the servers' rate."""
        to_cache = sum(self.bytes) / median(self.perceived(NEVER))
        return sum(self.bytes) / (to_cache + self.bytes[-1] / global_rate)


def write(directory: Path, campaign: Campaign) -> Path:
    """Writes cache.md and its pictures from what `directory`/results holds."""
    cache = campaign.cache
    series = cache.series
    found = {
        (mpi.key, device.name, workload.name): _cases(directory, cache, mpi, device, workload)
        for mpi in campaign.mpis.values()
        for device in cache.devices
        for workload in series.setting.workloads
    }
    every = [case.result for cases in found.values() for case in cases]
    testbed = campaign.testbed
    servers = testbed.servers * parse_rate(testbed.bandwidth)
    nodes = series.setting.ranks // (series.setting.ranks_per_node or 1)
    title = "The write-behind cache on an emulated parallel file system"
    lines = parts.head(title, "cache", every)
    lines += [
        f"{series.setting.ranks} ranks on {nodes} emulated nodes write {series.files} files, one "
        f"after another; the servers together move {show_bytes(servers)}/s. A cache that is "
        f"flushed has {series.compute_s:g} s of computing in between, the others, for which "
        f"nothing happens then, none. This is the evaluation of E10 (Congiu) in miniature. "
        f"*Perceived* bandwidth is bytes for the time of the slowest rank inside write and close, "
        f"and, as E10 counts, for what of the flush the computing does not hide; opening is not in "
        f"it. *Cache* closes at once (`forebay_cache_flush=deferred`) and flushes while the "
        f"program computes; *last flush exposed* adds the wait for the last file, after which "
        f"nothing is computed, and the bound is what arithmetic allows then: every file at the "
        f"rate of *never flushed*, the last one once more at the servers' rate. Medians; a ratio "
        f"is of runs of one round, [interval]. Below: the last file's bytes for the time of "
        f"writing it and of waiting for its flush; those of all files that were never flushed, "
        f"for the time of `forebay cache recover`; and what logs hold beside the program's bytes. "
        f"On slow devices the fewest aggregators have a bar alone: no worse than the stock MPI, "
        f"which is met if the interval of the ratio reaches 1.",
        "",
    ]
    lines += parts.notes(directory, "cache")
    for mpi in campaign.mpis.values():
        for device in cache.devices:
            lines += _section(directory, cache, mpi, device, found, servers)
    path = directory / "cache.md"
    path.write_text("\n".join(lines).rstrip() + "\n")
    return path


def _cases(
    directory: Path, cache: Cache, mpi: Mpi, device: Device, workload: Workload
) -> list[Case]:
    cases = []
    for aggregators in cache.aggregators:
        for buffer in device.buffers:
            path = result_path(directory / "results", mpi, device, workload, aggregators, buffer)
            result = results.load(path)
            if result is not None:
                cases.append(Case(result, aggregators, buffer))
    return cases


def _section(
    directory: Path,
    cache: Cache,
    mpi: Mpi,
    device: Device,
    found: dict[tuple[str, str, str], list[Case]],
    servers: float,
) -> list[str]:
    measured = [
        (workload, cases)
        for workload in cache.series.setting.workloads
        if (cases := found[mpi.key, device.name, workload.name])
    ]
    if not measured:
        return []
    where = "memory"
    if device.per_aggregator is not None:
        where = f"a device of {device.per_aggregator} for each aggregator"
    lines = [f"## {mpi.title}, logs on {where}", ""]
    lines += parts.sleeping(case.result for _, cases in measured for case in cases)
    for workload, cases in measured:
        picture = f"cache-{mpi.key}-{device.name}-{workload.name}.svg"
        curves = {
            name: [median(case.perceived(mode)) for case in cases]
            for mode, name in zip(MODES, NAMES, strict=True)
        }
        published = {}
        if workload.published_times is not None:
            times = workload.published_times
            stock = curves[NAMES[0]]
            published = {f"{times:g} times stock, as E10": [times * rate for rate in stock]}
        marks = [f"{case.aggregators}\n{case.buffer}" for case in cases]
        title = f"{workload.name}: {workload.about}"
        axis = "aggregators, buffer"
        cache_picture.draw(directory / picture, title, axis, marks, curves, published)
        verdicts = [_verdict(cache, device, workload, case, servers) for case in cases]
        claims = [_log_claims(cache, device, case, servers) for case in cases]
        lines += [
            f"### {workload.name}",
            "",
            parts.tally([*verdicts, *(claim for each in claims for claim in each)]),
            "",
            *([f"E10: {workload.published}.", ""] if workload.published else []),
            f"![Perceived bandwidth by aggregators and buffer]({picture})",
            "",
            *_table(cases, verdicts, servers),
            "",
            *_log_table(cases, claims, servers),
            "",
        ]
    return lines


def _verdict(
    cache: Cache, device: Device, workload: Workload, case: Case, servers: float
) -> Verdict:
    """On memory: hidden flush with the most aggregators, or the bound where the last flush counts.
    On a slow device with the fewest aggregators: no worse than the stock MPI."""
    ratio = case.times(STOCK)
    if ratio is None or not case.identical:
        return Verdict.MISSED
    if device.per_aggregator is not None:
        if case.aggregators > min(cache.aggregators):
            return Verdict.NO_BAR
        return Verdict.MET if ratio.high >= 1 else Verdict.MISSED
    if workload.name == cache.exposed_workload:
        part = median(case.exposed()) / case.bound(servers)
        return Verdict.MET if part >= cache.exposed_at_least else Verdict.MISSED
    if case.aggregators < max(cache.aggregators):
        return Verdict.NO_BAR
    return Verdict.MET if ratio.median >= cache.hidden_at_least else Verdict.MISSED


def _table(cases: list[Case], verdicts: list[Verdict], servers: float) -> list[str]:
    names = ["aggregators", "buffer", *NAMES, "cache / stock", "last flush exposed", "of bound"]
    names += ["verdict", "identical"]
    rows = []
    for case, verdict in zip(cases, verdicts, strict=True):
        exposed = median(case.exposed())
        rows.append(
            [
                str(case.aggregators),
                case.buffer,
                *(parts.median_rate(case.perceived(mode)) for mode in MODES),
                parts.ratio_text(case.times(STOCK)),
                f"{show_bytes(exposed)}/s",
                parts.percent(exposed / case.bound(servers)),
                parts.verdict_text(verdict),
                case.identical_text(),
            ]
        )
    return parts.table(names, rows, left=2)


def _log_claims(cache: Cache, device: Device, case: Case, servers: float) -> list[Verdict]:
    """Of the flush, of the recovery and of the log's overhead; logs in memory alone have bars."""
    if device.per_aggregator is not None:
        return [Verdict.NO_BAR] * 3
    kept = [
        median(case.flushed()) >= cache.flushed_at_least * servers,
        median(case.recovered()) >= cache.recovered_at_least * servers,
        case.log_overhead() <= cache.overhead_at_most,
    ]
    return [Verdict.MET if met and case.identical else Verdict.MISSED for met in kept]


def _log_table(cases: list[Case], claims: list[list[Verdict]], servers: float) -> list[str]:
    names = ["aggregators", "buffer", "last file flushed", "of servers", "verdict"]
    names += ["recovered", "of servers", "verdict", "log overhead", "verdict"]
    rows = []
    for case, (flush, recovery, overhead) in zip(cases, claims, strict=True):
        rows.append(
            [
                str(case.aggregators),
                case.buffer,
                parts.median_rate(case.flushed()),
                parts.percent(median(case.flushed()) / servers),
                parts.verdict_text(flush),
                parts.median_rate(case.recovered()),
                parts.percent(median(case.recovered()) / servers),
                parts.verdict_text(recovery),
                f"{100 * case.log_overhead():.2f} %",
                parts.verdict_text(overhead),
            ]
        )
    return parts.table(names, rows, left=2)

"""cache-local.md: the tables and pictures of the campaign "cache-local"."""

from dataclasses import dataclass
from pathlib import Path

import cache_picture
import page_parts as parts
import results
import verdicts
from cache_case import NEVER, OFF, ON, STOCK, SYNCED
from cache_local_runs import FIO_FILES, FIO_LOGS, LOGS, result_path
from cache_rates import Rates
from campaign import Campaign, FilePlace, LocalCache, Mpi, Rules, Workload
from forebay.statistics import Ratio, median, median_ratio
from forebay.units import parse_size, show_bytes
from verdicts import Verdict

_SHOWN = {
    STOCK: "stock",
    SYNCED: "stock, synced",
    OFF: "Forebay, no cache",
    ON: "cache",
    NEVER: "never flushed",
}


@dataclass(frozen=True)
class Case(Rates):
    """Of one workload, with logs in memory or on the disk."""

    workload: Workload
    logs: str

    def fio(self, device: str) -> list[float]:
        """Bytes a second that it makes durable where files lie, or logs."""
        beside = self.result.raw["beside"]
        return [float(rate) for rate in beside.get(device, beside[FIO_FILES])]

    def flushed_of_fio(self) -> Ratio | None:
        return _ratio(self.flushed(), self.fio(FIO_FILES))

    def recovered_of_fio(self) -> Ratio | None:
        """On the slower of the two devices."""
        both = zip(self.fio(FIO_FILES), self.fio(FIO_LOGS), strict=True)
        return _ratio(self.recovered(), [min(pair) for pair in both])

    def durable_of_synced(self) -> Ratio | None:
        """The cache when its last flush is waited for, of the stock MPI that syncs each file."""
        return _ratio(self.exposed(), self.perceived(SYNCED))


@dataclass(frozen=True)
class Claims:
    """What became of them in one case."""

    identical: Verdict
    flushed: Verdict
    recovered: Verdict
    overhead: Verdict

    def all(self) -> list[Verdict]:
        return [self.identical, self.flushed, self.recovered, self.overhead]


def _ratio(ours: list[float], theirs: list[float]) -> Ratio | None:
    """Of one round each."""
    return median_ratio([one / other for one, other in zip(ours, theirs, strict=True)])


def write(directory: Path, campaign: Campaign) -> Path:
    """Writes cache-local.md and its pictures from what `directory`/results holds."""
    described = campaign.cache_local
    series = described.series
    found = [
        (place, mpi, cases)
        for place in described.places
        for mpi in campaign.mpis.values()
        if (cases := _cases(directory, described, place, mpi))
    ]
    every = [case.result for _, _, cases in found for case in cases]
    title = "The write-behind cache on real file systems"
    lines = parts.head(title, "cache-local --local DIR", every)
    lines += [
        f"{series.setting.ranks} ranks of one node write {series.files} files of about "
        f"{show_bytes(parse_size(described.file))} each, one after another, with the defaults of "
        f"the MPI and of Forebay. As [on an emulated parallel file system](cache.md), a cache that "
        f"is flushed has {series.compute_s:g} s of computing in between, the others, for which "
        f"nothing happens then, none, and *perceived* bandwidth is bytes for the time of the "
        f"slowest rank inside write and close, and for what of the flush the computing does not "
        f"hide. What the stock MPI has written when it closes a file is in the page cache, which "
        f"is as fast as a log: no ratio to it is claimed. *Stock, synced* calls `MPI_File_sync` "
        f"before each close: its files are durable then, as the cache's are at the end if the "
        f"*last flush* is waited for. Medians; a ratio is of runs of one round, [interval].",
        "",
        "Below: *fio* writes as many bytes in one process, through the page cache and past it, the "
        "faster of which counts, and its time ends when they are durable; where logs and files "
        "share a device it is measured once. The last file's bytes for the time of writing it and "
        "of waiting for its flush; those in logs that were never flushed, for all of the command "
        "`forebay cache recover`, whose logs on a disk were written out before and are in the page "
        "cache; the part of the bytes that went through logs, which is less where the cache was "
        "given up, and what these hold beside them.",
        "",
    ]
    lines += parts.notes(directory, "cache-local")
    for place, mpi, cases in found:
        lines += _section(directory, campaign.rules, described, place, mpi, cases)
    path = directory / "cache-local.md"
    path.write_text("\n".join(lines).rstrip() + "\n")
    return path


def _cases(directory: Path, described: LocalCache, place: FilePlace, mpi: Mpi) -> list[Case]:
    cases = []
    for workload in described.series.setting.workloads:
        for logs in LOGS:
            path = result_path(directory / "results", mpi, place, workload, logs)
            result = results.load(path)
            if result is not None:
                cases.append(Case(result, workload, logs))
    return cases


def _section(
    directory: Path,
    rules: Rules,
    described: LocalCache,
    place: FilePlace,
    mpi: Mpi,
    cases: list[Case],
) -> list[str]:
    picture = f"cache-local-{mpi.key}-{place.name}.svg"
    title = f"{mpi.title}, files on {place.title}"
    marks = [f"{case.workload.name}\n{case.logs}" for case in cases]
    series = {
        name: [median(case.perceived(mode)) for case in cases] for mode, name in _SHOWN.items()
    }
    axis = "workload, where logs are"
    cache_picture.draw(directory / picture, title, axis, marks, series, joined=False)
    kinds = parts.distinct(str(case.result.raw["file_system"]) for case in cases)
    claims = [_claims(rules, described, place, case) for case in cases]
    return [
        f"## {title} ({', '.join(kinds)})",
        "",
        parts.tally(verdict for each in claims for verdict in each.all()),
        "",
        *parts.sleeping(case.result for case in cases),
        f"![Perceived bandwidth by workload and where logs are]({picture})",
        "",
        *_bandwidths(cases),
        "",
        *_logs(described, place, cases, claims),
        "",
    ]


def _claims(rules: Rules, described: LocalCache, place: FilePlace, case: Case) -> Claims:
    """Being fast with other bytes is worth nothing."""
    low = case.log_overhead() <= described.overhead_at_most
    found = [
        Verdict.MET,
        verdicts.of_floor(rules, case.flushed_of_fio(), place.flushed_at_least),
        verdicts.of_floor(rules, case.recovered_of_fio(), described.recovered_at_least),
        Verdict.MET if low else Verdict.MISSED,
    ]
    if not case.identical:
        found = [each if each is Verdict.NO_BAR else Verdict.MISSED for each in found]
    return Claims(*found)


def _bandwidths(cases: list[Case]) -> list[str]:
    names = ["workload", "logs", *_SHOWN.values(), "cache / stock", "last flush waited for"]
    names += ["of synced", "identical"]
    rows = [
        [
            case.workload.name,
            case.logs,
            *(parts.median_rate(case.perceived(mode)) for mode in _SHOWN),
            parts.ratio_text(case.times(STOCK)),
            parts.median_rate(case.exposed()),
            parts.ratio_text(case.durable_of_synced()),
            case.identical_text(),
        ]
        for case in cases
    ]
    return parts.table(names, rows, left=2)


def _logs(
    described: LocalCache, place: FilePlace, cases: list[Case], claims: list[Claims]
) -> list[str]:
    names = ["workload", "logs", "fio, files", "fio, logs"]
    names += ["last file flushed", "of fio", "bar", "verdict"]
    names += ["recovered", "of the slower", "bar", "verdict"]
    names += ["through logs", "log overhead", "verdict"]
    rows = [
        [
            case.workload.name,
            case.logs,
            parts.median_rate(case.fio(FIO_FILES)),
            parts.median_rate(case.fio(FIO_LOGS)),
            parts.median_rate(case.flushed()),
            parts.ratio_text(case.flushed_of_fio()),
            _bar(place.flushed_at_least),
            parts.verdict_text(claim.flushed),
            f"{show_bytes(median(case.left()))} at {parts.median_rate(case.recovered())}",
            parts.ratio_text(case.recovered_of_fio()),
            _bar(described.recovered_at_least),
            parts.verdict_text(claim.recovered),
            parts.percent(case.through_logs()),
            f"{100 * case.log_overhead():.2f} %",
            parts.verdict_text(claim.overhead),
        ]
        for case, claim in zip(cases, claims, strict=True)
    ]
    return parts.table(names, rows, left=2)


def _bar(bar: float | None) -> str:
    return "-" if bar is None else f"{bar:g}"

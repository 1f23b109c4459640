"""log.md: the tables of the campaign "log"."""

from pathlib import Path

import page_parts as parts
import verdicts
from campaign import Campaign
from forebay.statistics import median_ratio
from forebay.units import show_bytes
from local_page import Section, sections
from log_runs import FIO, FIO_DURABLE, LOG, LOG_CALLS, OFF, ON, ONE_BUFFER

# What Forebay and fio take in, by what has happened to it when the time ends.
_CLAIMED = {"in calls": (LOG_CALLS, FIO), "durable": (LOG, FIO_DURABLE)}


def write(directory: Path, campaign: Campaign) -> Path:
    """Writes log.md from what `directory`/results holds."""
    described = sections(directory, campaign, campaign.log.setting, "log-")
    measured = [section for section in described if section.found]
    every = [result for section in measured for result in section.found.values()]
    lines = parts.head("What the write-behind cache takes in", "log --local DIR", every)
    lines += [
        f"{campaign.log.setting.ranks} ranks write to [logs](../../guide/cache.md) that are never "
        f"flushed (`forebay_cache_flush=none`), and fio writes as many bytes from as many "
        f"processes, each one file, 1 MiB a call, into the same directory; in turn, in shuffled "
        f"order. fio writes from memory that is as large as what it writes, as the program does, "
        f"and, to see what that costs, from *one buffer* of 1 MiB, which stays in the processor's "
        f"cache. *In calls*: the program's bytes for the time of the slowest rank inside its write "
        f"calls, beside fio without a sync; both go through the page cache where the file system "
        f"has one. *Durable*: for the time inside write and close, which makes the logs durable, "
        f"beside fio with an fsync at the end. *Flushed* is the same with a flush to a file in "
        f"that directory, which is durable when the close returns; *no cache* writes to that file, "
        f"which is not durable then. Nobody gains by a cache on the file system that it flushes "
        f"to. Medians; a ratio is of runs of one round, [interval].",
        "",
    ]
    lines += parts.notes(directory, "log")
    for section in measured:
        lines += _section(campaign, section)
    path = directory / "log.md"
    path.write_text("\n".join(lines).rstrip() + "\n")
    return path


def _section(campaign: Campaign, section: Section) -> list[str]:
    names = ["workload", "", "bytes", "no cache", "flushed", "fio, one buffer", "until", "log"]
    names += ["fio", "log / fio", "bar", "verdict"]
    least = campaign.log.of_device_at_least
    rows, held = [], []
    for workload in campaign.log.setting.workloads:
        result = section.found.get(workload.name)
        if result is None:
            rows.append([workload.name, workload.about, parts.NOT_MEASURED, *[""] * 9])
            continue
        rates = result.raw["bytes_per_s"]
        shown = [workload.name, workload.about, show_bytes(result.raw["bytes"])]
        shown += [parts.median_rate(rates[side]) for side in (OFF, ON, ONE_BUFFER)]
        for until, (log, fio) in _CLAIMED.items():
            pairs = zip(rates[log], rates[fio], strict=True)
            ratio = median_ratio([ours / theirs for ours, theirs in pairs])
            verdict = verdicts.of_floor(campaign.rules, ratio, least)
            held.append(verdict)
            rows.append(
                [
                    *shown,
                    until,
                    parts.median_rate(rates[log]),
                    parts.median_rate(rates[fio]),
                    parts.ratio_text(ratio),
                    f"{least:g}",
                    parts.verdict_text(verdict),
                ]
            )
            shown = [""] * len(shown)
    heading = f"## {section.mpi.title}, logs on {section.file_system}"
    return [heading, "", parts.tally(held), "", *parts.table(names, rows, left=2), ""]

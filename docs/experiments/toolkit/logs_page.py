"""logs.md: what is made of Darshan's logs, made of the results."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

import page_parts as parts
from forebay.report.findings import LEAST_SHARE
from forebay.units import show_count, show_share
from toolkit_pages import SCRIPT, stolen_text, stored_rounds

NAME = "logs"
_NAME_MOST = 32  # characters; the names of Darshan's logs have the job's time and number


def write(output: Path) -> Path:
    """Writes logs.md. Returns its path."""
    rounds = stored_rounds(output, NAME)
    lines = parts.head("What is made of Darshan's logs", NAME, rounds, SCRIPT)
    lines += [
        "Every log that PyDarshan's package brings is [imported](../../guide/traces.md#import) "
        "and [reported](../../guide/report.md) on. None is to fail, and there is to be no advice "
        f"on a job whose I/O took less than {show_share(LEAST_SHARE)} of its processes' time.",
        "",
    ]
    if rounds:
        lines += [stolen_text(rounds), ""]
    lines += parts.notes(output, NAME)
    lines += ["## The logs", ""]
    if rounds:
        lines += _logs([one.raw for one in rounds])
    else:
        lines += parts.NOTHING
    page = output / f"{NAME}.md"
    page.write_text("\n".join(lines).rstrip() + "\n")
    return page


def _logs(rounds: list[dict[str, Any]]) -> list[str]:
    latest = rounds[-1]["logs"]
    lines = [
        f"Those of {rounds[-1]['package']}. *Calls* are in logs with extended traces (DXT) alone; "
        "others have sums, by file and process, or by file where all processes used it: in "
        "*records*. *Names* are files, and datasets in them. "
        "Seconds are of the whole command, medians of the rounds; starting it is most of them. "
        "*The same* has the bytes of a log above.",
        "",
    ]
    names = ["log", "format", "written by", "what it holds", "processes", "names", "records",
             "calls", "I/O", "findings", "import, s", "report, s"]  # fmt: skip
    rows, seen = [], dict[str, str]()
    for one in latest:
        name = _short(one["log"])
        first = seen.setdefault(one["digest"], name)
        if first != name:
            name += f", the same as {first}"
        rows.append(_row(name, one, rounds))
    lines += parts.table(names, rows, left=4)
    return [*lines, "", *_verdicts(rounds)]


def _short(path: str) -> str:
    name = Path(path).stem
    if len(name) > _NAME_MOST:
        name = name[: _NAME_MOST - 3] + "..."
    return f"`{Path(path).parent.name}/{name}`"


def _row(name: str, one: dict[str, Any], rounds: list[dict[str, Any]]) -> list[str]:
    if "error" in one:
        return [name, *("-" for _ in range(8)), "**failed**", "-", "-"]
    share = one["io_share"]
    seconds = [
        parts.digits(median(found[key] for found in _of(one["log"], rounds) if key in found))
        for key in ("import_s", "report_s")
    ]
    return [
        name,
        one["format"],
        one["tool"],
        _sort(one),
        *(show_count(one[key]) for key in ("processes", "files", "records", "calls")),
        "none" if share is None else show_share(share),
        _findings(one),
        *seconds,
    ]


def _of(log: str, rounds: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one for each in rounds for one in each["logs"] if one["log"] == log]


def _sort(one: dict[str, Any]) -> str:
    traced = [level for level, kept in one["levels"].items() if kept == "data"]
    told = f"DXT ({', '.join(traced)})" if traced else "counters alone"
    partial = f"; incomplete: {', '.join(one['partial'])}" if one["partial"] else ""
    return f"{told}: {', '.join(one['modules'])}{partial}"


def _findings(one: dict[str, Any]) -> str:
    if one["findings"]:
        return "; ".join(one["findings"])
    if one["io_share"] is None:
        return "none: the share cannot be told"
    if _has_little(one):
        return "none: too little I/O"
    return "none that calls show" if one["calls"] else "none: sums alone"


def _has_little(one: dict[str, Any]) -> bool:
    return one["io_share"] is not None and one["io_share"] < LEAST_SHARE


def _verdicts(rounds: list[dict[str, Any]]) -> list[str]:
    """One line for each of the two claims, over all rounds."""
    every = [one for each in rounds for one in each["logs"]]
    failed = [one for one in every if "error" in one]
    little = [one for one in every if "error" not in one and _has_little(one)]
    advised = [one for one in little if one["findings"] or one["lines"]]
    count = len({one["digest"] for one in every})
    lines = [
        f"- Imported and reported on: {len(every) - len(failed)} of {len(every)} times, "
        f"{count} different logs: {_met(failed)}.",
        f"- With less than {show_share(LEAST_SHARE)} of I/O: {len(little)} times; with advice all "
        f"the same: {len(advised)}: {_met(advised)}.",
    ]
    lines += [
        f"- {_short(log)}: {error}"
        for log, error in dict.fromkeys((one["log"], one["error"]) for one in failed)
    ]
    return [*lines, ""]


def _met(against: list[dict[str, Any]]) -> str:
    return "**missed**" if against else "met"

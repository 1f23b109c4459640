"""All that a report says, before it is a page or lines on a terminal."""

import shlex
from dataclasses import dataclass
from typing import Any

from forebay.characterise import app
from forebay.characterise.app import Application
from forebay.report import asked_hints, grids, ladder, layers, timeline
from forebay.report import budget as budget_of
from forebay.report import funnel as funnel_of
from forebay.report.asked_hints import AskedHint
from forebay.report.budget import Budget
from forebay.report.findings import LEAST_SHARE, Finding, Search
from forebay.report.funnel import Funnel
from forebay.report.grids import OffsetTime, RankTime
from forebay.report.ladder import Ladder
from forebay.system_file import System
from forebay.trace import places, unseen
from forebay.trace.directory import Trace
from forebay.units import show_seconds, show_share

JSON_VERSION = 1


@dataclass(frozen=True)
class Contents:
    """`lines` are to copy. `caveats` stand beside the verdict. `ladder` is None without a system
    file, the pictures where the trace has no calls."""

    trace: Trace
    verdict: str
    lines: list[str]
    caveats: list[str]
    budget: Budget
    ladder: Ladder | None
    ranks: RankTime | None
    offsets: OffsetTime | None
    funnel: Funnel
    findings: list[Finding]
    settings: list[AskedHint]
    application: Application

    def as_json(self) -> dict[str, Any]:
        """docs/guide/report.md says what is in it."""
        run, mpi_files = self.trace.run, self.application.mpi_files
        return {
            "version": JSON_VERSION,
            "trace": str(self.trace.path),
            "command": run.command,
            "verdict": self.verdict,
            "lines": self.lines,
            "caveats": self.caveats,
            "budget": self.budget.as_json(),
            "ladder": None if self.ladder is None else self.ladder.as_json(),
            "funnel": self.funnel.as_json(),
            "mpi_files": None if mpi_files is None else mpi_files.as_json(),
            "findings": [dict(vars(finding)) for finding in self.findings],
            "settings": [each.as_json() for each in self.settings],
            "complete": run.complete,
            "losses": run.losses,
            "overhead": run.overhead,
        }


def examine(trace: Trace, system: System | None = None) -> Contents:
    """Reads a trace once and works out everything."""
    found = layers.load(trace)
    owners = places.owners(trace)
    posix, mpi = layers.of_storage(trace, found["posix"], owners), found["mpiio"]
    moments = timeline.segments(posix, mpi)
    budget = budget_of.of(trace, posix, mpi, moments)
    own = layers.of_the_application(posix, owners)
    funnel = funnel_of.of(trace, own, mpi)
    settings = asked_hints.of(trace)
    findings = Search(trace, own, mpi, budget, funnel, settings).carry_out(moments)
    ranks = offsets = None
    if len(posix) + len(mpi):
        counts = budget_of.counted_processes(trace, posix, mpi)
        last = [int(layer.end_ns.max(initial=1)) for layer in (posix, mpi)]
        wall_ns = max(trace.run.wall_ns, *last)
        ranks = grids.rank_time(moments, counts, posix, mpi, wall_ns)
        paths = trace.table("files")["path"].to_pylist()
        offsets = grids.offset_time(own, mpi, paths, wall_ns)
    rungs = None if system is None else ladder.of(trace, own, system)
    del found, own, posix, mpi, moments
    verdict, lines = _verdict(trace, budget, findings, ranks is not None)
    return Contents(
        trace=trace,
        verdict=verdict,
        lines=lines,
        caveats=_caveats(trace, budget),
        budget=budget,
        ladder=rungs,
        ranks=ranks,
        offsets=offsets,
        funnel=funnel,
        findings=findings,
        settings=settings,
        application=app.characterise(trace),
    )


# In place of what is no UTF-8 (docs/formats/trace-directory.md).
_LOST = "\ufffd"


def _verdict(
    trace: Trace, budget: Budget, found: list[Finding], calls: bool
) -> tuple[str, list[str]]:
    """`calls`: whether there are single ones, not sums alone."""
    if budget.overlapping:
        return (
            "Counters cannot tell how long I/O took, because several calls overlapped, as those "
            f"of threads do: {show_seconds(budget.io_s)} in calls, {show_seconds(budget.total_s)} "
            "of the processes' time. How much faster the run could be is not known.",
            [],
        )
    share, times = budget.io_share, budget.best_speedup
    if share is None or times is None:
        return "The trace holds no I/O on files: there is nothing to judge.", []
    known = f"I/O takes {show_share(share)} of the processes' time"
    ceiling = f"without any, the run would be {speedup(times)} as fast"
    if share < LEAST_SHARE:
        if budget.waiting is not None:
            return f"{known}, but for what is left out; {ceiling}.", []
        return f"{known}; {ceiling}. Nothing is worth changing.", []
    if not found:
        why = (
            "and sums alone do not show what would shorten it"
            if not calls
            else "and the trace does not show what would shorten it"
        )
        return f"{known}; {ceiling}, {why}.", []
    first = found[0]
    lines = []
    if any(finding.prove for finding in found) and trace.run.ranks > 0:
        lines = [] if _LOST in command(trace) else [f"forebay compare -- {command(trace)}"]
    return (
        f"{known}; {ceiling}. Most can be had by: {first.title} "
        f"(at most {show_seconds(first.seconds)}, {show_share(first.share)} of the run; "
        f"confidence {first.confidence}).",
        lines,
    )


def _caveats(trace: Trace, budget: Budget) -> list[str]:
    caveats = unseen.caveats(trace)
    if budget.waiting is not None:
        caveats.append(str(budget.waiting))
    slowest = budget.slowest
    share = budget.io_share
    if slowest and share and slowest.share >= max(LEAST_SHARE, 2 * share):
        caveats.append(
            f"{slowest.name} is in I/O {show_share(slowest.share)} of its time: others may wait "
            "for it, which calls of I/O do not show."
        )
    if _LOST in command(trace):
        caveats.append(
            "The command has words that are no UTF-8, of which the trace does not keep all bytes: "
            "there is no line to copy with it."
        )
    return caveats


def command(trace: Trace) -> str:
    """As one would type it. A Darshan log has it as one string."""
    words = trace.run.command
    return words[0] if len(words) == 1 else shlex.join(words)


def speedup(times: float) -> str:
    """1.234 -> '1.23 times'; as many digits as tell it from 1."""
    if times >= 100:
        return "over 100 times"
    return f"{times:.2f} times" if times >= 1.01 else f"{times:.4f} times"

"""What of a run's I/O could be had back, each with the seconds and what they are told by.

A finding is an estimate from the trace alone: its seconds are those of calls that were measured,
and its confidence is how sure it is that they would go away. What the trace does not show is no
finding.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forebay.report import amplification, repeated_calls, small_files, timeline, unheeded_hints
from forebay.report import budget as budget_of
from forebay.report.asked_hints import AskedHint
from forebay.report.budget import Budget
from forebay.report.clue import Clue, most_of
from forebay.report.extents import coverage
from forebay.report.funnel import Funnel
from forebay.report.layers import Flags, Ints, Layer
from forebay.report.timeline import Segments
from forebay.trace.calls import Kind
from forebay.trace.directory import Trace
from forebay.units import show_bytes, show_count, show_seconds

#: Less of the run's time is not told, and with less I/O nothing is advised at all.
LEAST_SHARE = 0.01

_SMALL = 64 << 10
_TINY = 4 << 10  # with so few bytes, what a call costs is not its bytes
_MANY = 100
# A call is large beside another from this factor on.
_LARGE = 16
_REFERENCES = 8
_COLLECTED = 16  # small calls in one
_UNEVEN = 1.5


@dataclass(frozen=True)
class Finding:
    """`seconds` of the run's time, at most, that would be had back; `share` is theirs of the run.
    `prove`: whether a comparison with Forebay's engine can show what it gains."""

    key: str
    title: str
    seconds: float
    share: float
    confidence: str  # high, medium, low
    evidence: list[str]
    advice: str
    prove: bool = False


class Search:
    """Looks for findings in the calls of a run."""

    def __init__(
        self,
        trace: Trace,
        posix: Layer,
        mpi: Layer,
        budget: Budget,
        funnel: Funnel,
        settings: list[AskedHint],
    ) -> None:
        self._settings = settings
        counts = budget_of.counted_processes(trace, posix, mpi)
        front = counts[posix.process] & ~posix.behind
        self._posix = posix.only(front)
        self._own = self._posix.only(~self._posix.below)
        self._mpi = mpi.only(counts[mpi.process])
        self._counts = counts
        self._budget = budget
        self._every_posix, self._every_mpi = posix, mpi
        self._funnel = funnel
        self._trace = trace
        self._paths = trace.table("files")["path"].to_pylist()
        self._found: list[Finding] = []

    def carry_out(self, segments: Segments) -> list[Finding]:
        """Those worth telling, with most seconds first; none where I/O takes too little."""
        share = self._budget.io_share
        if share is None or share < LEAST_SHARE:
            return []
        self._take(amplification.amplification(self._trace, self._funnel, self._posix))
        self._exchange(segments)
        for layer, name in ((self._mpi, "MPI-IO"), (self._own, "POSIX")):
            for kind in (Kind.READ, Kind.WRITE):
                self._small(layer, name, kind)
        for clue in repeated_calls.repeated(self._own, self._every_posix, self._paths):
            self._take(clue)
        self._read_again()
        self._read_by_all()
        self._uneven(segments)
        self._take(small_files.striped(self._trace, self._posix, self._mpi))
        self._take(
            unheeded_hints.unheeded(self._trace, self._settings, self._every_mpi, self._counts)
        )
        told = [finding for finding in self._found if finding.share >= LEAST_SHARE]
        return sorted(told, key=lambda finding: (-finding.seconds, finding.key))

    def _take(self, clue: Clue | None) -> None:
        if clue is not None:
            self._add(**vars(clue))

    def _add(
        self,
        key: str,
        title: str,
        process_seconds: float,
        confidence: str,
        evidence: list[str],
        advice: str,
        prove: bool = False,
    ) -> None:
        """`process_seconds` are those of all processes together; they are never more than what
        the run's I/O took."""
        process_seconds = min(process_seconds, self._budget.io_s)
        seconds = self._budget.of_run(process_seconds)
        share = process_seconds / self._budget.total_s
        if share > 0:
            self._found.append(
                Finding(key, title, seconds, share, confidence, evidence, advice, prove)
            )

    def _exchange(self, segments: Segments) -> None:
        """Time in MPI-IO while no process was in a storage call below it and nobody was awaited."""
        under = self._posix.only(self._posix.below)
        is_lock = under.kind == Kind.LOCK
        below, locks = under.only(~is_lock), under.only(is_lock)
        if self._trace.run.losses or not below.data.any():
            return
        own = timeline.chosen(segments, self._counts)
        aside = timeline.aside_seconds(own, below.start_ns, below.end_ns)
        spare = max(0.0, aside - self._budget.waited_s)
        data = self._mpi.only(self._mpi.data)
        together = int(data.collective.sum())
        around = self._mpi.only(~self._mpi.data)
        evidence = [
            f"{show_seconds(self._budget.seconds['mpi'])} of all processes in MPI-IO beyond "
            f"POSIX; {show_seconds(spare)} of them while no process was in a storage call and "
            "every rank had come",
            f"{show_count(len(data))} data calls, {show_count(together)} of them collective; "
            f"{show_seconds(float(around.seconds.sum()))} were in other calls of MPI-IO, such as "
            "openings",
        ]
        if len(locks):
            evidence.append(
                f"{show_count(len(locks))} calls for locks took "
                f"{show_seconds(float(locks.seconds.sum()))} of all processes: with those who wait "
                "for each other"
            )
        title, advice = "bookkeeping", "Fewer, larger calls, and files that stay open."
        if together > 0:
            title = "exchange and bookkeeping"
            evidence.append("a part of it is needed: the bytes have to get to who writes them")
            advice = (
                "Fewer, larger calls; for collective ones fewer aggregators or rounds, or "
                "independent calls where the pieces are large."
            )
        self._add(
            "exchange",
            f"In MPI-IO while no storage is: {title}",
            spare,
            "low",
            evidence,
            advice,
            prove=True,
        )

    def _small(self, layer: Layer, name: str, kind: Kind) -> None:
        """Many small calls: what they took beyond what their bytes take in large calls of the same
        run. Without such, what the quickest tenth of them costs a call, if they are tiny."""
        rows = layer.only((layer.kind == kind) & (layer.moved > 0))
        small = rows.moved < _SMALL
        if small.sum() < _MANY:
            return
        taken, moved = rows.seconds[small], rows.moved[small]
        size = float(np.median(moved))
        large = rows.moved >= max(_SMALL, _LARGE * size)
        word = "reads" if kind == Kind.READ else "writes"
        evidence = [
            f"{show_count(int(small.sum()))} {word} of {show_bytes(size)} (median) took "
            f"{show_seconds(float(taken.sum()))} of all processes"
        ]
        if large.sum() >= _REFERENCES:
            a_byte = float(np.median(rows.seconds[large] / rows.moved[large]))
            spare = float(taken.sum()) - a_byte * float(moved.sum())
            evidence.append(
                f"large {word} of the same run go at {show_bytes(1 / max(a_byte, 1e-15))}/s, these "
                f"at {show_bytes(float(moved.sum()) / max(float(taken.sum()), 1e-12))}/s"
            )
            confidence = "medium"
        elif size > _TINY:
            return
        else:
            each = float(np.percentile(taken, 10))
            spare = each * float(small.sum()) * (1 - 1 / _COLLECTED)
            evidence.append(
                f"the quickest tenth takes up to {show_seconds(each)} each: counted is that, were "
                f"{_COLLECTED} of them one; the trace has no large {word} to compare with"
            )
            confidence = "low"
        collective = bool(rows.collective[small].mean() > 0.5)
        if name == "MPI-IO":
            advice = "Larger pieces a call; " + (
                "fewer, larger collective calls."
                if collective
                else "collective calls (_all), which gather the ranks' pieces."
            )
        else:
            advice = f"Larger {word}, or a buffer (C streams, or the I/O library's own)."
        self._add(
            f"small-{name}-{word}".lower(),
            f"Small {word} by {name}",
            spare,
            confidence,
            evidence,
            advice,
            prove=name == "MPI-IO",
        )

    def _never_written(self, rows: Layer) -> Flags:
        written = np.unique(self._posix.file[self._posix.kind == Kind.WRITE])
        return ~np.isin(rows.file, written)

    def _reads(self) -> Layer:
        own = self._own
        reads = (own.kind == Kind.READ) & (own.offset >= 0) & (own.moved > 0) & (own.file >= 0)
        rows = own.only(reads)
        return rows.only(self._never_written(rows))

    def _read_again(self) -> None:
        """Bytes that a process read more than once in a file that nobody wrote."""
        rows = self._reads()
        group = rows.process * (len(self._paths) + 1) + rows.file
        self._spared_reads(
            "read-again",
            "Bytes that a process reads again",
            rows,
            group,
            "medium",
            "Keep in memory what will be needed again.",
        )

    def _read_by_all(self) -> None:
        """Bytes that several ranks read, each for itself."""
        if self._budget.processes < 2:
            return
        rows = self._reads()
        own = coverage(rows.process * (len(self._paths) + 1) + rows.file, *_spans(rows))
        by_file = np.bincount(own.group % (len(self._paths) + 1), own.distinct)
        all_of = coverage(rows.file, *_spans(rows))
        spare = np.zeros(len(self._paths) + 1)
        if len(all_of.group):
            each = by_file[all_of.group]
            spare[all_of.group] = 1 - all_of.distinct / np.maximum(each, 1)
        self._tell_spared(
            "read-by-all",
            "Bytes that several processes read, each for itself",
            rows,
            spare[rows.file],
            "low",
            "Let one process read them and pass them on, or use a collective read.",
        )

    def _spared_reads(
        self, key: str, title: str, rows: Layer, group: Ints, confidence: str, advice: str
    ) -> None:
        found = coverage(group, *_spans(rows))
        share = 1 - found.distinct / np.maximum(found.bytes, 1)
        of_row = share[np.searchsorted(found.group, group)] if len(group) else np.zeros(0)
        self._tell_spared(key, title, rows, of_row, confidence, advice)

    def _tell_spared(
        self,
        key: str,
        title: str,
        rows: Layer,
        share: NDArray[np.float64],
        confidence: str,
        advice: str,
    ) -> None:
        moved = float((rows.moved * share).sum())
        if moved <= 0:
            return
        taken = rows.seconds * share
        total = int(rows.moved.sum())
        self._add(
            key,
            title,
            float(taken.sum()),
            confidence,
            [
                f"{show_bytes(moved)} of {show_bytes(total)} read of files that nobody writes",
                f"most of it: {most_of(taken, rows.file, self._paths)}",
            ],
            advice,
        )

    def _uneven(self, segments: Segments) -> None:
        """I/O time of the process that has most, beyond the mean: had back if others wait for it
        and the work can be spread."""
        if self._trace.run.ranks < 2 or self._budget.slowest is None:
            return
        length = (segments.end_ns - segments.start_ns) / 1e9
        by_process = np.bincount(segments.process, length, minlength=len(self._counts))
        own = by_process[self._counts]
        most, mean = float(own.max()), float(own.mean())
        if most < _UNEVEN * mean:
            return
        top = self._mpi if self._mpi.data.any() else self._own
        moved = np.bincount(top.process, top.moved, minlength=len(self._counts))[self._counts]
        slowest = int(np.argmax(own))
        self._add(
            "uneven",
            f"Uneven: {self._budget.slowest.name} is in I/O {most / mean:.1f} times as long as "
            "processes are on average",
            (most - mean) * self._budget.processes,
            "low",
            [
                f"{show_seconds(most)} against {show_seconds(mean)} on average",
                f"it moves {show_bytes(moved[slowest])}, the average is "
                f"{show_bytes(float(moved.mean()))}",
                "counted as if all others waited for it, which a trace of I/O does not show",
            ],
            "Spread the I/O over the ranks, or let it go through collective calls.",
        )


def _spans(rows: Layer) -> tuple[Ints, Ints]:
    return rows.offset, rows.offset + rows.moved

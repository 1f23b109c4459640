"""Bytes that POSIX moves below MPI-IO beyond those that the program asked for, and what they take:
by calls, or by the sums that Darshan counted."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forebay.report.clue import Clue
from forebay.report.funnel import AMPLIFIED, Flow, Funnel
from forebay.report.layers import Layer
from forebay.trace import tables
from forebay.trace.calls import Kind
from forebay.trace.directory import Trace
from forebay.units import show_bytes, show_seconds

_Amounts = NDArray[np.float64]
_COUNTED = {"POSIX", "MPI-IO"}  # modules of Darshan
_DIRECTIONS = (("READ", "READ", "read"), ("WRITE", "WRITTEN", "written"))


def amplification(trace: Trace, funnel: Funnel, posix: Layer) -> Clue | None:
    """`posix`: the calls that are weighed. Where calls or counters are missing there is none: of
    the two layers, one may lack more."""
    flow, mpi, times = funnel.below, funnel.mpi, funnel.amplification
    if flow is None or mpi is None or times is None or times < AMPLIFIED:
        return None
    if funnel.source == "calls":
        found = None if trace.run.losses else _by_calls(flow, mpi, posix)
    else:
        found = None if _COUNTED & set(trace.run.losses) else _by_counters(trace)
    if found is None:
        return None
    sieved = flow.read_bytes > mpi.read_bytes and mpi.written_bytes > 0
    why = " It reads what lies between the pieces that it writes." if sieved else ""
    return Clue(
        "amplification",
        f"Amplification: below MPI-IO, {times:.2f} times the bytes are moved",
        found.seconds,
        found.confidence,
        found.evidence,
        f"The MPI moves more than the program asks for.{why} Collective calls, or an engine that "
        "gathers the pieces, need not.",
        prove=True,
    )


@dataclass(frozen=True)
class _Spare:
    """Seconds of all processes, at most, and what they are told by."""

    seconds: float
    confidence: str
    evidence: list[str]


def _by_calls(flow: Flow, mpi: Flow, posix: Layer) -> _Spare | None:
    """Of the calls' time the part for bytes beyond those of MPI-IO."""
    below = posix.only(posix.below & posix.data)
    spare, evidence = 0.0, []
    for kind, word, down, up in (
        (Kind.READ, "read", flow.read_bytes, mpi.read_bytes),
        (Kind.WRITE, "written", flow.written_bytes, mpi.written_bytes),
    ):
        if down <= AMPLIFIED * up:
            continue
        taken = float(below.seconds[below.kind == kind].sum())
        spare += taken * (1 - up / down)
        evidence.append(_moved(word, down, up, taken))
    return _Spare(spare, "medium", evidence) if evidence else None


def _by_counters(trace: Trace) -> _Spare | None:
    """File by file. Of the time in POSIX, the part for bytes beyond those of MPI-IO is had back at
    least, if these are. At most all ranks wait in MPI-IO meanwhile: no longer than that time for
    each, and of what they spend in MPI-IO no larger part than of POSIX."""
    below, above = _Counters(trace, "posix", "POSIX"), _Counters(trace, "mpi_io", "MPIIO")
    through_mpi = above.bytes["READ"] + above.bytes["WRITTEN"] > 0
    spare = np.zeros(len(through_mpi))
    evidence = []
    for time, amount, word in _DIRECTIONS:
        down, up, taken = below.bytes[amount], above.bytes[amount], below.seconds[time]
        amplified = through_mpi & (down > AMPLIFIED * up)
        if amplified.any():
            part = 1 - up[amplified] / down[amplified]
            spare[amplified] += taken[amplified] * part
            sums = (float(values[amplified].sum()) for values in (down, up, taken))
            evidence.append(_moved(word, *sums))
    if not evidence:
        return None
    in_posix = below.seconds["READ"] + below.seconds["WRITE"]
    in_mpi = above.seconds["READ"] + above.seconds["WRITE"]
    waited = np.minimum(
        in_mpi * spare / np.maximum(in_posix, np.finfo(float).tiny), spare * trace.run.ranks
    )
    least, most = float(spare.sum()), float(np.maximum(spare, waited).sum())
    evidence += [
        f"for the bytes beyond those of MPI-IO: {show_seconds(least)} of all processes in POSIX; "
        f"with those that wait in MPI-IO meanwhile, at most {show_seconds(most)}",
        "by Darshan's counters, which do not tell who waited for whom, nor whether the program "
        "made some of the calls to POSIX on these files itself",
    ]
    return _Spare(most, "medium" if least >= most / 2 else "low", evidence)


class _Counters:
    """Bytes and seconds of a module of Darshan, an item each file."""

    def __init__(self, trace: Trace, name: str, prefix: str) -> None:
        self._files = trace.rows("files")
        self._table = trace.table(f"counters_{name}")
        self._place = tables.integers(self._table, "file")
        self.seconds = {time: self._of(f"{prefix}_F_{time}_TIME") for time, _, _ in _DIRECTIONS}
        self.bytes = {amount: self._of(f"{prefix}_BYTES_{amount}") for _, amount, _ in _DIRECTIONS}

    def _of(self, column: str) -> _Amounts:
        """What is not known counts as nothing."""
        if column not in self._table.column_names:
            return np.zeros(self._files)
        values = np.nan_to_num(np.asarray(self._table.column(column).to_numpy(), np.float64))
        known = self._place >= 0
        total: _Amounts = np.zeros(self._files)
        np.add.at(total, self._place[known], np.maximum(values[known], 0.0))
        return total


def _moved(word: str, down: float, up: float, taken: float) -> str:
    asked = f"{show_bytes(up)} by MPI-IO" if up else "nothing by MPI-IO"
    return f"{show_bytes(down)} {word} by POSIX, {asked}, in {show_seconds(taken)} of all processes"

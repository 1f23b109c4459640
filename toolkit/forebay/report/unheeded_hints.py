"""Hints that the program gave and that did not take effect, as the MPI library tells: what it says
of an opened file, against what it was asked for."""

import numpy as np

from forebay.evaluate.in_force import State
from forebay.report.asked_hints import AskedHint
from forebay.report.clue import Clue
from forebay.report.layers import Flags, Layer
from forebay.trace import tables
from forebay.trace.calls import Kind
from forebay.trace.directory import Trace
from forebay.units import show_seconds

_COLLECTIVE = ("cb_", "romio_cb_", "collective_buffering")
_INDEPENDENT = ("ind_", "romio_ds_")
_HINTS_SHOWN = 6


def unheeded(trace: Trace, settings: list[AskedHint], mpi: Layer, counts: Flags) -> Clue | None:
    """`settings`: what became of the hints that the program gave. `mpi`: every call of the trace's
    table. Counted are the calls that a hint was for: what it would have changed of them the trace
    does not show."""
    found = [each for each in settings if each.setting.state is State.NOT_IN_FORCE]
    if not found or len(mpi) == 0:
        return None
    opening = tables.integers(trace.table("mpiio", ["opening"]), "opening")
    own = counts[mpi.process] & mpi.data
    touched = np.zeros(len(mpi), np.bool_)
    told: list[tuple[float, str, AskedHint]] = []
    for each in found:
        concerned, which = _concerned(each.setting.key, mpi)
        rows = own & concerned & np.isin(opening, each.openings)
        seconds = float(mpi.seconds[rows].sum())
        if seconds > 0:
            touched |= rows
            told.append((seconds, which, each))
    if not told:
        return None
    told.sort(key=lambda item: (-item[0], item[2].setting.key))
    names = list(dict.fromkeys(each.setting.key for _, _, each in told))
    return Clue(
        "hints-not-in-force",
        f"Hints that were asked for and are not in force: {', '.join(names[:_HINTS_SHOWN])}",
        float(mpi.seconds[touched].sum()),
        "low",
        [
            *(_evidence(*item) for item in told[:_HINTS_SHOWN]),
            "counted are the calls that they were for: that the hints do not hold is sure, what "
            "they would change is not",
        ],
        "The MPI library or the file system does not take these values or does not know the "
        "hints: what was tuned by them is not. Give values that they take, or have the files "
        "opened by an engine that does.",
        prove=any(name.startswith(_COLLECTIVE) for name in names),
    )


def _concerned(key: str, mpi: Layer) -> tuple[Flags, str]:
    """The calls that a hint is for, and what they are called."""
    rows, what = np.ones(len(mpi), np.bool_), "calls"
    if key.startswith(_COLLECTIVE):
        rows, what = mpi.collective, "collective calls"
    elif key.startswith(_INDEPENDENT):
        rows, what = ~mpi.collective, "independent calls"
    for kind, word, marks in (
        (Kind.READ, "reads", ("_rd_", "_read")),
        (Kind.WRITE, "writes", ("_wr_", "_write")),
    ):
        if any(mark in key for mark in marks):
            rows, what = rows & (mpi.kind == kind), what.replace("calls", word)
    return rows, what


def _evidence(seconds: float, which: str, each: AskedHint) -> str:
    more = f" and {len(each.paths) - 1} more" if len(each.paths) > 1 else ""
    setting = each.setting
    return (
        f"{setting.key}: asked {setting.asked}, in force {', '.join(setting.observed)}; "
        f"its {which} on {each.paths[0]}{more} took {show_seconds(seconds)} of all processes"
    )

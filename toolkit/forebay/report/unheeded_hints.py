"""Hints that the program gave and that did not take effect, as the MPI library tells: what it says
of an opened file, against what it was asked for."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from forebay.evaluate.in_force import NOT_REPORTED, NOT_SET, State, compared
from forebay.report.clue import Clue
from forebay.report.layers import Flags, Ints, Layer
from forebay.trace import hint_sets, tables
from forebay.trace.calls import Kind
from forebay.trace.directory import Trace
from forebay.trace.hint_sets import Hints
from forebay.units import show_seconds

# Hints of which nobody expects an effect of their own, and those that are for another engine.
_INFORMATION = frozenset(
    {"access_style", "file_perm", "filename", "io_node_list", "nb_proc", "num_io_nodes"}
)
_INFORMATION_ABOUT = ("chunked",)
_OF_FOREBAY = ("forebay", "e10_")
_COLLECTIVE = ("cb_", "romio_cb_", "collective_buffering")
_INDEPENDENT = ("ind_", "romio_ds_")
_HINTS_SHOWN = 6


@dataclass
class _Unheeded:
    """A hint as it was asked for, what was seen in its place, and by which openings."""

    key: str
    asked: str
    observed: tuple[str, ...]
    openings: list[int] = field(default_factory=list)


def unheeded(trace: Trace, mpi: Layer, counts: Flags) -> Clue | None:
    """`mpi`: every call of the trace's table. Counted are the calls that a hint was for: what it
    would have changed of them the trace does not show."""
    found = _found(trace)
    if not found or len(mpi) == 0:
        return None
    opening = tables.integers(trace.table("mpiio", ["opening"]), "opening")
    own = counts[mpi.process] & mpi.data
    touched = np.zeros(len(mpi), np.bool_)
    told: list[tuple[float, str, _Unheeded]] = []
    for each in found:
        concerned, which = _concerned(each.key, mpi)
        rows = own & concerned & np.isin(opening, each.openings)
        seconds = float(mpi.seconds[rows].sum())
        if seconds > 0:
            touched |= rows
            told.append((seconds, which, each))
    if not told:
        return None
    told.sort(key=lambda item: (-item[0], item[2].key))
    names = list(dict.fromkeys(each.key for _, _, each in told))
    return Clue(
        "hints-not-in-force",
        f"Hints that were asked for and are not in force: {', '.join(names[:_HINTS_SHOWN])}",
        float(mpi.seconds[touched].sum()),
        "low",
        [
            *(_evidence(trace, *item) for item in told[:_HINTS_SHOWN]),
            "counted are the calls that they were for: that the hints do not hold is sure, what "
            "they would change is not",
        ],
        "The MPI library or the file system does not take these values or does not know the "
        "hints: what was tuned by them is not. Give values that they take, or have the files "
        "opened by an engine that does.",
        prove=any(name.startswith(_COLLECTIVE) for name in names),
    )


def _found(trace: Trace) -> list[_Unheeded]:
    """Hints that no call by an opening had. A library that tells nothing of its hints shows
    nothing."""
    table = trace.table("openings")
    if "hints_asked" not in table.column_names:  # of an earlier capture
        return []
    sets = hint_sets.of(trace)
    asked_sets = tables.integers(table, "hints_asked")
    files = tables.integers(table, "file")
    modes = table["mode"].to_pylist()
    in_force = hint_sets.in_force(trace, len(asked_sets))
    stripes = trace.table("files", list(hint_sets.OF_FILES.values()))
    found: dict[tuple[str, str, tuple[str, ...]], _Unheeded] = {}
    for place in np.flatnonzero(asked_sets >= 0).tolist():
        seen = [sets[number] for number in in_force[place] if sets.get(number)]
        if not seen:
            continue
        for key, asked in sets.get(int(asked_sets[place]), {}).items():
            by_forebay = modes[place] == "engine"
            if _is_no_matter(key, by_forebay, seen):
                continue
            missing = NOT_SET if by_forebay else NOT_REPORTED
            observed: list[str | None] = [hints.get(key, missing) for hints in seen]
            if key in hint_sets.OF_FILES:
                told = stripes[hint_sets.OF_FILES[key]][int(files[place])].as_py()
                observed = observed if told is None else [str(told)]
            setting = compared(key, asked, observed)
            if setting.state is State.NOT_IN_FORCE:
                each = _Unheeded(key, asked, tuple(dict.fromkeys(setting.observed)))
                found.setdefault((key, asked, each.observed), each).openings.append(place)
    return list(found.values())


def _is_no_matter(key: str, by_forebay: bool, seen: Iterable[Hints]) -> bool:
    if key in _INFORMATION or key.startswith(_INFORMATION_ABOUT):
        return True
    if by_forebay:  # it tells of those that it has, and knows some by other names
        return not any(key in hints for hints in seen)
    return key.startswith(_OF_FOREBAY)


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


def _evidence(trace: Trace, seconds: float, which: str, each: _Unheeded) -> str:
    files: Ints = tables.integers(trace.table("openings"), "file")
    paths = trace.table("files")["path"].to_pylist()
    names = list(dict.fromkeys(paths[files[place]] for place in each.openings))
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return (
        f"{each.key}: asked {each.asked}, in force {', '.join(each.observed)}; its {which} on "
        f"{names[0]}{more} took {show_seconds(seconds)} of all processes"
    )

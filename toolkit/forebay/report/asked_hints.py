"""The hints that a program gave as it opened files, against those that were in force, as the trace
tells."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from forebay import stock_hints
from forebay.evaluate.in_force import (
    NOT_REPORTED,
    NOT_SET,
    NOT_STRIPED,
    Setting,
    State,
    compared,
    spelled,
)
from forebay.evaluate.traced_hints import SAYS_NOTHING
from forebay.trace import hint_sets, tables
from forebay.trace.directory import Trace
from forebay.trace.hint_sets import Hints

# Hints of which nobody expects an effect of their own, and those that are for another engine.
_INFORMATION = frozenset(
    {"access_style", "file_perm", "filename", "io_node_list", "nb_proc", "num_io_nodes"}
)
_INFORMATION_ABOUT = ("chunked",)
_FOR_FOREBAY = "it is for Forebay, which did not open the file"


@dataclass(frozen=True)
class AskedHint:
    """A hint with one value, what was seen in its place, and which openings had that."""

    setting: Setting
    openings: list[int]
    paths: list[str]  # of their files, each once

    def as_json(self) -> dict[str, Any]:
        return {**vars(self.setting), "files": self.paths}


def of(trace: Trace) -> list[AskedHint]:
    """In the order in which they were first asked for. Information about the program is left
    out."""
    table = trace.table("openings")
    if "hints_asked" not in table.column_names:  # of an earlier capture
        return []
    sets = hint_sets.of(trace)
    asked_sets = tables.integers(table, "hints_asked")
    files = tables.integers(table, "file").tolist()
    modes = table["mode"].to_pylist()
    in_force = hint_sets.in_force(trace, len(asked_sets))
    columns = trace.table("files", ["path", *hint_sets.OF_FILES.values()])
    found: dict[Setting, list[int]] = {}
    for place in np.flatnonzero(asked_sets >= 0).tolist():
        seen = [sets[number] for number in in_force[place] if sets.get(number)]
        own = sets.get(int(asked_sets[place]), {})
        for key, asked in own.items():
            if key in _INFORMATION or key.startswith(_INFORMATION_ABOUT):
                continue
            setting = (
                _by_forebay(key, asked, seen)
                if modes[place] == "engine"
                else _by_mpi(key, asked, seen, own)
            )
            if seen and key in hint_sets.OF_FILES and files[place] >= 0:
                told = columns[hint_sets.OF_FILES[key]][files[place]].as_py()
                setting = setting if told is None else compared(key, asked, [str(told)])
            found.setdefault(setting, []).append(place)
    paths = columns["path"].to_pylist()
    return [
        AskedHint(
            setting,
            openings,
            list(dict.fromkeys(paths[files[place]] for place in openings if files[place] >= 0)),
        )
        for setting, openings in found.items()
    ]


def _by_forebay(key: str, asked: str, seen: Iterable[Hints]) -> Setting:
    """It tells of those that it has, and of some by other names."""
    name = spelled(key)
    if not any(name in hints for hints in seen):
        return Setting(key, asked, (), State.NOT_RECORDED)
    return compared(key, asked, {hints.get(name, NOT_SET) for hints in seen})


def _as_romio_reads(value: str) -> str:
    """It knows no units: of 1MiB it takes the 1, and gives the whole back. [MPICH 4.0: measured]"""
    number = re.match(r"\d+(?=[a-zA-Z]+$)", value.strip())
    return number.group() if number else value


def _by_mpi(key: str, asked: str, seen: list[Hints], own: Hints) -> Setting:
    if key.startswith(stock_hints.FOREBAY_ONLY):
        return Setting(key, asked, (), State.NOT_RECORDED, _FOR_FOREBAY)
    tells = any(hint_sets.tells_more(hints, own) for hints in seen)
    observed = {hints.get(key, NOT_REPORTED) for hints in seen}
    setting = compared(key, asked, {_as_romio_reads(v) for v in observed} if tells else observed)
    # What an MPI only gives back as it got it may be in force or not.
    if not tells:
        reason = SAYS_NOTHING
    elif key in hint_sets.OF_FILES:
        reason = NOT_STRIPED
    else:
        return setting
    held = setting.state is not State.NOT_IN_FORCE
    return replace(setting, state=State.NOT_RECORDED, reason=reason) if held else setting

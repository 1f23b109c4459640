"""Whether the settings of a configuration held in a run, as the run's records tell."""

import fnmatch
import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from forebay import filesystem, intent_file
from forebay.configurations import Configuration
from forebay.errors import ForebayError
from forebay.prefetch_records import PrefetchRecords
from forebay.records import Record
from forebay.units import parse_size


class State(StrEnum):
    """What the records say of a setting."""

    IN_FORCE = "in force"
    NOT_IN_FORCE = "not in force"
    NOT_RECORDED = "not recorded"  # nothing that a record holds shows it


@dataclass(frozen=True)
class Setting:
    """One setting as it was asked for, and what the records have in its place."""

    key: str
    asked: str
    observed: tuple[str, ...]
    state: State
    reason: str = ""  # why it is not recorded, where that is known

    def __str__(self) -> str:
        found = ", ".join(self.observed) or "nothing"
        return f"{self.key}: asked {self.asked}, observed {found}"


def setting_of(entry: dict[str, Any]) -> Setting:
    """What results have of one. Raises KeyError, TypeError, ValueError."""
    observed = tuple(str(value) for value in entry["observed"])
    reason = str(entry.get("reason", ""))  # an earlier result has none
    return Setting(str(entry["key"]), str(entry["asked"]), observed, State(entry["state"]), reason)


# Other spellings of a hint -> the one that records have (docs/guide/hints.md).
_SPELLINGS = {
    "e10_cache": "forebay_cache",
    "e10_cache_path": "forebay_cache_path",
    "e10_cache_flush_flag": "forebay_cache_flush",
    "e10_cache_discard_flag": "forebay_cache_discard",
    "e10_cache_threads": "forebay_cache_threads",
    "forebay_aggregators_per_node": "cb_config_list",
    "stripe_size": "striping_unit",
    "stripe_width": "striping_factor",
}
# A record of the engine has these wherever they are in force.
_ALWAYS_RECORDED = ("forebay", "cb_", "romio_cb_", "romio_ds_", "romio_no_indep_rw", "ind_")
NOT_SET = "not set"  # by the engine, which leaves out what is as without the hint
NOT_REPORTED = "not reported by the MPI"
NOT_STRIPED = "the file system does not tell how the files are striped"
_STRIPING = ("striping_factor", "striping_unit")
_SAME_AS_NOT_SET = ("disable", "none", "automatic")
_VALUES = {
    "true": "enable",
    "false": "disable",
    "coherent": "enable",
    "flush_immediate": "immediate",
    "flush_onclose": "onclose",
}
_OF_THE_PROGRAM = "a variable of the program, of which no record tells"
_NO_BUDGET = "records of reading ahead do not have it"
_NO_HINT = frozenset({"path", *intent_file.READ_KEYS})


def settings(
    configuration: Configuration, records: list[Record], read_ahead: PrefetchRecords
) -> list[Setting]:
    """What became of each hint and of each section that speaks of reads. A hint that several
    openings of files were to have held if one of them had it: others may rule it out for good
    reasons, as a file that is only read does the cache for writes."""
    found: dict[tuple[str, str], set[str | None]] = {}
    met: set[int] = set()
    for record in records:
        for key, asked in _expected(configuration, record.path, met).items():
            found.setdefault((key, asked), set()).add(_observed(key, record))
    answers = [_answer(key, asked, observed) for (key, asked), observed in found.items()]
    unseen = State.NOT_RECORDED if configuration.stock else State.NOT_IN_FORCE
    answers += [
        Setting(key, value, (), unseen) for key, value in configuration.hints.items() if not records
    ]
    for number, section in enumerate(configuration.sections):
        path = str(section["path"])
        if intent_file.speaks_of_reads(section):
            tried = [file for file in read_ahead.files if file.is_read_ahead or not file.stopped]
            hit = any(_matches(path, file.path) for file in tried)
            state = State.IN_FORCE if hit else State.NOT_IN_FORCE
            observed = "files read ahead" if hit else "no such file read ahead"
            answers.append(Setting("reading ahead", path, (observed,), state))
        elif number not in met:
            observed = "no such file opened through MPI"
            answers.append(Setting("path", path, (observed,), State.NOT_IN_FORCE))
    return answers + _untold(configuration)


def _untold(configuration: Configuration) -> list[Setting]:
    """What is set, and shows in no record."""
    variables = configuration.environment.items()
    budgets = {
        _text(section["budget"]): None
        for section in configuration.sections
        if intent_file.speaks_of_reads(section) and "budget" in section
    }
    return [
        *(Setting(k, v, (), State.NOT_RECORDED, _OF_THE_PROGRAM) for k, v in variables),
        *(Setting("budget", size, (), State.NOT_RECORDED, _NO_BUDGET) for size in budgets),
    ]


def _answer(key: str, asked: str, observed: set[str | None]) -> Setting:
    setting = compared(key, asked, observed)
    if setting.state is State.NOT_RECORDED and spelled(key) in _STRIPING:
        return Setting(key, asked, (), State.NOT_RECORDED, NOT_STRIPED)
    return setting


def _expected(configuration: Configuration, path: str, met: set[int]) -> dict[str, str]:
    """The hints that a file is to have. `met` takes the numbers of sections that are for it."""
    hints: dict[str, str] = {}
    for number, section in enumerate(configuration.sections):
        if _matches(str(section["path"]), path):
            met.add(number)
            hints |= _hints_of(section)
    return hints | configuration.hints


def _hints_of(section: dict[str, Any]) -> dict[str, str]:
    hints = {}
    for key, value in section.items():
        if isinstance(value, dict):
            for inner, text in value.items():
                name = "forebay_cache" if inner == "mode" else f"forebay_{key}_{inner}"
                hints[name] = _text(text)
        elif key not in _NO_HINT and not (key == "cache" and intent_file.speaks_of_reads(section)):
            hints[key] = _text(value)
    return hints


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _matches(pattern: str, path: str) -> bool:
    """As the runtime matches sections of an intent file, whose patterns have backslashes."""
    python = re.sub(r"\\(.)", r"[\1]", pattern)
    return fnmatch.fnmatchcase(path if "/" in pattern else Path(path).name, python)


def spelled(key: str) -> str:
    """As records and traces of the engine have this hint."""
    return _SPELLINGS.get(key, key)


def _observed(key: str, record: Record) -> str | None:
    """What a record has in place of a hint; None if it does not say."""
    name = spelled(key)
    of_engine = record.mode == "engine" and bool(record.hints)
    if name == "forebay" and not of_engine:
        return "disable"
    if name in _STRIPING:
        told = record.stripe_count if name == "striping_factor" else record.stripe_size
        # A size of 0 is that of a disk's files, and of those of which nothing tells (BeeGFS).
        tells = record.stripe_size > 0 or filesystem.is_local(record.file_system)
        return str(told) if tells else None
    if name == "collective_buffering":
        both = {record.hints.get("romio_cb_write"), record.hints.get("romio_cb_read")}
        return None if both == {None} else "disable" if both == {"disable"} else "enable"
    missing = NOT_SET if of_engine and name.startswith(_ALWAYS_RECORDED) else None
    found = record.hints.get(name, missing)
    if key == "forebay_aggregators_per_node" and found is not None:
        return found.removeprefix("*:")
    return found


def compared(key: str, asked: str, observed: Iterable[str | None]) -> Setting:
    """What was asked against what was seen, once or more; None says nothing."""
    seen = tuple(sorted(value for value in observed if value is not None))
    if not seen:
        return Setting(key, asked, seen, State.NOT_RECORDED)
    held = any(alike(asked, value) for value in seen) or (
        NOT_SET in seen and any(alike(asked, value) for value in _SAME_AS_NOT_SET)
    )
    return Setting(key, asked, seen, State.IN_FORCE if held else State.NOT_IN_FORCE)


def alike(asked: str, seen: str) -> bool:
    """Whether two values of a hint mean the same, which an MPI may write in its own way. Words are
    taken in any case, paths are not. A value that stands where `automatic` was asked for is another
    one: MPIs and the engine say `automatic` as long as they choose."""
    asked, seen = _plain(asked.strip()), _plain(seen.strip())
    return asked == seen or (not asked.startswith("/") and asked.lower() == seen.lower())


def _plain(value: str) -> str:
    """Values that mean the same, alike: 16MiB and 16777216, true and enable."""
    try:
        return str(parse_size(value))
    except ForebayError:
        return _VALUES.get(value.lower(), value)

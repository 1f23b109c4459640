"""The records a run leaves behind: one per file and opening (docs/formats/report.md)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from forebay import record_files

FORMAT_VERSION = 1

CALL_CLASSES = ("open", "write", "read", "sync", "close", "other")


@dataclass(frozen=True)
class Storage:
    """What the kernel counted during the data calls, all ranks together."""

    read_calls: int = 0
    write_calls: int = 0
    read_bytes: int = 0
    write_bytes: int = 0


@dataclass(frozen=True)
class Record:
    """One file, opened once. Seconds are wall time inside the MPI calls."""

    path: str
    mode: str
    mpi: str
    mpi_version: str
    amode: list[str]
    ranks: int
    nodes: int
    aggregators: list[int]
    file_system: str
    stripe_size: int
    stripe_count: int
    seconds_max: dict[str, float]  # per class of call, over ranks
    seconds_sum: dict[str, float]
    seconds_together: dict[str, float]  # "writing", "data", "all": the slowest rank's
    calls: dict[str, int]
    counters: dict[str, int]  # empty in mode "observe"; with the late ones
    storage: Storage | None
    hints: dict[str, str]
    hint_problems: list[str]
    passed_through: dict[str, int]
    failures: dict[str, int]  # what could not be done, and how often; of the engine alone
    notes: list[str]
    pid: int = 0  # of the rank that wrote the record
    opening: int = 0  # an id; 0: none
    late: dict[str, int] = field(default_factory=dict)  # what counters grew by after the close
    raw: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def wrote(self) -> bool:
        return self.calls.get("write", 0) > 0

    @property
    def read(self) -> bool:
        return self.calls.get("read", 0) > 0


@dataclass(frozen=True)
class Records:
    """All records of a run, in the order of the files' closing, and those that were not whole."""

    records: list[Record]
    rejected: list[str]

    def written_paths(self) -> list[str]:
        """Each file with write calls, once, in order of first appearance."""
        return list(dict.fromkeys(r.path for r in self.records if r.wrote))


def parse(content: bytes, pid: int = 0) -> Record:
    """The record with this content. Raises ValueError with the reason if it is none."""
    raw = record_files.document(content, FORMAT_VERSION)
    try:
        return _record(raw, pid)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"missing or wrong key: {error!r}") from error


@dataclass(frozen=True)
class LateRecord:
    """What one rank's counters of an opening grew by after its record was written."""

    opening: int
    counters: dict[str, int]


def parse_late(content: bytes) -> LateRecord:
    """The late record with this content. Raises ValueError with the reason if it is none."""
    raw = record_files.document(content, FORMAT_VERSION)
    try:
        counters = {name: int(raw["counters"][name]) for name in _LATE}
        return LateRecord(int(raw["opening"]), counters)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"missing or wrong key: {error!r}") from error


def _record(raw: dict[str, Any], pid: int) -> Record:
    seconds: Mapping[str, Mapping[str, float]] = raw["seconds"]
    storage = raw.get("storage")
    return Record(
        path=str(raw["path"]),
        mode=str(raw["mode"]),
        mpi=str(raw["mpi"]),
        mpi_version=str(raw.get("mpi_version", "")),
        amode=[str(flag) for flag in raw.get("amode", [])],
        ranks=int(raw["ranks"]),
        nodes=int(raw.get("nodes", 1)),
        aggregators=[int(rank) for rank in raw.get("aggregators", [])],
        file_system=str(raw.get("file_system", "")),
        stripe_size=int(raw.get("stripe_size", 0)),
        stripe_count=int(raw.get("stripe_count", 1)),
        seconds_max={kind: float(value["max"]) for kind, value in seconds.items()},
        seconds_sum={kind: float(value["sum"]) for kind, value in seconds.items()},
        seconds_together={k: float(raw["seconds_together"][k]) for k in _TOGETHER},
        calls={kind: int(count) for kind, count in raw["calls"].items()},
        counters={name: int(value) for name, value in (raw.get("counters") or {}).items()},
        storage=None if storage is None else Storage(**{k: int(storage[k]) for k in _STORAGE}),
        hints={key: str(value) for key, value in raw.get("hints", {}).items()},
        hint_problems=[str(text) for text in raw.get("hint_problems", [])],
        passed_through={why: int(count) for why, count in raw.get("passed_through", {}).items()},
        failures={what: int(count) for what, count in raw.get("failures", {}).items()},
        notes=[str(text) for text in raw.get("notes", [])],
        pid=pid,
        opening=int(raw.get("opening", 0)),
        raw=raw,
    )


_TOGETHER = ("writing", "data", "all")
_STORAGE = ("read_calls", "write_calls", "read_bytes", "write_bytes")
# How late counters of several ranks are combined, as in core/model/counters.hpp.
_LATE: dict[str, Callable[[Iterable[int]], int]] = {
    "cache_drained": sum,
    "cache_log_bytes": sum,
    "cache_exposed_ns": max,
}
_LATE_ENDING = ".late"


def load(directory: Path) -> Records:
    """Every record in `directory`. A file whose checksum or content is wrong is named in
    `rejected`; names that start with a dot are records being written and are left out."""
    records: list[Record] = []
    late: list[LateRecord] = []
    rejected: list[str] = []
    for path in record_files.in_order(directory.glob("*.json")):
        is_late = path.stem.endswith(_LATE_ENDING)
        parts = path.stem.removesuffix(_LATE_ENDING).split("-")
        content = path.read_bytes()
        if len(parts) != 3 or not parts[0].isdigit():
            rejected.append(f"{path.name}: not a record's name")
        elif not record_files.fits(content, parts[2]):
            rejected.append(f"{path.name}: the checksum does not fit its content")
        else:
            try:
                if is_late:
                    late.append(parse_late(content))
                else:
                    records.append(parse(content, int(parts[0])))
            except ValueError as error:
                rejected.append(f"{path.name}: {error}")
    return Records(_with_late(_last_ones(records), late), rejected)


def _last_ones(records: list[Record]) -> list[Record]:
    """The last record of each opening: one that a program left open in MPI_Finalize has one from
    there, and another where a library closes it after all."""
    last = {record.opening: record for record in records if record.opening}
    return [record for record in records if last.get(record.opening, record) is record]


def _with_late(records: list[Record], late: list[LateRecord]) -> list[Record]:
    """The records with what came after them."""
    counters: dict[int, list[dict[str, int]]] = {}
    for each in late:
        counters.setdefault(each.opening, []).append(each.counters)
    return [_grown(record, counters.get(record.opening, [])) for record in records]


def _grown(record: Record, ranks: list[dict[str, int]]) -> Record:
    if not ranks:
        return record
    late = {name: combine(rank[name] for rank in ranks) for name, combine in _LATE.items()}
    counters = record.counters | {k: record.counters.get(k, 0) + late[k] for k in late}
    raw = record.raw | {"counters": counters, "late_counters": late}
    return replace(record, counters=counters, late=late, raw=raw)


def seconds_of(records: Iterable[Record], what: str) -> float:
    """Wall seconds in `what`, a class of calls or "writing", "data" or "all": the slowest rank's
    per opening, openings one after another. Openings whose records come from different processes
    (one file per process) are taken to run side by side, so of them the longest counts."""
    per_process: dict[int, float] = {}
    for record in records:
        spent = (record.seconds_max | record.seconds_together).get(what, 0.0)
        per_process[record.pid] = per_process.get(record.pid, 0.0) + spent
    return max(per_process.values(), default=0.0)

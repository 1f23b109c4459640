"""The campaign's description, read from campaign.toml: which programs, which MPIs, which bars."""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

QUANTITIES = ("write", "read")

Hints = dict[str, str]


@dataclass(frozen=True)
class Mpi:
    """One MPI library: how its programs are started."""

    key: str  # the directory of its workloads, build/proxies/KEY
    title: str
    launcher: list[str]
    crowded: list[str] = field(default_factory=list)  # added for more ranks than cores
    polls: bool = False  # ranks keep their core while they wait

    def start(self, ranks: int) -> list[str]:
        """The launcher with its options for this many ranks."""
        crowded = self.crowded if _crowd(ranks) else []
        return [*self.launcher, "-n", str(ranks), *crowded]

    def hinders(self, ranks: int) -> bool:
        """Whether so many ranks keep each other, and all else, waiting for a core."""
        return self.polls and _crowd(ranks)


def _crowd(ranks: int) -> bool:
    return ranks > len(os.sched_getaffinity(0))


@dataclass(frozen=True)
class Workload:
    """One program with its arguments, and what is claimed of it."""

    name: str
    program: str
    arguments: list[str]
    about: str
    bars: dict[str, float | dict[str, float]]  # by quantity; a dict is by MPI
    floors: dict[str, float]  # least part of the limit, by file system
    published: str | None = None  # what others measured in the experiment that it repeats
    published_times: float | None = None  # how many times as fast as without, of that

    def bar(self, quantity: str, mpi: str) -> float | None:
        """The least median ratio of this quantity against this MPI; None where none is claimed."""
        bar = self.bars.get(quantity)
        return bar.get(mpi) if isinstance(bar, dict) else bar


@dataclass(frozen=True)
class Rules:
    """When a bar counts as met."""

    limit_in_place_of_bar: float
    pairs_at_least: int


@dataclass(frozen=True)
class Setting:
    """Workloads that run alike."""

    ranks: int
    workloads: list[Workload]
    ranks_per_node: int | None = None


@dataclass(frozen=True)
class Testbed:
    """The emulated parallel file system, and the hints that the stock MPIs are tried with."""

    setting: Setting
    servers: int
    bandwidth: str  # of one server
    latency: str
    stripe: str
    lock_cost: str
    aggregate_at_least: float
    sweep: dict[str, list[list[Hints]]]  # by MPI: stages of alternatives


@dataclass(frozen=True)
class Pieces:
    """A view of ever more pieces over the same bytes."""

    ranks: int
    total_bytes: int
    counts: list[int]  # pieces of all ranks together
    repeats: int


@dataclass(frozen=True)
class Internals:
    """What the engine is asked about itself."""

    mpis: list[str]
    copies_at_most: float
    exchange: Setting
    pieces: Pieces


@dataclass(frozen=True)
class Device:
    """Where the logs of the write-behind cache lie."""

    name: str
    per_aggregator: str | None  # bandwidth that each aggregator brings along; None: memory
    buffers: list[str]


@dataclass(frozen=True)
class Series:
    """Files written one after another, with computing in between."""

    setting: Setting
    files: int
    compute_s: float

    def arguments(self, *, computing: bool) -> list[str]:
        """What every workload is told."""
        compute_s = self.compute_s if computing else 0
        return ["--files", str(self.files), "--compute", f"{compute_s:g}"]


@dataclass(frozen=True)
class Cache:
    """A series on the testbed."""

    series: Series
    aggregators: list[int]
    devices: list[Device]
    stock: dict[str, Hints]  # by MPI; {aggregators} and {buffer_bytes} are filled in
    hidden_at_least: float  # times the stock MPI, with the most aggregators
    exposed_at_least: float  # part of the arithmetic bound
    exposed_workload: str
    flushed_at_least: float  # part of the servers' bandwidth
    recovered_at_least: float  # the same
    overhead_at_most: float  # bytes of a log beside the payload, part of that


@dataclass(frozen=True)
class FilePlace:
    """Where the files of a series lie."""

    name: str
    title: str
    volume: str | None = None  # the layout of a GlusterFS volume; None: the local disk itself
    flushed_at_least: float | None = None  # part of what fio makes durable there


@dataclass(frozen=True)
class LocalCache:
    """A series on real file systems, with logs in memory and on the local disk."""

    series: Series
    file: str  # bytes of each file
    places: list[FilePlace]
    recovered_at_least: float  # part of what fio makes durable on the slower of two devices
    overhead_at_most: float


@dataclass(frozen=True)
class Log:
    """Logs that are never flushed, beside fio on the same device."""

    setting: Setting
    of_device_at_least: float  # part of what fio writes


@dataclass(frozen=True)
class Campaign:
    """All of campaign.toml."""

    rules: Rules
    mpis: dict[str, Mpi]
    local: Setting
    independent: Setting
    testbed: Testbed
    internals: Internals
    cache: Cache
    cache_local: LocalCache
    log: Log


def load(path: Path) -> Campaign:
    """The campaign in this file. Raises ValueError, KeyError or TypeError where it is none."""
    raw = tomllib.loads(path.read_text())
    testbed, internals = raw["testbed"], raw["internals"]
    return Campaign(
        rules=Rules(raw["limit_in_place_of_bar"], raw["pairs_at_least"]),
        mpis={key: Mpi(key, **mpi) for key, mpi in raw["mpi"].items()},
        local=_setting(raw["local"]),
        independent=_setting(raw["independent"]),
        testbed=Testbed(
            setting=_setting(testbed),
            servers=testbed["servers"],
            bandwidth=testbed["bandwidth"],
            latency=testbed["latency"],
            stripe=testbed["stripe"],
            lock_cost=testbed["lock_cost"],
            aggregate_at_least=testbed["aggregate_at_least"],
            sweep=testbed["sweep"],
        ),
        internals=Internals(
            mpis=internals["mpi"],
            copies_at_most=internals["copies_at_most"],
            exchange=_setting(internals["exchange"]),
            pieces=Pieces(**internals["pieces"]),
        ),
        cache=_cache(raw["cache"]),
        cache_local=LocalCache(
            _series(raw["cache_local"]),
            raw["cache_local"]["file"],
            [FilePlace(name, **place) for name, place in raw["cache_local"]["place"].items()],
            raw["cache_local"]["recovered_at_least"],
            raw["cache_local"]["overhead_at_most"],
        ),
        log=Log(_setting(raw["log"]), raw["log"]["of_device_at_least"]),
    )


def _cache(raw: Mapping[str, Any]) -> Cache:
    return Cache(
        series=_series(raw),
        aggregators=raw["aggregators"],
        devices=[
            Device(name, device.get("per_aggregator"), device["buffers"])
            for name, device in raw["device"].items()
        ],
        stock=raw["stock"],
        hidden_at_least=raw["hidden_at_least"],
        exposed_at_least=raw["exposed_at_least"],
        exposed_workload=raw["exposed_workload"],
        flushed_at_least=raw["flushed_at_least"],
        recovered_at_least=raw["recovered_at_least"],
        overhead_at_most=raw["overhead_at_most"],
    )


def _series(raw: Mapping[str, Any]) -> Series:
    return Series(_setting(raw), raw["files"], raw["compute_s"])


def _setting(raw: Mapping[str, Any]) -> Setting:
    return Setting(
        ranks=raw["ranks"],
        ranks_per_node=raw.get("ranks_per_node"),
        workloads=[
            Workload(
                name=workload["name"],
                program=workload["program"],
                arguments=workload.get("arguments", []),
                about=workload["about"],
                bars=workload.get("bar", {}),
                floors=workload.get("floor", {}),
                published=workload.get("published"),
                published_times=workload.get("published_times"),
            )
            for workload in raw["workload"]
        ],
    )

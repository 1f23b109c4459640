"""What a system can do, as system.json tells it (docs/formats/system.md)."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from forebay import contention, json_document
from forebay.contention import CampaignRate
from forebay.errors import ForebayError
from forebay.trace.directory import checksum
from forebay.units import show_bytes

FORMAT = "forebay system"
VERSION = 1
LEVELS = ("device", "file system", "library", "network", "memory")
MODES = ("direct", "cold", "warm", "fsync", "transfer", "copy")
OPERATIONS = ("read", "write", "copy")
ORDERS = ("sequential", "random", "interleaved")
ACCESSES = ("posix", "collective", "independent")
ON_NAMES = ("create", "stat", "unlink", "write small", "read small", "tar")


@dataclass(frozen=True)
class Limit:
    """A rate in bytes a second, with its 95 % interval, of one kind of access."""

    level: str
    path: str  # what it was measured below; empty of a network and of memory
    operation: str
    mode: str
    size_bytes: int
    processes: int
    median: float
    low: float
    high: float
    in_flight: int = 1  # of each process
    order: str = "sequential"
    files: str = "own"  # or shared
    access: str = "posix"
    engine: str = "mpi"  # of MPI-IO; or forebay
    stripe_count: int | None = None
    stripe_size_bytes: int | None = None
    hosts: int = 1
    by_campaign: tuple[CampaignRate, ...] = ()  # where there were several

    @property
    def moved(self) -> str:
        """How it moved between campaigns, in words; empty where nothing shows contention."""
        if contention.moved(self.by_campaign) is None:
            return ""
        return contention.told(self.by_campaign, lambda rate: f"{show_bytes(rate)}/s")


@dataclass(frozen=True)
class MetadataRate:
    """Operations a second, with the 95 % interval, on names or small files."""

    path: str
    operation: str
    processes: int
    size_bytes: int  # of a small file
    median: float
    low: float
    high: float
    stripe_count: int | None = None
    stripe_size_bytes: int | None = None


@dataclass(frozen=True)
class System:
    """What was measured, and on which host. `document` is the file as it is, with samples, places
    and campaigns."""

    path: Path
    host: str
    limits: list[Limit]
    metadata: list[MetadataRate] = field(default_factory=list)
    document: dict[str, Any] = field(default_factory=dict)

    def is_of(self, path: str, mount: str) -> bool:
        """Whether what was measured below `path` is of the file system at `mount`: by the path
        alone, where the file does not say."""
        for place in self.document.get("places", []):
            if place.get("path") == path and place.get("mount_point"):
                return bool(place["mount_point"] == (mount or "/"))
        return f"{path.rstrip('/')}/".startswith(f"{mount.rstrip('/')}/")

    def differs_from_run(self, whose: str, machine: Mapping[str, Any]) -> str | None:
        """As `difference`, of the machine of a traced run as its run.json has it."""
        hosts = [str(host) for host in machine.get("hosts", [])]
        # The processor is that of the host where the trace was made.
        cpu = machine.get("cpu") if machine.get("host") in hosts else None
        return self.difference(whose, hosts, cpu)

    def difference(self, whose: str, hosts: Collection[str], cpu: str | None) -> str | None:
        """In words, if what is known of a machine (`whose`: "the run was") is not what is known of
        the one that was measured. `cpu`: of a host among `hosts`, as environment.cpu_model() has
        it. Virtual machines and nodes that were exchanged keep their names, and have other
        processors."""
        if hosts and self.host not in hosts:
            return f"{self.path} was measured on {self.host}, and {whose} on {', '.join(hosts)}"
        told = [each.get("environment") or {} for each in self.document.get("campaigns") or []]
        measured = sorted({str(one["cpu"]) for one in told if one.get("cpu")})
        if cpu is None or not hosts or all(_is_one(cpu, each) for each in measured):
            return None
        return (
            f"{self.path} was measured on {self.host} with {' and '.join(measured)}, and {whose} "
            f"on one of that name with {cpu}"
        )


def _is_one(cpu: str, other: str) -> bool:
    """Earlier versions wrote no rate."""
    return cpu.partition(", ")[0] == other if ", " not in other else cpu == other


def load(path: Path) -> System:
    """Raises ForebayError for what is no such file or is of another version."""
    advice = "docs/formats/system.md says what is in such a file."
    document = json_document.load(
        path, "system file", VERSION, lambda found: found.get("format") == FORMAT, advice
    )
    if document.get("checksum", "") not in ("", checksum(document)):
        raise ForebayError(
            f"{path} is damaged: its checksum does not fit its content", advice, exit_code=1
        )
    try:
        host = str(document["host"])
        campaigns = [dict(campaign) for campaign in document.get("campaigns", [])]
        limits = _known(document["limits"], lambda entry: _limit(entry, campaigns))
        metadata = _known(document.get("metadata", []), _metadata_rate)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ForebayError(f"{path} is damaged: {error!r}", advice, exit_code=1) from error
    return System(path, host, limits, metadata, document)


_Entry = TypeVar("_Entry")


def _known(
    entries: list[dict[str, Any]], read: Callable[[dict[str, Any]], _Entry | None]
) -> list[_Entry]:
    """Those without words that only a later Forebay knows."""
    found = (read(entry) for entry in entries)
    return [entry for entry in found if entry is not None]


def _limit(entry: dict[str, Any], campaigns: list[dict[str, Any]]) -> Limit | None:
    size = int(entry["size_bytes"])
    rates = contention.by_campaign(entry, campaigns)
    limit = Limit(
        level=str(entry["level"]),
        path=str(entry.get("path", "")),
        operation=str(entry["operation"]),
        mode=str(entry["mode"]),
        size_bytes=size,
        processes=int(entry.get("processes", 1)),
        **_rate(entry["bytes_per_second"]),
        in_flight=int(entry.get("in_flight", 1)),
        order=str(entry.get("order", "sequential")),
        files=str(entry.get("files", "own")),
        access=str(entry.get("access", "posix")),
        engine=str(entry.get("engine", "mpi")),
        **_stripe(entry),
        hosts=int(entry.get("hosts", 1)),
        by_campaign=tuple(rates) if len(rates) > 1 else (),
    )
    if size <= 0:
        raise ValueError(f"a limit of {size} bytes")
    known = (
        limit.level in LEVELS
        and limit.mode in MODES
        and limit.operation in OPERATIONS
        and limit.order in ORDERS
        and limit.access in ACCESSES
    )
    return limit if known else None


def _metadata_rate(entry: dict[str, Any]) -> MetadataRate | None:
    rate = MetadataRate(
        path=str(entry["path"]),
        operation=str(entry["operation"]),
        processes=int(entry.get("processes", 1)),
        size_bytes=int(entry.get("size_bytes", 0)),
        **_rate(entry["operations_per_second"]),
        **_stripe(entry),
    )
    return rate if rate.operation in ON_NAMES else None


def _rate(summary: dict[str, Any]) -> dict[str, Any]:
    rate = {key: float(summary[key]) for key in ("median", "low", "high")}
    if not 0 < rate["low"] <= rate["median"] <= rate["high"]:
        raise ValueError(f"a rate of {summary!r}")
    return rate


def _stripe(entry: dict[str, Any]) -> dict[str, Any]:
    keys = ("stripe_count", "stripe_size_bytes")
    return {key: int(entry[key]) for key in keys if entry.get(key) is not None}

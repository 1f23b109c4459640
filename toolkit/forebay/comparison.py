"""What a comparison found: the value that `forebay compare` prints, writes as JSON and draws."""

from dataclasses import asdict, dataclass, field
from typing import Any

from forebay.limit import LimitSeconds
from forebay.records import Record, Storage, seconds_of
from forebay.statistics import Ratio, median, median_ratio

STOCK = "stock"
FOREBAY = "forebay"

# What is timed. "write" is all that a writer waits for: the data calls, sync and close.
QUANTITIES = ("wall", "write", "read", "data", "mpiio")


@dataclass(frozen=True)
class Side:
    """One timed run. Seconds; a quantity is None if the program made no such call."""

    wall: float
    write: float | None
    read: float | None
    data: float | None  # write and read calls alone
    mpiio: float | None  # every call on files, open and close too
    exit: int


def side_of(wall: float, exit_code: int, records: list[Record]) -> Side:
    """A run's figures from its records."""
    writers = [record for record in records if record.wrote]
    readers = [record for record in records if record.read]
    return Side(
        wall=wall,
        write=seconds_of(writers, "writing") if writers else None,
        read=seconds_of(readers, "read") if readers else None,
        data=seconds_of(records, "data") if writers or readers else None,
        mpiio=seconds_of(records, "all") if records else None,
        exit=exit_code,
    )


@dataclass(frozen=True)
class Pair:
    """One stock and one Forebay run, in the order in which they ran."""

    order: list[str]
    stock: Side
    forebay: Side
    limit: LimitSeconds | None = None

    def ratio(self, quantity: str) -> float | None:
        """stock / Forebay; None if either side has no such calls."""
        stock, forebay = getattr(self.stock, quantity), getattr(self.forebay, quantity)
        return stock / forebay if stock and forebay else None


@dataclass
class FileCheck:
    """One file the program wrote, on both sides. The hashes are those of runs that differ if any
    did. `identical` is None where nothing could be compared, and `reason` says why; of a file that
    differs it says what else is known."""

    path: str
    bytes: int
    hash_stock: str | None
    hash_forebay: str | None
    identical: bool | None
    mpi: bool = True  # written through MPI
    reason: str = ""


@dataclass(frozen=True)
class Failure:
    """A run that did not end with exit status 0."""

    side: str
    exit: int
    how: str  # in words: "ended with exit status 139 (SIGSEGV)"
    timed_out: bool
    stderr: str
    stdout: str


@dataclass
class Comparison:
    """The whole campaign, or what there is of it when it was interrupted."""

    command: list[str]
    seed: int
    pairs: list[Pair] = field(default_factory=list)
    files: dict[str, FileCheck] = field(default_factory=dict)
    storage: dict[str, Storage | None] = field(default_factory=dict)
    engine: list[dict[str, Any]] = field(default_factory=list)
    environment: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    failure: Failure | None = None
    interrupted: bool = False
    broken_off: str | None = None  # why the campaign could not go on, and what to do
    stock_hints: dict[str, str] = field(default_factory=dict)
    hints: dict[str, str] = field(default_factory=dict)

    @property
    def identical(self) -> bool:
        """Whether every written file was the same on both sides, and Forebay broke nothing."""
        if self.failure is not None and self.failure.side == FOREBAY:
            return False
        return all(check.identical is not False for check in self.files.values())

    def ratio(self, quantity: str) -> Ratio | None:
        """Median over pairs of stock / Forebay, above 1 where Forebay is faster."""
        ratios = [pair.ratio(quantity) for pair in self.pairs]
        return median_ratio([ratio for ratio in ratios if ratio is not None])

    def median_seconds(self, side: str, quantity: str) -> float | None:
        values = [getattr(getattr(pair, side), quantity) for pair in self.pairs]
        values = [value for value in values if value is not None]
        return median(values) if values else None

    def fraction(self, side: str, quantity: str) -> Ratio | None:
        """Limit's seconds / side's seconds: the part of the physical limit that the side reaches.
        None where it was not measured."""
        fractions = []
        for pair in self.pairs:
            spent = getattr(getattr(pair, side), quantity)
            limit = getattr(pair.limit, quantity) if pair.limit else None
            if spent and limit:
                fractions.append(limit / spent)
        return median_ratio(fractions)

    def limit_seconds(self, quantity: str) -> float | None:
        values = [getattr(pair.limit, quantity) for pair in self.pairs if pair.limit]
        values = [value for value in values if value is not None]
        return median(values) if values else None

    def as_json(self) -> dict[str, Any]:
        """The document of `forebay compare --json` (docs/guide/command.md)."""
        limit: dict[str, Any] | None = None
        if any(pair.limit for pair in self.pairs):
            limit = {quantity: self._limit_json(quantity) for quantity in ("write", "read")}
        return {
            "version": 1,
            "identical": self.identical,
            "files": [asdict(check) for check in self.files.values()],
            "ratio": {quantity: _ratio_json(self.ratio(quantity)) for quantity in QUANTITIES},
            "pairs": [asdict(pair) for pair in self.pairs],
            "storage": {
                side: asdict(counted) if counted else None
                for side, counted in ((s, self.storage.get(s)) for s in (STOCK, FOREBAY))
            },
            "limit": limit,
            "engine": self.engine,
            "hints": {"stock": self.stock_hints, "forebay": self.hints},
            "environment": self.environment,
            "notes": self.notes,
            "failure": asdict(self.failure) if self.failure else None,
            "interrupted": self.interrupted,
            "broken_off": self.broken_off,
            "seed": self.seed,
        }

    def _limit_json(self, quantity: str) -> dict[str, Any] | None:
        seconds = self.limit_seconds(quantity)
        if seconds is None:
            return None
        return {
            "seconds": seconds,
            "stock": _ratio_json(self.fraction(STOCK, quantity)),
            "forebay": _ratio_json(self.fraction(FOREBAY, quantity)),
        }


def _ratio_json(ratio: Ratio | None) -> dict[str, Any] | None:
    return None if ratio is None else {**asdict(ratio), "detectable": ratio.detectable}

"""What one run of a measurement tells: of which access, how many bytes or operations a second."""

from dataclasses import dataclass
from typing import Any

LIMITS, METADATA = "limits", "metadata"
#: Of each list of the system file, the key of its rates.
RATE_KEYS = {LIMITS: "bytes_per_second", METADATA: "operations_per_second"}
_DEFAULTS = {
    "processes": 1,
    "in_flight": 1,
    "order": "sequential",
    "files": "own",
    "access": "posix",
    "engine": "mpi",
    "hosts": 1,
}
_ORDER = (
    "level",
    "path",
    "operation",
    "mode",
    "size_bytes",
    "processes",
    "in_flight",
    "order",
    "files",
    "access",
    "engine",
    "stripe_count",
    "stripe_size_bytes",
    "hosts",
)


@dataclass(frozen=True)
class Subject:
    """What a rate is of: the list of the system file that it belongs to, and its keys there without
    those that have their default, in alphabetical order."""

    part: str  # LIMITS or METADATA
    keys: tuple[tuple[str, Any], ...]

    def as_json(self) -> dict[str, Any]:
        """In the order in which people read them."""
        return dict(sorted(self.keys, key=lambda item: _ORDER.index(item[0])))


def subject(part: str, entry: dict[str, Any]) -> Subject:
    """That of `entry`, in which rates and samples do not count."""
    kept = {
        key: entry[key]
        for key in _ORDER
        if entry.get(key) is not None and _DEFAULTS.get(key) != entry[key]
    }
    return Subject(part, tuple(sorted(kept.items())))


@dataclass(frozen=True)
class Sample:
    """A rate above 0."""

    subject: Subject
    rate: float

"""What `forebay top` shows at one moment."""

from dataclasses import dataclass, field
from typing import Any

from forebay.top.timeline import Floats, Quantity


@dataclass(frozen=True)
class Rates:
    """Per second, but for `collective`: the share of the bytes of MPI-IO that were moved by
    collective calls, None where there were none."""

    mpi_read_bytes: float
    mpi_write_bytes: float
    posix_read_bytes: float
    posix_write_bytes: float
    mpi_calls: float
    posix_calls: float
    collective: float | None

    @staticmethod
    def of(amounts: Floats) -> "Rates":
        """Of (quantities,) per second, or of sums of them."""
        moved = float(amounts[Quantity.MPI_READ_BYTES] + amounts[Quantity.MPI_WRITE_BYTES])
        return Rates(
            mpi_read_bytes=float(amounts[Quantity.MPI_READ_BYTES]),
            mpi_write_bytes=float(amounts[Quantity.MPI_WRITE_BYTES]),
            posix_read_bytes=float(amounts[Quantity.POSIX_READ_BYTES]),
            posix_write_bytes=float(amounts[Quantity.POSIX_WRITE_BYTES]),
            mpi_calls=float(amounts[Quantity.MPI_CALLS]),
            posix_calls=float(amounts[Quantity.POSIX_CALLS]),
            collective=float(amounts[Quantity.COLLECTIVE_BYTES]) / moved if moved else None,
        )

    def as_json(self, suffix: str) -> dict[str, Any]:
        """`suffix`: "_per_s", or nothing of sums."""
        numbers = {
            f"{name}{suffix}": value for name, value in vars(self).items() if name != "collective"
        }
        return {**numbers, "collective_share": self.collective}


@dataclass(frozen=True)
class ProcessRow:
    """One process. Series are of bytes that the program moved in each second of the last minute,
    the last one so far."""

    rank: int | None
    pid: int
    host: str
    program: str
    state: str
    heard_age_s: float
    rates: Rates
    total: Rates
    io_share: float
    posix_share: float
    dirty_bytes: int | None
    read_series: list[float]
    write_series: list[float]

    def as_json(self) -> dict[str, Any]:
        return {
            "rank": self.rank,
            "pid": self.pid,
            "host": self.host,
            "program": self.program,
            "state": self.state,
            "heard_age_s": round(self.heard_age_s, 3),
            **self.rates.as_json("_per_s"),
            "io_share": self.io_share,
            "posix_share": self.posix_share,
            "dirty_bytes": self.dirty_bytes,
            "total": self.total.as_json(""),
            "read_bytes_by_second": self.read_series,
            "write_bytes_by_second": self.write_series,
        }


@dataclass(frozen=True)
class FileRow:
    """One file, of all processes."""

    path: str
    processes: int
    rates: Rates
    total: Rates
    io_s: float  # of all processes together, since the run began
    moved_series: list[float]

    def as_json(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "processes": self.processes,
            **self.rates.as_json("_per_s"),
            "total": self.total.as_json(""),
            "io_s": self.io_s,
            "moved_bytes_by_second": self.moved_series,
        }


@dataclass(frozen=True)
class Picture:
    """A run at one moment. `ended`: why nothing more will come, or empty."""

    spills: str
    command: list[str]
    taken_unix_s: float
    elapsed_s: float
    window_s: int
    processes: list[ProcessRow]
    files: list[FileRow]
    gone: int  # processes that ended some time ago and have no row any more
    total: Rates
    rates: Rates
    read_series: list[float]
    write_series: list[float]
    lost_calls: int = 0
    behind_bytes: int = 0
    ended: str = ""
    notes: list[str] = field(default_factory=list)

    @property
    def by_io_share(self) -> list[ProcessRow]:
        """Ranks that run, or if there are none processes, from the least of their time in I/O to
        the most."""
        running = [row for row in self.processes if row.state not in ENDED]
        ranks = [row for row in running if row.rank is not None] or running
        return sorted(ranks, key=lambda row: row.io_share)

    @property
    def dirty_bytes(self) -> int | None:
        """Of all processes whose logs are on this node."""
        known = [row.dirty_bytes for row in self.processes if row.dirty_bytes is not None]
        return sum(known) if known else None

    def as_json(self) -> dict[str, Any]:
        return {
            "spills": self.spills,
            "command": self.command,
            "taken_unix_s": self.taken_unix_s,
            "elapsed_s": self.elapsed_s,
            "window_s": self.window_s,
            **self.rates.as_json("_per_s"),
            "total": self.total.as_json(""),
            "dirty_bytes": self.dirty_bytes,
            "lost_calls": self.lost_calls,
            "behind_bytes": self.behind_bytes,
            "ended": self.ended or None,
            "processes_gone": self.gone,
            "processes": [row.as_json() for row in self.processes],
            "files": [row.as_json() for row in self.files],
            "notes": self.notes,
        }


# States of a process that does nothing any more.
ENDED = ("ended", "killed")

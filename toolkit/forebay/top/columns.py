"""The columns in which processes and files are shown: how each is sorted, and how it reads."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from forebay.top.picture import FileRow, Picture, ProcessRow, Rates
from forebay.units import show_bytes, show_count, show_seconds

Row = TypeVar("Row")
_BARS = " ▁▂▃▄▅▆▇█"
_NOTHING = "-"


@dataclass(frozen=True)
class Column(Generic[Row]):
    """`value` sorts; `show` reads. Where numbers are sorted, the largest come first."""

    key: str
    title: str
    value: Callable[[Row], float | str]
    show: Callable[[Row], str]
    is_number: bool = True


def rate(bytes_per_s: float) -> str:
    return f"{show_bytes(bytes_per_s)}/s" if bytes_per_s >= 0.5 else _NOTHING


def share(part: float | None) -> str:
    if part is None:
        return _NOTHING
    return f"{100 * part:.0f} %"


def count_rate(per_s: float) -> str:
    return show_count(round(per_s)) if per_s >= 0.5 else _NOTHING


def bars(series: Sequence[float], highest: float, width: int = 20) -> str:
    """A line of `width` blocks, each the mean of its part of the series, from left to right. What
    is above nothing shows."""
    part = len(series) / width
    text = ""
    for place in range(width):
        values = series[int(place * part) : max(int((place + 1) * part), int(place * part) + 1)]
        value = sum(values) / len(values)
        level = value / highest * (len(_BARS) - 1) if highest > 0 else 0
        text += _BARS[min(len(_BARS) - 1, max(round(level), 1 if value > 0 else 0))]
    return text


def age(seconds: float) -> str:
    return show_seconds(seconds) if seconds < 1 else f"{seconds:.0f} s"


def _rates(of: Callable[[Row], Rates]) -> list[Column[Row]]:
    """Those that processes and files have alike."""
    return [
        Column(key, title, partial(_value, of, name), partial(_shown, of, name, show))
        for key, title, name, show in (
            ("mpi-read", "MPI-IO read", "mpi_read_bytes", _show_bytes),
            ("mpi-write", "MPI-IO write", "mpi_write_bytes", _show_bytes),
            ("posix-read", "POSIX read", "posix_read_bytes", _show_bytes),
            ("posix-write", "POSIX write", "posix_write_bytes", _show_bytes),
            ("mpi-calls", "MPI-IO calls/s", "mpi_calls", _show_count),
            ("posix-calls", "POSIX calls/s", "posix_calls", _show_count),
        )
    ]


def _totals(of: Callable[[Row], Rates]) -> list[Column[Row]]:
    """Likewise, since the beginning."""
    return [
        Column(
            "collective",
            "collective",
            lambda row: _collective(of(row)),
            lambda row: share(of(row).collective),
        ),
        Column(
            "total",
            "moved in all",
            lambda row: _all_bytes(of(row)),
            lambda row: show_bytes(_all_bytes(of(row))),
        ),
    ]


def _value(of: Callable[[Row], Rates], name: str, row: Row) -> float:
    value: float = getattr(of(row), name)
    return value


def _shown(
    of: Callable[[Row], Rates], name: str, show: Callable[[Rates, str], str], row: Row
) -> str:
    return show(of(row), name)


def _show_bytes(rates: Rates, name: str) -> str:
    return rate(getattr(rates, name))


def _show_count(rates: Rates, name: str) -> str:
    return count_rate(getattr(rates, name))


def _collective(rates: Rates) -> float:
    return -1.0 if rates.collective is None else rates.collective


def column_keys() -> list[str]:
    """By which processes can be sorted."""
    return [
        *("rank", "pid", "host", "program", "state", "io", "in-posix"),
        *("mpi-read", "mpi-write", "posix-read", "posix-write", "mpi-calls", "posix-calls"),
        *("collective", "dirty", "total", "heard", "minute"),
    ]


def process_columns(picture: Picture) -> list[Column[ProcessRow]]:
    """Hosts have a column where there are several, unflushed bytes where some are known."""
    several_hosts = len({row.host for row in picture.processes}) > 1
    highest = max(
        (r + w for row in picture.processes for r, w in _moved(row)),
        default=0.0,
    )
    columns: list[Column[ProcessRow]] = [
        Column(
            "rank",
            "rank",
            lambda row: float("inf") if row.rank is None else row.rank,
            lambda row: "" if row.rank is None else str(row.rank),
        ),
        Column("pid", "pid", lambda row: row.pid, lambda row: str(row.pid)),
        Column("program", "program", lambda r: r.program, lambda r: r.program, is_number=False),
        Column("state", "state", lambda row: row.state, lambda row: row.state, is_number=False),
        Column("io", "in I/O", lambda row: row.io_share, lambda row: share(row.io_share)),
        Column(
            "in-posix", "in POSIX", lambda row: row.posix_share, lambda row: share(row.posix_share)
        ),
        Column(
            "minute",
            "last minute",
            lambda row: sum(r + w for r, w in _moved(row)),
            lambda row: bars([r + w for r, w in _moved(row)], highest),
        ),
        *_rates(lambda row: row.rates),
        *_totals(lambda row: row.total),
        Column("heard", "heard", lambda row: row.heard_age_s, lambda row: age(row.heard_age_s)),
    ]
    if several_hosts:
        columns.insert(2, Column("host", "host", lambda r: r.host, lambda r: r.host, False))
    if picture.dirty_bytes is not None:
        columns.insert(
            -1,
            Column(
                "dirty",
                "in cache",
                lambda row: -1 if row.dirty_bytes is None else row.dirty_bytes,
                lambda row: _NOTHING if row.dirty_bytes is None else show_bytes(row.dirty_bytes),
            ),
        )
    return columns


def _all_bytes(total: Rates) -> float:
    """By MPI-IO if there was any, for the calls of POSIX are below it then; else by POSIX."""
    by_mpi = total.mpi_read_bytes + total.mpi_write_bytes
    return by_mpi or total.posix_read_bytes + total.posix_write_bytes


def _moved(row: ProcessRow) -> list[tuple[float, float]]:
    return list(zip(row.read_series, row.write_series, strict=True))


def file_columns(picture: Picture) -> list[Column[FileRow]]:
    highest = max((value for row in picture.files for value in row.moved_series), default=0.0)
    return [
        Column("file", "file", lambda row: row.path, lambda row: row.path, is_number=False),
        Column("processes", "processes", lambda r: r.processes, lambda r: str(r.processes)),
        Column(
            "minute",
            "last minute",
            lambda row: sum(row.moved_series),
            lambda row: bars(row.moved_series, highest),
        ),
        *_rates(lambda row: row.rates),
        *_totals(lambda row: row.total),
        Column("time", "time in calls", lambda r: r.io_s, lambda r: show_seconds(r.io_s)),
    ]

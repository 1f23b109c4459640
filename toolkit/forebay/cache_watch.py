"""`forebay cache watch`: how far the writers of logs have got, again and again."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from forebay import cache
from forebay.cache import Entry, Selection
from forebay.units import show_bytes, show_seconds


@dataclass(frozen=True)
class Pace:
    """One log between two looks at it. Rates are bytes per second; None where they are not known
    yet."""

    log: Entry
    absorbed: int
    drained: int
    dirty: int
    absorb_rate: float | None = None
    drain_rate: float | None = None

    @property
    def left_s(self) -> float | None:
        """Seconds until nothing is dirty, if it goes on so and nothing more is written."""
        if self.dirty == 0:
            return 0.0
        return self.dirty / self.drain_rate if self.drain_rate else None

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.log["name"],
            "path": self.log["path"],
            "file": self.log["file"],
            "state": self.log["state"],
            "absorbed_bytes": self.absorbed,
            "drained_bytes": self.drained,
            "dirty_bytes": self.dirty,
            "absorb_bytes_per_s": self.absorb_rate,
            "drain_bytes_per_s": self.drain_rate,
            "left_s": self.left_s,
        }


def pace(log: Entry, before: Entry | None) -> Pace | None:
    """Of a log that is in use, compared with an earlier look at it. None: it says nothing."""
    now = log["progress"]
    if not log["in_use"] or now is None:
        return None
    found = Pace(log, now["absorbed_bytes"], now["drained_bytes"], now["dirty_bytes"])
    earlier = before["progress"] if before is not None else None
    if earlier is None:
        return found
    seconds = now["updated_unix_s"] - earlier["updated_unix_s"]
    if seconds <= 0:  # Nothing happened meanwhile.
        return Pace(log, found.absorbed, found.drained, found.dirty, 0.0, 0.0)
    return Pace(
        log,
        found.absorbed,
        found.drained,
        found.dirty,
        (found.absorbed - earlier["absorbed_bytes"]) / seconds,
        (found.drained - earlier["drained_bytes"]) / seconds,
    )


def looks(selection: Selection, interval_s: float, count: int | None) -> Iterator[list[Pace]]:
    """The logs in use, every `interval_s` seconds, until there is none, or `count` times. Raises
    ForebayError."""
    before: dict[str, Entry] = {}
    number = 0
    while True:
        logs = cache.survey(selection).logs
        found = [p for p in (pace(log, before.get(log["path"])) for log in logs) if p is not None]
        before = {log["path"]: log for log in logs}
        yield found
        number += 1
        if not found or (count is not None and number >= count):
            return
        time.sleep(interval_s)


def watch(console: Console, selection: Selection, interval_s: float, count: int | None) -> None:
    """Shows them in place on a terminal, else one table after the other."""
    if not console.is_terminal:
        for found in looks(selection, interval_s, count):
            console.print(table(found))
        return
    with Live(console=console, auto_refresh=False) as live:
        for found in looks(selection, interval_s, count):
            live.update(table(found), refresh=True)


def table(paces: list[Pace]) -> Table | Text:
    """One look."""
    if not paces:
        return Text("no running program writes a log")
    shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 2))
    for name in ("state", "absorbed", "drained", "to drain", "absorbs", "drains", "time left"):
        shown.add_column(name, justify="left" if name == "state" else "right")
    shown.add_column("rank", justify="right")
    shown.add_column("file", overflow="fold")
    for each in paces:
        shown.add_row(
            Text(each.log["state"]),
            show_bytes(each.absorbed),
            show_bytes(each.drained),
            show_bytes(each.dirty),
            _rate(each.absorb_rate),
            _rate(each.drain_rate),
            "" if each.left_s is None else show_seconds(each.left_s),
            str(each.log.get("rank", "")),
            Text(each.log["file"] or each.log["path"]),
        )
    return shown


def _rate(bytes_per_s: float | None) -> str:
    return "" if bytes_per_s is None else f"{show_bytes(bytes_per_s)}/s"

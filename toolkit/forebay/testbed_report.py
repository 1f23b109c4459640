"""What a testbed's state looks like on a terminal."""

from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from forebay.testbed_state import State
from forebay.units import show_bytes, show_count

# The name of a counter, and how it is shown of one server.
Column = tuple[str, Callable[[dict[str, Any]], str]]

_TRAFFIC: tuple[Column, ...] = (
    ("writes", lambda server: show_count(server["write_requests"])),
    ("written", lambda server: show_bytes(server["write_bytes"])),
    ("reads", lambda server: show_count(server["read_requests"])),
    ("read", lambda server: show_bytes(server["read_bytes"])),
)


def show(
    console: Console, state: State, backing: str, about: str, server: str, more: Sequence[Column]
) -> None:
    """Prints where it is, and that its `backing` (files, bricks) is elsewhere; a line `about` its
    parameters; and a row for each `server`, by that name: its traffic, and `more`."""
    console.print(
        f"[bold]{escape(state['mount'])}[/bold]  "
        f"{'up' if state['running'] else 'down'}, {backing} in {escape(state['backing'])}",
        soft_wrap=True,
    )
    console.print(f"  {about}")
    columns = (*_TRAFFIC, *more)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 2))
    for name in (server, *(name for name, _ in columns)):
        table.add_column(name, justify="right")
    for number, counters in enumerate(state["servers"]):
        table.add_row(str(number), *(shown(counters) for _, shown in columns))
    console.print(table)

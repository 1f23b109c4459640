"""What the columns of the picture mean, and the keys."""

from typing import ClassVar

from rich.console import Group
from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

_WORDS = (
    ("MPI-IO", "bytes that the program's calls of MPI-IO moved"),
    (
        "POSIX",
        "bytes that calls to the C library moved, also those that the MPI and Forebay made: more "
        "than MPI-IO is amplification, or I/O past MPI",
    ),
    (
        "in I/O",
        "share of the time of the thread that was longest in calls. In collective I/O the rank "
        "with the least may be the one that the others wait for",
    ),
    ("in POSIX", "the part of it below, in calls to the C library"),
    (
        "collective",
        "share of the bytes of MPI-IO that collective calls moved, since the beginning",
    ),
    ("in cache", "bytes in write-behind logs of this host that are in no file yet"),
    (
        "heard",
        "for how long the process has written nothing down. A busy one does each second. One that "
        "makes no call, or is in a long one, cannot: calls of the second before it fell silent "
        "may be missing here until its next call returns",
    ),
    ("active", "heard of in the last seconds"),
    (
        "quiet",
        "no call has returned for some seconds: it computes, waits, or is in one long call",
    ),
    ("in MPI-IO", "the same, and it was inside a call of MPI-IO"),
    ("disk wait", "quiet, and the kernel says that it waits for a device"),
    ("stopped", "quiet, and somebody has stopped it by a signal"),
    ("killed", "gone without a farewell (processes of this host alone are looked at)"),
    ("untraced", "it has become a program that is not traced"),
)
_KEYS = (
    ("f", "files, processes"),
    ("< >", "sort by the column before or after; or click its title"),
    ("r", "reverse the order"),
    ("/", "filter: ranks as 0-3,7, a pid, or a part of program, host, state or file; empty: all"),
    ("p", "pause"),
    ("q", "quit"),
    ("?", "this page; escape closes it"),
)


class HelpPage(ModalScreen[None]):
    """Over the picture. `window_s`: of which rates are the means."""

    CSS = """
    HelpPage { align: center middle; }
    #help { width: 100; max-width: 100%; height: auto; max-height: 100%;
            border: round $primary; background: $surface; padding: 1 2; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark", "dismiss", "Close"),
    ]

    def __init__(self, window_s: int) -> None:
        super().__init__()
        self._window_s = window_s

    def compose(self) -> ComposeResult:
        first = Text(f"Rates are means of the last {self._window_s} seconds.\n")
        with VerticalScroll(id="help"):
            yield Static(Group(first, _listed(_WORDS), Text(), _listed(_KEYS)))


def _listed(pairs: tuple[tuple[str, str], ...]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for word, meaning in pairs:
        table.add_row(word, meaning)
    return table

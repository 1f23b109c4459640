"""The picture on a terminal, drawn anew as long as the job runs."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widgets import DataTable, Footer, Input, Label, Sparkline, Static

from forebay.errors import ForebayError, refused
from forebay.top import plain_text
from forebay.top.arrangement import Arrangement
from forebay.top.columns import Column, file_columns, process_columns
from forebay.top.help_page import HelpPage
from forebay.top.picture import ENDED, FileRow, Picture, ProcessRow
from forebay.units import show_bytes

Look = Callable[[], Picture]

# Drawing more takes longer than a look should; a filter finds the others.
MOST_ROWS = 200

_WIDEST_PATH = 48


def _fitting(key: str, text: str) -> str:
    """The end of a path tells more than its beginning."""
    return f"…{text[-_WIDEST_PATH:]}" if key == "file" and len(text) > _WIDEST_PATH else text


class Top(App[None]):
    """`look` reads what is new; it is called in a thread, one at a time. Without `interval_s`
    nothing is drawn but by `look_again`."""

    CSS = """
    #heading { height: auto; padding: 0 1; }
    #minute { height: 3; padding: 0 1; }
    #minute Label { width: 16; }
    #minute Sparkline { height: 3; width: 1fr; margin: 0 1; }
    DataTable { height: 1fr; }
    #filter { display: none; }
    #filter.shown { display: block; }
    """
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f", "switch", "Files"),
        Binding("less_than_sign,comma", "sort(-1)", "Sort", key_display="< >"),
        Binding("greater_than_sign,full_stop", "sort(1)", show=False),
        Binding("r", "reverse", "Reverse"),
        Binding("slash", "filter", "Filter", key_display="/"),
        Binding("p,space", "pause", "Pause"),
        Binding("question_mark", "help", "Help", key_display="?"),
        Binding("q", "quit", "Quit"),
        Binding("escape", "close_filter", show=False),
    ]

    def __init__(
        self, look: Look, interval_s: float | None = 1.0, sort: str = "rank", wanted: str = ""
    ) -> None:
        super().__init__()
        self.picture: Picture | None = None
        self.failure: ForebayError | None = None
        self.is_paused = False
        self.shows_files = False
        self.processes = Arrangement(sort, wanted=wanted)
        self.files = Arrangement("total", wanted=wanted)
        self._look = look
        self._interval_s = interval_s
        self._is_looking = False

    def compose(self) -> ComposeResult:
        yield Static(id="heading")
        with Horizontal(id="minute"):
            yield Label("written", id="written")
            yield Sparkline([], id="writes")
            yield Label("read", id="read")
            yield Sparkline([], id="reads")
        yield DataTable(cursor_type="row", zebra_stripes=True)
        yield Input(placeholder="ranks 0-3,7, or a part of program, host, state, file", id="filter")
        yield Footer()

    def on_mount(self) -> None:
        self.title = "forebay top"
        self.query_one(DataTable).focus()
        if self._interval_s is not None:
            self._begin_look()
            self.set_interval(self._interval_s, self._begin_look)

    def _begin_look(self) -> None:
        if not self._is_looking and not self.is_paused:
            self.run_worker(self.look_again())

    async def look_again(self) -> None:
        """Reads what is new and draws it. What cannot be read ends the command."""
        self._is_looking = True
        try:
            self.picture = await asyncio.to_thread(self._look)
        except (ForebayError, OSError) as error:
            self.failure = refused(error) if isinstance(error, OSError) else error
            self.exit()
            return
        finally:
            self._is_looking = False
        if not self.is_paused:
            self.draw()

    def draw(self) -> None:
        """The picture as it is arranged now."""
        picture = self.picture
        if picture is None:
            return
        screen = self.screen_stack[0]
        screen.query_one("#heading", Static).update(Text("\n".join(self._heading(picture))))
        for name, label, series in (
            ("writes", "written", picture.write_series),
            ("reads", "read", picture.read_series),
        ):
            screen.query_one(f"#{name}", Sparkline).data = series
            highest = show_bytes(max(series, default=0.0))
            screen.query_one(f"#{label}", Label).update(f"{label}, 60 s\nat most\n{highest}/s")
        if self.shows_files:
            files = file_columns(picture)
            self._draw_rows(files, self.files.rows(picture.files, files), self.files)
        else:
            processes = process_columns(picture)
            rows = self.processes.rows(picture.processes, processes)
            self._draw_rows(processes, rows, self.processes)

    def _heading(self, picture: Picture) -> list[str]:
        lines = plain_text.heading(picture)
        if self.is_paused:
            lines[1] += " - PAUSED"
        arrangement = self.files if self.shows_files else self.processes
        rows = len(picture.files) if self.shows_files else len(picture.processes)
        if rows > MOST_ROWS:
            lines.append(f"the first {MOST_ROWS} of {rows} rows; / filters")
        if arrangement.wanted:
            lines.append(f"filter: {arrangement.wanted}")
        return lines

    def _draw_rows(
        self,
        columns: list[Column[ProcessRow]] | list[Column[FileRow]],
        rows: list[ProcessRow] | list[FileRow],
        arrangement: Arrangement,
    ) -> None:
        """The cursor and what is scrolled to stay where they are."""
        table = self.screen_stack[0].query_one(DataTable)
        cursor, scrolled = table.cursor_row, (table.scroll_x, table.scroll_y)
        table.clear(columns=True)
        mark = " ▲" if arrangement.is_reversed else " ▼"
        for column in columns:
            is_sorted = column.key == arrangement.sort
            table.add_column(column.title + (mark if is_sorted else ""), key=column.key)
        table.fixed_columns = 1
        for row in rows[:MOST_ROWS]:
            style = "dim" if isinstance(row, ProcessRow) and row.state in ENDED else ""
            table.add_row(
                *(
                    Text(
                        _fitting(column.key, column.show(row)),  # type: ignore[arg-type]
                        style=style,
                        justify="right" if column.is_number and column.key != "minute" else "left",
                    )
                    for column in columns
                )
            )
        if rows:
            table.move_cursor(row=min(cursor, len(rows) - 1), scroll=False)
        table.scroll_to(*scrolled, animate=False)

    # Keys

    def _arrange(self, change: Callable[[Arrangement], Arrangement]) -> None:
        if self.shows_files:
            self.files = change(self.files)
        else:
            self.processes = change(self.processes)
        self.draw()

    def action_sort(self, step: int) -> None:
        if self.picture is None:
            return
        keys = (
            [column.key for column in file_columns(self.picture)]
            if self.shows_files
            else [column.key for column in process_columns(self.picture)]
        )
        self._arrange(lambda arrangement: arrangement.moved(keys, step))

    def on_data_table_header_selected(self, event: DataTable.HeaderSelected) -> None:
        key = str(event.column_key.value)
        self._arrange(
            lambda a: replace(a, sort=key, is_reversed=a.sort == key and not a.is_reversed)
        )

    def action_reverse(self) -> None:
        self._arrange(lambda a: replace(a, is_reversed=not a.is_reversed))

    def action_switch(self) -> None:
        self.shows_files = not self.shows_files
        self.draw()

    def action_pause(self) -> None:
        self.is_paused = not self.is_paused
        self.draw()

    def action_help(self) -> None:
        self.push_screen(HelpPage(self.picture.window_s if self.picture else 0))

    def action_filter(self) -> None:
        field = self.query_one("#filter", Input)
        field.add_class("shown")
        field.value = (self.files if self.shows_files else self.processes).wanted
        field.focus()

    def action_close_filter(self) -> None:
        self.query_one("#filter", Input).remove_class("shown")
        self.query_one(DataTable).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self._arrange(lambda a: replace(a, wanted=event.value))
        self.action_close_filter()

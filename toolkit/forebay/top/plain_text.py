"""One picture as text, where there is no terminal to draw on."""

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from forebay.top.arrangement import Arrangement
from forebay.top.columns import Column, age, file_columns, process_columns, rate, share
from forebay.top.picture import ENDED, FileRow, Picture, ProcessRow
from forebay.units import show_bytes, show_count, show_seconds

_MOST_FILES = 10
_WIDTH = 4000


def show(console: Console, picture: Picture, arrangement: Arrangement) -> None:
    """Processes, then the files to which most was moved."""
    columns = process_columns(picture)
    rows = arrangement.rows(picture.processes, columns)
    # As wide as it is, on whatever it is written to: a column that is cut tells nothing.
    wide = Console(file=console.file, width=_WIDTH, highlight=False, color_system=None)
    wide.print(Group(*map(Text, heading(picture))))
    wide.print(_table(columns, rows))
    files = file_columns(picture)
    listed = Arrangement("total", wanted="").rows(picture.files, files)[:_MOST_FILES]
    if listed:
        wide.print()
        wide.print(_table(files, listed))


def heading(picture: Picture) -> list[str]:
    """What is said of the run as a whole: its name and age; rates; who is longest in I/O."""
    running = sum(row.state not in ENDED for row in picture.processes)
    count = f"{running} of {show_count(len(picture.processes) + picture.gone)} processes run"
    lines = [
        " ".join(picture.command) or picture.spills,
        f"{show_seconds(picture.elapsed_s)} since it began, {count}"
        + (f" ({picture.ended})" if picture.ended else ""),
    ]
    rates, total = picture.rates, picture.total
    lines.append(
        f"now    MPI-IO read {rate(rates.mpi_read_bytes)}, write {rate(rates.mpi_write_bytes)};"
        f" POSIX read {rate(rates.posix_read_bytes)}, write {rate(rates.posix_write_bytes)}"
    )
    lines.append(
        f"in all MPI-IO read {show_bytes(total.mpi_read_bytes)}, write "
        f"{show_bytes(total.mpi_write_bytes)} ({share(total.collective)} collective); POSIX read "
        f"{show_bytes(total.posix_read_bytes)}, write {show_bytes(total.posix_write_bytes)}"
    )
    lines += [line for line in (slowest(picture), waiting(picture)) if line]
    return lines + [f"note: {note}" for note in notes(picture)]


def slowest(picture: Picture) -> str:
    """Of several that run, who is in I/O for the most of its time, and who for the least."""
    rows = picture.by_io_share
    if len(rows) < 2 or rows[-1].io_share == 0:
        return ""
    middle = rows[len(rows) // 2]
    return (
        f"longest in I/O: {_name(rows[-1])} ({share(rows[-1].io_share)}), in the middle "
        f"{share(middle.io_share)}, shortest: {_name(rows[0])} ({share(rows[0].io_share)})"
    )


def waiting(picture: Picture) -> str:
    """Who was not heard of for the longest time, and what is in the cache."""
    words = []
    quiet = [row for row in picture.processes if row.state not in (*ENDED, "active")]
    if quiet:
        oldest = max(quiet, key=lambda row: row.heard_age_s)
        words.append(
            f"{len(quiet)} have not been heard of lately, {_name(oldest)} for "
            f"{age(oldest.heard_age_s)}"
        )
    if picture.dirty_bytes is not None:
        words.append(f"{show_bytes(picture.dirty_bytes)} wait in the cache")
    return "; ".join(words)


def notes(picture: Picture) -> list[str]:
    """What is missing in the picture."""
    found = []
    if picture.behind_bytes:
        found.append(f"{show_bytes(picture.behind_bytes)} of what was spilled are yet to be read")
    if picture.lost_calls:
        found.append(f"{show_count(picture.lost_calls)} calls could not be kept, and are missing")
    return found + picture.notes


def _name(row: ProcessRow) -> str:
    return f"process {row.pid}" if row.rank is None else f"rank {row.rank}"


def _table(
    columns: list[Column[ProcessRow]] | list[Column[FileRow]],
    rows: list[ProcessRow] | list[FileRow],
) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        right = column.is_number and column.key != "minute"
        table.add_column(column.title, justify="right" if right else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(column.show(row)) for column in columns))  # type: ignore[arg-type]
    return table

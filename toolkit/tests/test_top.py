"""Goal: `forebay top` shows what the processes of a running job do, as far as they have spilled it.

Method: spill files of which everything is known, grown piece by piece between looks; the same
damaged, cut, and gone; the screen by Textual's pilot.
"""

import asyncio
import errno
import json
import os
from pathlib import Path

import made_spills
import numpy as np
import pytest
import xxhash
from conftest import Forebay
from hypothesis import given, settings
from hypothesis import strategies as st
from made_spills import BEGUN_NS, MadeProcess, S

from forebay.errors import ForebayError
from forebay.top import live_files, local_process, run_place
from forebay.top.arrangement import Arrangement
from forebay.top.columns import bars, column_keys, process_columns
from forebay.top.live_run import LiveRun
from forebay.top.picture import Picture, ProcessRow
from forebay.top.run_place import RunPlace
from forebay.top.screen import MOST_ROWS, Top
from forebay.top.spill_tail import SpillTail
from forebay.top.timeline import Quantity, Timeline

MB = 1_000_000


class Watched:
    """A run that is looked at, at times in seconds since it began."""

    def __init__(self, spills: Path, **options: object) -> None:
        self.now_s = 0.0
        self.run = LiveRun(
            RunPlace(spills),
            now_ns=lambda: BEGUN_NS + round(self.now_s * S),
            **options,  # type: ignore[arg-type]
        )

    def look(self, at_s: float) -> Picture:
        self.now_s = at_s
        return self.run.look()


@pytest.fixture
def spills(tmp_path: Path) -> Path:
    place = tmp_path / "job.trace.spills"
    place.mkdir()
    content = {"command": ["mpiexec", "./app"], "begun": BEGUN_NS, "environment": {}}
    (place / "command.json").write_text(json.dumps(content))
    return place


def rank(spills: Path, which: int, **others: object) -> MadeProcess:
    made = MadeProcess(spills, 100 + which, which, **others)  # type: ignore[arg-type]
    return made.begin()


def only(picture: Picture) -> ProcessRow:
    (row,) = picture.processes
    return row


def test_rates_are_those_of_the_last_seconds_and_totals_of_all(spills: Path) -> None:
    process = rank(spills, 0)
    process.open("data", 0.1)
    for second in range(20):
        process.call(made_spills.WRITE, second + 0.2, 0.1, 2 * MB)
        process.call(made_spills.READ, second + 0.4, 0.2, 1 * MB)
        process.spill(second + 0.999)
    row = only(Watched(spills).look(20.5))
    assert row.state == "active"
    assert row.rates.posix_write_bytes == pytest.approx(2 * MB, rel=0.01)
    assert row.rates.posix_read_bytes == pytest.approx(1 * MB, rel=0.01)
    assert row.rates.posix_calls == pytest.approx(2, rel=0.01)
    assert row.rates.mpi_calls == 0
    assert row.rates.collective is None
    assert (row.total.posix_write_bytes, row.total.posix_read_bytes) == (40 * MB, 20 * MB)
    assert row.io_share == pytest.approx(0.3, rel=0.01)
    assert row.heard_age_s == pytest.approx(20.5 - 19.999, abs=0.01)
    assert row.write_series[-21:] == [2 * MB] * 20 + [0]


def test_a_file_that_grows_is_read_on_where_it_ended(
    spills: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = rank(spills, 0)
    process.open("data", 0.1)
    process.spill(0.2)
    watched = Watched(spills)
    totals = []
    for second in range(1, 4):
        process.call(made_spills.WRITE, second, 0.1, MB)
        process.spill(second + 0.9)
        totals.append(only(watched.look(second + 1)).total.posix_write_bytes)
    assert totals == [MB, 2 * MB, 3 * MB]
    assert only(watched.look(5)).total.posix_write_bytes == 3 * MB
    # What was not added to is not opened again.
    monkeypatch.setattr(SpillTail, "pieces", lambda _: pytest.fail("read again"))
    assert only(watched.look(6)).total.posix_write_bytes == 3 * MB


def test_a_long_call_is_spread_over_the_time_that_it_took(spills: Path) -> None:
    process = rank(spills, 0)
    process.spill(0.1)
    process.mpi(made_spills.MPI_WRITE_ALL, 2.0, 10.0, 100 * MB)
    process.spill(12.5)
    row = only(Watched(spills).look(12.6))
    assert row.write_series[-13:] == pytest.approx([0, 0, *[10 * MB] * 10, 0], abs=1)
    assert row.rates.mpi_write_bytes == pytest.approx(40 * MB / 4.5, rel=0.01)
    assert row.io_share == pytest.approx(4 / 4.5, rel=0.01)


def test_calls_below_mpi_count_as_posix_and_not_as_the_programs(spills: Path) -> None:
    process = rank(spills, 0)
    process.open("data", 0.1)
    process.open_mpi(0, "/run1/data")
    process.call(made_spills.WRITE, 1.0, 0.5, 5 * MB, within=1)
    process.mpi(made_spills.MPI_WRITE_ALL, 0.9, 0.8, 2 * MB)
    process.mpi(made_spills.MPI_READ, 1.8, 0.1, MB)
    process.spill(1.999)
    picture = Watched(spills).look(2.1)
    row = only(picture)
    assert (row.total.mpi_write_bytes, row.total.mpi_read_bytes) == (2 * MB, MB)
    assert (row.total.posix_write_bytes, row.total.mpi_calls) == (5 * MB, 2)
    assert sum(row.write_series) == 2 * MB
    assert row.total.collective == pytest.approx(2 / 3)
    assert row.posix_share == pytest.approx(0.25, rel=0.01)
    assert row.io_share == pytest.approx(0.45, rel=0.01)
    (file,) = picture.files
    assert (file.path, file.processes) == ("/run1/data", 1)
    assert file.total.mpi_write_bytes == 2 * MB
    assert file.total.posix_write_bytes == 5 * MB


def test_a_nonblocking_call_moves_what_it_was_asked_for_unless_it_failed(spills: Path) -> None:
    process = rank(spills, 0)
    process.datatype(77, 8)
    process.spill(0.1)
    process.mpi(made_spills.MPI_IWRITE, 0.2, 0.1, -1, count=1000, datatype=77)
    process.mpi(made_spills.MPI_IWRITE, 0.4, 0.1, -1, count=1000, datatype=77, error=20)
    process.mpi(made_spills.MPI_IWRITE, 0.6, 0.1, -1, count=1000, datatype=78)
    process.spill(0.9)
    assert only(Watched(spills).look(1)).total.mpi_write_bytes == 8000


def test_files_are_followed_through_directories_copies_and_reuse(spills: Path) -> None:
    process = rank(spills, 0)
    process.open("one", 0.1, 3)
    process.call(made_spills.WRITE, 0.2, 0, 1, 3)
    process.call(made_spills.DUP, 0.3, 0, 9, 3)
    process.call(made_spills.CLOSE, 0.4, 0, 0, 3)
    process.call(made_spills.CHDIR, 0.5, 0, 0, length=process_key(process, "/other"))
    process.open("two", 0.6, 3)
    process.call(made_spills.WRITE, 0.7, 0, 10, 3)
    process.call(made_spills.WRITE, 0.8, 0, 100, 9)
    process.spill(0.9)
    # The names are said no more: the thread said them lately.
    process.call(made_spills.OPEN, 1.1, 0, 4, made_spills.HERE, length=process_key(process, "two"))
    process._definitions.clear()
    process.call(made_spills.FILE, 1.1, 0, 0o100644, 4, offset=5)
    process.call(made_spills.WRITE, 1.2, 0, 1000, 4)
    process.spill(1.9)
    picture = Watched(spills).look(2)
    written = {file.path: file.total.posix_write_bytes for file in picture.files}
    assert {path: size for path, size in written.items() if size} == {
        "/run1/one": 101,
        "/other/two": 1010,
    }


def process_key(process: MadeProcess, name: str) -> int:
    key = process.name(name)
    return key - (1 << 64) if key >> 63 else key


def test_states_tell_who_ended_who_is_silent_and_who_is_inside_mpi(spills: Path) -> None:
    ended, silent, inside = (rank(spills, number) for number in range(3))
    ended.call(made_spills.WRITE, 0.5, 0.1, MB)
    ended.end(1.0)
    silent.spill(1.0)
    inside.mpi(made_spills.MPI_WRITE_ALL, 0.1, 0.2, MB)
    inside.call(made_spills.WRITE, 0.5, 0.4, MB, within=1)
    inside.spill(1.0)
    watched = Watched(spills)
    states = [row.state for row in watched.look(1.5).processes]
    assert states == ["ended", "active", "active"]
    picture = watched.look(30)
    assert [row.state for row in picture.processes] == ["ended", "quiet", "in MPI-IO"]
    assert picture.ended == ""
    assert [row.rates.posix_write_bytes for row in picture.processes] == [0, 0, 0]
    inside.mpi(made_spills.MPI_WRITE_ALL, 0.4, 29.8, MB)
    inside.spill(30.5)
    assert [row.state for row in watched.look(30.6).processes][2] == "active"


def test_a_process_of_this_host_that_is_gone_without_a_farewell_was_killed(spills: Path) -> None:
    host = os.uname().nodename
    own = local_process.life_of(os.getpid())
    assert own is not None
    alive = MadeProcess(spills, os.getpid(), 0, host, started_jiffies=own.started_jiffies).begin()
    alive.spill(0.1)
    another = MadeProcess(spills, os.getpid(), 1, host, started_jiffies=-5, number=1).begin()
    another.spill(0.1)
    away = rank(spills, 2)
    away.spill(0.1)
    watched = Watched(spills)
    watched.look(1)
    picture = watched.look(10)
    assert {row.rank: row.state == "killed" for row in picture.processes} == {
        **{0: False, 1: True, 2: False}
    }


def test_a_program_that_becomes_another_stays_one_row(spills: Path) -> None:
    first = rank(spills, 0, program="/bin/sh")
    first.call(made_spills.WRITE, 0.5, 0.1, 1)
    first.define(11, 0, b"")
    first.spill(1.0)
    watched = Watched(spills)
    assert only(watched.look(1.1)).state == "ended"
    second = rank(spills, 0, begun_s=1.2, number=1)
    second.call(made_spills.WRITE, 1.5, 0.1, 2)
    second.spill(2.0)
    row = only(watched.look(2.1))
    assert (row.program, row.state, row.total.posix_write_bytes) == ("app", "active", 3)


def test_an_end_is_told_and_what_is_old_is_forgotten(spills: Path) -> None:
    process = MadeProcess(spills, 50).begin()
    process.call(made_spills.WRITE, 0.5, 0.1, MB)
    process.end(1.0)
    watched = Watched(spills)
    watched.look(2)
    picture = watched.look(3)
    assert picture.ended == "no traced process runs now"
    later = watched.look(100)
    assert (later.processes, later.gone, later.total.posix_write_bytes) == ([], 1, MB)
    (spills.parent / "job.trace").mkdir()
    (spills.parent / "job.trace" / "run.json").write_text("{}")
    for file in spills.iterdir():
        file.unlink()
    spills.rmdir()
    picture = watched.look(101)
    assert picture.ended == f"the run has ended; its trace is {spills.parent / 'job.trace'}"
    assert picture.total.posix_write_bytes == MB


def test_lost_calls_are_counted_once_for_each_thread(spills: Path) -> None:
    process = rank(spills, 0)
    process.spill(0.5, thread=1, lost=3)
    process.spill(1.0, thread=1, lost=5)
    process.spill(1.5, thread=2, lost=10)
    assert Watched(spills).look(2).lost_calls == 15


def test_a_piece_that_is_being_written_is_waited_for(tmp_path: Path) -> None:
    process = rank(tmp_path, 0)
    pieces = [process.piece(float(second)) for second in range(3)]
    content = b"".join(pieces)
    tail = SpillTail(tmp_path / "one.spill")
    seen = []
    for length in range(0, len(content) + 1, 7):
        tail.path.write_bytes(content[:length])
        seen += [piece.sequence for piece in tail.pieces()]
    tail.path.write_bytes(content)
    seen += [piece.sequence for piece in tail.pieces()]
    assert seen == [0, 1, 2]
    assert tail.damaged_bytes == 0


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_damage_is_counted_and_what_is_whole_is_taken(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = tmp_path_factory.mktemp("tail")
    process = rank(place, 0)
    pieces = []
    for second in range(5):
        process.call(made_spills.WRITE, second, 0.1, 1)
        pieces.append(process.piece(second + 0.5))
    broken = data.draw(st.sets(st.integers(0, 4), max_size=4))
    content = b""
    for number, piece in enumerate(pieces):
        if number in broken:
            at = data.draw(st.integers(0, len(piece) - 1))
            piece = piece[:at] + bytes([piece[at] ^ 0xFF]) + piece[at + 1 :]
        content += piece
    tail = SpillTail(place / "one.spill")
    seen = []
    for end in [*sorted(data.draw(st.sets(st.integers(0, len(content))))), len(content)]:
        tail.path.write_bytes(content[:end])
        seen += [piece.sequence for piece in tail.pieces()]
    whole = [number for number in range(5) if number not in broken]
    # Damage at the end may look like a piece that is yet to come.
    assert seen == whole
    last = max(whole, default=-1)
    lost = sum(len(pieces[number]) for number in broken if number < last)
    assert lost <= tail.damaged_bytes <= sum(len(pieces[number]) for number in broken)


def test_a_spill_whose_beginning_is_damaged_is_left_out_and_told(spills: Path) -> None:
    good, bad = rank(spills, 0), rank(spills, 1)
    good.spill(0.1)
    bad.spill(0.1)
    content = bytearray(bad.path.read_bytes())
    content[100] ^= 1
    bad.path.write_bytes(content)
    bad.spill(0.5)
    picture = Watched(spills).look(1)
    assert only(picture).rank == 0
    assert "bytes of the spills are damaged" in picture.notes[0]


def test_a_look_that_has_no_time_tells_what_is_behind(spills: Path) -> None:
    for number in range(3):
        process = rank(spills, number)
        process.call(made_spills.WRITE, 0.5, 0.1, MB)
        process.spill(1.0)
    watched = Watched(spills)
    watched.now_s = 1.5
    pictures = [watched.run.look(most_s=0.0) for _ in range(3)]
    behind = [picture.behind_bytes for picture in pictures]
    assert behind[0] > 0
    assert behind == sorted(behind, reverse=True)
    whole = watched.run.look()
    assert (whole.behind_bytes, whole.total.posix_write_bytes) == (0, 3 * MB)


def test_files_beyond_the_most_are_forgotten_from_the_oldest(
    spills: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_files, "MOST_FILES", 16)
    process = rank(spills, 0)
    for number in range(40):
        process.open(f"file{number}", number * 0.1)
        process.call(made_spills.WRITE, number * 0.1, 0, 1)
        process.spill(number * 0.1)
    picture = Watched(spills).look(5)
    assert len(picture.files) <= 16
    assert "/run1/file39" in [file.path for file in picture.files]
    assert any("not shown any more" in note for note in picture.notes)
    assert picture.total.posix_write_bytes == 40


@given(
    calls=st.lists(
        st.tuples(st.integers(0, 90 * S), st.integers(0, 20 * S), st.integers(0, 10**6)),
        min_size=1,
        max_size=30,
    )
)
def test_a_timeline_holds_what_was_added_to_its_last_minute(
    calls: list[tuple[int, int, int]],
) -> None:

    timeline = Timeline()
    for begin, duration, size in calls:
        amounts = np.zeros((1, len(Quantity)))
        amounts[0, Quantity.OWN_WRITE_BYTES] = size
        timeline.add(np.array([begin]), np.array([duration]), amounts)
    last = timeline.newest
    seen = timeline.series(last)[:, Quantity.OWN_WRITE_BYTES]
    expected = np.zeros(60)
    for begin, duration, size in calls:
        for place in range(60):
            second = last - 59 + place
            if duration == 0 or begin // S == (begin + duration) // S:
                part = float(begin // S == second)
            else:
                inside = min(begin + duration, (second + 1) * S) - max(begin, second * S)
                part = max(0, inside) / duration
            expected[place] += part * size
    assert seen == pytest.approx(expected, abs=1e-3)
    assert timeline.total[Quantity.OWN_WRITE_BYTES] == sum(size for _, _, size in calls)


# Which run is meant


def test_a_run_is_found_by_its_trace_its_spills_or_what_is_around(
    spills: Path, tmp_path: Path
) -> None:
    rank(spills, 0).spill(0.1)
    for named in (spills, tmp_path / "job.trace", tmp_path):
        assert run_place.find([str(named)]).spills == spills


def test_what_is_no_run_is_refused_with_what_to_do(tmp_path: Path, spills: Path) -> None:
    ended = tmp_path / "ended.trace"
    ended.mkdir()
    (ended / "run.json").write_text("{}")
    empty = tmp_path / "empty"
    empty.mkdir()
    cases = {
        str(ended): "is the trace of a run that has ended",
        str(tmp_path / "nothing"): "there is no",
        str(empty): "holds no spills",
        "4194305": "there is no process 4194305",
        str(os.getpid()): f"process {os.getpid()} is not traced",
    }
    for word, message in cases.items():
        with pytest.raises(ForebayError, match=message) as caught:
            run_place.find([word])
        assert caught.value.advice or "there is no process" in message
    with pytest.raises(ForebayError, match="one directory"):
        run_place.find([str(spills), str(empty)])


# What is shown


def four_ranks(spills: Path) -> Picture:
    for number in range(4):
        process = rank(spills, number)
        process.open_mpi(0, "/scratch/out.dat")
        process.mpi(made_spills.MPI_WRITE_ALL, 0.5, 0.1 * (number + 1), MB * (4 - number))
        process.spill(1.0)
    return Watched(spills).look(1.5)


def test_rows_are_sorted_and_filtered_as_asked(spills: Path) -> None:
    picture = four_ranks(spills)
    columns = process_columns(picture)

    def ranks(arrangement: Arrangement) -> list[int | None]:
        return [row.rank for row in arrangement.rows(picture.processes, columns)]

    assert ranks(Arrangement("rank")) == [0, 1, 2, 3]
    assert ranks(Arrangement("rank", is_reversed=True)) == [3, 2, 1, 0]
    assert ranks(Arrangement("io")) == [3, 2, 1, 0]
    assert ranks(Arrangement("mpi-write")) == [0, 1, 2, 3]
    assert ranks(Arrangement("rank", wanted="0-1,3")) == [0, 1, 3]
    assert ranks(Arrangement("rank", wanted="102")) == [2]
    assert ranks(Arrangement("rank", wanted="ACTIVE")) == [0, 1, 2, 3]
    assert ranks(Arrangement("rank", wanted="nobody")) == []
    assert {column.key for column in columns} <= set(column_keys())


def test_bars_are_as_high_as_what_they_show() -> None:
    assert bars([0, 1, 50, 100], 100, width=4) == " ▁▄█"
    assert bars([0.0] * 60, 0, width=5) == "     "


def test_one_picture_is_written_where_there_is_no_terminal(spills: Path, forebay: Forebay) -> None:
    four_ranks(spills)
    answer = forebay("top", "--sort", "io", "--filter", "2-3", spills)
    assert answer.code == 0, answer.errors
    assert "mpiexec ./app" in answer.output
    assert "MPI-IO read 0 B, write 9.5 MiB (100 % collective)" in answer.output
    ranks = [line.split()[:3] for line in answer.output.splitlines() if " app " in line]
    assert ranks == [["2", "102", "app"], ["3", "103", "app"]]
    assert "/scratch/out.dat" in answer.output
    told = json.loads(forebay("top", "--json", spills).output)
    assert [row["rank"] for row in told["processes"]] == [0, 1, 2, 3]
    assert told["processes"][0]["total"]["mpi_write_bytes"] == 4 * MB
    assert told["files"][0]["total"]["mpi_write_bytes"] == 10 * MB


def test_a_wrong_command_line_says_what_is_right(spills: Path, forebay: Forebay) -> None:
    answer = forebay("top", "--sort", "size", spills)
    assert answer.code == 2
    assert "mpi-write" in answer.errors.replace("\n", "")
    answer = forebay("top", spills.parent / "nothing")
    assert answer.code == 2
    assert "forebay trace -o NAME" in answer.errors


def test_spills_of_a_later_version_are_refused(spills: Path, forebay: Forebay) -> None:

    process = rank(spills, 0)
    content = bytearray(process.piece(0.1))
    content[8] = 2
    content[16:24] = bytes(8)
    content[16:24] = xxhash.xxh3_64_intdigest(bytes(content)).to_bytes(8, "little")
    process.path.write_bytes(content)
    answer = forebay("top", "--once", spills)
    assert answer.code == 1
    assert "has version 2" in answer.errors


def drive(app: Top, *steps: str) -> dict[str, list[str]]:
    """What the table holds at the end, by column title."""

    async def run() -> dict[str, list[str]]:
        async with app.run_test(size=(160, 40)) as pilot:
            await app.look_again()
            for step in steps:
                await pilot.press(step)
                await pilot.pause()
            return table_of(app)

    return asyncio.run(run())


def table_of(app: Top) -> dict[str, list[str]]:
    from textual.widgets import DataTable

    table = app.screen_stack[0].query_one(DataTable)
    titles = [str(column.label) for column in table.columns.values()]
    rows = [[str(cell) for cell in table.get_row_at(i)] for i in range(table.row_count)]
    return {title: [row[place] for row in rows] for place, title in enumerate(titles)}


def test_the_screen_sorts_filters_and_turns_to_files(spills: Path) -> None:
    picture = four_ranks(spills)

    def top() -> Top:
        return Top(lambda: picture, None)

    assert drive(top())["rank ▼"] == ["0", "1", "2", "3"]
    assert drive(top(), "r")["rank ▲"] == ["3", "2", "1", "0"]
    assert drive(top(), *[">"] * 4)["in I/O ▼"][0] == "40 %"
    assert drive(top(), "<")["heard ▼"] == ["500.0 ms"] * 4
    assert drive(top(), "slash", "1", "-", "2", "enter")["rank ▼"] == ["1", "2"]
    files = drive(top(), "f")
    assert files["file"] == ["/scratch/out.dat"]
    assert files["moved in all ▼"] == ["9.5 MiB"]


def test_help_and_pause_can_be_left_again(spills: Path) -> None:
    from forebay.top.help_page import HelpPage

    looks = 0
    picture = four_ranks(spills)

    def look() -> Picture:
        nonlocal looks
        looks += 1
        return picture

    async def run() -> None:
        app = Top(look, 3600.0)
        async with app.run_test(size=(160, 40)) as pilot:
            await app.look_again()
            await pilot.press("question_mark")
            assert isinstance(app.screen, HelpPage)
            await app.look_again()  # goes on below it
            await pilot.press("escape")
            assert not isinstance(app.screen, HelpPage)
            await pilot.press("p")
            assert app.is_paused
            assert "PAUSED" in "".join(app._heading(picture))
            before = looks
            app._begin_look()
            await pilot.pause()
            assert looks == before
            await pilot.press("p", "q")
        assert app.return_code == 0

    asyncio.run(run())


def test_more_rows_than_can_be_drawn_are_told(spills: Path) -> None:
    for number in range(MOST_ROWS + 5):
        rank(spills, number).spill(0.1)
    picture = Watched(spills).look(1)
    app = Top(lambda: picture, None)
    assert len(drive(app)["rank ▼"]) == MOST_ROWS
    assert f"the first {MOST_ROWS} of {MOST_ROWS + 5} rows" in "\n".join(app._heading(picture))


@pytest.mark.parametrize(
    "error",
    [ForebayError("it is of a later version"), OSError(errno.ESTALE, "Stale file handle", "a")],
)
def test_what_cannot_be_read_ends_the_screen_with_its_reason(error: Exception) -> None:
    def look() -> Picture:
        raise error

    async def run() -> Top:
        app = Top(look, None)
        async with app.run_test():
            await app.look_again()
        return app

    failure = asyncio.run(run()).failure
    assert failure is not None
    assert failure.message in ("it is of a later version", "Stale file handle: a")

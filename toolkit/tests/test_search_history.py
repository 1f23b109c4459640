"""The file of a search: what is in it is what was put there, and what is not its own is refused.

Method: histories are made, closed, damaged and opened again.
"""

import shutil
import sqlite3
from pathlib import Path

import pytest
from full_disks import largest_file

from forebay.configure.history import History, Search, SearchRun, State, Why, forget, recall
from forebay.errors import ForebayError

SEARCH = Search(
    command=["mpiexec", "-n", "4", "./a b"],
    directory="/scratch",
    trace={"path": "/scratch/job.trace", "checksum": "0123456789abcdef"},
    time="wall",
    reference="default",
    seed=7,
)


def run(number: int, state: State = State.MEASURED) -> SearchRun:
    return SearchRun(
        number, "c001", {"aggregators": "4"}, Why.SEARCH, "2026-01-01T00:00:00+00:00",
        predicted=1.5, seconds=1.25, state=state,
    )  # fmt: skip


def changed(**others: object) -> Search:
    return Search(**(vars(SEARCH) | others))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a search%20#1?.sqlite"


def made(path: Path, *runs: SearchRun) -> None:
    history = History(path, SEARCH)
    for each in runs:
        history.add(each)
    history.close()


def test_a_search_goes_on_with_what_it_has(path: Path) -> None:
    made(path, run(1), run(2, State.FAILED))
    history = History(path, changed(seed=99))
    assert history.runs == [run(1), run(2, State.FAILED)]
    assert history.search.seed == 7
    history.close()


def test_a_run_that_was_killed_is_named_so(path: Path) -> None:
    made(path, run(1), run(2, State.STARTED))
    history = History(path, SEARCH)
    assert [each.state for each in history.runs] == [State.MEASURED, State.INTERRUPTED]
    history.close()


@pytest.mark.parametrize(
    ("others", "told"),
    [
        ({"command": ["true"]}, "command:"),
        ({"directory": "/home"}, "directory:"),
        ({"time": "write"}, 'time: "wall" there, "write" now'),
        ({"trace": {"path": "x", "checksum": "f" * 16}}, "trace:"),
        ({"prepare": "rm out"}, 'prepare: null there, "rm out" now'),
        ({"variables": {"OWN": ["0", "1"]}}, "variables:"),
        ({"reference": "stock"}, "reference:"),
        ({"ranks_per_node": 2}, "ranks_per_node: null there, 2 now"),
    ],
)
def test_another_search_is_refused(path: Path, others: dict[str, object], told: str) -> None:
    made(path, run(1))
    with pytest.raises(ForebayError, match=told) as caught:
        History(path, changed(**others))
    assert "--again" in caught.value.advice
    made(path)  # and the file is as it was


def test_a_trace_may_have_moved(path: Path) -> None:
    made(path)
    History(path, changed(trace=SEARCH.trace | {"path": "/elsewhere"})).close()


def test_damage_is_noticed(path: Path) -> None:
    made(path, run(1))
    with sqlite3.connect(path) as database:
        database.execute("UPDATE runs SET content = replace(content, '1.25', '0.25')")
    database.close()
    with pytest.raises(ForebayError, match="the checksum of run 1"):
        History(path, SEARCH)


def test_a_damaged_head_is_refused(path: Path) -> None:
    made(path)
    with sqlite3.connect(path) as database:
        database.execute("UPDATE search SET value = '[' WHERE key = 'trace'")
    database.close()
    with pytest.raises(ForebayError, match="cannot be read"):
        History(path, SEARCH)
    with pytest.raises(ForebayError, match="cannot be read"):
        recall(path)


def test_a_later_version_and_a_foreign_file_are_left_alone(tmp_path: Path) -> None:
    later, foreign, text = (tmp_path / name for name in ("later", "foreign", "text"))
    made(later)
    with sqlite3.connect(later) as database:
        database.execute("PRAGMA user_version = 2")
    database.close()
    with sqlite3.connect(foreign) as database:
        database.execute("CREATE TABLE mine (a)")
    database.close()
    text.write_text("no database, and longer than the head of one" * 10)
    for path, told in ((later, "has version 2"), (foreign, "no search"), (text, "no search")):
        before = path.read_bytes()
        with pytest.raises(ForebayError, match=told):
            History(path, SEARCH)
        with pytest.raises(ForebayError, match=told):
            forget(path)
        assert path.read_bytes() == before


def test_a_cut_file_is_refused(path: Path) -> None:
    made(path, run(1))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ForebayError, match="cannot be read"):
        History(path, SEARCH)
    forget(path)
    assert not path.exists()


def test_a_second_search_is_told_that_there_is_one(path: Path) -> None:
    first = History(path, SEARCH)
    with pytest.raises(ForebayError, match="in use by another search"):
        History(path, SEARCH)
    with pytest.raises(ForebayError, match="in use by another search"):
        forget(path)
    first.close()
    forget(path)
    forget(path)  # there is none


def test_a_search_that_was_killed_as_it_wrote_has_the_runs_before(
    path: Path, tmp_path: Path
) -> None:
    """A copy, with its journal, in the middle of a transaction of which half is in the file."""
    made(path, run(1))
    killed = tmp_path / "killed.sqlite"
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA cache_size = 1")
    database.execute("BEGIN EXCLUSIVE")
    for number in range(2, 50):
        database.execute("INSERT INTO runs VALUES (?, ?, '')", (number, "x" * 4000))
    for ending in ("", "-journal"):
        shutil.copyfile(f"{path}{ending}", f"{killed}{ending}")
    database.close()
    before = killed.read_bytes()
    assert len(before) > 40 * 4000
    assert recall(killed).runs == [run(1)]
    assert killed.read_bytes() == before
    History(killed, SEARCH).close()
    assert recall(killed).runs == [run(1)]


def test_a_full_disk_is_told_and_the_search_goes_on_later(path: Path) -> None:
    history = History(path, SEARCH)
    history.add(run(1))
    large = run(2)
    large.reason = "x" * path.stat().st_size
    with largest_file(path.stat().st_size):
        with pytest.raises(ForebayError, match="cannot be written") as caught:
            history.add(large)
        with pytest.raises(ForebayError, match="cannot be written"):
            history.conclude({"notes": large.reason})
    assert "the same command goes on" in caught.value.advice
    history.close()
    again = History(path, SEARCH)
    assert again.runs == [run(1)]
    again.close()

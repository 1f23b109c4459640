"""Goal: what is written into a trace directory comes back, in little room, and nothing else is
taken for one.

Method: random calls of several threads there and back, in parts; directories with something wrong.
"""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forebay.errors import ForebayError
from forebay.trace import tables
from forebay.trace.directory import Run, Trace, TraceWriter, paths

Calls = dict[tuple[int, int], list[tuple[int, int]]]


def _posix(calls: Calls) -> pa.Table:
    """Calls by process and thread: start and duration."""
    rows = [
        {"process": p, "thread": t, "call": "read", "start_ns": start, "duration_ns": duration}
        for (p, t), times in sorted(calls.items())
        for start, duration in sorted(times)
    ]
    return tables.conforming("posix", pa.Table.from_pylist(rows)) if rows else pa.table({})


@settings(deadline=None, max_examples=40)
@given(
    st.dictionaries(
        st.tuples(st.integers(0, 3), st.integers(0, 2)),
        st.lists(st.tuples(st.integers(0, 2**60), st.integers(0, 2**40)), min_size=1, max_size=8),
        min_size=1,
    ),
    st.integers(1, 9),
)
def test_calls_come_back_as_they_were(
    tmp_path_factory: pytest.TempPathFactory, calls: Calls, part: int
) -> None:
    path = tmp_path_factory.mktemp("trace") / "run"
    table = _posix(calls)
    writer = TraceWriter(path)
    for first in range(0, table.num_rows, part):
        writer.add("posix", table.slice(first, part))
    writer.finish(Run(wall_ns=7))
    trace = Trace(path)
    assert trace.run.wall_ns == 7
    assert trace.table("posix").to_pylist() == table.to_pylist()
    assert trace.table("posix", ["start_ns"]).to_pylist() == table.select(["start_ns"]).to_pylist()


def test_a_regular_pattern_takes_three_bytes_an_event(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    ranks, calls = 4, 25_000
    each = np.arange(calls)
    duration = random.normal(20_000, 2_000, ranks * calls).astype(np.int64)
    gap = random.normal(300, 30, ranks * calls).astype(np.int64)
    ends = np.cumsum((duration + gap).reshape(ranks, calls), axis=1).ravel()
    process = np.repeat(np.arange(ranks), calls)
    writer = TraceWriter(tmp_path / "run")
    writer.add(
        "posix",
        pa.table(
            {
                "process": process,
                "thread": np.zeros(ranks * calls, np.int32),
                "call": pa.array(["pwrite"] * (ranks * calls)),
                "within": pa.array(["program"] * (ranks * calls)),
                "file": np.zeros(ranks * calls, np.int32),
                "descriptor": np.full(ranks * calls, 3),
                "offset": np.tile(each, ranks) * ranks * 65536 + process * 65536,
                "length": np.full(ranks * calls, 65536),
                "result": np.full(ranks * calls, 65536),
                "errno": np.zeros(ranks * calls, np.int32),
                "start_ns": ends - duration,
                "duration_ns": duration,
            }
        ),
    )
    writer.finish(Run())
    trace = Trace(tmp_path / "run")
    assert trace.stored_bytes() <= 3 * ranks * calls
    assert (tables.integers(trace.table("posix"), "start_ns") == ends - duration).all()


def test_calls_that_are_not_sorted_or_have_no_time_are_refused(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "run")
    row = {"process": 0, "thread": 0, "call": "read", "duration_ns": 1}
    with pytest.raises(ValueError, match="not sorted"):
        writer.add("posix", pa.Table.from_pylist([row | {"start_ns": 5}, row | {"start_ns": 4}]))
    with pytest.raises(ValueError, match="no time"):
        writer.add("posix", pa.Table.from_pylist([row | {"start_ns": None}]))
    with pytest.raises(KeyError):
        writer.add("other", pa.Table.from_pylist([row]))


def test_columns_and_tables_that_a_trace_lacks_are_null_and_empty(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "run")
    writer.add("files", pa.table(paths([b"/data/a b", b"/data/\xff\n"])))
    writer.add("hints", pa.table({"set": [], "key": [], "value": []}))
    writer.finish(Run(command=["./prog", "\udcff"]))
    trace = Trace(tmp_path / "run")
    assert trace.names() == ["files"]
    assert trace.run.command == ["./prog", "\ufffd"]
    files = trace.table("files").to_pylist()
    assert [file["path"] for file in files] == ["/data/a b", "/data/\ufffd\n"]
    assert [file["path_bytes"] for file in files] == [None, b"/data/\xff\n"]
    assert files[0]["size_end"] is None
    assert trace.table("mpiio").column_names == tables.SCHEMAS["mpiio"].names
    assert trace.rows("hints") == 0


def _trace(path: Path) -> Path:
    writer = TraceWriter(path)
    writer.add("files", pa.table(paths([b"/data/a", b"/data/b"])))
    writer.finish(Run())
    return path


def _rewrite(run_file: Path, **changes: object) -> None:
    run_file.write_text(json.dumps(json.loads(run_file.read_text()) | changes))


def test_what_is_no_whole_trace_is_refused_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(ForebayError, match="is no trace directory"):
        Trace(tmp_path / "none")
    with pytest.raises(ForebayError, match=r"holds no run\.json"):
        Trace(tmp_path)
    run_file = _trace(tmp_path / "a") / "run.json"
    _rewrite(run_file, wall_ns=1)
    with pytest.raises(ForebayError, match="checksum does not fit"):
        Trace(tmp_path / "a")
    _rewrite(run_file, version=2)
    with pytest.raises(ForebayError, match="has version 2"):
        Trace(tmp_path / "a")
    _rewrite(run_file, format="other")
    with pytest.raises(ForebayError, match="not that of a trace directory"):
        Trace(tmp_path / "a")
    run_file.write_text("{")
    with pytest.raises(ForebayError, match="no JSON"):
        Trace(tmp_path / "a")


def test_a_damaged_table_is_refused(tmp_path: Path) -> None:
    path = _trace(tmp_path / "a") / "files.parquet"
    with pytest.raises(ForebayError, match="is damaged"):
        Trace(tmp_path / "a").table("files", ["path", "a column that is not there"])
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(ForebayError, match="checksum is not the one"):
        Trace(tmp_path / "a").table("files")
    path.unlink()
    with pytest.raises(ForebayError, match="the file is missing"):
        Trace(tmp_path / "a").table("files")


def test_what_is_not_finished_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a"

    def write(name: str) -> None:
        with TraceWriter(path) as writer:
            writer.add("files", pa.table(paths([b"/data/a"])))
            writer.add(name, pa.table({"tid": [1]}))
            writer.finish(Run())

    with pytest.raises(KeyError):
        write("a table that is not there")
    assert not path.exists()
    path.mkdir()  # by the user, who may want it to be there
    with pytest.raises(KeyError):
        write("a table that is not there")
    assert path.is_dir()
    write("threads")
    assert Trace(path).names() == ["files", "threads"]


def test_a_trace_is_written_into_an_empty_directory_alone(tmp_path: Path) -> None:
    _trace(tmp_path / "a")
    with pytest.raises(ForebayError, match="is not empty"):
        TraceWriter(tmp_path / "a")
    (tmp_path / "file").write_text("")
    with pytest.raises(ForebayError, match="cannot be a directory"):
        TraceWriter(tmp_path / "file")

"""Goal: what other tools read of an export is what the trace holds, and what Darshan would have
counted is counted alike.

Method: logs there and back; Darshan's own counters beside ours of the calls that it traced; the
timeline's JSON beside the calls.
"""

import errno
import gzip
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import xxhash
from conftest import Forebay
from full_disks import largest_file
from hypothesis import given, settings
from hypothesis import strategies as st
from made_runs import MadeRun
from test_darshan_import import LOGS

from forebay.trace import (
    darshan_counters,
    darshan_export,
    darshan_import,
    darshan_writer,
    perfetto_export,
    tables,
)
from forebay.trace.directory import Run, Trace, TraceWriter, paths

KEPT = ("counters_posix", "counters_mpi_io", "counters_stdio", "posix", "mpiio", "processes")


@pytest.mark.parametrize("log", LOGS, ids=[f"{log.parent.name}-{log.stem[:24]}" for log in LOGS])
def test_a_log_that_is_exported_and_imported_again_is_the_same(log: Path, tmp_path: Path) -> None:
    darshan_import.import_here(log, tmp_path / "a")
    once = Trace(tmp_path / "a")
    darshan_export.export(once, tmp_path / "out.darshan")
    darshan_import.import_here(tmp_path / "out.darshan", tmp_path / "b")
    again = Trace(tmp_path / "b")
    for name in KEPT:
        if once.rows(name) and name.startswith("counters_"):  # in a log, empty cells are nan
            _same_counters(once.table(name), again.table(name))
        else:
            assert once.table(name).equals(again.table(name)), name
    assert once.table("files")["path"].equals(again.table("files")["path"])
    assert again.run.command == once.run.command
    assert again.run.start_unix_ns == once.run.start_unix_ns
    mounts = [sorted(m["mount_point"] for m in each.run.file_systems) for each in (once, again)]
    assert mounts[0] == mounts[1]


def _same_counters(one: pa.Table, other: pa.Table) -> None:
    for column in one.column_names:
        mine, theirs = one.column(column).to_numpy(), other.column(column).to_numpy()
        np.testing.assert_array_equal(mine, theirs, column)


def test_calls_are_counted_as_darshan_counted_them(tmp_path: Path) -> None:
    (log,) = (log for log in LOGS if log.name == "dxt.darshan")
    darshan_import.import_here(log, tmp_path / "run")
    trace = Trace(tmp_path / "run")
    mine, theirs = (
        darshan_counters.posix(trace.table("posix"), np.zeros(1, np.int64), 1),
        trace.table("counters_posix"),
    )
    place = {file: i for i, file in enumerate(tables.integers(theirs, "file").tolist())}
    rows = np.array([place[file] for file in mine.files.tolist()])
    assert len(rows) > 150
    exact = ("POSIX_READS", "POSIX_WRITES", "POSIX_BYTES", "POSIX_SIZE", "POSIX_MAX_BYTE")
    times = ("POSIX_F_READ", "POSIX_F_WRITE", "POSIX_F_MAX")
    nearly = ("POSIX_SEQ", "POSIX_CONSEC", "POSIX_RW", "POSIX_ACCESS1_C", "POSIX_STRIDE1_C")
    for name, values in mine.columns.items():
        expected = theirs.column(name).to_numpy()[rows]
        if name.startswith(times):
            np.testing.assert_allclose(values, expected, atol=1e-4, err_msg=name)
        if name.startswith(exact):
            np.testing.assert_array_equal(values, expected, name)
        if name.startswith(nearly):
            # Extended traces have the calls of several threads in one row, in another order.
            assert np.count_nonzero(values != expected) <= 5, name


_Calls = list[tuple[int, int, bool, int, int]]


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 2),  # process
            st.integers(-1, 1),  # file
            st.booleans(),  # writes
            st.integers(0, 40),  # offset
            st.integers(0, 9),  # length
        ),
        min_size=1,
    )
)
def test_counters_are_those_of_each_process_and_file(listed: _Calls) -> None:
    listed = sorted(listed, key=lambda call: call[0])
    table = tables.conforming(
        "posix",
        pa.table(
            {
                "process": [p for p, *_ in listed],
                "thread": [0] * len(listed),
                "file": [f for _, f, *_ in listed],
                "call": ["pwrite" if w else "pread" for _, _, w, *_ in listed],
                "offset": [o * 4096 for *_, o, _ in listed],
                "length": [n for *_, n in listed],
                "start_ns": list(range(len(listed))),
                "duration_ns": [1] * len(listed),
            }
        ),
    )
    counted = darshan_counters.posix(table, np.arange(3), 0)
    keys = sorted({(p, f) for p, f, *_ in listed if f >= 0})
    assert list(zip(counted.ranks.tolist(), counted.files.tolist(), strict=True)) == keys
    for i, key in enumerate(keys):
        own = [(w, o * 4096, n) for p, f, w, o, n in listed if (p, f) == key]
        got = {name: values[i] for name, values in counted.columns.items()}
        sizes = [n for *_, n in own if n > 0]
        assert got["POSIX_READS"] == sum(not w for w, *_ in own)
        assert got["POSIX_BYTES_WRITTEN"] == sum(n for w, _, n in own if w)
        assert got["POSIX_SIZE_READ_0_100"] == got["POSIX_READS"]
        assert got["POSIX_RW_SWITCHES"] == sum(a[0] != b[0] for a, b in itertools.pairwise(own))
        assert got["POSIX_ACCESS1_COUNT"] == max([0, *(sizes.count(n) for n in sizes)])
        assert got["POSIX_F_WRITE_TIME"] == pytest.approx(1e-9 * sum(w for w, *_ in own))


def _trace(path: Path, rows: list[dict[str, Any]], mpiio: list[dict[str, Any]]) -> Trace:
    writer = TraceWriter(path)
    for name, listed in (("posix", rows), ("mpiio", mpiio)):
        if listed:
            writer.add(name, pa.Table.from_pylist(listed, schema=tables.SCHEMAS[name]))
    writer.add("files", pa.table(paths([b"/data/a b", b'/data/"\xff\n'])))
    writer.add("processes", pa.table({"rank": [0, 1], "host": ["n0", None], "pid": [7, None]}))
    writer.finish(Run(wall_ns=10_000))
    return Trace(path)


def _row(start: int, duration: int, **others: object) -> dict[str, Any]:
    return {
        "process": 0,
        "thread": 0,
        "call": "pread",
        "file": 0,
        "offset": 5,
        "start_ns": start,
        "duration_ns": duration,
    } | others


def test_the_timeline_has_every_call_of_the_window(forebay: Forebay, tmp_path: Path) -> None:
    second = 1_000_000_000
    _trace(
        tmp_path / "run",
        [
            _row(1_234, 5_678),
            _row(2 * second, 100),
            _row(3 * second, 1, process=1, file=1, thread=4),
        ],
        [_row(2 * second - 50, 500, call="MPI_File_read", count=3)],
    )
    answer = forebay("export", "run", "--perfetto", "all.json.gz")
    assert answer.code == 0, answer.errors
    assert "4 calls" in answer.output
    events = json.loads(gzip.decompress((tmp_path / "all.json.gz").read_bytes()))["traceEvents"]
    names = [e["args"]["name"] for e in events if e["name"] == "process_name"]
    assert names == ["rank 0 on n0 (pid 7)", "rank 1"]
    slices = [event for event in events if event["ph"] == "X"]
    assert [(e["cat"], e["name"]) for e in slices] == [
        ("posix", "pread"),
        ("posix", "pread"),
        ("posix", "pread"),
        ("mpiio", "MPI_File_read"),
    ]
    assert (slices[0]["ts"], slices[0]["dur"], slices[0]["args"]["offset"]) == (1.234, 5.678, 5)
    assert (slices[2]["pid"], slices[2]["tid"]) == (1, 4)
    assert slices[2]["args"]["file"] == '/data/"\ufffd\n'
    assert forebay("export", "run", "--perfetto", "b.json", "--window", "1.5:2500ms").code == 0
    events = json.loads((tmp_path / "b.json").read_text())["traceEvents"]
    assert [e["ts"] for e in events if e["ph"] == "X"] == [2_000_000, 1_999_999.95]


def test_a_full_disk_is_left_no_half_a_timeline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> bytes:
        raise OSError(errno.ENOSPC, "No space left on device")

    trace = _trace(tmp_path / "run", [_row(0, 1)], [])
    monkeypatch.setattr(perfetto_export, "_events", full)
    (tmp_path / "earlier.json").write_text("precious")
    for name in ("o.json", "earlier.json"):
        with pytest.raises(OSError, match="No space left"):
            perfetto_export.export(trace, tmp_path / name)
    assert [path.name for path in tmp_path.glob("*.json*")] == ["earlier.json"]
    assert (tmp_path / "earlier.json").read_text() == "precious"


@pytest.mark.parametrize("files", [1, 3000], ids=["at its end", "half way"])
def test_a_full_disk_is_left_no_half_a_log_and_one_line_says_so(
    forebay: Forebay, tmp_path: Path, files: int
) -> None:
    made = MadeRun(
        tmp_path / "run", files=[f"/data/{xxhash.xxh64_hexdigest(b'%d' % n)}" for n in range(files)]
    )
    for number in range(files):
        made.posix("pwrite", number / 10, 0.05, 4096 + number, file=number, offset=number**3)
    made.trace()
    darshan_writer._versions()  # which it looks up in a log of its own
    (tmp_path / "earlier.darshan").write_text("precious")
    for name in ("o.darshan", "earlier.darshan"):
        with largest_file(1000 if files == 1 else 1 << 15):
            answer = forebay("export", "run", "--darshan", name)
        assert (answer.code, answer.output) == (1, "")
        assert answer.errors.splitlines() == [
            f"forebay: File too large: {name}",
            "Allow larger files (ulimit -f), or name another place.",
        ]
    assert [path.name for path in tmp_path.glob("*darshan*")] == ["earlier.darshan"]
    assert (tmp_path / "earlier.darshan").read_text() == "precious"


def test_a_log_that_cannot_be_made_says_why(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=f"No such file or directory: '{tmp_path}/a/log'"):
        darshan_writer.DarshanWriter(tmp_path / "a" / "log")


def test_calls_that_overlap_are_drawn_side_by_side(tmp_path: Path) -> None:
    trace = _trace(
        tmp_path / "run",
        [_row(0, 10), _row(5, 10), _row(0, 10, process=1), _row(10, 10, process=1)],
        [_row(0, 20, process=1, call="MPI_File_read")],
    )
    perfetto_export.export(trace, tmp_path / "out.json")
    events = json.loads((tmp_path / "out.json").read_text())["traceEvents"]
    assert [(e["ph"], e["ts"]) for e in events if e["pid"] == 0 and e["ph"] != "M"] == [
        ("b", 0),
        ("e", 0.01),
        ("b", 0.005),
        ("e", 0.015),
    ]
    assert [e["ph"] for e in events if e["pid"] == 1 and e["ph"] != "M"] == ["X", "X", "X"]


def test_darshan_reads_what_is_captured(forebay: Forebay, tmp_path: Path) -> None:
    import darshan

    _trace(
        tmp_path / "run",
        [
            _row(0, 10, call="openat", offset=None),
            _row(20, 10, length=9, result=4, file=1),
            _row(1000, 10, length=9, call="pwrite", process=1),
            _row(1200, 10, length=9, call="pwrite", process=1, offset=14),
            _row(1300, 10, call="close", process=1, file=None),
        ],
        [_row(5, 10, call="MPI_File_write_at_all", length=9, collective=True)],
    )
    answer = forebay("export", "run", "--darshan", "out.darshan")
    assert answer.code == 0, answer.errors
    report = darshan.DarshanReport(str(tmp_path / "out.darshan"), read_all=True)
    counters = report.records["POSIX"].to_df()["counters"]
    assert counters["rank"].tolist() == [-1, 0]  # both ranks used the first file
    assert counters["POSIX_OPENS"].tolist() == [1, 0]
    assert counters["POSIX_BYTES_READ"].tolist() == [0, 4]
    assert counters["POSIX_CONSEC_WRITES"].tolist() == [1, 0]
    mpiio = report.records["MPI-IO"].to_df()["counters"]
    assert mpiio["MPIIO_COLL_WRITES"].tolist() == [1]
    (written,) = (r for r in report.records["DXT_POSIX"].to_df() if r["rank"] == 1)
    assert written["write_segments"]["offset"].tolist() == [5, 14]


def _exported(made: MadeRun, out: Path) -> Any:  # noqa: ANN401  what PyDarshan has is untyped
    import darshan

    darshan_export.export(made.trace(), out)
    return darshan.DarshanReport(str(out), read_all=True)


def test_a_file_that_all_ranks_used_has_one_record_for_all(tmp_path: Path) -> None:
    """As Darshan reduces them, with the fastest and the slowest rank, on which advice rests. Calls
    follow each other within a process alone; a file that not all used stays with its ranks."""
    made = MadeRun(tmp_path / "t", processes=3, ranks=3, files=["/scratch/all", "/scratch/some"])
    for rank, took in enumerate((10, 40, 30)):
        made.posix("pwrite", rank, took, 100 * rank, offset=100, process=rank)
        made.posix("pwrite", 100, 5, 10, offset=100 + 100 * rank, process=rank)
        if rank:
            made.posix("pwrite", 200, 5, 10, offset=0, file=1, process=rank)
    frames = _exported(made, tmp_path / "o.darshan").records["POSIX"].to_df()
    counters, times = frames["counters"], frames["fcounters"]
    assert counters["rank"].tolist() == [-1, 1, 2]
    assert counters["POSIX_WRITES"].tolist() == [6, 1, 1]
    assert counters["POSIX_BYTES_WRITTEN"].tolist() == [330, 10, 10]
    assert counters["POSIX_CONSEC_WRITES"].tolist() == [3, 0, 0]
    assert counters["POSIX_FASTEST_RANK"].tolist() == [0, 0, 0]
    assert counters["POSIX_FASTEST_RANK_BYTES"].tolist() == [10, 0, 0]
    assert counters["POSIX_SLOWEST_RANK"].tolist() == [1, 0, 0]
    assert counters["POSIX_SLOWEST_RANK_BYTES"].tolist() == [110, 0, 0]
    assert times["POSIX_F_SLOWEST_RANK_TIME"].tolist() == pytest.approx([0.045, 0, 0])
    spread = np.var([0.015, 0.045, 0.035]), np.var([10, 110, 210])
    assert times["POSIX_F_VARIANCE_RANK_TIME"][0] == pytest.approx(spread[0])
    assert times["POSIX_F_VARIANCE_RANK_BYTES"][0] == pytest.approx(spread[1])


def test_what_darshan_leaves_out_is_left_out(tmp_path: Path) -> None:
    """Files of the system, calls that failed, and processes beside the ranks that did nothing."""
    files = ["/etc/hosts", "/scratch/a", "/scratch/missing"]
    made = MadeRun(tmp_path / "t", processes=4, ranks=2, files=files)
    for process in range(4):
        made.posix("read", 0, 1, 10, file=0, offset=0, process=process)
    made.posix("open", 5, 1, file=2, result=-1, errno=2)
    made.posix("write", 5, 1, 10, file=1, offset=0, process=3)
    report = _exported(made, tmp_path / "o.darshan")
    assert list(report.name_records.values()) == ["/scratch/a"]
    assert report.metadata["job"]["nprocs"] == 3
    assert report.records["POSIX"].to_df()["counters"]["rank"].tolist() == [2]
    told = darshan_export.export(Trace(tmp_path / "t"), tmp_path / "o.darshan")
    assert told == ["files of the system and what is no file (directories) are left out: 1"]


def test_what_a_trace_does_not_tell_is_marked_in_the_counters(tmp_path: Path) -> None:
    """-1, as Darshan's tools say, where 0 would claim that there was none."""
    made = MadeRun(tmp_path / "t")
    made.posix("open", 0, 1)
    made.posix("fopen", 2, 1)
    made.mpi("open", 4, 1)
    report = _exported(made, tmp_path / "o.darshan")
    untold = {
        "POSIX": ("DUPS", "FILENOS", "MMAPS", "MODE", "MEM_ALIGNMENT", "MEM_NOT_ALIGNED",
                  "RENAME_SOURCES"),
        "MPI-IO": ("HINTS", "MODE"),
        "STDIO": (),
    }  # fmt: skip
    for module, names in untold.items():
        counters = report.records[module].to_df()["counters"]
        word = module.replace("-", "")
        assert {name for name in counters if counters[name][0] == -1} == {
            f"{word}_{name}" for name in names
        }


def test_a_log_of_a_trace_that_lacks_calls_says_so(tmp_path: Path) -> None:
    """As one of Darshan does whose memory was full, also once it was imported and is exported
    again; and of the modules that it has alone."""
    import darshan

    made = MadeRun(tmp_path / "t", run={"losses": {"not kept": 3}})
    made.posix("pwrite", 0, 1, 10, offset=0)
    trace, marked = made.trace(), ["POSIX, STDIO, DXT_POSIX", "POSIX, DXT_POSIX"]
    for number, modules in enumerate(marked):
        log = tmp_path / f"{number}.darshan"
        (told,) = darshan_export.export(trace, log)
        assert told.startswith(f"marked as incomplete: {modules}; ")
        found = darshan.DarshanReport(str(log), read_all=False).modules
        assert {name: bool(module["partial_flag"]) for name, module in found.items()} == {
            "POSIX": True,
            "DXT_POSIX": True,
        }
        darshan_import.import_here(log, tmp_path / f"again{number}")
        trace = Trace(tmp_path / f"again{number}")


def test_calls_by_stream_are_those_of_another_module(tmp_path: Path) -> None:
    """What the program gave to `fwrite` is not what the file system got."""
    made = MadeRun(tmp_path / "t")
    made.posix("fopen", 0, 1)
    made.posix("fwrite", 1, 2, 30, offset=0)
    made.posix("fwrite", 4, 2, 30, offset=30)
    made.posix("fflush", 7, 1)
    made.posix("pread", 9, 1, 5, offset=0)
    report = _exported(made, tmp_path / "o.darshan")
    streams = report.records["STDIO"].to_df()
    names = ("OPENS", "WRITES", "READS", "FLUSHES", "BYTES_WRITTEN", "MAX_BYTE_WRITTEN")
    found = [int(streams["counters"][f"STDIO_{name}"][0]) for name in names]
    assert found == [1, 2, 0, 1, 60, 59]
    assert streams["fcounters"]["STDIO_F_WRITE_TIME"][0] == pytest.approx(0.004)
    posix = report.records["POSIX"].to_df()["counters"]
    assert (posix["POSIX_WRITES"][0], posix["POSIX_READS"][0]) == (0, 1)
    (calls,) = report.records["DXT_POSIX"].to_df()
    assert (calls["write_count"], calls["read_count"]) == (0, 1)


def test_mounts_are_found_by_the_first_that_fits(tmp_path: Path) -> None:
    """`darshan-parser` takes the first mount point that a path begins with."""
    points = ["/", "/scratch", "/scratch/fast"]
    mounts = [{"mount_point": point, "type": f"t{len(point)}"} for point in points]
    made = MadeRun(tmp_path / "t", run={"file_systems": mounts})
    made.posix("write", 0, 1, 1, offset=0)
    found = _exported(made, tmp_path / "o.darshan").mounts
    assert [tuple(mount) for mount in found] == [
        ("/scratch/fast", "t13"),
        ("/scratch", "t8"),
        ("/", "t1"),
    ]


def test_texts_that_a_log_has_no_form_for_leave_it_whole(tmp_path: Path) -> None:
    """Darshan's library reads the command and the mounts as lines of words, or not at all."""
    points = ["/a b", "/a\tb", "/a\nb", "", "/scratch", "/"]
    mounts = [{"mount_point": point, "type": "nfs"} for point in points[:-1]]
    made = MadeRun(
        tmp_path / "t",
        run={
            "command": ["python3", "-c", "import os\n\nos.sync()\n"],
            "file_systems": [*mounts, {"mount_point": "/"}, {"mount_point": "/x", "type": "a b"}],
        },
    )
    made.posix("write", 0, 1, 1, offset=0)
    report = _exported(made, tmp_path / "o.darshan")
    assert report.metadata["exe"] == "python3 -c import os  os.sync() "
    assert [tuple(mount) for mount in report.mounts] == [("/scratch", "nfs"), ("/", "unknown")]


@pytest.mark.parametrize("points", [[], ["/" + 3000 * "m"]])
def test_a_command_needs_no_mount(points: list[str], tmp_path: Path) -> None:
    mounts = [{"mount_point": point, "type": "nfs"} for point in points]
    made = MadeRun(tmp_path / "t", run={"command": ["cat", "a"], "file_systems": mounts})
    made.posix("write", 0, 1, 1, offset=0)
    assert _exported(made, tmp_path / "o.darshan").metadata["exe"] == "cat a"


def test_what_has_no_room_is_cut_where_it_can_be_read(tmp_path: Path) -> None:
    """PyDarshan reads no log whose texts end within a character; tools split hints at `=`."""
    hints = {f"key{number:02}": 20 * "ä" for number in range(40)}
    made = MadeRun(
        tmp_path / "t",
        files=["/scratch/" + 3000 * "ü"],
        hints=[{"odd": "a=b", "two": "a;b"} | hints],
        run={
            "command": ["x" + 3000 * "ö"],
            "file_systems": [{"mount_point": f"/m{i:03}", "type": "t"} for i in range(900)],
        },
    )
    made.posix("write", 0, 1, 1, offset=0)
    report = _exported(made, tmp_path / "o.darshan")
    kept = report.metadata["job"]["metadata"]["h"].split(";")
    assert 15 < len(kept) < 40
    assert dict(hint.split("=") for hint in kept) == dict(list(hints.items())[: len(kept)])
    room = 3014 - 2799
    assert {tuple(m) for m in report.mounts} == {(f"/m{i:03}", "t") for i in range(room // 8)}
    assert report.metadata["exe"] == "x" + 1399 * "ö"
    assert list(report.name_records.values()) == ["/scratch/" + 2043 * "ü"]


def test_what_cannot_be_exported_is_told(forebay: Forebay, tmp_path: Path) -> None:
    trace = _trace(tmp_path / "run", [_row(0, 1)], [])
    assert "name what to write" in forebay("export", "run").errors
    assert "write START:END" in forebay("export", "run", "--perfetto", "o", "--window", "3").errors
    assert "is no time" in forebay("export", "run", "--perfetto", "o", "--window", "x:").errors
    only = forebay("export", "run", "--darshan", "o", "--window", "1:2")
    assert "--window is for --perfetto" in only.errors
    assert "no directory" in forebay("export", "run", "--darshan", "none/o").errors
    (trace.path / "posix.parquet").write_bytes(b"PAR1")
    answer = forebay("export", "run", "--darshan", "o")
    assert answer.code == 1
    assert "is damaged" in answer.errors
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == []

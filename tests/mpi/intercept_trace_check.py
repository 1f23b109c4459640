"""Goal: each call of MPI-IO is in the trace with its view, datatype, hints, pointer and place,
whether the MPI carries it out or Forebay's engine; and the calls to libc below say whose they are.

Method: run intercept_trace, whose calls are known, under both preloads in both modes; make the
trace directory of what was spilled, and compare its rows.

Usage: intercept_trace_check.py TOOLKIT DIRECTORY RANKS COMMAND...
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from forebay.trace.directory import Trace

SKIPPED = 77

Tables = dict[str, list[dict[str, Any]]]

#: Call, collective, position, offset beside the rank's own, count, bytes asked.
CALLS = [
    ("MPI_File_set_view", True, None, None, None, None),
    ("MPI_File_write_all", True, 0, 0, 8, 32),
    ("MPI_File_write", False, 8, 64, 8, 32),
    ("MPI_File_seek", False, 2, None, None, None),
    ("MPI_File_read", False, 2, 16, 2, 8),
    ("MPI_File_write", False, 4, 32, 2, 8),
    ("MPI_File_iread", False, 6, 48, 2, 8),
    ("MPI_File_read", False, 8, 64, 2, 8),
    ("MPI_File_read_at", False, 9, 68, 1, 4),
    ("MPI_File_write_at", False, 0, 0, 1, 4),
    ("MPI_File_write_at", False, 0, 0, 1, 12),
    ("MPI_File_set_view", True, None, None, None, None),
    ("MPI_File_set_info", True, None, None, None, None),
    ("MPI_File_write_at_all", True, 1000, 1000, 100, 100),
    ("MPI_File_iwrite_at", False, 2000, 2000, 10, 10),
    ("MPI_File_sync", True, None, None, None, None),
    ("MPI_File_close", True, None, None, None, None),
]
#: How much further the next rank's offsets are, in the first view and in the calls of the second.
RANKS_APART = {"MPI_File_write_at_all": 100, "MPI_File_iwrite_at": 10}


def trace_of(mode: str, directory: Path, command: list[str]) -> Trace:
    """The trace of a run of `command`, whose MPI launcher passes the environment on."""
    from forebay.trace import capture
    from forebay.trace.directory import Run, Trace

    spills, made = directory / f"{mode}-spills", directory / f"{mode}-trace"
    for path in (spills, made):
        shutil.rmtree(path, ignore_errors=True)
    spills.mkdir(parents=True)
    environment = os.environ | {"FOREBAY_MODE": mode, "FOREBAY_TRACE_DIR": str(spills.resolve())}
    subprocess.run(command, env=environment, check=True, timeout=100)
    captured = capture.convert(spills, made, Run())
    assert captured.lost == 0, captured
    return Trace(made)


def check(mode: str, trace: Trace, ranks: int) -> None:
    run = trace.run
    assert run.complete, run.notes
    assert run.levels == {"posix": "events", "mpiio": "events"}
    assert run.ranks == ranks
    assert run.mpi["version"]
    tables = {name: trace.table(name).to_pylist() for name in trace.names()}
    openings, files = tables["openings"], tables["files"]
    of_file = [row for row in tables["mpiio"] if row["opening"] is not None]
    assert {openings[row["opening"]]["amode"] for row in of_file} == {"CREATE|RDWR"}
    assert {row["mode"] for row in openings} == {"engine" if mode == "engine" else "observe"}
    assert sorted(row["rank"] for row in openings) == list(range(ranks))
    failed = [row for row in tables["mpiio"] if row["error"] != 0]
    assert [files[row["file"]]["path"] for row in failed] == ["/nowhere/at/all"] * ranks
    for opening in range(ranks):
        check_rank([row for row in of_file if row["opening"] == opening], tables, openings[opening])
    nonblocking = [row for row in of_file if row["call"] == "MPI_File_iwrite_at"]
    written = [row for row in tables["posix"] if row["call"] in ("aio_write", "pwrite", "write")]
    for row in nonblocking:
        of_call = ("process", "file", "offset", "length")
        wanted = tuple(row[column] for column in of_call)
        found = [each for each in written if tuple(each[column] for column in of_call) == wanted]
        assert found, (row, written)
        assert all(each["within"] != "program" for each in found), found
    below = [row["within"] for row in tables["posix"] if row["file"] == of_file[0]["file"]]
    assert ("forebay" in below) == (mode == "engine"), below
    assert ("mpi" in below) == (mode == "off" or "forebay" in below), below


def check_rank(rows: list[dict[str, Any]], tables: Tables, opening: dict[str, Any]) -> None:
    rank = opening["rank"]
    assert rows[0]["call"] == "MPI_File_open"
    assert rows[-1]["start_ns"] < opening["end_ns"]
    told = ("call", "collective", "position", "offset", "count", "length")
    for row, wanted in zip(rows[1:], CALLS, strict=True):
        name, _, position, offset, *_ = wanted
        if offset is not None:
            step = RANKS_APART.get(name, 8) * rank
            offset += step
            position += step if name in RANKS_APART else 0
        wanted = (*wanted[:2], position, offset, *wanted[4:])
        assert tuple(row[column] for column in told) == wanted, (wanted, row)
        assert row["error"] == 0
        if row["call"] in ("MPI_File_read", "MPI_File_write_all", "MPI_File_write_at_all"):
            assert row["result"] == row["length"], row
    by_call = {row["call"]: row for row in rows}
    types, views = tables["datatypes"], tables["views"]
    view = views[by_call["MPI_File_write_all"]["view"]]
    assert view["displacement"] == 8 * rank
    assert types[view["etype"]]["shape"] == "int"
    filetype = types[view["filetype"]]
    assert (filetype["combiner"], filetype["size"], filetype["extent"]) == ("resized", 32, 64)
    assert (filetype["blocks"], filetype["block_bytes"], filetype["stride"]) == (4, 8, 16)
    assert filetype["true_extent"] == 56
    assert filetype["shape"] == "resized of vector of 4 times 2 every 4 of int"
    second = views[by_call["MPI_File_write_at_all"]["view"]]
    assert (second["displacement"], types[second["filetype"]]["size"]) == (0, 1)
    in_force = by_call["MPI_File_write_all"]["hints"]
    hints = {row["key"] for row in tables.get("hints", []) if row["set"] == in_force}
    # OMPIO tells of none.
    assert in_force is not None
    assert opening["mode"] != "engine" or "cb_nodes" in hints, hints
    asked = {
        row["key"]: row["value"] for row in tables["hints"] if row["set"] == opening["hints_asked"]
    }
    assert asked == {"cb_buffer_size": "131072", "no_hint_of_anybody": "1"}, asked
    assert types[by_call["MPI_File_read"]["datatype"]]["shape"] == "int"
    brief = [types[row["datatype"]] for row in rows if row["call"] == "MPI_File_write_at"]
    assert [(each["shape"], each["size"]) for each in brief] == [
        ("contiguous 1 of int", 4),
        ("contiguous 3 of int", 12),
    ]


def main() -> int:
    toolkit, directory, ranks, command = sys.argv[1], Path(sys.argv[2]), sys.argv[3], sys.argv[4:]
    sys.path.insert(0, toolkit)
    try:
        import pyarrow  # noqa: F401
        import xxhash  # noqa: F401
    except ImportError as error:
        print(f"skipped: {error}")
        return SKIPPED
    for mode in ("off", "engine"):
        check(mode, trace_of(mode, directory, command), int(ranks))
    print("each call is in the trace")
    return 0


if __name__ == "__main__":
    sys.exit(main())

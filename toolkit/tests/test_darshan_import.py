"""Goal: what a Darshan log holds is in the trace made of it, and what is no whole log is told.

Method: every log that PyDarshan's package brings, compared with what PyDarshan itself reads; logs
that were cut, emptied or never were one; versions changed in the header, which is stored as it is.
"""

import importlib.util
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import TIMEOUT_S, Forebay, read_json

from forebay.characterise import app
from forebay.trace import darshan_import, darshan_log, darshan_writer, perfetto_export, tables
from forebay.trace.directory import Trace

_PACKAGE = importlib.util.find_spec("darshan")
assert _PACKAGE is not None
assert _PACKAGE.origin is not None
LOGS = sorted(Path(_PACKAGE.origin).parent.rglob("*.darshan"))
(DXT,) = (log for log in LOGS if log.name == "sample-dxt-simple.darshan")
EXAMPLES = Path(_PACKAGE.origin).parent / "examples" / "example_logs"


@pytest.mark.parametrize("log", LOGS, ids=[f"{log.parent.name}-{log.stem[:24]}" for log in LOGS])
def test_a_log_of_pydarshans_package_is_imported_whole(log: Path, tmp_path: Path) -> None:
    import darshan

    imported = darshan_import.import_here(log, tmp_path / "run")
    trace = Trace(tmp_path / "run")
    report = darshan.DarshanReport(str(log), read_all=False)
    assert trace.run.ranks == report.metadata["job"]["nprocs"]
    assert all("opened with hints" in note for note in imported.notes)
    for module in report.modules:
        if module in ("DXT_POSIX", "DXT_MPIIO"):
            report.mod_read_all_dxt_records(module)
            _same_segments(trace, module, report)
        elif module == "LUSTRE":
            report.mod_read_all_lustre_records()
            records = report.records[module]
            assert trace.rows("counters_lustre") == sum(len(r["components"]) for r in records)
        else:
            report.mod_read_all_records(module)
            _same_counters(trace, module, report.records[module].to_df())


def _same_counters(trace: Trace, module: str, frames: dict) -> None:  # type: ignore[type-arg]
    table = trace.table(f"counters_{module.lower().replace('-', '_')}")
    for frame in frames.values():
        assert len(frame) == table.num_rows
        for name in frame.columns:
            if name not in ("id", "rank"):
                np.testing.assert_array_equal(table.column(name).to_numpy(), frame[name])
    ids = frames["counters"]["id"].to_numpy().astype(np.uint64)
    assert (tables.integers(table, "record").view(np.uint64) == ids).all()
    files = trace.table("files").column("record").to_numpy().view(np.uint64)
    assert (files[tables.integers(table, "file")] == ids).all()


def _same_segments(trace: Trace, module: str, report: object) -> None:
    table = trace.table("posix" if module == "DXT_POSIX" else "mpiio")
    files = trace.table("files").column("record").to_numpy().view(np.uint64)
    calls, words = tables.codes(table, "call")
    mine = sorted(
        zip(
            tables.integers(table, "process").tolist(),
            files[tables.integers(table, "file")].tolist(),
            [words[call].endswith("write") for call in calls],
            tables.integers(table, "offset").tolist(),
            tables.integers(table, "length").tolist(),
            tables.integers(table, "start_ns").tolist(),
            strict=True,
        )
    )
    theirs = sorted(
        (
            max(0, record["rank"]),
            record["id"],
            kind == "write_segments",
            segment["offset"],
            segment["length"],
            round(segment["start_time"] * 1e9),
        )
        for record in report.records[module]  # type: ignore[attr-defined]
        for kind in ("read_segments", "write_segments")
        for segment in record[kind]
    )
    assert mine == theirs


def test_the_command_says_what_came_out(forebay: Forebay, tmp_path: Path) -> None:
    answer = forebay("import", EXAMPLES / "dxt.darshan", "-o", tmp_path / "run")
    assert answer.code == 0, answer.errors
    assert "7 623 calls, 215 records of counters, 218 names" in answer.output
    trace = Trace(tmp_path / "run")
    assert trace.run.origin["kind"] == "darshan"
    assert trace.run.levels == {"posix": "data", "mpiio": "none"}
    again = forebay("import", EXAMPLES / "dxt.darshan", "-o", tmp_path / "run")
    assert again.code == 2
    assert "is not empty" in again.errors
    assert "Name a new directory" in again.errors
    assert trace.names() == Trace(tmp_path / "run").names()


def test_hints_that_are_counted_are_told_and_those_of_darshans_log_are_no_files(
    forebay: Forebay, tmp_path: Path
) -> None:
    import darshan

    log = EXAMPLES / "ior_hdf5_example.darshan"
    report = darshan.DarshanReport(str(log), read_all=False)
    assert "cb_nodes=4" in report.metadata["job"]["metadata"]["h"]
    answer = forebay("import", log, "-o", tmp_path / "run")
    assert answer.code == 0, answer.errors
    note = "1 file was opened with hints (MPI_Info): Darshan counts them, and does not say which"
    assert note in answer.output
    trace = Trace(tmp_path / "run")
    assert trace.run.notes == [note]
    assert trace.rows("hints") == 0


@pytest.mark.parametrize("kept", [0.0, 0.02, 0.3, 0.9])
def test_a_cut_log_is_told_and_leaves_nothing(
    forebay: Forebay, tmp_path: Path, kept: float
) -> None:
    content = (EXAMPLES / "dxt.darshan").read_bytes()
    (tmp_path / "cut.darshan").write_bytes(content[: int(kept * len(content))])
    answer = forebay("import", "cut.darshan", "-o", "run")
    assert answer.code == 1
    assert "cut.darshan cannot be imported" in answer.errors
    assert not (tmp_path / "run").exists()


def test_records_of_more_ranks_and_of_names_that_were_dropped_are_kept(tmp_path: Path) -> None:
    """As Darshan drops names when the memory for them is full."""
    segments = np.array([(0, 10, 0.25, 0.5)], darshan_log.SEGMENT)
    with darshan_writer.DarshanWriter(tmp_path / "log", []) as writer:
        writer.put_job(2, 1_000_000_000, 2_000_000_000, (0, 0), [])
        writer.put_command("./a")
        writer.put_mounts([("/", "ext4")])
        writer.put_names([(5, b"/data/a")])
        for record, rank in ((5, 3), (99, 0)):
            writer.put_segments("DXT_POSIX", record, rank, "host", segments, segments[:0])
    darshan_import.import_here(tmp_path / "log", tmp_path / "run")
    trace = Trace(tmp_path / "run")
    rows = trace.table("posix").to_pylist()
    assert [(row["process"], row["file"]) for row in rows] == [(0, None), (3, 0)]
    assert trace.table("processes").column("rank").to_pylist() == [0, 1, 2, 3]
    assert perfetto_export.export(trace, tmp_path / "run.json") == 2
    (layer,) = app.characterise(trace).layers
    assert len(layer.processes) > 0


def test_counters_of_more_ranks_than_the_job_has_are_of_processes(tmp_path: Path) -> None:
    with darshan_writer.DarshanWriter(tmp_path / "log", []) as writer:
        writer.put_job(2, 1_000_000_000, 2_000_000_000, (0, 0), [])
        writer.put_command("./a")
        writer.put_mounts([("/", "ext4")])
        writer.put_names([(5, b"/data/a")])
        writer.put_counters("POSIX", np.array([5, 5], np.uint64), np.array([-1, 6]), {})
    darshan_import.import_here(tmp_path / "log", tmp_path / "run")
    trace = Trace(tmp_path / "run")
    assert trace.table("counters_posix").column("process").to_pylist() == [None, 6]
    assert trace.table("processes").column("rank").to_pylist() == list(range(7))


def test_an_interrupt_leaves_nothing_and_prints_nothing(
    environ: dict[str, str], tmp_path: Path
) -> None:
    """Ctrl-C at the terminal, as the process that reads the log has just begun to load."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(
        "import os, signal, sys\n"
        "if '--multiprocessing-fork' in sys.orig_argv:\n"
        "    os.killpg(0, signal.SIGINT)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "forebay", "import", str(DXT), "-o", "run"],
        cwd=tmp_path, env=environ | {"PYTHONPATH": f"{tmp_path}/site:{environ['PYTHONPATH']}"},
        capture_output=True, text=True, check=False, timeout=TIMEOUT_S, start_new_session=True,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("made_before", [False, True])
def test_what_is_ended_half_way_leaves_nothing(
    environ: dict[str, str], tmp_path: Path, made_before: bool
) -> None:
    """SIGTERM for the command alone, as its process has written a table."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(
        "import os, signal, sys\n"
        "if '--multiprocessing-fork' in sys.orig_argv:\n"
        "    from forebay.trace.tables import TableFile\n"
        "    def close(file):\n"
        "        signal.alarm(30)\n"
        "        os.kill(os.getppid(), signal.SIGTERM)\n"
        "        signal.pause()\n"
        "    TableFile.close = close\n"
    )
    if made_before:
        (tmp_path / "run").mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "forebay", "import", str(DXT), "-o", "run"],
        cwd=tmp_path, env=environ | {"PYTHONPATH": f"{tmp_path}/site:{environ['PYTHONPATH']}"},
        capture_output=True, text=True, check=False, timeout=TIMEOUT_S,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
    assert (tmp_path / "run").exists() == made_before
    assert not list(tmp_path.glob("run/*"))


def test_what_is_no_log_is_told(forebay: Forebay, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no log\n" * 1000)
    answer = forebay("import", "text", "-o", "run")
    assert answer.code == 1
    assert "It is no Darshan log" in answer.errors
    assert forebay("import", "none", "-o", "run").code == 2
    assert "is a directory" in forebay("import", tmp_path, "-o", "run").errors


# struct darshan_header of version 3.21, which has 16 modules: the version as text, magic,
# compression and flag, and where the names and each module lie; then the modules' versions.
# [darshan-log-format.h]
_MODULE_VERSIONS = 8 + 8 + 4 + 4 + (1 + 16) * 16
_POSIX, _DXT_MPIIO = 1, 10


def _with_module_version(module: int, version: int, was: int) -> bytes:
    content = bytearray(DXT.read_bytes())
    place = _MODULE_VERSIONS + 4 * module
    assert struct.unpack_from("<I", content, place) == (was,)
    struct.pack_into("<I", content, place, version)
    return bytes(content)


def test_the_first_version_of_dxt_tells_no_offset_of_mpi_io(
    forebay: Forebay, tmp_path: Path
) -> None:
    """What stands in its place then is no offset."""
    (tmp_path / "first.darshan").write_bytes(_with_module_version(_DXT_MPIIO, 1, was=2))
    answer = forebay("import", "first.darshan", "-o", "first")
    assert answer.code == 0, answer.errors
    darshan_import.import_here(DXT, tmp_path / "second")
    first, second = (Trace(tmp_path / name).table("mpiio") for name in ("first", "second"))
    assert first["offset"].null_count == first.num_rows == second.num_rows > 0
    assert second["offset"].null_count == 0
    others = [name for name in first.column_names if name != "offset"]
    assert first.select(others).equals(second.select(others))
    posix = [Trace(tmp_path / name).table("posix") for name in ("first", "second")]
    assert posix[0].equals(posix[1])
    answer = forebay("characterise", "app", "first", "--json", "out.json")
    assert answer.code == 0, answer.errors
    found = read_json(tmp_path / "out.json")["layers"]["mpiio"]
    assert found["global"]["spatial"]["kind"] == "unknown"
    assert {phase["formula"] for phase in found["phases"]} == {None}


@pytest.mark.parametrize(
    ("version", "reason", "advice"),
    [
        (b"9.99", "of version 9.99 of the format", "A newer PyDarshan may read it"),
        (b"2.05", "of version 2.05 of the format", "with the Darshan that wrote it"),
    ],
)
def test_a_log_of_another_version_is_refused_by_its_number(
    forebay: Forebay, tmp_path: Path, version: bytes, reason: str, advice: str
) -> None:
    content = DXT.read_bytes()
    assert content[:5] == b"3.21\0"
    (tmp_path / "other.darshan").write_bytes(version + content[4:])
    answer = forebay("import", "other.darshan", "-o", "run")
    assert answer.code == 1
    assert reason in answer.errors
    assert advice in answer.errors
    assert "no Darshan log" not in answer.errors
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("module", "was"), [(_POSIX, 4), (_DXT_MPIIO, 2)])
def test_a_log_of_a_newer_module_is_refused_by_its_number(
    forebay: Forebay, tmp_path: Path, module: int, was: int
) -> None:
    (tmp_path / "newer.darshan").write_bytes(_with_module_version(module, 99, was))
    answer = forebay("import", "newer.darshan", "-o", "run")
    assert answer.code == 1
    name = {_POSIX: "POSIX", _DXT_MPIIO: "DXT MPIIO"}[module]
    assert f"does not know version 99 of its module {name}" in answer.errors
    assert "A newer PyDarshan may read it" in answer.errors
    assert not (tmp_path / "run").exists()

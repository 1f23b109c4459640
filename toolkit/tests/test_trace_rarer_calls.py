"""Goal: what moves, syncs, locks and opens files by the rarer calls of the C library is in a trace.

Method: programs that make them, traced by the real library; their files beside the rows.
"""

import errno
import fcntl
import os
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from conftest import Forebay
from traced_programs import NEEDS_LIBRARY, REAL_LIBRARY, rows, told, traced

from forebay.trace import calls, darshan_counters
from forebay.trace.calls import Kind
from forebay.trace.directory import Trace

pytestmark = NEEDS_LIBRARY

MAKES = os.O_RDWR | os.O_CREAT | os.O_EXCL


@pytest.fixture
def environ(environ: dict[str, str]) -> dict[str, str]:
    return {**environ, "FOREBAY_LIBRARY_DIR": str(REAL_LIBRARY)}


def counters(trace: Trace, name: str) -> dict[str, int]:
    """What a Darshan log of the trace counts of the file."""
    ranks = np.arange(trace.rows("processes"))
    counted = darshan_counters.posix(trace.table("posix"), ranks, 0)
    (record,) = np.flatnonzero(counted.files == rows(trace, name)[0]["file"])
    return {key: int(values[record]) for key, values in counted.columns.items()}


def test_what_a_child_by_vfork_does_to_its_descriptors_is_not_of_its_parent(
    forebay: Forebay,
) -> None:
    trace = traced(
        forebay,
        """
        import os, subprocess
        file = os.open("data", os.O_WRONLY | os.O_CREAT)
        os.dup2(file, 1)
        os.write(1, bytes(10))
        # The child puts a pipe on that number.
        subprocess.run(["true"], stdout=subprocess.PIPE, check=True)
        os.write(1, bytes(20))
        os.close(file)
        """,
    )
    calls_told = told(trace, "data", "call", "result")
    assert [result for call, result in calls_told if call == "write"] == [10, 20]
    assert ("close", 0) in calls_told


def test_splices_have_the_rows_of_files_and_none_of_pipes(forebay: Forebay, tmp_path: Path) -> None:
    content = bytes(range(256)) * 4
    (tmp_path / "source").write_bytes(content)
    trace = traced(
        forebay,
        """
        import os
        source = os.open("source", os.O_RDONLY)
        copy = os.open("copy", os.O_RDWR | os.O_CREAT)
        out, into = os.pipe()
        os.lseek(source, 100, os.SEEK_SET)
        assert os.splice(source, into, 300) == 300
        assert os.splice(source, into, 50, offset_src=7) == 50
        os.read(source, 10)
        assert os.splice(out, copy, 300) == 300
        assert os.splice(out, copy, 50, offset_dst=1000) == 50
        os.write(copy, b"end")
        ends = os.pipe()
        os.write(into, bytes(5))
        assert os.splice(out, ends[1], 5) == 5
        """,
    )
    wanted = ("call", "offset", "length", "result", "argument")
    assert told(trace, "source", *wanted)[1:] == [
        ("lseek", 100, None, 100, os.SEEK_SET),
        ("splice", 100, 300, 300, 0),
        ("splice", 7, 50, 50, 0),
        ("read", 400, 10, 10, None),
    ]
    assert told(trace, "copy", *wanted)[1:] == [
        ("splice", 0, 300, 300, 1),
        ("splice", 1000, 50, 50, 1),
        ("write", 300, 3, 3, None),
    ]
    assert (tmp_path / "copy").read_bytes() == (
        content[100:400] + b"end" + bytes(1000 - 303) + content[7:57]
    )
    table = trace.table("posix")
    splices = calls.marked(table, {"splice"})
    assert calls.kinds(table)[splices].tolist() == [*[Kind.READ] * 2, *[Kind.WRITE] * 2]
    assert all(row["duration_ns"] > 0 for row in table.to_pylist() if row["call"] == "splice")
    read, written = counters(trace, "source"), counters(trace, "copy")
    assert (read["POSIX_READS"], read["POSIX_BYTES_READ"]) == (3, 360)
    assert (written["POSIX_WRITES"], written["POSIX_BYTES_WRITTEN"]) == (3, 353)


def test_a_splice_that_fails_moves_nothing(forebay: Forebay) -> None:
    trace = traced(
        forebay,
        """
        import ctypes, errno, os
        libc = ctypes.CDLL(None, use_errno=True)
        nowhere, length = ctypes.c_void_p(4096), ctypes.c_size_t(10)
        file = os.open("data", os.O_RDWR | os.O_CREAT)
        os.write(file, bytes(100))
        out, into = os.pipe()
        assert libc.splice(file, nowhere, into, None, length, 0) == -1
        assert ctypes.get_errno() == errno.EFAULT
        assert libc.splice(out, None, file, None, length, os.SPLICE_F_NONBLOCK) == -1
        assert ctypes.get_errno() == errno.EAGAIN
        os.write(file, bytes(1))
        """,
    )
    assert told(trace, "data", "call", "offset", "result", "errno")[2:] == [
        ("splice", None, -1, errno.EFAULT),
        ("splice", 100, -1, errno.EAGAIN),
        ("write", 100, 1, 0),
    ]


def test_files_that_the_c_library_names_have_their_names(forebay: Forebay, tmp_path: Path) -> None:
    trace = traced(
        forebay,
        """
        import ctypes, os
        libc = ctypes.CDLL(None, use_errno=True)
        for wide in ("", "64"):
            for name in ("mkstemp", "mkostemp", "mkstemps", "mkostemps"):
                suffix = b".dat" if name.endswith("s") else b""
                made = ctypes.create_string_buffer(f"{name}{wide}_XXXXXX".encode() + suffix)
                suffixed = [len(suffix)] if suffix else []
                flagged = [os.O_APPEND] if "mko" in name else []
                file = getattr(libc, name + wide)(made, *suffixed, *flagged)
                assert os.path.samestat(os.fstat(file), os.stat(made.value))
                os.write(file, bytes(100))
                os.write(file, bytes(20))
                os.close(file)
        for wrong in (b"no_place", b"none/such_XXXXXX"):
            assert libc.mkstemp(ctypes.create_string_buffer(wrong)) == -1
        """,
    )
    for call in ("mkstemp", "mkostemp", "mkstemps", "mkostemps"):
        for wide in ("", "64"):
            (file,) = tmp_path.glob(f"{call}{wide}_*")
            flags = MAKES | (os.O_APPEND if "mko" in call else 0)
            number = rows(trace, file.name)[0]["descriptor"]
            wanted = ("call", "offset", "result", "argument", "descriptor")
            assert [row for row in told(trace, file.name, *wanted) if "stat" not in row[0]] == [
                (call, None, number, flags, number),
                ("write", 0, 100, None, number),
                ("write", 100, 20, None, number),
                ("close", None, 0, None, number),
            ]
            counted = counters(trace, file.name)
            assert (counted["POSIX_OPENS"], counted["POSIX_BYTES_WRITTEN"]) == (1, 120)
    paths = trace.table("files")["path"].to_pylist()
    failed = [row for row in trace.table("posix").to_pylist() if row["call"] == "mkstemp"][2:]
    assert [(row["errno"], row["descriptor"]) for row in failed] == [
        (errno.EINVAL, None),
        (errno.ENOENT, None),
    ]
    assert paths[failed[0]["file"]] == str(tmp_path / "no_place")
    assert paths[failed[1]["file"]].startswith(str(tmp_path / "none" / "such_"))


def test_a_file_without_a_name_is_called_as_the_kernel_does(forebay: Forebay) -> None:
    trace = traced(
        forebay,
        """
        import ctypes
        libc = ctypes.CDLL(None)
        libc.tmpfile.restype = libc.tmpfile64.restype = ctypes.c_void_p
        # At the same time: an inode that is free is used again.
        streams = [ctypes.c_void_p(open()) for open in (libc.tmpfile, libc.tmpfile64)]
        for stream in streams:
            libc.fputs(b"text", stream)
            libc.fclose(stream)
        """,
    )
    paths = trace.table("files")["path"].to_pylist()
    table = trace.table("posix").to_pylist()
    openings = [row for row in table if row["call"] == "tmpfile"]
    assert [row["argument"] for row in openings] == [MAKES] * 2
    for opening in openings:
        assert paths[opening["file"]].endswith(" (deleted)")
        own = [(row["call"], row["offset"]) for row in table if row["file"] == opening["file"]]
        assert own == [("tmpfile", None), ("fputs", 0), ("fclose", None)]


def test_files_that_never_had_a_name_are_apart_and_not_their_directory(
    forebay: Forebay, tmp_path: Path
) -> None:
    trace = traced(
        forebay,
        """
        import os
        kept = [os.open(".", os.O_TMPFILE | os.O_RDWR, 0o600) for _ in range(2)]
        for file in kept:
            os.write(file, bytes(1000))
        try:
            os.open("absent", os.O_TMPFILE | os.O_RDWR, 0o600)
        except FileNotFoundError:
            pass
        """,
    )
    files = trace.table("files").to_pylist()
    assert rows(trace, tmp_path.name) == []
    written = [row["file"] for row in trace.table("posix").to_pylist() if row["call"] == "write"]
    assert len(set(written)) == 2
    for file in written:
        assert files[file]["path"] == f"{tmp_path}/#{files[file]['inode']} (deleted)"
        assert files[file]["kind"] == "file"
    ((call, failed),) = told(trace, "absent", "call", "errno")
    assert (call.startswith("open"), failed) == (True, errno.ENOENT)


def test_what_syncs_and_locks_is_told(forebay: Forebay) -> None:
    trace = traced(
        forebay,
        """
        import ctypes, fcntl, mmap, os, struct
        libc = ctypes.CDLL(None)
        file = os.open("data", os.O_RDWR | os.O_CREAT)
        other = os.open("data", os.O_RDONLY)
        os.ftruncate(file, 8192)
        assert libc.syncfs(file) == 0
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            pass
        fcntl.flock(file, fcntl.LOCK_UN)
        fcntl.lockf(file, fcntl.LOCK_EX, 100, 4096)
        fcntl.lockf(file, fcntl.LOCK_UN, 0, 10, os.SEEK_END)
        fcntl.lockf(file, fcntl.LOCK_SH, -100, 1000)
        fcntl.fcntl(file, fcntl.F_GETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 1, 2, 0))
        assert libc.lockf(other, os.F_TEST, ctypes.c_long(50)) == 0
        assert libc.lockf(other, os.F_LOCK, ctypes.c_long(50)) == -1
        assert libc.fcntl(file, fcntl.F_SETLK, None) == -1
        fcntl.fcntl(file, fcntl.F_GETFL)
        os.sync()
        with mmap.mmap(file, 8192) as mapped:
            mapped[0] = 1
            mapped.flush()
        assert libc.msync(ctypes.c_void_p(1), ctypes.c_size_t(10), 1) == -1
        out, into = os.pipe()
        assert libc.syncfs(into) == 0
        """,
    )
    wanted = ("call", "offset", "length", "result", "argument", "errno")
    rows = told(trace, "data", *wanted)
    assert [row for row in rows if calls.kind_of(row[0]) in (Kind.SYNC, Kind.LOCK)] == [
        ("syncfs", None, None, 0, None, 0),
        ("flock", None, None, 0, fcntl.LOCK_EX, 0),
        ("flock", None, None, -1, fcntl.LOCK_SH | fcntl.LOCK_NB, errno.EWOULDBLOCK),
        ("flock", None, None, 0, fcntl.LOCK_UN, 0),
        ("fcntl", 4096, 100, 0, fcntl.F_SETLKW, 0),
        ("fcntl", None, 0, 0, fcntl.F_SETLKW, 0),
        ("fcntl", 900, 100, 0, fcntl.F_SETLKW, 0),
        ("fcntl", None, None, 0, fcntl.F_GETLK, 0),
        ("lockf", None, 50, 0, os.F_TEST, 0),
        ("lockf", None, 50, -1, os.F_LOCK, errno.EBADF),
        ("fcntl", None, None, -1, fcntl.F_SETLK, errno.EFAULT),
    ]
    table = trace.table("posix").to_pylist()
    of_any = [row for row in table if row["call"] in ("sync", "msync")]
    assert {(row["file"], row["descriptor"]) for row in of_any} == {(None, None)}
    ms_sync, ms_async = 4, 1
    assert [tuple(row[column] for column in wanted) for row in of_any] == [
        ("sync", None, None, 0, None, 0),
        ("msync", None, 8192, 0, ms_sync, 0),
        ("msync", None, 10, -1, ms_async, errno.EINVAL),
    ]
    assert {calls.kind_of(call) for call in ("sync", "msync", "syncfs")} == {Kind.SYNC}


@pytest.mark.parametrize("words", [(), ("--record",)])
def test_each_call_is_traced_once_with_what_records_behind_it(
    forebay: Forebay, words: tuple[str, ...]
) -> None:
    """Both libraries have these calls, by two names each."""
    Path("data").write_bytes(bytes(100_000))
    script = """
    import ctypes, mmap, os
    libc = ctypes.CDLL(None)
    file = os.open("data", os.O_RDWR)
    os.pread(file, 100, 0)
    os.preadv(file, [bytearray(10)], 5)
    os.lseek(file, 10, os.SEEK_SET)
    assert libc.lockf64(file, os.F_LOCK, ctypes.c_long(10)) == 0
    mmap.mmap(file, 1000).close()
    libc.closefrom(file)
    os._exit(0)
    """
    program = [sys.executable, "-c", textwrap.dedent(script)]
    answer = forebay("run", *words, "--trace", "run.trace", "--", *program)
    assert answer.code == 0, answer.errors
    made = [call for (call,) in told(Trace(Path("run.trace")), "data", "call")]
    wanted = ["pread", "preadv2", "lseek", "lockf", "mmap"]
    assert [call for call in made if call in wanted] == wanted


@pytest.mark.parametrize(("ending", "code"), [("exit 3", 3), ("kill -9 $$", 137)])
def test_a_run_that_fails_has_its_trace(forebay: Forebay, ending: str, code: int) -> None:
    Path("data").write_bytes(bytes(100_000))
    answer = forebay("run", "--trace", "run.trace", "--", "sh", "-c", f"wc -c < data; {ending}")
    assert answer.code == code
    assert "no MPI file" not in answer.errors
    assert [call for (call,) in told(Trace(Path("run.trace")), "data", "call")] != []
    assert not Path("run.trace.spills").exists()

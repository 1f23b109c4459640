"""`forebay trace` with the real library: what a program does is in the trace, row by row."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Forebay
from traced_programs import NEEDS_LIBRARY, REAL_LIBRARY, rows, told, traced

from forebay.trace import unseen
from forebay.trace.directory import Trace

MOST_EVENTS = 4096  # core/engine/trace/ring.hpp

pytestmark = NEEDS_LIBRARY


@pytest.fixture
def environ(environ: dict[str, str]) -> dict[str, str]:
    return {**environ, "FOREBAY_LIBRARY_DIR": str(REAL_LIBRARY)}


def test_each_call_is_a_row_with_what_it_did(forebay: Forebay, tmp_path: Path) -> None:
    trace = traced(
        forebay,
        """
        import os
        file = os.open("data", os.O_RDWR | os.O_CREAT)
        os.write(file, bytes(1000))
        os.pwrite(file, bytes(50), 2000)
        os.writev(file, [bytes(10), bytes(20)])
        os.pwritev(file, [bytes(5), bytes(6)], 100)
        os.lseek(file, 30, os.SEEK_SET)
        os.read(file, 70)
        os.readv(file, [bytearray(8), bytearray(9)])
        os.pread(file, 100, 2040)
        os.preadv(file, [bytearray(1), bytearray(2)], 7)
        os.posix_fadvise(file, 0, 4096, os.POSIX_FADV_DONTNEED)
        os.ftruncate(file, 500)
        os.fsync(file)
        os.fdatasync(file)
        os.close(file)
        """,
    )
    assert told(trace, "data", "call", "offset", "length", "result")[1:] == [
        ("write", 0, 1000, 1000),
        ("pwrite", 2000, 50, 50),
        ("writev", 1000, 30, 30),
        ("pwritev2", 100, 11, 11),
        ("lseek", 30, None, 30),
        ("read", 30, 70, 70),
        ("readv", 100, 17, 17),
        ("pread", 2040, 100, 10),
        ("preadv2", 7, 3, 3),
        ("posix_fadvise", 0, 4096, 0),
        ("ftruncate", None, 500, 0),
        ("fsync", None, None, 0),
        ("fdatasync", None, None, 0),
        ("close", None, None, 0),
    ]
    opening = rows(trace, "data")[0]
    assert (opening["call"], opening["argument"] & os.O_CREAT) == ("open", os.O_CREAT)
    assert all(row["errno"] == 0 and row["duration_ns"] > 0 for row in rows(trace, "data"))
    (file,) = [f for f in trace.table("files").to_pylist() if f["path"] == str(tmp_path / "data")]
    assert (file["kind"], file["inode"]) == ("file", (tmp_path / "data").stat().st_ino)
    assert trace.run.complete
    assert trace.run.losses == {}
    assert trace.run.origin["kind"] == "capture"
    overhead = trace.run.overhead
    assert overhead["ns_per_call"] > 0
    assert 0 < overhead["share_of_wall"] <= 1
    kept = sum(row["events"] for row in trace.table("threads").to_pylist())
    assert overhead["calls"] == kept >= trace.rows("posix")
    assert not Path("run.trace.spills").exists()


def test_programs_of_an_older_c_library_are_traced_too(forebay: Forebay, tmp_path: Path) -> None:
    """They have other names for stat and its kin."""
    trace = traced(
        forebay,
        """
        import ctypes, os
        libc = ctypes.CDLL(None, use_errno=True)
        version = 1 if os.uname().machine == "x86_64" else 0
        status = ctypes.create_string_buffer(1024)
        here = os.open(".", os.O_RDONLY)
        file = os.open("data", os.O_RDWR | os.O_CREAT)
        for name in ("__xstat", "__xstat64", "__lxstat", "__lxstat64"):
            assert getattr(libc, name)(version, b"data", status) == 0
            assert getattr(libc, name)(version, b"none", status) == -1
        for name in ("__fxstat", "__fxstat64"):
            assert getattr(libc, name)(version, file, status) == 0
        for name in ("__fxstatat", "__fxstatat64"):
            assert getattr(libc, name)(version, here, b"data", status, 0) == 0
        assert libc.__xstat(77, b"data", status) == -1  # as the C library judges it
        """,
    )
    calls = [row["call"] for row in rows(trace, "data")]
    assert calls[1:5] == ["stat", "stat", "lstat", "lstat"]
    assert calls[5:] == ["fstat", "fstat", "fstatat", "fstatat", "stat"]
    assert [row["errno"] for row in rows(trace, "none")] == [errno.ENOENT] * 4
    assert rows(trace, "data")[-1]["errno"] == errno.EINVAL


def test_names_beside_a_directory_are_traced(forebay: Forebay, tmp_path: Path) -> None:
    trace = traced(
        forebay,
        """
        import ctypes, os
        here = os.open(".", os.O_RDONLY)
        os.mkdir("made", dir_fd=here)
        os.access("made", os.R_OK, dir_fd=here)
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.renameat2(here, b"made", here, b"moved", 1) == 0
        """,
    )
    assert told(trace, "made", "call", "errno") == [("mkdir", 0), ("access", 0)]
    assert told(trace, "moved", "call", "errno") == [("renameat", 0)]
    assert (tmp_path / "moved").is_dir()


def test_pieces_that_nobody_can_read_fail_as_without_a_trace(forebay: Forebay) -> None:
    trace = traced(
        forebay,
        """
        import ctypes, errno, os
        libc = ctypes.CDLL(None, use_errno=True)
        nowhere = ctypes.c_void_p(4096)
        with open("data", "wb+", buffering=0) as file:
            for call in (libc.readv, libc.writev):
                for pieces, count in ((nowhere, 2), (None, 2), (None, -1), (None, 1 << 30)):
                    assert call(file.fileno(), pieces, count) == -1
                    assert ctypes.get_errno() in (errno.EFAULT, errno.EINVAL)
        """,
    )
    failed = [row for row in rows(trace, "data") if row["errno"] != 0]
    assert [(row["call"], row["length"]) for row in failed] == [("readv", 0)] * 4 + [
        ("writev", 0)
    ] * 4


def test_copies_from_and_to_offsets_that_nobody_can_read_fail_as_without_a_trace(
    forebay: Forebay,
) -> None:
    trace = traced(
        forebay,
        """
        import ctypes, errno, os
        libc = ctypes.CDLL(None, use_errno=True)
        nowhere, at, length = ctypes.c_void_p(4096), ctypes.c_int64(100), ctypes.c_size_t(10)
        source = os.open("source", os.O_RDWR | os.O_CREAT)
        into = os.open("into", os.O_WRONLY | os.O_CREAT)
        os.write(source, bytes(1000))
        for call, *arguments in (
            (libc.copy_file_range, source, nowhere, into, None, length, 0),
            (libc.copy_file_range, source, None, into, nowhere, length, 0),
            (libc.sendfile, into, source, nowhere, length),
        ):
            assert call(*arguments) == -1
            assert ctypes.get_errno() == errno.EFAULT
        copied = libc.copy_file_range(source, ctypes.byref(at), into, None, length, 0)
        assert (copied, at.value) == (10, 110)
        """,
    )
    wanted = ("call", "offset", "length", "result")
    assert told(trace, "source", *wanted)[2:] == [
        ("copy_file_range", None, 10, -1),
        ("copy_file_range", 1000, 10, -1),
        ("sendfile", None, 10, -1),
        ("copy_file_range", 100, 10, 10),
    ]
    assert told(trace, "into", *wanted)[1:] == [
        ("copy_file_range", 0, 10, -1),
        ("copy_file_range", None, 10, -1),
        ("sendfile", 0, 10, -1),
        ("copy_file_range", 0, 10, 10),
    ]


def test_a_position_is_followed_through_copies_and_seeks(forebay: Forebay) -> None:
    trace = traced(
        forebay,
        """
        import os
        file = os.open("data", os.O_RDWR | os.O_CREAT)
        os.write(file, bytes(1000))
        copy = os.dup(file)
        os.lseek(copy, -300, os.SEEK_END)
        os.read(file, 100)
        os.close(file)
        os.read(copy, 50)
        other = os.open("data", os.O_RDONLY)
        os.dup2(other, copy)
        os.read(copy, 25)
        os.read(other, 25)
        end = os.open("data", os.O_WRONLY | os.O_APPEND)
        os.write(end, bytes(3))
        os.write(end, bytes(4))
        """,
    )
    moves = [row for row in told(trace, "data", "call", "offset") if row[0] in ("read", "write")]
    assert moves == [
        ("write", 0),
        ("read", 700),
        ("read", 800),
        ("read", 0),
        ("read", 25),
        ("write", 1000),
        ("write", 1003),
    ]


def test_c_streams_and_copies_in_the_kernel_are_traced(forebay: Forebay) -> None:
    trace = traced(
        forebay,
        """
        import ctypes, os
        libc = ctypes.CDLL(None)
        libc.fopen.restype = ctypes.c_void_p
        stream = ctypes.c_void_p(libc.fopen(b"stream", b"w+"))
        libc.fwrite(bytes(800), 8, 100, stream)
        libc.fseek(stream, 80, 0)
        libc.fread(ctypes.create_string_buffer(40), 4, 10, stream)
        libc.fclose(stream)
        source = os.open("stream", os.O_RDONLY)
        into = os.open("copy", os.O_WRONLY | os.O_CREAT)
        os.copy_file_range(source, into, 500)
        os.sendfile(into, source, 100, 50)
        """,
    )
    wanted = ("call", "offset", "length", "result", "argument")
    assert told(trace, "stream", *wanted)[1:] == [
        ("fwrite", 0, 800, 800, None),
        ("fseek", 80, None, 80, 0),
        ("fread", 80, 40, 40, None),
        ("fclose", None, None, 0, None),
        ("open", None, None, rows(trace, "stream")[5]["descriptor"], os.O_RDONLY | os.O_CLOEXEC),
        ("copy_file_range", 0, 500, 500, 0),
        ("sendfile", 100, 50, 50, 0),
    ]
    assert told(trace, "copy", *wanted)[1:] == [
        ("copy_file_range", 0, 500, 500, 1),
        ("sendfile", 500, 50, 50, 1),
    ]


def test_text_by_streams_is_traced_in_bytes(forebay: Forebay) -> None:
    """More of where they stand is in tests/posix/traced_streams_check.py."""
    trace = traced(
        forebay,
        """
        import ctypes, os
        libc = ctypes.CDLL(None)
        libc.fopen.restype = libc.fdopen.restype = ctypes.c_void_p
        stream = ctypes.c_void_p(libc.fopen(b"text", b"w+"))
        libc.fputs(b"first line\\n", stream)
        libc.fprintf(stream, b"%d %s\\n", 2024, b"words")
        libc.__fprintf_chk(stream, 1, b"%d", 7)
        libc.rewind(stream)
        line = ctypes.create_string_buffer(100)
        number = ctypes.c_int()
        libc.fgets(line, 100, stream)
        libc.fscanf(stream, b"%d", ctypes.byref(number))
        libc.__isoc99_fscanf(stream, b"%s", line)
        for _ in range(2):
            libc.fgetc(stream)
        libc.fclose(stream)
        file = os.open("text", os.O_WRONLY)
        libc.dprintf(file, b"%s", b"FIRST")
        failing = os.open("text", os.O_RDONLY)
        read_only = ctypes.c_void_p(libc.fdopen(failing, b"r"))
        assert libc.fputs(b"none", read_only) == -1
        """,
    )
    wanted = ("call", "offset", "length", "result", "errno")
    assert told(trace, "text", *wanted)[1:] == [
        ("fputs", 0, 11, 11, 0),
        ("fprintf", 11, 11, 11, 0),
        ("fprintf", 22, 1, 1, 0),
        ("fseek", 0, None, 0, 0),
        ("fgets", 0, 99, 11, 0),
        ("fscanf", 11, 4, 4, 0),
        ("fscanf", 15, 6, 6, 0),
        ("fgetc", 21, 2, 2, 0),
        ("fclose", None, None, 0, 0),
        ("open", None, None, rows(trace, "text")[10]["descriptor"], 0),
        ("dprintf", 0, 5, 5, 0),
        ("open", None, None, rows(trace, "text")[12]["descriptor"], 0),
        ("fputs", 0, 0, -1, errno.EBADF),
    ]


def test_a_file_that_is_mapped_is_told(forebay: Forebay, tmp_path: Path) -> None:
    trace = traced(
        forebay,
        """
        import mmap, os
        file = os.open("data", os.O_RDWR | os.O_CREAT)
        os.ftruncate(file, 100_000)
        with mmap.mmap(file, 4096, prot=mmap.PROT_READ, offset=65536):
            pass
        mmap.mmap(-1, 4096)
        """,
    )
    mapped = [row for row in trace.table("posix").to_pylist() if row["call"] == "mmap"]
    assert mapped == [row for row in rows(trace, "data") if row["call"] == "mmap"]
    wanted = ("offset", "length", "result", "argument")
    assert [tuple(row[column] for column in wanted) for row in mapped] == [(65536, 4096, 0, 1)]
    told_of = [each for each in unseen.caveats(trace) if each.startswith("One file was mapped")]
    assert len(told_of) == 1


def test_a_stream_that_is_moved_by_wide_characters_is_told_once(forebay: Forebay) -> None:
    trace = traced(
        forebay,
        """
        import ctypes
        libc = ctypes.CDLL(None)
        libc.fopen.restype = ctypes.c_void_p
        number, room = ctypes.c_int(), ctypes.create_unicode_buffer(99)
        of_stream = {
            "fwide": (1,), "ungetwc": None, "fgetwc": (), "getwc": (), "fgetwc_unlocked": (),
            "getwc_unlocked": (), "fputwc": None, "putwc": None, "fputwc_unlocked": None,
            "putwc_unlocked": None, "fputws": None, "fputws_unlocked": None,
            "fgetws": None, "fgetws_unlocked": None, "__fgetws_chk": None,
            "__fgetws_unlocked_chk": None, "fwprintf": ("%d", 7), "__fwprintf_chk": (1, "%d", 7),
            "fwscanf": ("%d", ctypes.byref(number)),
            "__isoc99_fwscanf": ("%d", ctypes.byref(number)),
        }
        def call(name, stream):
            function, given = getattr(libc, name), of_stream[name]
            if given is not None:
                function(stream, *given)
            elif "getws" in name:
                function(room, *([99] if "chk" in name else []), 99, stream)
            else:
                function("text" if "putws" in name else 7, stream)
        for name in of_stream:
            with open(name, "w") as file:
                file.write("7 8 9\\n" * 9)
            stream = ctypes.c_void_p(libc.fopen(name.encode(), b"r+"))
            for _ in range(3):
                call(name, stream)
            libc.fclose(stream)
        libc.fclose(ctypes.c_void_p(libc.fopen(b"by_encoding", b"w,ccs=UTF-8")))
        stream = ctypes.c_void_p(libc.fopen(b"narrow", b"w"))
        libc.fwide(stream, -1)
        libc.fputws("text", stream)
        libc.fclose(stream)
        """,
    )
    table = trace.table("posix").to_pylist()
    paths = [Path(path).name for path in trace.table("files")["path"].to_pylist()]
    wide = [row for row in table if row["call"] == "fwide"]
    told_of = [paths[row["file"]] for row in wide]
    assert len(told_of) == len(set(told_of)) == 21
    assert {"by_encoding", "fgetws", "fputws", "__fwprintf_chk", "__isoc99_fwscanf"} < set(told_of)
    assert {(row["length"], row["result"], row["duration_ns"]) for row in wide} == {(None, 0, 0)}
    assert any(
        each.startswith("21 files were read or written by wide") for each in unseen.caveats(trace)
    )


def test_names_are_absolute_and_failures_have_their_error(forebay: Forebay, tmp_path: Path) -> None:
    trace = traced(
        forebay,
        """
        import os
        os.mkdir("below")
        os.chdir("below")
        for wrong in (lambda: os.stat("nothing"), lambda: os.open("nothing", os.O_RDONLY)):
            try:
                wrong()
            except FileNotFoundError:
                pass
        directory = os.open(".", os.O_RDONLY)
        os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=directory))
        os.rename("file", "other")
        os.chdir("..")
        os.unlink("below/other")
        os.rmdir("below")
        """,
    )
    paths = trace.table("files").column("path").to_pylist()
    assert {str(tmp_path / "below" / name) for name in ("nothing", "file", "other")} <= set(paths)
    assert told(trace, "nothing", "call", "result", "errno") == [
        ("stat", -1, 2),
        ("open", -1, 2),
    ]
    # A rename has its old name as an argument.
    (renamed, _) = told(trace, "other", "call", "argument")
    assert (renamed[0], paths[renamed[1]]) == ("rename", str(tmp_path / "below" / "file"))
    assert [call for (call,) in told(trace, "other", "call")] == ["rename", "unlink"]
    assert [call for (call,) in told(trace, "file", "call")] == ["openat", "close"]


def test_threads_have_rings_of_their_own(forebay: Forebay) -> None:
    trace = traced(
        forebay,
        f"""
        import os, threading
        file = os.open("data", os.O_RDWR | os.O_CREAT)
        os.ftruncate(file, 1 << 20)
        def read(number):
            for place in range({MOST_EVENTS + 100}):
                os.pread(file, 1, number)
        threads = [threading.Thread(target=read, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        """,
    )
    reads = [row for row in rows(trace, "data") if row["call"] == "pread"]
    by_thread = {row["thread"]: row["offset"] for row in reads}
    assert sorted(by_thread.values()) == [0, 1, 2]
    assert 0 not in by_thread
    assert all(by_thread[row["thread"]] == row["offset"] for row in reads)
    assert len(reads) == 3 * (MOST_EVENTS + 100)
    starts = [row["start_ns"] for row in reads if row["thread"] == reads[0]["thread"]]
    assert starts == sorted(starts)


def test_children_are_processes_and_a_new_program_is_the_same_one(forebay: Forebay) -> None:
    trace = traced(
        forebay,
        """
        import os, subprocess, sys
        file = os.open("data", os.O_RDWR | os.O_CREAT)
        os.write(file, bytes(100))
        if os.fork() == 0:
            os.write(file, bytes(20))
            os._exit(0)
        os.wait()
        # A vfork: the child closes and copies descriptors in this process's memory.
        subprocess.run(["true"], check=True)
        os.pwrite(file, bytes(7), 0)
        script = "import os; os.close(os.open('after', os.O_CREAT))"
        os.execv(sys.executable, [sys.executable, "-c", script])
        """,
    )
    table = trace.table("processes").to_pylist()
    assert [row["ended"] for row in table] == ["exit"] * len(table)
    writes = [row for row in rows(trace, "data") if row["call"] in ("write", "pwrite")]
    first, child, last = sorted(writes, key=lambda row: row["start_ns"])
    assert (first["offset"], child["offset"], last["offset"]) == (0, 100, 0)
    assert first["process"] == last["process"] != child["process"]
    assert table[child["process"]]["parent"] == first["process"]
    assert {row["process"] for row in rows(trace, "after")} == {first["process"]}


@pytest.mark.parametrize(
    "becomes",
    [
        "libc.execveat(-100, program, words, environment, 0)",
        "libc.execveat(os.open(program, os.O_PATH), b'', words, environment, 0x1000)",
        "libc.fexecve(os.open(program, os.O_RDONLY), words, environment)",
        "libc.execvpe(program, words, environment)",
    ],
)
def test_no_way_to_become_another_program_loses_a_call(forebay: Forebay, becomes: str) -> None:
    trace = traced(
        forebay,
        f"""
        import ctypes, os, sys
        libc = ctypes.CDLL(None)
        script = b"import os; os.close(os.open('after', os.O_CREAT))"
        program = sys.executable.encode()
        words = (ctypes.c_char_p * 4)(program, b"-c", script, None)
        environment = ctypes.c_void_p.in_dll(libc, "environ")
        file = os.open("data", os.O_RDWR | os.O_CREAT)
        os.write(file, bytes(100))
        {becomes}
        """,
    )
    assert [row["ended"] for row in trace.table("processes").to_pylist()] == ["exit"]
    assert told(trace, "data", "call", "result")[1:] == [("write", 100)]
    assert [row["call"] for row in rows(trace, "after")] == ["open", "close"]
    assert trace.run.complete


def test_a_process_that_spawns_others_loses_no_call(forebay: Forebay) -> None:
    trace = traced(
        forebay,
        """
        import os, sys
        file = os.open("data", os.O_RDWR | os.O_CREAT)
        for spawn in (os.posix_spawn, os.posix_spawnp):
            os.write(file, bytes(100))
            script = f"import os; os.close(os.open('{spawn.__name__}', os.O_CREAT))"
            child = spawn(sys.executable, [sys.executable, "-c", script], os.environ)
            os.waitpid(child, 0)
        os.write(file, bytes(100))
        """,
    )
    parent, *children = trace.table("processes").to_pylist()
    assert [row["ended"] for row in (parent, *children)] == ["exit"] * 3
    assert [row["parent"] for row in children] == [0, 0]
    assert told(trace, "data", "process", "offset")[1:] == [(0, 0), (0, 100), (0, 200)]
    for place, name in enumerate(("posix_spawn", "posix_spawnp"), 1):
        assert told(trace, name, "call", "process") == [("open", place), ("close", place)]


def test_a_killed_program_leaves_what_it_spilled(forebay: Forebay) -> None:
    calls = 3 * MOST_EVENTS
    trace = traced(
        forebay,
        f"""
        import os, signal
        file = os.open("data", os.O_RDWR | os.O_CREAT)
        for place in range({calls}):
            os.pwrite(file, b"x", place)
        os.kill(os.getpid(), signal.SIGKILL)
        """,
        exit_code=137,
    )
    offsets = [row["offset"] for row in rows(trace, "data") if row["call"] == "pwrite"]
    assert calls - MOST_EVENTS <= len(offsets) < calls
    assert offsets == list(range(len(offsets)))
    assert not trace.run.complete
    assert trace.table("processes").to_pylist()[0]["ended"] == "killed"


def test_calls_that_could_not_be_kept_are_counted(forebay: Forebay) -> None:
    trace = traced(
        forebay,
        f"""
        import os
        spills = os.environ["FOREBAY_TRACE_DIR"]
        file = os.open("data", os.O_RDWR | os.O_CREAT)
        os.rename(spills, spills + "-away")
        for place in range({MOST_EVENTS + 10}):
            os.pwrite(file, b"x", place)
        os.rename(spills + "-away", spills)
        """,
    )
    (lost,) = trace.run.losses.values()
    assert lost == MOST_EVENTS
    assert not trace.run.complete  # a piece is missing
    assert sum(row["lost"] for row in trace.table("threads").to_pylist()) == lost


def test_what_an_interrupted_trace_left_can_be_made_a_trace(
    forebay: Forebay, tmp_path: Path
) -> None:
    library = REAL_LIBRARY / "libforebay-trace.so"
    spills = tmp_path / "run.trace.spills"
    spills.mkdir()
    (spills / "command.json").write_text('{"command": ["it"], "begun": 1, "environment": {}}')
    variables = {"LD_PRELOAD": str(library), "FOREBAY_TRACE_DIR": str(spills)}
    script = "import os; os.close(os.open('data', os.O_CREAT))"
    subprocess.run([sys.executable, "-c", script], env={**os.environ, **variables}, check=True)
    answer = forebay("trace", "--spills", spills)
    assert answer.code == 0, answer.errors
    assert told(Trace(tmp_path / "run.trace"), "data", "call") == [("open",), ("close",)]


def test_what_a_run_that_goes_on_has_spilled_stays(forebay: Forebay, tmp_path: Path) -> None:
    spills = tmp_path / "run.trace.spills"
    spills.mkdir()
    (spills / "command.json").write_text('{"command": ["cat"], "begun": 1, "environment": {}}')
    variables = {
        "LD_PRELOAD": str(REAL_LIBRARY / "libforebay-trace.so"),
        "FOREBAY_TRACE_DIR": str(spills),
    }
    with subprocess.Popen(
        ["cat"], env={**os.environ, **variables}, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        running.stdin.write(b"it runs")
        running.stdin.flush()
        running.stdout.read(1)
        answer = forebay("trace", "--spills", spills)
        assert answer.code == 2
        assert "processes of the run still spill into" in answer.errors
        assert (spills / "command.json").exists()
        running.stdin.close()
        running.stdout.read()
    assert forebay("trace", "--spills", spills).code == 0


def test_a_trace_is_never_put_over_something_else(forebay: Forebay, tmp_path: Path) -> None:
    (tmp_path / "run.trace").mkdir()
    (tmp_path / "run.trace" / "precious").touch()
    answer = forebay("trace", "-o", "run.trace", "--", "true")
    assert answer.code == 2
    assert "is not empty" in answer.errors


def test_a_command_keeps_its_own_status(forebay: Forebay, tmp_path: Path) -> None:
    answer = forebay("trace", "--", sys.executable, "-c", "raise SystemExit(7)")
    assert answer.code == 7
    assert Trace(tmp_path / f"{Path(sys.executable).name}.trace").run.complete

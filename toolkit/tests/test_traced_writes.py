"""Goal: of a traced run it is known which files got bytes, wherever they are.

Method: a trace that is made up.
"""

from pathlib import Path

from made_runs import MadeRun

from forebay.evaluate import traced_writes


def test_files_that_got_bytes_are_told(tmp_path: Path) -> None:
    run = MadeRun(tmp_path / "run", files=["/b", "/a", "/read", "/pipe", "/failed", "/copied"])
    run.kinds = ["file", "file", "file", "pipe", "file", "file"]
    run.posix("pwrite", 0, 1, 10, file=0)
    run.posix("fwrite", 1, 1, 10, file=1)
    run.posix("read", 2, 1, 10, file=2)
    run.posix("write", 3, 1, 10, file=3)
    run.posix("write", 4, 1, 10, file=4, result=-1, errno=28)
    run.posix("copy_file_range", 5, 1, 10, file=2, argument=0)
    run.posix("copy_file_range", 5, 1, 10, file=5, argument=1)
    run.posix("write", 6, 1, 10, file=None)
    assert traced_writes.paths(run.trace()) == ["/a", "/b", "/copied"]


def test_a_run_without_calls_wrote_nothing(tmp_path: Path) -> None:
    assert traced_writes.paths(MadeRun(tmp_path / "run").trace()) == []

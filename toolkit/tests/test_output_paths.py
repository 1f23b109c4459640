"""Goal: a file that cannot be written leaves the one that was there, and is named."""

import errno
import resource
import signal
from pathlib import Path

import pytest

from forebay import output_paths


def test_a_file_that_cannot_be_written_leaves_the_one_that_was_there(tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    output_paths.write_text(out, "good")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        with pytest.raises(OSError, match=r"report\.html") as failed:
            output_paths.write_text(out, "x" * 100_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert failed.value.errno == errno.EFBIG
    assert out.read_text() == "good"
    assert list(tmp_path.iterdir()) == [out]


def test_names_that_are_no_text_are_written_all_the_same(tmp_path: Path) -> None:
    output_paths.write_text(tmp_path / "out", "name \udcff")
    assert (tmp_path / "out").read_text() == "name ?"

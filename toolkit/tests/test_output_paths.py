"""Goal: a file that cannot be written leaves the one that was there, and is named."""

import errno
import os
import resource
import signal
import subprocess
import sys
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


def test_a_file_stays_where_its_link_leads_and_who_may_read_it(tmp_path: Path) -> None:
    target, link = tmp_path / "run7.json", tmp_path / "latest.json"
    target.write_text("old")
    target.chmod(0o600)
    link.symlink_to("run7.json")
    output_paths.write_text(link, "new")
    assert link.is_symlink()
    assert (target.read_text(), target.stat().st_mode & 0o777) == ("new", 0o600)


def test_a_stream_that_is_a_file_gets_what_is_written(tmp_path: Path) -> None:
    script = (
        "from pathlib import Path; from forebay import output_paths; "
        "output_paths.write_text(Path('/dev/stdout'), 'told')"
    )
    with (tmp_path / "out").open("wb") as out:
        subprocess.run([sys.executable, "-c", script], stdout=out, check=True)
    assert (tmp_path / "out").read_text() == "told"
    assert Path("/dev/stdout").is_symlink()


def test_links_that_lead_in_a_circle_make_way(tmp_path: Path) -> None:
    for name, other in (("one", "two"), ("two", "one")):
        (tmp_path / name).symlink_to(other)
    output_paths.write_text(tmp_path / "one", "text")
    assert (tmp_path / "one").read_text() == "text"


def test_a_directory_that_takes_no_other_file_does_not_lose_a_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "result.json"
    out.write_text("old")
    monkeypatch.setattr(os, "access", lambda *_: False)
    output_paths.write_text(out, "new")
    assert out.read_text() == "new"


def test_names_that_are_no_text_are_written_all_the_same(tmp_path: Path) -> None:
    output_paths.write_text(tmp_path / "out", "name \udcff")
    assert (tmp_path / "out").read_text() == "name ?"

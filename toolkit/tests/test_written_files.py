"""Files that a run created are removed before the next; what was there before never is."""

from pathlib import Path

import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from forebay.written_files import WrittenFiles, hash_file


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")


def test_a_new_file_in_the_working_directory_is_removed() -> None:
    files = WrittenFiles(["./program"])
    Path("out.dat").write_text("x")
    files.add([str(Path("out.dat").resolve())])
    files.clear()
    assert not Path("out.dat").exists()


def test_a_file_that_was_there_is_kept_and_named() -> None:
    Path("input.dat").write_text("precious")
    files = WrittenFiles(["./program"])
    path = str(Path("input.dat").resolve())
    files.add([path])
    files.clear()
    assert Path("input.dat").read_text() == "precious"
    assert files.kept == [path]


def test_a_new_file_in_a_new_directory_is_removed() -> None:
    files = WrittenFiles(["./program", "run1/out.dat"])
    Path("run1/deep").mkdir(parents=True)
    Path("run1/deep/out.dat").write_text("x")
    files.add([str(Path("run1/deep/out.dat").resolve())])
    files.clear()
    assert not Path("run1/deep/out.dat").exists()


def test_the_directory_of_an_argument_or_of_an_options_value_is_known(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "old").write_text("x")
    files = WrittenFiles(["./program", str(tmp_path / "a" / "new"), f"--out={tmp_path}/b/new"])
    for name in ("a/new", "b/new", "b/old"):
        (tmp_path / name).write_text("y")
    files.add([str(tmp_path / name) for name in ("a/new", "b/new", "b/old")])
    files.clear()
    assert not (tmp_path / "a" / "new").exists()
    assert not (tmp_path / "b" / "new").exists()
    assert (tmp_path / "b" / "old").exists()


def test_a_file_reached_through_a_link_is_judged_where_it_is(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "old").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    files = WrittenFiles(["./program", str(tmp_path / "link" / "new")])
    files.add([str(tmp_path / "link" / "old")])
    files.clear()
    assert (tmp_path / "real" / "old").exists()


def test_an_old_file_in_a_directory_nobody_named_is_kept(tmp_path: Path) -> None:
    hidden = tmp_path / "work" / "deep" / "hidden"
    hidden.mkdir(parents=True)
    (hidden / "old").write_text("x")
    # A file born at this instant could be the run's; one born well before cannot.
    files = WrittenFiles(["./program"])
    files._start += 3600
    files.add([str(hidden / "old")])
    assert files.kept == [str(hidden / "old")]


@settings(max_examples=20)
@given(st.binary(max_size=10_000))
def test_the_hash_is_that_of_the_whole_content(content: bytes) -> None:
    path = Path("content")
    path.write_bytes(content)
    hashed = hash_file(path)
    assert hashed is not None
    assert hashed.bytes == len(content)
    assert hashed.digest == xxhash.xxh3_128_hexdigest(content)


def test_a_file_longer_than_the_buffer_is_hashed_whole() -> None:
    content = bytes(range(256)) * (5 << 12)
    Path("long").write_bytes(content)
    hashed = hash_file(Path("long"))
    assert hashed is not None
    assert hashed.digest == xxhash.xxh3_128_hexdigest(content)


def test_a_missing_file_has_no_hash() -> None:
    assert hash_file(Path("nothing")) is None

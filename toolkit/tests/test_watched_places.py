"""What a run leaves without MPI is seen, and nothing else is."""

import os
from pathlib import Path

import pytest

from forebay import watched_places
from forebay.watched_places import WatchedPlaces


def test_new_and_changed_files_are_seen_and_others_are_not(tmp_path: Path) -> None:
    for name in ("old", "touched", "rewritten"):
        (tmp_path / name).write_text("x")
    (tmp_path / "before").mkdir()
    watched = WatchedPlaces([tmp_path])
    watched.begin()
    (tmp_path / "new").write_text("x")
    (tmp_path / "rewritten").unlink()
    (tmp_path / "rewritten").write_text("y")
    os.utime(tmp_path / "touched", ns=(1, 1))
    (tmp_path / "before" / "deep").write_text("x")
    (tmp_path / "made" / "twice").mkdir(parents=True)
    (tmp_path / "made" / "twice" / "deep").write_text("x")
    (tmp_path / ".hidden").write_text("x")
    (tmp_path / "link").symlink_to("new")
    os.mkfifo(tmp_path / "pipe")
    expected = ["made/twice/deep", "new", "rewritten", "touched"]
    assert watched.changed() == [str(tmp_path / name) for name in expected]
    watched.begin()
    assert watched.changed() == []


def test_a_place_that_comes_later_is_seen_from_the_next_run_on(tmp_path: Path) -> None:
    watched = WatchedPlaces([])
    watched.begin()
    (tmp_path / "first").write_text("x")
    watched.watch(tmp_path)
    watched.begin()
    (tmp_path / "second").write_text("x")
    assert watched.changed() == [str(tmp_path / "second")]
    assert watched.places == {tmp_path}


def test_single_files_are_followed_from_the_next_run_on(tmp_path: Path) -> None:
    """But for those that a place shows, hidden ones, and what is no file of this user."""
    place, there = tmp_path / "place", tmp_path / "there"
    for directory in (place, place / "before", there):
        directory.mkdir()
    watched = WatchedPlaces([place])
    watched.begin()
    written = [place / "seen", place / "before" / "deep", there / "out", there / ".hidden"]
    for path in written:
        path.write_text("x")
    os.mkfifo(there / "pipe")
    (there / "link").symlink_to("out")
    named = [*written, there / "pipe", there / "link", there / "gone", Path("/proc/self/comm")]
    new = [str(place / "before" / "deep"), str(there / "out")]
    assert watched.follow(map(str, named)) == new
    assert watched.follow(new) == []
    assert watched.places == {place, *map(Path, new)}
    watched.begin()
    assert watched.changed() == []
    (there / "out").write_text("xy")
    (there / "other").write_text("x")
    assert watched.changed() == [str(there / "out")]


def test_a_crowded_place_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched_places, "MOST_ENTRIES", 3)
    (tmp_path / "early").mkdir()
    for number in range(4):
        (tmp_path / "early" / str(number)).touch()
    watched = WatchedPlaces([tmp_path, tmp_path / "early"])
    assert watched.crowded == [tmp_path / "early"]
    watched.begin()
    for number in range(4):
        (tmp_path / str(number)).touch()
    assert watched.changed() == []
    assert watched.crowded == [tmp_path / "early", tmp_path]


def test_the_kernels_own_file_systems_are_left_out() -> None:
    assert WatchedPlaces([Path("/proc"), Path("/sys")]).places == frozenset()

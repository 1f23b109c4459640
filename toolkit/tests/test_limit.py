"""The limit moves exactly the program's bytes, in parts that cover the file, and cleans up."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.errors import ForebayError
from forebay.limit import FileLoad, measure, parts


@given(st.integers(1, 10**9), st.integers(1, 64))
def test_the_parts_cover_the_file_without_overlap(size: int, processes: int) -> None:
    found = parts(size, processes)
    assert len(found) == processes
    position = 0
    for offset, length in found:
        assert offset == position
        assert length >= 0
        position += length
    assert position == size


def test_writing_and_reading_give_their_seconds_and_leave_nothing(tmp_path: Path) -> None:
    load = FileLoad(tmp_path, 300_000, 300_000, 600_000, processes=2, sync=True)
    seconds = measure([load])
    assert seconds.write is not None
    assert seconds.write > 0
    assert seconds.read is not None
    assert seconds.read > 0
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_was_only_read_has_no_limit_for_writing(tmp_path: Path) -> None:
    seconds = measure([FileLoad(tmp_path, 10_000, 0, 10_000, processes=3, sync=False)])
    assert seconds.write is None
    assert seconds.read is not None


def test_too_little_room_is_told_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(ForebayError, match="are free"):
        measure([FileLoad(tmp_path, 1 << 60, 1 << 60, 0, processes=1, sync=False)])
    assert list(tmp_path.iterdir()) == []

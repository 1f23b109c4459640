"""Spilled rings are read as far as they are whole, and what is not is told: a recorded spill of
`tail -c 1000 data`, whole, cut, and with bytes changed (docs/formats/trace-spill.md)."""

from pathlib import Path

import pytest
import xxhash
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_spills import MadeProcess

from forebay import trace_run
from forebay.errors import ForebayError
from forebay.trace import capture, spills
from forebay.trace.directory import Run, Trace

SAMPLE = Path(__file__).with_name("spills") / "tail.spill"
CONTENT = SAMPLE.read_bytes()
HEADER = 80
IN_ONE_DIRECTORY = [HealthCheck.function_scoped_fixture]


def image_of(content: bytes, directory: Path) -> spills.Image | None:
    path = directory / "1-2-3.spill"
    path.write_bytes(content)
    return spills.read(path)


def events_of(image: spills.Image) -> list[bytes]:
    return [event.tobytes() for thread in image.threads.values() for event in thread.events()]


def test_a_whole_spill_says_all_that_was_done() -> None:
    image = spills.read(SAMPLE)
    assert image is not None
    assert image.process.executable == b"/usr/bin/tail"
    assert image.process.directory == b"/tmp/sample"
    assert image.end is not None
    assert (image.damaged_bytes, image.missing_pieces) == (0, 0)
    (thread,) = image.threads.values()
    calls = [image.calls[int(event["call"])] for event in thread.events()]
    assert [call for call in calls if call == "read"] == ["read", "read"]
    assert list(image.names.values()) == [b"data"]


def test_it_becomes_a_trace(tmp_path: Path) -> None:
    spilled = tmp_path / "spilled"
    spilled.mkdir()
    (spilled / "1-2-3.spill").write_bytes(CONTENT)
    captured = capture.convert(spilled, tmp_path / "trace", Run())
    trace = Trace(tmp_path / "trace")
    assert captured.complete
    assert trace.run.complete
    reads = [row for row in trace.table("posix").to_pylist() if row["call"] == "read"]
    assert [(row["offset"], row["result"]) for row in reads] == [(0, 3000), (3000, 0)]
    assert trace.table("files").column("path").to_pylist() == ["/tmp/sample/data"]


@settings(max_examples=200, deadline=None, suppress_health_check=IN_ONE_DIRECTORY)
@given(length=st.integers(0, len(CONTENT) - 1))
def test_one_that_was_cut_is_read_up_to_there(tmp_path: Path, length: int) -> None:
    image = image_of(CONTENT[:length], tmp_path)
    if image is not None:
        assert image.end is None
        assert image.damaged_bytes < length
        whole = spills.read(SAMPLE)
        assert whole is not None
        assert events_of(image) == events_of(whole)[: len(events_of(image))]


@settings(max_examples=300, deadline=None, suppress_health_check=IN_ONE_DIRECTORY)
@given(
    changes=st.lists(
        st.tuples(st.integers(0, len(CONTENT) - 1), st.integers(1, 255)), min_size=1, max_size=4
    ),
    before=st.binary(max_size=20),
)
def test_changed_bytes_are_noticed(
    tmp_path: Path, changes: list[tuple[int, int]], before: bytes
) -> None:
    content = bytearray(CONTENT)
    for place, difference in dict(changes).items():
        content[place] ^= difference
    image = image_of(before + bytes(content), tmp_path)
    if image is not None:
        assert image.damaged_bytes > 0
        whole = spills.read(SAMPLE)
        assert whole is not None
        assert set(events_of(image)) <= set(events_of(whole))


@pytest.mark.parametrize("content", [b"", b"FBSPILL\n", bytes(1000), b"#!/bin/sh\n" * 50])
def test_what_is_no_spill_is_none(tmp_path: Path, content: bytes) -> None:
    assert image_of(content, tmp_path) is None


def test_a_later_version_is_refused_by_its_number(tmp_path: Path) -> None:
    pieces = CONTENT.split(spills.MAGIC)
    first = bytearray(spills.MAGIC + pieces[1])
    first[8] = 2
    first[16:24] = bytes(8)
    first[16:24] = xxhash.xxh3_64_intdigest(bytes(first)).to_bytes(8, "little")
    with pytest.raises(ForebayError, match="version 2"):
        image_of(bytes(first), tmp_path)


def test_what_went_on_without_a_trace_is_told(tmp_path: Path) -> None:
    """By the last word of each process: that it was about to become another program, its end, or
    none."""
    for pid, last in ((1, spills.EXEC), (2, spills.EXEC), (3, spills.END)):
        made = MadeProcess(tmp_path, pid=pid).begin()
        made.open("data", 0.1)
        if last == spills.EXEC:
            made.define(spills.EXEC, 0, b"")
            made.spill(0.2)
        else:
            made.end(0.2)
    again = MadeProcess(tmp_path, pid=2, begun_s=0.3, number=1).begin()  # it is traced again
    again.end(0.4)
    captured = capture.convert(tmp_path, tmp_path / "trace", Run())
    trace = Trace(tmp_path / "trace")
    ended = {row["pid"]: row["ended"] for row in trace.table("processes").to_pylist()}
    assert ended == {1: "untraced", 2: "exit", 3: "exit"}
    assert captured.notes == trace.run.notes
    (note,) = captured.notes
    assert note.startswith("1 process went on as a program that is not traced")
    assert captured.complete


def test_what_tracing_took_of_a_killed_run_is_not_known(tmp_path: Path) -> None:
    made = MadeProcess(tmp_path, pid=1).begin()
    made.open("data", 0.1)
    made.spill(0.2)
    captured = capture.convert(tmp_path, tmp_path / "trace", Run())
    overhead = Trace(tmp_path / "trace").run.overhead
    assert not captured.complete
    assert (overhead["ns_per_call"], overhead["share_of_wall"]) == (None, None)
    lines = trace_run.summary(captured, tmp_path / "trace")
    assert "what tracing took is not known: no process ended by itself" in lines
    MadeProcess(tmp_path, pid=2).begin().end(0.2, cost_ns=256 * 31)
    captured = capture.convert(tmp_path, tmp_path / "both", Run())
    lines = trace_run.summary(captured, tmp_path / "both")
    assert "tracing took 31 ns a call, an unknown part of the run's time" in lines


def test_a_directory_without_a_spill_is_told(tmp_path: Path) -> None:
    with pytest.raises(ForebayError, match="holds no spill"):
        capture.convert(tmp_path, tmp_path / "trace", Run())

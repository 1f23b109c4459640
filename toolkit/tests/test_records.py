"""Records: whole ones are read, others are named and left out."""

import json
from pathlib import Path

import pytest
import xxhash
from fake_program import record
from hypothesis import given
from hypothesis import strategies as st

from forebay.records import load, parse, seconds_of
from forebay.summary import summarise


def leave(directory: Path, content: bytes, pid: int = 7, sequence: int = 0) -> Path:
    path = directory / f"{pid}-{sequence}-{xxhash.xxh64_hexdigest(content)}.json"
    path.write_bytes(content)
    return path


def content(mode: str = "engine", write_s: float = 0.5, path: str = "/data/a") -> bytes:
    return json.dumps(record(Path(path), mode, write_s, 0.0, 1000)).encode()


def test_a_record_is_read_with_its_counters(tmp_path: Path) -> None:
    leave(tmp_path, content())
    found = load(tmp_path)
    assert found.rejected == []
    assert found.records[0].path == "/data/a"
    assert found.records[0].counters["bytes_written"] == 1000
    assert found.records[0].pid == 7
    assert found.written_paths() == ["/data/a"]


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda text: text.replace(b'"ranks": 2', b'"ranks": "x"'), "wrong key"),
        (lambda text: text.replace(b'"version": 1', b'"version": 9'), "version 9"),
        (lambda text: b"[]", "no JSON object"),
        (lambda text: text[:-5], "no JSON"),
        (lambda text: text.replace(b'"path"', b'"pith"'), "path"),
    ],
)
def test_a_record_of_another_form_is_rejected_with_the_reason(
    tmp_path: Path, damage: object, reason: str
) -> None:
    leave(tmp_path, damage(content()))  # type: ignore[operator]
    found = load(tmp_path)
    assert found.records == []
    assert reason in found.rejected[0]


def leave_late(directory: Path, opening: int, pid: int, drained: int, exposed_ns: int) -> None:
    counters = {"cache_drained": drained, "cache_log_bytes": 1, "cache_exposed_ns": exposed_ns}
    late = json.dumps({"version": 1, "opening": opening, "counters": counters}).encode()
    name = f"{pid}-1-{xxhash.xxh64_hexdigest(late)}.late.json"
    (directory / name).write_bytes(late)


def test_what_came_after_the_close_is_added_over_ranks(tmp_path: Path) -> None:
    raw = json.loads(content()) | {"opening": 5}
    leave(tmp_path, json.dumps(raw).encode())
    leave_late(tmp_path, 5, 7, drained=10, exposed_ns=3)
    leave_late(tmp_path, 5, 8, drained=20, exposed_ns=4)
    leave_late(tmp_path, 6, 7, drained=1000, exposed_ns=1000)
    found = load(tmp_path)
    assert found.rejected == []
    (only,) = found.records
    before = parse(json.dumps(raw).encode()).counters
    assert only.counters == before | {
        "cache_drained": before.get("cache_drained", 0) + 30,
        "cache_log_bytes": before.get("cache_log_bytes", 0) + 2,
        "cache_exposed_ns": before.get("cache_exposed_ns", 0) + 4,
    }
    assert only.late == {"cache_drained": 30, "cache_log_bytes": 2, "cache_exposed_ns": 4}
    assert only.raw["counters"] == only.counters


def test_the_last_record_of_an_opening_counts(tmp_path: Path) -> None:
    for sequence, write_s in enumerate((0.5, 0.75)):
        raw = json.loads(content(write_s=write_s)) | {"opening": 5}
        leave(tmp_path, json.dumps(raw).encode(), sequence=sequence)
    leave(tmp_path, content(path="/data/b"), sequence=2)
    leave(tmp_path, content(path="/data/b", write_s=0.25), sequence=3)
    found = load(tmp_path).records
    assert [(one.path, one.seconds_max["write"]) for one in found] == [
        ("/data/a", 0.75),
        ("/data/b", 0.5),
        ("/data/b", 0.25),
    ]


def test_a_late_record_without_its_counters_is_rejected(tmp_path: Path) -> None:
    late = b'{"version": 1, "opening": 5, "counters": {"cache_drained": 1}}'
    (tmp_path / f"7-0-{xxhash.xxh64_hexdigest(late)}.late.json").write_bytes(late)
    assert "cache_log_bytes" in load(tmp_path).rejected[0]


def test_a_torn_record_is_rejected_and_one_being_written_is_left_alone(tmp_path: Path) -> None:
    path = leave(tmp_path, content())
    path.write_bytes(path.read_bytes()[:-1])
    (tmp_path / ".8-0-0123456789abcdef.json").write_bytes(b"{")
    (tmp_path / "notes.json").write_bytes(b"{}")
    found = load(tmp_path)
    assert found.records == []
    assert len(found.rejected) == 2


@given(st.binary(max_size=200))
def test_no_bytes_make_the_parser_fail_otherwise_than_by_its_error(junk: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse(junk)


def test_openings_of_one_process_add_up_and_those_of_several_run_side_by_side() -> None:
    one = [parse(content(write_s=s), pid=1) for s in (0.5, 0.25)]
    other = [parse(content(write_s=0.6), pid=2)]
    assert seconds_of(one, "write") == pytest.approx(0.75)
    assert seconds_of(one + other, "write") == pytest.approx(0.75)
    assert seconds_of(one, "writing") == pytest.approx(0.75 * 1.25)


def test_the_summary_adds_openings_of_a_file_and_tells_the_amplification() -> None:
    first, second = parse(content()), parse(content(path="/data/b"))
    files = summarise([first, second, first])
    assert [file.path for file in files] == ["/data/a", "/data/b"]
    assert files[0].openings == 2
    assert files[0].bytes_asked == {"write": 2000, "read": 0}
    assert files[0].amplification == {"write": 2.0, "read": None}
    assert files[0].passed_through == {"shared file pointer": 6}
    assert files[0].seconds is not None
    assert files[0].seconds["exchange"] == pytest.approx(0.002)


def test_an_observed_file_has_no_figures_of_the_engine() -> None:
    (file,) = summarise([parse(content(mode="observe"))])
    assert file.bytes_asked is None
    assert file.amplification is None
    assert file.seconds is None
    assert file.mpi_seconds["write"] == pytest.approx(0.5)

"""What a recorded run read becomes an intent file: `forebay run --record`, `forebay intent
from-trace`."""

import json
import sys
import tomllib
from pathlib import Path

import xxhash
from conftest import Forebay

from forebay import read_traces
from forebay.read_traces import FEWEST_BYTES

LEAVES_A_TRACE = """
import json, os, pathlib, xxhash
assert os.environ["FOREBAY_RECORD_READS"] == "1"
content = json.dumps({"version": 1, "path": "/data/a", "size": 9, "reads": 2, "bytes": 2 << 20,
                      "left_out": 0, "extents": [[5, 1 << 20], [0, 1 << 20]]}).encode()
name = f"1-0-{xxhash.xxh64_hexdigest(content)}.trace"
pathlib.Path(os.environ["FOREBAY_REPORT_DIR"], name).write_bytes(content)
raise SystemExit(3)
"""


def leave(directory: Path, number: int, **values: object) -> Path:
    """A trace as the runtime writes one (docs/formats/report.md)."""
    record = {
        "version": 1,
        "path": "/data/a",
        "size": 1 << 30,
        "reads": 1,
        "bytes": FEWEST_BYTES,
        "left_out": 0,
        "extents": [[0, FEWEST_BYTES]],
        **values,
    }
    content = json.dumps(record).encode()
    path = directory / f"7-{number}-{xxhash.xxh64_hexdigest(content)}.trace"
    path.write_bytes(content)
    return path


def test_openings_that_read_the_same_count_once_and_others_follow(tmp_path: Path) -> None:
    first, second = [[0, 10], [50, 10]], [[100, 10], [110, 5]]
    for number, extents in enumerate((first, second, first)):
        leave(tmp_path, number, extents=extents)
    (file,) = read_traces.load([tmp_path]).files
    assert file.path == Path("/data/a")
    assert file.extents == [(0, 10), (50, 10), (100, 15)]


def test_a_file_that_changed_its_size_says_nothing_of_others(tmp_path: Path) -> None:
    for number, size in enumerate((2 << 20, 3 << 20)):
        leave(tmp_path, number, size=size)
        leave(tmp_path, number + 2, path="/data/b", size=4 << 20)
    first, second = sorted(read_traces.load([tmp_path]).files, key=lambda file: file.path)
    assert (first.same_size, second.same_size) == (None, 4 << 20)


def test_files_of_which_little_was_read_are_left_out(tmp_path: Path) -> None:
    leave(tmp_path, 0, path="/lib/small.py", bytes=FEWEST_BYTES - 1)
    for number in (1, 2):
        leave(tmp_path, number, path="/data/twice", bytes=FEWEST_BYTES // 2)
    recording = read_traces.load([tmp_path])
    assert [file.path for file in recording.files] == [Path("/data/twice")]
    assert recording.small == 1


def test_what_is_no_trace_is_named_and_the_rest_counts(tmp_path: Path) -> None:
    good = leave(tmp_path, 0, left_out=4)
    (tmp_path / "7-1-0123456789abcdef.trace").write_text("{}")
    leave(tmp_path, 2, version=2)
    leave(tmp_path, 3, extents=[[0, -1]])
    leave(tmp_path, 4, extents=[[0]])
    recording = read_traces.load([tmp_path])
    assert len(recording.files) == 1
    assert recording.left_out == 4
    assert len(recording.rejected) == 4
    assert read_traces.load([good]).rejected == []


def test_a_recorded_run_leaves_an_intent_file_and_its_own_status(
    forebay: Forebay, tmp_path: Path
) -> None:
    answer = forebay("run", "--record", "--", sys.executable, "-c", LEAVES_A_TRACE)
    assert answer.code == 3
    assert "/data/a: 2 extents, 2.0 MiB" in answer.errors
    assert "forebay run --intent reads.toml -- ..." in answer.errors
    (section,) = tomllib.loads((tmp_path / "reads.toml").read_text())["file"]
    assert section == {
        "path": "/data/a", "from": "recording", "same_size": 9,
        "willneed": [[5, 1 << 20], [0, 1 << 20]],
    }  # fmt: skip
    answer = forebay("run", "--intent-out", "other.toml", "--", "true")
    assert answer.code == 0
    assert "no file was read that would be worth reading ahead" in answer.errors
    assert "add --pages" in answer.errors
    assert not (tmp_path / "other.toml").exists()


def test_from_trace_writes_to_standard_output(forebay: Forebay, tmp_path: Path) -> None:
    leave(tmp_path, 0)
    answer = forebay("intent", "from-trace", str(tmp_path))
    assert answer.code == 0
    assert tomllib.loads(answer.output)["file"][0]["willneed"] == [[0, FEWEST_BYTES]]
    (tmp_path / "7-9-0.trace").write_text("")
    assert forebay("intent", "from-trace", str(tmp_path)).code == 1

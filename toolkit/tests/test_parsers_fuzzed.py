"""Goal: what a run or a person wrote is read, or refused with a reason, whatever it holds; and what
is read of a trace becomes an intent file that says the same.

Method: arbitrary bytes, arbitrary JSON, and whole documents with one value changed, through the
parsers and through the commands that read them.
"""

import io
import json
import os
import re
import tempfile
from pathlib import Path

import pytest
import xxhash
from changed_documents import ANY_JSON, changed
from hypothesis import example, given, settings
from hypothesis import strategies as st
from made_logs import native_directory
from rich.console import Console
from test_intent_command import READS
from test_prefetch_records import record
from typer.testing import CliRunner

from forebay import intent_file, prefetch_records, read_traces
from forebay.errors import ForebayError
from forebay.intent_cli import app
from forebay.read_traces import FEWEST_BYTES
from forebay.record_files import MOST

TRACE = {
    "version": 1,
    "path": "/data/a",
    "size": 1 << 30,
    "reads": 2,
    "bytes": FEWEST_BYTES,
    "left_out": 0,
    "extents": [[MOST - FEWEST_BYTES, FEWEST_BYTES], [0, 10]],
}
READ_AHEAD = record(reads=3, bytes_asked=10, latency_seconds=0.5, stopped="why")
GAVE_UP = {"version": 1, "process": 4711, "stopped": "why"}
DEEP = b'{"version": 1, "more": ' + b"[" * 900 + b"]" * 900 + b"}"
DEEPER = b"[" * 100_000
FUZZED = settings(deadline=None, max_examples=150)
# Where what looks at intent files was built.
TOOLS = {"FOREBAY_LIBRARY_DIR": str(native_directory())}


def documents(whole: dict[str, object]) -> st.SearchStrategy[bytes]:
    """Bytes, JSON, and `whole` with a value changed or bytes changed."""
    text = json.dumps(whole).encode()
    torn = st.builds(
        lambda at, more: text[:at] + more + text[at + len(more) :],
        st.integers(0, len(text)),
        st.binary(max_size=4),
    )
    as_json = st.one_of(ANY_JSON, changed(whole)).map(lambda value: json.dumps(value).encode())
    return st.one_of(st.binary(), as_json, torn)


def leave(directory: str, content: bytes, ending: str) -> str:
    """A file whose name fits its content. Returns the name."""
    name = f"7-0-{xxhash.xxh64_hexdigest(content)}.{ending}"
    Path(directory, name).write_bytes(content)
    return name


@FUZZED
@given(documents(TRACE))
@example(json.dumps(TRACE).encode())
@example(DEEP)
@example(DEEPER)
@example(b'{"version": 1, "path": "/a", "reads": 1e999}')
@example(json.dumps({**TRACE, "extents": [[MOST, 1]]}).encode())
@example(json.dumps({**TRACE, "extents": ["12", [0, True], [0.0, 1.5]]}).encode())
@example(json.dumps({**TRACE, "path": "/a\0b"}).encode())
@example(json.dumps({**TRACE, "path": "/\ud800"}).encode())
def test_a_trace_is_an_intent_file_that_says_the_same_or_is_refused(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as place:
        name = leave(place, content, "trace")
        found = read_traces.load([Path(place)])
        assert len(found.files) + found.small + len(found.rejected) == 1
        assert all(re.match(rf"{name}: .", reason) for reason in found.rejected)
        intent = Path(place, "reads.toml")
        answer = CliRunner().invoke(app, ["from-trace", place, "--out", str(intent)])
        has_any = any(file.extents for file in found.files)
        assert (answer.exit_code == 0) == (has_any and not found.rejected), answer.exception
        assert intent.exists() == has_any
        if not has_any:
            return
        sections = intent_file.sections(intent_file.load(intent))
        assert len(sections) == len(found.files)
        for file, section in zip(found.files, sections, strict=True):
            assert all(0 <= at < at + length <= MOST for at, length in file.extents)
            assert section["willneed"] == [list(extent) for extent in file.extents]
            assert re.sub(r"\\(.)", r"\1", section["path"], flags=re.DOTALL) == str(file.path)
            assert intent_file.summarise(section).wrong == 0
        assert CliRunner().invoke(app, ["show", str(intent)], env=TOOLS).exit_code == 0


@FUZZED
@given(documents(READ_AHEAD))
@example(json.dumps(READ_AHEAD).encode())
@example(json.dumps({**READ_AHEAD, "more": json.loads("[" * 400 + "]" * 400)}).encode())
@example(DEEPER)
@example(json.dumps({**READ_AHEAD, "reads": "5"}).encode())
@example(json.dumps({**READ_AHEAD, "path": ["a"]}).encode())
@example(json.dumps({**READ_AHEAD, "seconds_waited": float("nan")}).encode())
@example(json.dumps({**READ_AHEAD, "memory_peak": 10**400}).encode())
def test_a_record_of_reading_ahead_is_told_or_refused(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as place:
        name = leave(place, content, "reads")
        found = prefetch_records.load(Path(place))
    assert len(found.files) + len(found.rejected) == 1
    assert all(re.match(rf"{name}: .", reason) for reason in found.rejected)
    prefetch_records.show(Console(file=io.TextIOWrapper(io.BytesIO(), "utf-8")), found)
    json.dumps(prefetch_records.as_json(found), indent=2, allow_nan=False)


@FUZZED
@given(documents(GAVE_UP))
@example(json.dumps(GAVE_UP).encode())
@example(json.dumps({**GAVE_UP, "process": -1}).encode())
@example(json.dumps({**GAVE_UP, "stopped": "\ud800"}).encode())
def test_a_record_of_a_process_that_gave_up_is_told_or_refused(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as place:
        name = leave(place, content, "gave-up")
        found = prefetch_records.load(Path(place))
    assert len(found.gave_up) + len(found.rejected) == 1
    assert all(re.match(rf"{name}: .", reason) for reason in found.rejected)
    prefetch_records.show(Console(file=io.TextIOWrapper(io.BytesIO(), "utf-8")), found)
    json.dumps(prefetch_records.as_json(found), indent=2, allow_nan=False)


@pytest.mark.parametrize("kind", ["directory", "pipe", "nothing"])
def test_what_is_no_file_is_refused_by_its_name(tmp_path: Path, kind: str) -> None:
    for ending in ("trace", "reads"):
        path = tmp_path / f"7-0-0123456789abcdef.{ending}"
        if kind == "directory":
            path.mkdir()
        elif kind == "pipe":
            os.mkfifo(path)
        else:
            path.symlink_to("nothing")
    refused = ["7-0-0123456789abcdef.trace: no regular file"]
    assert read_traces.load([tmp_path]).rejected == refused
    assert prefetch_records.load(tmp_path).rejected == [refused[0].replace("trace", "reads")]


@FUZZED
@given(
    st.one_of(
        st.binary(),
        st.builds(
            lambda at, more: (READS[:at] + more + READS[at:]).encode(),
            st.integers(0, len(READS)),
            st.text("[]{}\"'=,.0123456789eEinfMiBwillned\n", max_size=30),
        ),
    )
)
@example(b"a = " + b"1" * 5000)
@example(b"a = " + DEEPER)
@example(b"[[file]]\nwillneed = [[1" + b"0" * 4000 + b", 1]]\n")
@example(b'[[file]]\nwillneed = [["1' + b"0" * 400 + b'", "9000000TiB"]]\n')
def test_an_intent_file_is_shown_or_refused(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as place:
        path = Path(place, "intent.toml")
        path.write_bytes(content)
        answer = CliRunner().invoke(app, ["show", str(path)])
        intent_file.declares_reads(path)
    assert answer.exit_code in (0, 1)
    assert isinstance(answer.exception, SystemExit | ForebayError | None)

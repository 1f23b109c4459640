"""What stays of a traced run where something goes wrong: what was spilled, and nothing that would
be in the way of the next run.

Method: a harmless library in place of the one that traces leaves no spill; where there is to be
one, it is made.
"""

import errno
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import pyarrow as pa
import pytest
from conftest import Forebay
from made_spills import MadeProcess
from rich.console import Console

from forebay import trace_run
from forebay.errors import ForebayError
from forebay.trace import tables
from forebay.trace.directory import Trace

Begin = Callable[[str], trace_run.Tracing]


@pytest.fixture
def environ(environ: dict[str, str], tmp_path: Path) -> dict[str, str]:
    fake, ours = Path(environ["FOREBAY_LIBRARY_DIR"]), tmp_path / "lib"
    shutil.copytree(fake, ours)
    shutil.copy(fake / "libforebay.so", ours / "libforebay-trace.so")
    return {**environ, "FOREBAY_LIBRARY_DIR": str(ours)}


@pytest.fixture
def begin(environ: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Begin:
    """What is about to trace a run into a directory of that name, in this process."""
    monkeypatch.setenv("FOREBAY_LIBRARY_DIR", environ["FOREBAY_LIBRARY_DIR"])
    return lambda name: trace_run.Tracing(["it"], Path(name))


@pytest.fixture
def spilled(begin: Begin) -> Begin:
    """The same, whose run has ended and left the spills of a process."""

    def make(name: str) -> trace_run.Tracing:
        tracing = begin(name)
        tracing.begin({})
        MadeProcess(tracing.spills, pid=1).begin().end(0.2)
        return tracing

    return make


@pytest.mark.parametrize("words", [["trace", "-o"], ["run", "--trace"]])
def test_a_command_that_does_not_start_leaves_nothing(
    forebay: Forebay, tmp_path: Path, words: list[str]
) -> None:
    answer = forebay(*words, "job", "--", "no-such-program")
    assert answer.code == 127
    assert "is not an executable" in answer.errors
    assert [path.name for path in tmp_path.glob("job*")] == []


def test_a_program_that_cannot_be_traced_is_not_in_the_way_of_the_next_run(
    forebay: Forebay, tmp_path: Path
) -> None:
    for _ in range(2):
        answer = forebay("trace", "-o", "job", "--", "true")
        assert answer.code == 1
        assert "holds no spill of a traced process" in answer.errors
    assert [path.name for path in tmp_path.glob("job*")] == []


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (OSError(errno.ENOSPC, "Disk full"), 1, "no trace was made: Disk full"),
        (KeyboardInterrupt(), 130, "interrupted: no trace was made"),
    ],
)
def test_what_was_traced_is_kept_and_how_to_go_on_is_said(
    spilled: Begin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str], error: BaseException, code: int, told: str,
) -> None:  # fmt: skip
    def fail(_file: tables.TableFile, _table: pa.Table) -> None:
        raise error

    tracing = spilled("a job")
    with monkeypatch.context() as patch:
        patch.setattr(tables.TableFile, "add", fail)
        assert trace_run.tell(tracing, Console(), quiet=False) == code
    said = capsys.readouterr().out
    assert told in said
    assert f"forebay trace --spills '{tmp_path}/a job.spills' -o NAME" in said
    assert not (tmp_path / "a job").exists()
    trace_run.convert(tracing.spills, tmp_path / "a job")
    assert Trace(tmp_path / "a job").rows("processes") == 1


def test_a_process_that_spills_on_is_a_note_beside_the_trace(
    spilled: Begin,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(_directory: Path) -> None:
        raise OSError(errno.ENOTEMPTY, "Directory not empty")

    tracing = spilled("job")
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", fail)
        assert trace_run.tell(tracing, Console(width=999), quiet=False) == 0
    said = capsys.readouterr().out
    assert "no trace was made" not in said
    assert f"note: {tracing.spills} could not be removed (Directory not empty)" in said
    assert Trace(Path("job")).rows("processes") == 1


@pytest.mark.parametrize("content", ["[]", "{}", '{"command": ["a"]}'])
def test_a_directory_of_something_else_holds_no_spills(
    forebay: Forebay, tmp_path: Path, content: str
) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "command.json").write_text(content)
    answer = forebay("trace", "--spills", "other", "-o", "job")
    assert answer.code == 2
    assert "holds no spills of a traced run" in answer.errors


@pytest.fixture
def ending() -> Iterator[Callable[..., None]]:
    """Sends this process SIGTERM, which must do as Ctrl-C does."""

    def unheeded(_number: int, _frame: FrameType | None) -> None:
        raise AssertionError("SIGTERM was not heeded")

    before = signal.signal(signal.SIGTERM, unheeded)
    yield lambda *_: signal.raise_signal(signal.SIGTERM)
    assert signal.signal(signal.SIGTERM, before) is unheeded


def test_what_is_ended_before_the_command_starts_leaves_nothing(
    begin: Begin, ending: Callable[..., None]
) -> None:
    tracing = begin("job")

    def start() -> None:
        with tracing:
            tracing.begin({})
            ending()

    with pytest.raises(KeyboardInterrupt):
        start()
    assert not list(Path().glob("job*"))


@pytest.mark.parametrize("again", [False, True], ids=["trace", "trace --spills"])
def test_what_is_ended_while_the_trace_is_made_keeps_what_was_traced(
    spilled: Begin, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str], ending: Callable[..., None], again: bool,
) -> None:  # fmt: skip
    tracing = spilled("job")
    with monkeypatch.context() as patch:
        patch.setattr(tables.TableFile, "close", ending)
        if again:
            with pytest.raises(KeyboardInterrupt):
                trace_run.convert(tracing.spills, Path("job"))
        else:
            assert trace_run.tell(tracing, Console(width=999), quiet=False) == 130
            assert "What was traced is kept" in capsys.readouterr().out
    assert not Path("job").exists()
    trace_run.convert(tracing.spills, Path("job"))
    assert Trace(Path("job")).rows("processes") == 1


def test_a_part_of_the_spills_is_not_taken_for_what_a_run_traced(
    spilled: Begin,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What is ended as it removes them leaves some."""

    def stop(_directory: Path) -> None:
        raise KeyboardInterrupt

    tracing = spilled("job")
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", stop)
        assert trace_run.tell(tracing, Console(), quiet=False) == 130
    assert capsys.readouterr().out == "forebay: interrupted: the trace was made\n"
    assert Trace(Path("job")).rows("processes") == 1
    with pytest.raises(ForebayError, match="holds no spills of a traced run"):
        trace_run.convert(tracing.spills, Path("other"))

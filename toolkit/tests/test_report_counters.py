"""Goal: of sums alone a report claims no more than they show: waiting for another process is no
I/O, and calls that overlap do not tell how long it took.

Method: a log of PyDarshan's package whose program waits at named pipes by many threads; records of
which everything is known.
"""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from made_runs import MIB, MadeRun
from rich.console import Console
from test_darshan_import import LOGS

from forebay.report import contents, page, terminal
from forebay.report.contents import Contents
from forebay.trace import darshan_import
from forebay.trace.directory import Trace

(PIPES,) = (log for log in LOGS if log.name == "dxt.darshan")


def record(rank: int, file: int = 0, **counters: float) -> dict[str, Any]:
    """One of module POSIX, with one opening."""
    counted = {"OPENS": 1, "F_READ_TIME": 0.0, "F_WRITE_TIME": 0.0, "F_META_TIME": 0.0}
    counted |= {"BYTES_READ": 0, "BYTES_WRITTEN": 0} | counters
    return {"rank": rank, "file": file} | {f"POSIX_{key}": each for key, each in counted.items()}


@pytest.fixture
def run(tmp_path: Path) -> MadeRun:
    """Two ranks for 10 s."""
    files, origin = ["/scratch/data", "/tmp/pipe"], {"kind": "darshan", "tool": "darshan"}
    return MadeRun(
        tmp_path / "run", wall_ms=10_000, ranks=2, processes=2,
        files=files, run={"origin": origin},
    )  # fmt: skip


def examined(run: MadeRun, *records: dict[str, Any]) -> Contents:
    run.counters = {"posix": list(records)}
    return contents.examine(run.trace())


def on_terminal(found: Contents) -> str:
    out = io.StringIO()
    terminal.show(Console(file=out, width=100), found)
    return out.getvalue()


def test_waiting_at_named_pipes_is_no_io(tmp_path: Path) -> None:
    """Of 11 218 s in calls on files 0.6 s are not at its ten pipes; the run took 1469 s."""
    darshan_import.import_here(PIPES, tmp_path / "run")
    found = contents.examine(Trace(tmp_path / "run"))
    assert found.budget.io_share == pytest.approx(0.61 / 1469, rel=0.01)
    waiting = found.budget.waiting
    assert waiting is not None
    assert (waiting.files, waiting.seconds) == (10, pytest.approx(11_218, rel=0.001))
    assert "/localhost/pipe_" in waiting.most
    assert found.verdict == (
        "I/O takes 0.042 % of the processes' time, but for what is left out; without any, the run "
        "would be 1.0004 times as fast."
    )
    assert any(c.startswith("Left out are 11217.64 s in metadata calls") for c in found.caveats)
    assert "Left out are 11217.64 s" in on_terminal(found)
    assert json.loads(json.dumps(found.as_json()))["budget"]["waiting"] == vars(waiting)


@pytest.mark.parametrize(
    "counters",
    [
        {"BYTES_WRITTEN": MIB},  # who moves data works on a file
        {"OPENS": 10},  # short calls, and many
        {"OPENS": 1, "STATS": 20},
    ],
)
def test_slow_metadata_of_files_is_io(run: MadeRun, counters: dict[str, float]) -> None:
    found = examined(run, record(0, F_META_TIME=8, **counters))
    assert (found.budget.io_share, found.budget.waiting) == (pytest.approx(0.4), None)


def test_what_all_ranks_open_is_no_pipe(run: MadeRun) -> None:
    assert examined(run, record(-1, F_META_TIME=8)).budget.io_share == pytest.approx(0.4)


def test_waiting_is_left_out_beside_what_is_io(run: MadeRun) -> None:
    found = examined(
        run,
        record(0, F_WRITE_TIME=4, BYTES_WRITTEN=MIB),
        record(0, file=1, F_META_TIME=9),
        record(1, file=1, F_META_TIME=9),
    )
    assert found.budget.io_share == pytest.approx(0.2)
    assert found.budget.waiting is not None
    assert vars(found.budget.waiting) == {"seconds": 18, "files": 1, "most": "/tmp/pipe"}


def test_a_run_told_in_whole_seconds_may_have_been_a_second_longer(run: MadeRun) -> None:
    records = [record(r, F_READ_TIME=s, BYTES_READ=MIB) for r, s in enumerate((11, 10.5))]
    budget = examined(run, *records).budget
    assert (budget.overlapping, budget.io_share) == (False, 1.0)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        ((15, 9), "Calls of all processes took 24.00 s within 20.00 s"),
        ((11.5, 0), "Calls of a rank took 11.50 s within 10.00 s"),
    ],
)
def test_of_calls_that_overlap_no_share_is_told(
    run: MadeRun, seconds: tuple[float, float], said: str
) -> None:
    """More time in calls than there is of the run, of all or of one of its ranks."""
    records = [record(r, F_READ_TIME=s, BYTES_READ=MIB) for r, s in enumerate(seconds)]
    found = examined(run, *records)
    budget = found.budget
    assert (budget.overlapping, budget.io_share, budget.best_speedup) == (True, None, None)
    assert any(note.startswith(said) for note in budget.notes)
    assert found.verdict.startswith("Counters cannot tell how long I/O took, because")
    assert (found.findings, found.lines) == ([], [])
    told = json.loads(json.dumps(found.as_json()))["budget"]
    assert (told["overlapping"], told["io_share"], "compute" in told["seconds"]) == (
        True,
        None,
        False,
    )
    for shown in (on_terminal(found), page.render(found)):
        assert "not known" in shown
        assert "as fast" not in shown
        assert "no I/O in the trace" not in shown

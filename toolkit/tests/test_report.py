"""Goal: a report says where the time of a run went and what of it could be had back, and nothing
that the trace does not show.

Method: runs of which every call is known; what is counted, against what a plain loop counts; the
logs of PyDarshan's package.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_runs import MIB, MS, MadeRun
from test_darshan_import import LOGS

from forebay import system_file
from forebay.errors import ForebayError
from forebay.report import contents, extents, grids, layers, timeline
from forebay.report.contents import Contents
from forebay.trace import darshan_import
from forebay.trace.directory import Trace

SYSTEM = Path(__file__).with_name("reports") / "system.json"


@pytest.fixture
def run(tmp_path: Path) -> MadeRun:
    return MadeRun(tmp_path / "run")


def keys(found: Contents) -> list[str]:
    return [finding.key for finding in found.findings]


def seconds_ms(found: Contents) -> dict[str, float]:
    return {name: round(s * 1000, 3) for name, s in found.budget.seconds.items() if s}


def test_each_moment_counts_once(run: MadeRun) -> None:
    run.ranks = run.processes = 2
    for rank in range(2):
        run.posix("open", 0, 10, process=rank)
        run.mpi("write_at_all", 100, 200, MIB, process=rank, collective=True)
        run.posix("pwrite", 150, 50, MIB, process=rank, within="mpi", offset=0)
        run.posix("pread", 400, 30, MIB, process=rank, offset=0)
    found = contents.examine(run.trace())
    assert seconds_ms(found) == {
        "metadata": 20,
        "mpi": 300,
        "write": 100,
        "read": 60,
        "compute": 1520,
    }
    assert found.budget.io_share == pytest.approx(0.24)
    assert found.budget.best_speedup == pytest.approx(1 / 0.76)


def test_a_thread_that_nobody_waits_for_takes_no_time(run: MadeRun) -> None:
    run.mpi("write_all", 0, 10, MIB)
    run.posix("pwrite", 20, 400, MIB, thread=3, within="forebay", offset=0)
    found = contents.examine(run.trace())
    assert seconds_ms(found) == {"mpi": 10, "compute": 990}
    assert found.budget.behind_s == pytest.approx(0.4)


def test_pipes_and_a_waiting_shell_are_no_storage(run: MadeRun) -> None:
    run.processes = 2
    run.files.append("pipe")
    run.kinds = ["file", "pipe"]
    run.posix("read", 0, 900, 10, process=0, file=1)
    run.posix("read", 900, 1, 100, process=0, offset=0)
    run.posix("write", 0, 100, MIB, process=1, offset=0)
    budget = contents.examine(run.trace()).budget
    assert (budget.processes, budget.io_share) == (1, pytest.approx(0.1))


def test_waiting_for_late_ranks_is_told(run: MadeRun) -> None:
    run.ranks = run.processes = 2
    run.mpi("write_all", 100, 200, MIB, process=0, collective=True)
    run.mpi("write_all", 250, 50, MIB, process=1, collective=True)
    assert contents.examine(run.trace()).budget.waited_s == pytest.approx(0.15)


def test_amplification_is_a_finding_with_its_seconds(run: MadeRun) -> None:
    run.ranks = run.processes = 1
    run.mpi("write_at", 0, 400, MIB)
    run.posix("pread", 10, 100, 4 * MIB, within="mpi", offset=0)
    run.posix("pwrite", 120, 200, 4 * MIB, within="mpi", offset=0)
    found = contents.examine(run.trace())
    finding = next(each for each in found.findings if each.key == "amplification")
    assert found.funnel.amplification == 8
    assert finding.seconds == pytest.approx(0.1 + 0.2 * 3 / 4)
    assert found.lines == ["forebay compare -- mpiexec -n 4 './a b'"]
    assert "Amplification" in found.verdict


def test_time_in_mpi_io_beside_all_storage_is_found(run: MadeRun) -> None:
    run.ranks = run.processes = 2
    run.mpi("write_at_all", 100, 300, MIB, process=0, collective=True)
    run.mpi("write_at_all", 150, 250, MIB, process=1, collective=True)
    for start in (200, 220):
        run.posix("pwrite", start, 40, MIB, within="mpi", offset=0)
    found = contents.examine(run.trace())
    assert keys(found) == ["exchange"]
    # Both ranks' time but for 60 ms of storage and what rank 0 waited, by two ranks.
    assert found.findings[0].seconds == pytest.approx((300 + 250 - 2 * 60 - 50) / 2 / 1000)
    assert "exchange" in found.findings[0].title
    assert found.lines


def test_calls_that_exchange_nothing_are_not_told_to_be_collective(run: MadeRun) -> None:
    run.mpi("open", 0, 50)
    for start in (100, 300):
        run.mpi("write_at", start, 100, MIB)
        run.posix("pwrite", start + 10, 20, MIB, within="mpi", offset=0)
    found = contents.examine(run.trace())
    (finding,) = [each for each in found.findings if each.key == "exchange"]
    assert "exchange" not in finding.title
    assert "collective" not in finding.advice
    assert "50.0 ms were in other calls" in finding.evidence[1]


def test_who_waits_for_a_lock_waits_for_no_storage(run: MadeRun) -> None:
    run.mpi("write_at", 0, 500, MIB)
    run.posix("fcntl", 10, 400, within="mpi")
    run.posix("pwrite", 420, 50, MIB, within="mpi", offset=0)
    (finding,) = [each for each in contents.examine(run.trace()).findings if each.key == "exchange"]
    assert finding.seconds == pytest.approx(0.45)
    assert "1 calls for locks took 400.0 ms" in finding.evidence[2]


def test_what_an_mpi_shares_in_memory_is_no_io_of_the_run(run: MadeRun) -> None:
    run.files = ["/scratch/data", "/dev/shm/mpich_shar_tmp1", "/scratch/.data.shfp.1"]
    run.posix("pwrite", 0, 100, MIB, offset=0)
    run.posix("pwrite", 200, 300, MIB, offset=0, file=1)  # as it starts
    run.mpi("write_at_all", 600, 200, MIB, collective=True)
    run.posix("pwrite", 650, 100, MIB, within="mpi", offset=0, file=1)  # to exchange
    run.mpi("write_shared", 1000, 500, MIB)
    run.posix("pwrite", 1050, 400, 8, within="mpi", offset=0, file=2)  # where the pointer stands
    found = contents.examine(run.trace())
    assert found.budget.seconds["write"] == pytest.approx(0.1 + 0.4)
    assert found.budget.seconds["mpi"] == pytest.approx(0.2 + 0.1)
    assert found.application.mpi_files is not None


def test_with_losses_layers_are_not_compared(run: MadeRun) -> None:
    run.mpi("write_at", 0, 400, MIB)
    run.posix("pwrite", 120, 200, 4 * MIB, within="mpi", offset=0)
    run.run = {"losses": {"not kept": 3}, "complete": False}
    found = contents.examine(run.trace())
    assert keys(found) == []
    assert found.caveats == [
        "The run did not end by itself: what came last is missing.",
        "3 calls are not in the trace (not kept): sums are too low.",
    ]


def test_what_is_moved_as_asked_is_no_amplification(run: MadeRun) -> None:
    run.mpi("write_at", 120, 200, MIB)
    run.posix("pwrite", 120, 200, MIB, within="mpi", offset=0)
    found = contents.examine(run.trace())
    assert (found.funnel.amplification, keys(found), found.lines) == (1, [], [])
    assert "does not show what would shorten it" in found.verdict


def test_without_io_worth_it_nothing_is_advised(run: MadeRun) -> None:
    run.ranks = run.processes = 1
    run.wall_ms = 100_000
    run.mpi("write_at", 0, 400, MIB)
    run.posix("pread", 10, 300, 40 * MIB, within="mpi", offset=0)
    found = contents.examine(run.trace())
    assert (keys(found), found.lines) == ([], [])
    assert found.verdict == (
        "I/O takes 0.4 % of the processes' time; without any, the run would be 1.0040 times as "
        "fast. Nothing is worth changing."
    )


def test_what_the_kernel_makes_up_is_no_storage(run: MadeRun) -> None:
    run.file_systems = ["sysfs"]
    run.posix("read", 0, 500, 100, offset=0)
    assert contents.examine(run.trace()).budget.io_share is None


def test_findings_below_a_hundredth_are_left_out(run: MadeRun) -> None:
    run.posix("write", 0, 500, MIB, offset=0)
    for start in range(600, 605):
        run.posix("open", start, 1)
    assert keys(contents.examine(run.trace())) == []
    run.path = run.path.with_name("more")
    for start in range(700, 710):
        run.posix("open", start, 1)
    found = contents.examine(run.trace())
    assert keys(found) == ["opened-again"]
    assert found.findings[0].seconds == pytest.approx(0.014)
    assert found.findings[0].confidence == "high"


def test_bytes_that_are_read_again_are_found(run: MadeRun) -> None:
    for turn in range(4):
        run.posix("pread", 100 * turn, 50, MIB, offset=0)
    found = contents.examine(run.trace())
    assert keys(found) == ["read-again"]
    assert found.findings[0].seconds == pytest.approx(0.15)
    assert "/scratch/data" in found.findings[0].evidence[1]


def test_reading_again_what_was_written_is_no_finding(run: MadeRun) -> None:
    for turn in range(4):
        run.posix("pwrite", 100 * turn, 10, MIB, offset=0)
        run.posix("pread", 100 * turn + 10, 50, MIB, offset=0)
    assert keys(contents.examine(run.trace())) == []


def test_bytes_that_all_ranks_read_are_found(run: MadeRun) -> None:
    run.ranks = run.processes = 4
    for rank in range(4):
        run.posix("pread", 0, 80, MIB, offset=0, process=rank)
    found = contents.examine(run.trace())
    assert keys(found) == ["read-by-all"]
    assert found.findings[0].seconds == pytest.approx(0.06)


def test_small_calls_are_measured_by_the_large_ones_of_the_run(run: MadeRun) -> None:
    for place in range(200):
        run.posix("pwrite", place, 0.5, 1024, offset=place * 4096)
    for place in range(8):
        run.posix("pwrite", 300 + 10 * place, 8, 8 * MIB, offset=place * 8 * MIB)
    found = contents.examine(run.trace())
    assert keys(found) == ["small-posix-writes"]
    assert found.findings[0].confidence == "medium"
    assert found.findings[0].seconds == pytest.approx(0.1 - 200 * 1024 / (8 * MIB) * 0.008)


def test_a_size_without_larger_ones_to_compare_with_is_no_finding(run: MadeRun) -> None:
    for place in range(200):
        run.posix("pwrite", place, 0.5, 32768, offset=place * 32768)
    assert keys(contents.examine(run.trace())) == []


def test_one_process_that_does_most_is_found_and_named(run: MadeRun) -> None:
    run.ranks = run.processes = 4
    run.posix("pwrite", 0, 400, 8 * MIB, offset=0, process=2)
    run.posix("pwrite", 0, 10, MIB, offset=8 * MIB, process=1)
    found = contents.examine(run.trace())
    assert keys(found) == ["uneven"]
    assert found.findings[0].title.startswith("Uneven: rank 2 is in I/O 3.9 times")
    assert any("rank 2 is in I/O 40 %" in caveat for caveat in found.caveats)


def test_what_starts_the_program_of_a_rank_is_none_of_the_ranks(run: MadeRun) -> None:
    """A shell of each rank, which reads its script, and the program behind it."""
    run.ranks, run.of_each_rank, run.processes = 4, 2, 8
    for rank in range(4):
        run.posix("read", 0, 1, 4 * MIB, offset=0, process=2 * rank)
        run.mpi("write_at_all", 0, 500, MIB, offset=rank * MIB, process=2 * rank + 1)
    found = contents.examine(run.trace())
    assert "uneven" not in keys(found)
    assert found.budget.processes == 4


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"version": 2}, "version 2"),
        ({"checksum": "0123456789abcdef"}, "checksum does not fit"),
        ({"format": "something"}, "no system file"),
        ({"limits": [{"level": "device"}]}, "damaged"),
        ({"host": None, "limits": 3}, "damaged"),
    ],
)
def test_a_system_file_that_is_none_is_told(
    tmp_path: Path, change: dict[str, Any], complaint: str
) -> None:
    path = tmp_path / "system.json"
    path.write_text(json.dumps(json.loads(SYSTEM.read_text()) | change))
    with pytest.raises(ForebayError, match=complaint):
        system_file.load(path)


def test_many_processes_share_the_rows_of_the_picture(run: MadeRun) -> None:
    run.ranks = run.processes = 300
    for rank in range(300):
        run.posix("pwrite", rank, 100, MIB, offset=rank * MIB, process=rank)
    picture = contents.examine(run.trace()).ranks
    assert picture is not None
    assert (picture.per_row, picture.share.shape) == (3, (4, 100, grids.TIME_CELLS))
    assert picture.share.max() <= 1 + 1e-9
    # Each row is three processes that write for a tenth of the time.
    np.testing.assert_allclose(picture.share.sum(axis=(0, 2)), grids.TIME_CELLS / 10, rtol=1e-6)
    np.testing.assert_allclose(
        picture.rates.sum(axis=1) * picture.cell_s, [0, 300 * MIB], rtol=1e-6
    )


def test_a_trace_without_calls_says_so(run: MadeRun) -> None:
    found = contents.examine(run.trace())
    assert found.verdict == "The trace holds no I/O on files: there is nothing to judge."
    assert (found.ranks, found.offsets, keys(found)) == (None, None, [])


@pytest.mark.parametrize("log", LOGS, ids=[f"{log.parent.name}-{log.stem[:24]}" for log in LOGS])
def test_no_advice_on_a_log_with_little_io(log: Path, tmp_path: Path) -> None:
    darshan_import.import_here(log, tmp_path / "run")
    found = contents.examine(Trace(tmp_path / "run"))
    share = found.budget.io_share
    assert share is None or 0 <= share <= 1
    if share is None or share < 0.01:
        assert (found.findings, found.lines) == ([], [])
    assert all(0.01 <= finding.share <= 1 for finding in found.findings)
    assert json.loads(json.dumps(found.as_json()))["budget"]["io_share"] == share


SPANS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 40), st.integers(0, 12), st.integers(0, 3)),
    max_size=30,
)


@settings(deadline=None, max_examples=40)
@given(spans=SPANS)
def test_moments_are_those_that_a_loop_over_them_finds(
    tmp_path_factory: pytest.TempPathFactory, spans: list[tuple[int, int, int, int]]
) -> None:
    run = MadeRun(tmp_path_factory.mktemp("run"), processes=3)
    for thread, (process, start, took, what) in enumerate(spans):
        call = ("pwrite", "pread", "open", "write")[what]
        place: dict[str, Any] = {"process": process, "thread": thread}
        if what == timeline.CATEGORIES.index("mpi"):
            run.mpi(call, start, took, 1, **place)
        else:
            run.posix(call, start, took, 1, **place)
    found = layers.load(run.trace())
    moments = timeline.segments(found["posix"], found["mpiio"])
    told = np.full((3, 60), 9)
    for process, category, start, end in zip(*vars(moments).values(), strict=True):
        assert (told[process, start // MS : end // MS] == 9).all()
        told[process, start // MS : end // MS] = category
    expected = np.full((3, 60), 9)
    for process, start, took, what in spans:
        part = expected[process, start : start + took]
        np.minimum(part, what, out=part)
    assert (told == expected).all()


def test_who_asks_for_all_there_is_asks_for_what_was_moved(tmp_path: Path) -> None:
    """As `cat` does, with lengths whose sum is no integer of 64 bits."""
    run = MadeRun(tmp_path / "run")
    for start in (0, 1):
        run.posix("copy_file_range", start, 1, 12, length=2**63 - 2**20, argument=1)
    run.posix("pwrite", 2, 1, 100, length=200, argument=0)
    assert layers.load(run.trace())["posix"].asked.tolist() == [12, 12, 200]


@given(
    spans=st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 99), st.integers(0, 99)), max_size=20
    )
)
def test_cells_share_out_what_spans_have(spans: list[tuple[int, int, int]]) -> None:
    row, low, high = (
        (np.array(c, np.int64) for c in zip(*spans, strict=True))
        if spans
        else (np.zeros((3, 0), np.int64))
    )
    begin, end = np.minimum(low, high), np.maximum(low, high)
    weight = (end - begin).astype(np.float64)
    grid = grids.spread(
        row, grids.scaled(begin, 0, 100), grids.scaled(end, 0, 100), weight, (4, 10)
    )
    expected = np.zeros((4, 10))
    for r, b, e in zip(row, begin, end, strict=True):
        for cell in range(10):
            expected[r, cell] += max(0, min(e, 10 * cell + 10) - max(b, 10 * cell))
    np.testing.assert_allclose(grid, expected, atol=1e-6)


@given(
    spans=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 30), st.integers(0, 9)), max_size=20)
)
def test_distinct_bytes_are_those_of_a_set(spans: list[tuple[int, int, int]]) -> None:
    far = 1 << 50
    columns = np.array(spans, np.int64).reshape(-1, 3).T
    begin = columns[1] + far
    found = extents.coverage(columns[0] * far, begin, begin + columns[2])
    sets: dict[int, set[int]] = {}
    for group, first, size in spans:
        sets.setdefault(group, set()).update(range(first, first + size))
    assert dict(zip((found.group // far).tolist(), found.distinct.tolist(), strict=True)) == {
        group: len(places) for group, places in sets.items()
    }


def test_files_of_wide_characters_are_told_beside_the_verdict(run: MadeRun) -> None:
    run.posix("fwide", 0, 1, None, file=0, offset=None, result=0)
    assert any(
        c.startswith("One file was read or written by wide")
        for c in contents.examine(run.trace()).caveats
    )


def test_what_is_mapped_is_told_beside_the_verdict(run: MadeRun) -> None:
    """Of the program's files, those that are mapped; what the system maps for itself is none."""
    run.files += ["/scratch/other", "/usr/lib/locale/locale-archive"]
    for file in (0, 0, 1, 2):
        run.posix("mmap", file, 1, MIB, file=file, offset=0, result=0)
    run.posix("mmap", 5, 1, MIB, file=1, offset=0, result=-1, errno=13)
    assert any(c.startswith("2 files were mapped") for c in contents.examine(run.trace()).caveats)

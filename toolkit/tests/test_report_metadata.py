"""Goal: what a program does with names stands beside what the file system can do with them,
and nothing that is no such thing is counted.

Method: runs of which every call is known.
"""

from dataclasses import replace
from pathlib import Path

import pytest
from made_runs import MadeRun

from forebay import system_file
from forebay.report import contents
from forebay.report.metadata_ladder import MetadataStep

SYSTEM = Path(__file__).with_name("reports") / "system.json"
CREATES, REMOVES_DIRECTORY = 0o100 | 0o1, 0x200


@pytest.fixture
def run(tmp_path: Path) -> MadeRun:
    return MadeRun(tmp_path / "run", files=[f"/scratch/{n}" for n in range(20)])


def rungs(run: MadeRun) -> dict[str, MetadataStep]:
    ladder = contents.examine(run.trace(), system_file.load(SYSTEM)).ladder
    assert ladder is not None
    return {rung.operation: rung for rung in ladder.metadata}


def test_each_operation_stands_beside_the_highest_rate_of_its_own(run: MadeRun) -> None:
    """Those of two processes at the same time take that time once."""
    run.processes = 2
    for file in range(20):
        start, process = 2 * (file // 2), file % 2
        run.posix("open", start, 1, file=file, argument=CREATES, process=process)
        run.posix("stat", 100 + start, 0.5, file=file, process=process)
        run.posix("unlink", 200 + start, 0.25, file=file, process=process)
    found = rungs(run)
    assert {name: rung.count for name, rung in found.items()} == dict.fromkeys(found, 20)
    assert {name: rung.rate for name, rung in found.items()} == pytest.approx(
        {"create": 2000, "stat": 4000, "unlink": 8000}
    )
    assert {name: rung.share for name, rung in found.items()} == pytest.approx(
        {"create": 2000 / 5000, "stat": 4000 / 40000, "unlink": 8000 / 4000}
    )
    assert found["create"].limit is not None
    assert found["create"].limit.processes == 4
    assert [found[name].remark for name in ("stat", "unlink")] == ["", "a cache effect"]


def test_what_makes_or_removes_no_file_is_not_counted(run: MadeRun) -> None:
    for file in range(20):
        run.posix("open", 10 * file, 1, file=file, argument=0)
        run.posix("stat", 10 * file + 1, 1, file=file, errno=2, result=-1)
        run.posix("fstat", 10 * file + 2, 1, file=file)
        run.posix("access", 10 * file + 3, 1, file=file)
        run.posix("unlinkat", 10 * file + 4, 1, file=file, argument=REMOVES_DIRECTORY)
        run.posix("open", 10 * file + 5, 1, file=0, argument=CREATES)
    assert rungs(run) == {}


def test_a_file_is_made_by_the_first_who_opens_it(run: MadeRun) -> None:
    run.processes = 4
    for file in range(10):
        for process in range(4):
            start = 10 * file + (process + 3) % 4
            run.posix("open", start, process + 1, file=file, argument=CREATES, process=process)
    found = rungs(run)["create"]
    assert (found.count, found.rate) == (10, pytest.approx(10 / (10 * 0.002)))


def test_files_of_the_system_and_of_an_mpi_are_none_of_the_programs(run: MadeRun) -> None:
    run.files = [f"/usr/lib/{n}" for n in range(10)] + [f"/dev/shm/mpich_{n}" for n in range(10)]
    for file in range(20):
        run.posix("stat", file, 0.5, file=file)
    assert rungs(run) == {}


def test_a_few_calls_have_no_rate(run: MadeRun) -> None:
    for file in range(9):
        run.posix("stat", file, 0.5, file=file)
    assert rungs(run) == {}
    run.path = run.path.with_name("more")
    run.posix("stat", 9, 0.5, file=9)
    assert rungs(run)["stat"].count == 10


def test_where_no_names_were_measured_that_is_said(run: MadeRun) -> None:
    for file in range(10):
        run.posix("stat", file, 0.5, file=file)
    system = replace(system_file.load(SYSTEM), metadata=[])
    ladder = contents.examine(run.trace(), system).ladder
    assert ladder is not None
    (rung,) = ladder.metadata
    assert (rung.limit, rung.share, rung.remark) == (None, None, "")
    assert rung.as_json()["limit"] is None

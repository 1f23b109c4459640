"""Goal: beside what a program reached stands the limit of the same thing, and what has none is
told.

Method: runs of which every call is known, beside limits that are made up.
"""

import json
import os
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from made_runs import MIB, MadeRun

from forebay import system_file
from forebay.report import contents
from forebay.report.rung import Step
from forebay.system_file import Limit, System

O_DIRECT = 0o40000  # of x86-64, as traces have it
SYSTEM = Path(__file__).with_name("reports") / "system.json"
KIB = 1024


@pytest.fixture
def run(tmp_path: Path) -> MadeRun:
    return MadeRun(tmp_path / "run")


def test_an_application_stands_on_the_ladder_of_like_limits(run: MadeRun) -> None:
    for place in range(10):
        run.posix("pwrite", 10 * place, 10, MIB, offset=place * MIB)
    ladder = contents.examine(run.trace(), system_file.load(SYSTEM)).ladder
    assert ladder is not None
    rate = 10 * MIB / 0.1
    told = {step.limit.level: step.share for step in ladder.steps if step.limit}
    # No byte of a disk goes over a network.
    assert told == pytest.approx({"device": rate / 50e6, "file system": rate / 400e6})
    assert {step.remark for step in ladder.steps if (step.share or 0) > 1} == {"a cache effect"}
    assert ladder.warnings == []


def _network(run: MadeRun, system: System) -> list[Step]:
    ladder = contents.examine(run.trace(), system).ladder
    assert ladder is not None
    return [step for step in ladder.steps if step.limit and step.limit.level == "network"]


@pytest.mark.parametrize("kind", ["nfs4", "lustre", "fuse.glusterfs", "ext4", "tmpfs", "fuse.zip"])
def test_bytes_on_a_file_system_of_a_network_went_over_it(run: MadeRun, kind: str) -> None:
    run.file_systems = [kind]
    run.posix("pwrite", 0, 10, MIB, offset=0)
    run.posix("pread", 20, 5, MIB, offset=0)
    rungs = {step.operation: step for step in _network(run, system_file.load(SYSTEM))}
    if kind not in ("nfs4", "lustre", "fuse.glusterfs"):
        assert rungs == {}
        return
    # A message is both read and written.
    assert rungs["write"].share == pytest.approx(MIB / 0.01 / 1e9)
    assert rungs["read"].share == pytest.approx(MIB / 0.005 / 1e9)
    assert {step.remark for step in rungs.values()} == {""}


def test_messages_of_another_size_or_within_a_host_are_no_limit_of_the_network(
    run: MadeRun,
) -> None:
    run.file_systems = ["nfs4"]
    run.posix("pwrite", 0, 10, MIB, offset=0)
    system = system_file.load(SYSTEM)
    (told,) = [limit for limit in system.limits if limit.level == "network"]
    fast = 9e12
    others = [
        replace(told, size_bytes=4 * MIB, median=fast),
        replace(told, size_bytes=MIB // 4, median=fast),
        replace(told, hosts=1, median=fast),
    ]
    like = [replace(told, size_bytes=MIB // 2, median=3e9), replace(told, median=2e9)]
    (rung,) = _network(run, replace(system, limits=[*others, *like, told]))
    assert rung.limit == like[1]
    run.path = run.path.with_name("again")
    assert _network(run, replace(system, limits=others)) == []


def test_a_pair_of_hosts_is_the_limit_of_each_host(run: MadeRun) -> None:
    run.processes, run.hosts = 4, ["node1", "node1", "node2", "node2"]
    run.file_systems = ["nfs4"]
    for process in range(4):
        run.posix("pwrite", 0, 10, MIB, offset=process * MIB, process=process)
    run.posix("pwrite", 10, 10, MIB, offset=4 * MIB, process=1)
    ladder = contents.examine(run.trace(), system_file.load(SYSTEM)).ladder
    assert ladder is not None
    rates = {step.limit.level: step.rate for step in ladder.steps if step.limit}
    whole = 5 * MIB / 0.02
    assert rates == pytest.approx(
        {"device": whole, "file system": whole, "network": 2 * MIB / 0.01}
    )


@pytest.mark.parametrize(
    ("flags", "remark"),
    [(os.O_WRONLY, "a cache effect"), (os.O_WRONLY | O_DIRECT, "more than one pair of hosts")],
)
def test_above_a_network_is_a_cache_only_where_one_may_be(
    run: MadeRun, flags: int, remark: str
) -> None:
    run.file_systems = ["nfs4"]
    run.posix("open", 0, 1, argument=flags)
    run.posix("pwrite", 10, 0.5, MIB, offset=0)
    (rung,) = _network(run, system_file.load(SYSTEM))
    assert rung.share == pytest.approx(MIB / 0.0005 / 1e9)
    assert rung.remark == remark


def test_a_limit_is_of_the_file_system_that_it_was_measured_on(run: MadeRun) -> None:
    """/scratch/memory is a mount of its own below that of the run."""
    run.posix("pwrite", 0, 10, MIB, offset=0)
    system = system_file.load(SYSTEM)
    (told,) = [each for each in system.limits if (each.median, each.path) == (400e6, "/scratch")]
    nested = replace(told, path="/scratch/memory/me", median=9e9)
    places = [{"path": nested.path, "mount_point": "/scratch/memory"}]
    known = replace(system, limits=[told, nested], document={"places": places})
    ladder = contents.examine(run.trace(), known).ladder
    assert ladder is not None
    assert [step.limit for step in ladder.steps] == [told]


def test_the_best_of_like_limits_is_the_rung(run: MadeRun, tmp_path: Path) -> None:
    """Of one size the highest, be it of several processes; nothing of MPI-IO, of memory, of random
    order or of words that only a later Forebay knows."""
    document = json.loads(SYSTEM.read_text())
    like = {
        "level": "file system", "path": "/scratch", "operation": "write", "mode": "warm",
        "size_bytes": MIB, "bytes_per_second": {"median": 5e8, "low": 4e8, "high": 6e8},
    }  # fmt: skip
    document["limits"] += [
        {**like, "processes": 2, "files": "shared"},
        *(
            {**like, "bytes_per_second": {"median": 9e9, "low": 9e9, "high": 9e9}, **other}
            for other in (
                {"level": "library", "access": "collective"},
                {"level": "memory", "operation": "copy", "mode": "copy"},
                {"order": "random"},
                {"order": "zigzag"},
                {"mode": "holographic"},
            )
        ),
    ]
    path = tmp_path / "system.json"
    path.write_text(json.dumps(document))
    run.posix("pwrite", 0, 10, MIB, offset=0)
    ladder = contents.examine(run.trace(), system_file.load(path)).ladder
    assert ladder is not None
    (rung,) = [s.limit for s in ladder.steps if s.limit and s.limit.level == "file system"]
    assert (rung.median, rung.processes, rung.files) == (5e8, 2, "shared")


def test_what_was_not_measured_has_no_rung(run: MadeRun) -> None:
    run.run = {"machine": {"hosts": ["other"]}}
    run.files = ["/elsewhere/data"]
    run.posix("pwrite", 0, 10, 64, offset=0)
    system = system_file.load(SYSTEM)
    ladder = contents.examine(run.trace(), system).ladder
    assert ladder is not None
    assert [step.limit for step in ladder.steps] == [None]
    assert "was measured on node1, and the run was on other" in ladder.warnings[0]


@pytest.mark.parametrize(
    ("cpu", "host", "is_told"),
    [
        ("Z80", "node1", True),
        ("Z80", "login", False),  # It is not known where the run was.
        ("MOS 6502", "node1", False),
        ("MOS 6502, 0.1 GHz", "node1", False),  # Earlier system files have no rate.
        (None, "node1", False),
    ],
)
def test_a_host_of_the_same_name_may_be_another_machine(
    run: MadeRun, tmp_path: Path, cpu: str | None, host: str, is_told: bool
) -> None:
    run.run = {"machine": {"hosts": ["node1"], "host": host, "cpu": cpu}}
    run.posix("pwrite", 0, 10, MIB, offset=0)
    document = json.loads(SYSTEM.read_text())
    document["campaigns"] = [{"environment": {"cpu": "MOS 6502"}}, {"environment": None}]
    path = tmp_path / "system.json"
    path.write_text(json.dumps(document))
    ladder = contents.examine(run.trace(), system_file.load(path)).ladder
    assert ladder is not None
    warning = (
        f"{path} was measured on node1 with MOS 6502, and the run was on one of that name with "
        "Z80: shares hold only if the two are alike."
    )
    assert ladder.warnings == ([warning] if is_told else [])


def limit(**changed: Any) -> Limit:  # noqa: ANN401
    usual: dict[str, Any] = {
        "level": "device", "path": "/scratch", "operation": "read", "mode": "direct",
        "size_bytes": 4 * KIB, "processes": 1, "median": 5e7, "low": 4e7, "high": 6e7,
    }  # fmt: skip
    return Limit(**(usual | changed))


IN_ORDER = limit()
AT_RANDOM = limit(order="random", median=2e6, low=1e6, high=3e6)
COLD = limit(level="file system", mode="cold", median=4e7)


def shuffled(place: int) -> int:
    places = list(range(64))
    random.Random(1).shuffle(places)
    return places[place]


@pytest.mark.parametrize(
    ("offset_of", "order"),
    [
        (lambda place: place, "sequential"),
        (lambda place: 10 * place, "sequential"),  # with gaps
        (lambda place: 64 - place, "sequential"),  # backward
        (lambda place: 1000 * (place % 2) + place // 2, "sequential"),  # two places in turn
        (lambda place: place % 16, "sequential"),  # again and again
        (lambda place: 5, "sequential"),
        (shuffled, "random"),
        (lambda place: 3 * shuffled(place), "random"),
    ],
)
def test_reads_at_random_stand_beside_limits_of_such(
    run: MadeRun, offset_of: Callable[[int], int], order: str
) -> None:
    for place in range(64):
        run.posix("pread", place, 1, 4 * KIB, offset=offset_of(place) * 4 * KIB)
    system = replace(system_file.load(SYSTEM), limits=[IN_ORDER, AT_RANDOM, COLD])
    ladder = contents.examine(run.trace(), system).ladder
    assert ladder is not None
    device, cold = ladder.steps
    assert {step.order for step in ladder.steps} == {order}
    assert device.limit == (AT_RANDOM if order == "random" else IN_ORDER)
    assert cold.limit == COLD
    # Of the file system there is none of such, and that is said.
    assert cold.remark == ("the limit is of calls in order" if order == "random" else "")
    assert device.limit_is_of == ("direct, at random" if order == "random" else "direct")


def test_few_calls_show_no_order(run: MadeRun) -> None:
    for place in range(8):
        run.posix("pread", place, 1, 4 * KIB, offset=(9 - place) * 64 * KIB)
    system = replace(system_file.load(SYSTEM), limits=[IN_ORDER, AT_RANDOM])
    ladder = contents.examine(run.trace(), system).ladder
    assert ladder is not None
    assert [step.limit for step in ladder.steps] == [IN_ORDER]


def of_mpi(**changed: Any) -> Limit:  # noqa: ANN401
    usual: dict[str, Any] = {
        "level": "library", "operation": "write", "mode": "warm", "order": "interleaved",
        "files": "shared", "access": "collective", "size_bytes": 16 * KIB, "processes": 4,
    }  # fmt: skip
    return limit(**(usual | changed))


@pytest.mark.parametrize(("mode", "engine"), [("observe", "mpi"), ("engine", "forebay")])
def test_mpi_io_stands_beside_what_such_calls_reached(run: MadeRun, mode: str, engine: str) -> None:
    """Pieces of 16 KiB, dealt out to two ranks in turn by a view."""
    run.ranks = run.processes = 2
    run.openings = [{"mode": mode}]
    run.views = [{"displacement": 0, "etype": 0, "filetype": 1}]
    run.datatypes = [
        {"size": 1, "extent": 1, "true_lower_bound": 0, "blocks": 1, "block_bytes": 1},
        {"size": 16 * KIB, "extent": 32 * KIB, "true_lower_bound": 0, "blocks": 1,
         "block_bytes": 16 * KIB},
    ]  # fmt: skip
    for rank in range(2):
        place = {"process": rank, "view": 0, "position": 0}
        run.mpi("write_all", 100, 100, MIB, collective=True, **place)
        run.mpi("write", 300, 100, MIB, collective=False, **place)
        run.mpi("iwrite", 500, 1, MIB, collective=False, **place)
    limits = [
        of_mpi(engine=each, access=access, median=rate)
        for each, access, rate in (
            ("mpi", "collective", 2e8), ("mpi", "independent", 3e8),
            ("forebay", "collective", 4e8), ("forebay", "independent", 5e6),
        )
    ]  # fmt: skip
    far = of_mpi(size_bytes=MIB, engine=engine, median=9e9)
    system = replace(system_file.load(SYSTEM), limits=[*limits, far])
    ladder = contents.examine(run.trace(), system).ladder
    assert ladder is not None
    independent, collective = ladder.steps
    known = {(each.engine, each.access): each for each in limits}
    for step, access in ((independent, "independent"), (collective, "collective")):
        assert (step.mode, step.size_bytes) == (access, 16 * KIB)
        assert step.limit == known[engine, access]
        assert step.rate == pytest.approx(2 * MIB / 0.1)
    assert independent.remark == ("more than was measured" if engine == "forebay" else "")


def test_mpi_io_of_other_pieces_or_another_access_has_no_limit(run: MadeRun) -> None:
    run.mpi("write_all", 100, 100, MIB, collective=True)
    run.mpi("write", 300, 100, MIB, collective=False)
    system = replace(system_file.load(SYSTEM), limits=[of_mpi()])
    ladder = contents.examine(run.trace(), system).ladder
    assert ladder is not None
    assert [(step.mode, step.limit) for step in ladder.steps] == [("collective", None)]

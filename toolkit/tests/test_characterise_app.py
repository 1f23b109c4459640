"""Goal: the pattern that a program was made with is what is found in its trace.

Method: traces of programs with known patterns, random ones among them; a formula is evaluated and
must give every offset.
"""

import itertools
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from conftest import Forebay
from hypothesis import given, settings
from hypothesis import strategies as st
from test_darshan_import import LOGS

from forebay.characterise import accesses, app, app_report
from forebay.characterise.app import Application, Layer
from forebay.characterise.phases import Phase
from forebay.trace import darshan_import, tables
from forebay.trace.directory import Run, Trace, TraceWriter, paths

SECOND = 1_000_000_000
CALL_NS = 20_000


@dataclass
class Program:
    """Makes a trace call by call: each process has its own time, in ns, with some noise."""

    path: Path
    ranks: int = 1
    layer: str = "posix"
    rows: list[dict[str, Any]] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    others: dict[str, pa.Table] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.now = [1000 * rank for rank in range(self.ranks)]
        self.random = np.random.default_rng(1)

    def file(self, name: str) -> int:
        if name not in self.files:
            self.files.append(name)
        return self.files.index(name)

    def call(self, rank: int, offset: int | None, size: int, **others: object) -> None:
        noise = self.random.integers(0, 5000, 2)
        duration = CALL_NS + int(noise[0])
        row = {
            "process": rank,
            "thread": 0,
            "call": "pwrite",
            "file": 0,
            "offset": offset,
            "length": size,
            "result": size,
            "start_ns": self.now[rank],
            "duration_ns": duration,
        }
        self.rows.append(row | others)
        self.now[rank] += duration + 300 + int(noise[1]) // 10

    def pause(self, ns: int = SECOND) -> None:
        self.now = [now + ns for now in self.now]

    def trace(self, **run: Any) -> Trace:  # noqa: ANN401  keys of Run
        self.file("/data/shared")
        writer = TraceWriter(self.path)
        rows = sorted(self.rows, key=lambda row: (row["process"], row["start_ns"]))
        writer.add(self.layer, pa.Table.from_pylist(rows, schema=tables.SCHEMAS[self.layer]))
        writer.add("files", pa.table(paths(name.encode() for name in self.files)))
        writer.add("processes", pa.table({"rank": list(range(self.ranks))}))
        for name, table in self.others.items():
            writer.add(name, table)
        levels = {"posix": "none", "mpiio": "none"} | {self.layer: "events"}
        writer.finish(Run(**({"levels": levels, "wall_ns": max(self.now)} | run)))
        return Trace(self.path)

    def layer_of(self) -> Layer:
        (layer,) = app.characterise(self.trace()).layers
        return layer


def _offsets(phase: Phase, rank: int, rep: int) -> list[int]:
    """What the formula gives for one process and repetition, in the order of its loops."""
    assert phase.formula is not None
    inner = [t for t in phase.formula.terms if t.index in "ijkl"]
    turns = itertools.product(*(range(t.count) for t in reversed(inner)))
    names = [t.index for t in reversed(inner)]
    text = str(phase.formula)
    return [
        eval(text, {"rank": rank, "rep": rep} | dict(zip(names, turn, strict=True)))
        for turn in turns
    ]


@settings(deadline=None, max_examples=60)
@given(
    ranks=st.integers(1, 5),
    reps=st.integers(1, 5),
    count=st.integers(1, 6),
    outer=st.integers(1, 3),
    write=st.booleans(),
    own_file=st.booleans(),
    order=st.permutations(["call", "outer", "rank", "rep"]),
)
def test_the_formula_gives_every_offset(
    tmp_path_factory: pytest.TempPathFactory,
    ranks: int,
    reps: int,
    count: int,
    outer: int,
    write: bool,
    own_file: bool,
    order: list[str],
) -> None:
    program = Program(tmp_path_factory.mktemp("trace") / "run", ranks)
    size = 4096
    # Which of the loops goes along the file fastest is drawn.
    extents = {"call": count, "outer": outer, "rank": ranks, "rep": reps}
    steps, reach = {}, size
    for name in order:
        steps[name] = reach
        reach *= extents[name] + 1
    planted: dict[tuple[int, int], list[int]] = {}
    for rep in range(reps):
        for rank in range(ranks):
            file = program.file(f"/data/out.{rank}" if own_file else "/data/out")
            for turn, i in itertools.product(range(outer), range(count)):
                offset = rank * steps["rank"] + rep * steps["rep"]
                offset += turn * steps["outer"] + i * steps["call"]
                planted.setdefault((rank, rep), []).append(offset)
                call = "pwrite" if write else "pread"
                program.call(rank, offset, size, file=file, call=call)
        program.pause()
    layer = program.layer_of()
    (phase,) = layer.phases.listed
    assert phase.write is write
    assert phase.ranks == list(range(ranks))
    assert phase.repetitions == reps
    assert phase.calls == ranks * reps * count * outer
    assert (phase.size_min, phase.size_max) == (size, size)
    assert phase.formula is not None
    assert phase.formula.exact == 1.0
    for (rank, rep), offsets in planted.items():
        assert _offsets(phase, rank, rep) == offsets
    assert phase.shared == ("one process" if ranks == 1 else "own files" if own_file else "shared")
    assert layer.whole["temporal"]["bursts"] == reps
    if reps > 3:
        assert layer.whole["temporal"]["kind"] == "periodic"
        assert phase.period_s == pytest.approx(1.0, rel=0.01)
    assert sum(each["operation"]["writes"] for each in layer.processes) == (
        phase.calls if write else 0
    )


def test_a_grid_of_ranks_is_in_the_formula(tmp_path: Path) -> None:
    program = Program(tmp_path / "run", 6)
    for rank in range(6):  # a grid of 2 x 3
        for row in range(4):
            program.call(rank, (rank % 2) * 100 + (rank // 2) * 4000 + row * 1000, 100)
    (phase,) = program.layer_of().phases.listed
    assert str(phase.formula) == "0 + (rank%2)*100 + (rank//2)*4000 + i*1000"
    assert phase.order == "strided"


def test_ranks_that_take_part_need_not_be_neighbours(tmp_path: Path) -> None:
    program = Program(tmp_path / "run", 8)
    for rank in (1, 4, 7):
        for i in range(5):
            program.call(rank, 50 + (rank - 1) * 1000 + i * 10, 10)
    (phase,) = program.layer_of().phases.listed
    assert phase.ranks == [1, 4, 7]
    assert app_report.ranges(phase.ranks) == "1-7 by 3"
    assert phase.formula is not None
    assert _offsets(phase, 4, 0) == [3050, 3060, 3070, 3080, 3090]


def test_a_header_and_a_body_are_two_phases_of_one_period(tmp_path: Path) -> None:
    program = Program(tmp_path / "run", 2)
    for step in range(6):
        for rank in range(2):
            file = program.file(f"/data/step{step:04}.rank{rank}.dat")
            program.call(rank, 0, 100, file=file)
            for i in range(20):
                program.call(rank, 100 + i * 8192, 8192, file=file)
        program.pause(2 * SECOND)
    body, header = program.layer_of().phases.listed
    assert (body.calls_each, header.calls_each) == (20, 1)
    assert body.series == "/data/step*.rank*.dat"
    assert body.new_file_each_time
    assert body.shared == "own files"
    assert body.order == "contiguous"
    assert header.order == "once"
    assert str(body.formula) == "100 + i*8192"
    assert body.period_s == pytest.approx(header.period_s or 0, rel=0.01)
    assert body.bytes_share == pytest.approx(20 * 8192 / (20 * 8192 + 100))


def test_reads_and_writes_in_turn_are_told(tmp_path: Path) -> None:
    program = Program(tmp_path / "run")
    for matrix in range(8):
        program.call(0, matrix * 4096, 4096, call="pread")
        program.call(0, matrix * 4096, 4096, file=program.file("/data/shared"))
    layer = program.layer_of()
    assert layer.whole["operation"]["kind"] == "reads and writes in turn"
    assert sorted(phase.call for phase in layer.phases.listed) == ["pread", "pwrite"]
    assert all(phase.order == "contiguous" for phase in layer.phases.listed)


def test_to_write_and_then_to_read_is_no_taking_turns(tmp_path: Path) -> None:
    program = Program(tmp_path / "run", 3)
    for call in ("pwrite", "pread"):
        for rank in range(3):
            for i in range(2):
                program.call(rank, (2 * rank + i) * 4096, 4096, call=call)
    assert program.layer_of().whole["operation"]["kind"] == "reads and writes"


def test_offsets_without_a_rule_are_one_irregular_phase(tmp_path: Path) -> None:
    program = Program(tmp_path / "run", 2)
    random = np.random.default_rng(2)
    for _ in range(500):
        for rank in range(2):
            offset, size = random.integers(0, 1 << 30, 2)
            program.call(rank, int(offset), 1 + int(size) % 10_000, call="pread")
    layer = program.layer_of()
    assert [phase.order for phase in layer.phases.listed] == ["irregular"]
    assert layer.phases.listed[0].formula is None
    assert layer.whole["spatial"]["kind"] == "random"
    assert layer.whole["spatial"]["backward_share"] == pytest.approx(0.5, abs=0.1)
    assert layer.whole["request_size"]["kind"] == "varying"


def test_single_calls_without_a_rule_are_one_irregular_phase(tmp_path: Path) -> None:
    program = Program(tmp_path / "run")
    random = np.random.default_rng(3)
    for _ in range(60):
        offset, size = random.integers(1, 1 << 30, 2)
        program.call(0, int(offset), int(size), call="pread")
        program.pause(100_000_000)
    layer = program.layer_of()
    (phase,) = layer.phases.listed
    assert (phase.order, phase.repetitions) == ("irregular", 60)
    assert phase.period_s == pytest.approx(0.1, rel=0.01)


@pytest.mark.parametrize(
    ("rank_step", "step", "kind"),
    [(800, 100, "segmented"), (100, 400, "interleaved"), (0, 100, "the same bytes")],
)
def test_how_processes_share_a_file(tmp_path: Path, rank_step: int, step: int, kind: str) -> None:
    program = Program(tmp_path / "run", 4)
    for rank in range(4):
        for i in range(8):
            program.call(rank, rank * rank_step + i * step, 100, call="pread")
    (file,) = program.layer_of().sharing
    assert (file["processes"], file["operation"], file["kind"]) == (4, "read", kind)
    assert file["times_each_byte"] == (4 if rank_step == 0 else 1)


def test_overlapping_extents_are_no_interleaving(tmp_path: Path) -> None:
    program = Program(tmp_path / "run", 2)
    for rank in range(2):
        for i in range(8):
            program.call(rank, rank * 150 + i * 100, 100, call="pread")
    (file,) = program.layer_of().sharing
    assert file["kind"] == "overlapping"
    assert file["distinct_bytes"] == 950


@pytest.mark.parametrize(
    ("pauses", "bursts", "kind"),
    [
        ([0] * 100, 1, "continuous"),
        ([5_000_000] * 100, 100, "periodic"),
        ([5_000_000] * 9 + [SECOND] + [5_000_000] * 9, 2, "in bursts"),
        ([0] * 20 + [SECOND] + [0] * 20, 2, "in bursts"),
        (([0] * 10 + [SECOND]) * 5, 5, "periodic"),
        # Hiccups of the system that are lost in the pauses between bursts.
        (([0] * 5 + [2_000_000] + [0] * 5 + [SECOND]) * 5, 5, "periodic"),
    ],
)
def test_pauses_that_part_bursts(tmp_path: Path, pauses: list[int], bursts: int, kind: str) -> None:
    program = Program(tmp_path / "run")
    for i, pause in enumerate(pauses):
        program.call(0, i * 10, 10)
        program.pause(pause)
    found = program.layer_of().whole["temporal"]
    assert (found["bursts"], found["kind"]) == (bursts, kind)


@pytest.mark.parametrize(("block_bytes", "stride"), [(16, 32), (None, None)])
def test_a_file_view_says_where_the_bytes_lie(
    tmp_path: Path, block_bytes: int | None, stride: int | None
) -> None:
    program = Program(tmp_path / "run", 2, layer="mpiio")
    program.others = {
        "datatypes": pa.table(
            {
                "combiner": ["named", "subarray", "subarray"],
                "size": [8, 64, 64],
                "extent": [8, 128, 128],
                "true_lower_bound": [0, 0, 16],
                "blocks": [1, 4, 4],
                "block_bytes": [8, block_bytes, block_bytes],
                "stride": [8, stride, stride],
            }
        ),
        "views": pa.table({"displacement": [100, 100], "etype": [0, 0], "filetype": [1, 2]}),
    }
    for step in range(5):
        for rank in range(2):
            program.call(
                rank,
                None,
                64,
                call="MPI_File_write_all",
                collective=True,
                view=rank,
                position=step * 8,
            )
        program.pause()
    layer = program.layer_of()
    (phase,) = layer.phases.listed
    assert phase.view == (4, 16, stride or 0)
    assert str(phase.formula) == "100 + rank*16 + rep*128"
    assert phase.collective
    assert layer.whole["spatial"]["kind"] == "strided by the file view"
    assert layer.sharing[0]["kind"] == "through views with holes"
    assert layer.whole["operation"]["collective_share"] == 1.0


@pytest.mark.parametrize(
    ("pieces", "calls", "offsets", "holes"),
    [
        # A half of the extent, in two calls or in one.
        (1, [32, 32], [100, 132], 0),
        (1, [64], [100], 0),
        (1, [64, 64], [100, 228], 0),  # in each turn one
        (1, [128], [100], 1),
        (1, [32, 64], [100, 132], 0.5),
        (4, [16], [100], 0),
        (4, [32], [100], 1),
        (None, [32], [100], 1),  # of which nothing is known
    ],
)
def test_a_call_that_meets_no_hole_of_its_view_is_contiguous(
    tmp_path: Path, pieces: int | None, calls: list[int], offsets: list[int], holes: float
) -> None:
    program = Program(tmp_path / "run", layer="mpiio")
    size = 64
    block_bytes = None if pieces is None else size // pieces
    program.others = {
        "datatypes": pa.table(
            {
                "size": [1, size],
                "extent": [1, 128],
                "true_lower_bound": [0, 0],
                "blocks": pa.array([1, pieces], pa.int64()),
                "block_bytes": pa.array([1, block_bytes], pa.int64()),
                "stride": pa.array([None, 32 if pieces == 4 else None], pa.int64()),
            }
        ),
        "views": pa.table({"displacement": [100], "etype": [0], "filetype": [1]}),
    }
    position = 0
    for length in calls:
        program.call(0, None, length, call="MPI_File_write", view=0, position=position)
        position += length
    found, _ = accesses.load(program.trace(), "mpiio")
    assert found.offset.tolist() == offsets
    assert np.mean(found.block_bytes > 0) == holes


def test_what_the_mpi_did_below_is_not_the_programs_pattern(tmp_path: Path) -> None:
    program = Program(tmp_path / "run")
    for i in range(10):
        program.call(0, i * 10, 10, within="program")
        program.call(0, i * 1000, 1000, within="mpi")
        program.call(0, i * 7, 7, within="forebay")
    calls_of_mpi = [row | {"call": "MPI_File_write"} for row in program.rows[:1]]
    program.others["mpiio"] = pa.Table.from_pylist(calls_of_mpi, schema=tables.SCHEMAS["mpiio"])
    mpiio, posix = app.characterise(program.trace()).layers
    assert mpiio.whole["operation"]["written_bytes"] == 10
    assert posix.whole["operation"]["written_bytes"] == 100


def test_where_calls_of_mpi_are_not_traced_what_it_did_below_stands_for_them(
    tmp_path: Path,
) -> None:
    program = Program(tmp_path / "run")
    for i in range(10):
        program.call(0, i * 10, 10, within="mpi")
        program.call(0, i * 7, 7, within="forebay")
    assert program.layer_of().whole["operation"]["written_bytes"] == 100


@pytest.mark.parametrize(
    ("path", "kind", "file_system", "kept"),
    [
        ("/scratch/proc/data", "file", "lustre", True),
        ("/dev/shm/array", None, "tmpfs", True),
        ("/usrdata/a", "file", None, True),
        ("/proc/self/stat", "file", "proc", False),
        ("/jail/stat", "file", "proc", False),
        ("/usr/lib/python3/os.py", "file", "ext4", False),
        ("/dev/shm/ucx_shm_posix_1", "file", "tmpfs", False),
        ("pipe:[7]", "pipe", None, False),
    ],
)
def test_files_of_the_system_are_left_out(
    tmp_path: Path, path: str, kind: str | None, file_system: str | None, kept: bool
) -> None:
    writer = TraceWriter(tmp_path / "run")
    kinds = {"kind": pa.array([kind, None], pa.string())}
    systems = {"file_system": pa.array([file_system, None], pa.string())}
    writer.add("files", pa.table(paths([path.encode(), b"/data"]) | kinds | systems))
    row = {"process": 0, "thread": 0, "call": "read", "result": 5, "duration_ns": 1}
    rows = [row | {"file": file, "start_ns": file * 10} for file in (0, 1)]
    writer.add("posix", pa.Table.from_pylist(rows, schema=tables.SCHEMAS["posix"]))
    writer.finish(Run(wall_ns=100))
    trace = Trace(tmp_path / "run")
    (layer,) = app.characterise(trace).layers
    assert layer.whole["operation"]["read_bytes"] == (10 if kept else 5)
    assert layer.left_out_bytes == (0 if kept else 5)
    (layer,) = app.characterise(trace, all_files=True).layers
    assert layer.whole["operation"]["read_bytes"] == 10


def test_offsets_that_nobody_knows_are_told(tmp_path: Path) -> None:
    program = Program(tmp_path / "run")
    for _ in range(10):
        program.call(0, None, 10)
    layer = program.layer_of()
    assert layer.whole["spatial"]["kind"] == "unknown"
    assert [(p.order, p.formula) for p in layer.phases.listed] == [("unknown", None)]
    assert layer.sharing[0]["kind"] == "unknown"


def test_calls_that_move_nothing_are_no_pattern(tmp_path: Path) -> None:
    program = Program(tmp_path / "run")
    program.call(0, None, 0, call="openat")
    application = app.characterise(program.trace())
    assert application.layers == []


def _json(application: Application) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(json.dumps(application.as_json()))
    return content


@pytest.mark.parametrize("log", LOGS, ids=[f"{log.parent.name}-{log.stem[:24]}" for log in LOGS])
def test_every_log_of_pydarshans_package_has_a_pattern(log: Path, tmp_path: Path) -> None:
    darshan_import.import_here(log, tmp_path / "run")
    trace = Trace(tmp_path / "run")
    layers = _json(app.characterise(trace))["layers"]
    for name, layer in layers.items():
        operation = layer["global"]["operation"]
        assert operation["reads"] + operation["writes"] > 0
        if layer["level"] != "counters":
            table = trace.table(name)
            moved = operation["read_bytes"] + operation["written_bytes"]
            moved += layer["left_out"]["bytes"]
            assert moved == tables.integers(table, "result").sum()
            shares = sum(phase["bytes_share"] for phase in layer["phases"])
            assert shares + layer["bytes_not_listed_share"] == pytest.approx(1.0)
    assert layers


def test_the_command_shows_and_writes_the_pattern(forebay: Forebay, tmp_path: Path) -> None:
    program = Program(tmp_path / "a b", 3)
    for rep in range(4):
        for rank in range(3):
            for i in range(5):
                program.call(rank, rank * 65536 + rep * 196608 + i * 4096, 4096)
        program.pause()
    program.trace(complete=False, losses={"rings": 7}, command=["./prog", "[x]"])
    answer = forebay("characterise", "app", "a b", "--processes", "--json", "out.json")
    assert answer.code == 0, answer.errors
    assert "offset = 0 + rank*65536 + rep*196608 + i*4096" in answer.output
    assert "rank < 3, rep < 4, i < 5" in answer.output
    assert "7 calls are not in the trace (rings)" in answer.output
    assert "did not end by itself" in answer.output
    assert "contiguous stretches: 84 % right behind the call before" in answer.output
    assert "ranks 0-2" in answer.output
    assert "./prog [x]" in answer.output
    content = json.loads((tmp_path / "out.json").read_text())
    (phase,) = content["layers"]["posix"]["phases"]
    assert phase["formula"]["terms"][0] == {"index": "rank", "count": 3, "step": 65536}
    assert [each["rank"] for each in content["layers"]["posix"]["processes"]] == [0, 1, 2]
    coarse = forebay("characterise", "app", "a b", "--pause", "10s", "--json", "one.json")
    assert coarse.code == 0
    content = json.loads((tmp_path / "one.json").read_text())
    assert content["layers"]["posix"]["global"]["temporal"]["bursts"] == 1


def test_wrong_usage_is_told(forebay: Forebay, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    answer = forebay("characterise", "app", "empty")
    assert answer.code == 2
    assert "holds no run.json" in answer.errors
    Program(tmp_path / "run").trace()
    assert "is no time" in forebay("characterise", "app", "run", "--pause", "long").errors
    assert "no reads or writes" in forebay("characterise", "app", "run").output

"""Goal: the patterns of the workloads, which their page tells, are found in traces of them.

Method: small runs of the real programs under `forebay trace`. What a program asks of the MPI, call
by call and through its views, follows from its options; the formulas of the phases are evaluated
and must give the same calls, no more and no fewer.
"""

import itertools
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Forebay, Launchers, allowing_root, read_json

from forebay.trace.directory import Trace

REPOSITORY = Path(__file__).resolve().parents[2]
REAL_LIBRARY = Path(os.environ.get("FOREBAY_LIBRARY_DIR", REPOSITORY / "build" / "lib"))
PROGRAMS = Path(os.environ.get("FOREBAY_PROXIES_DIR", REAL_LIBRARY.parent / "proxies")) / "mpich"

pytestmark = [
    pytest.mark.mpi,
    pytest.mark.skipif(
        Launchers.hydra is None
        or not (REAL_LIBRARY / "libforebay-trace.so").is_file()
        or not (PROGRAMS / "segments").is_file(),
        reason="no MPICH, or libforebay-trace.so or the workloads are not built (make build)",
    ),
]


@pytest.fixture
def environ(environ: dict[str, str]) -> dict[str, str]:
    return {**environ, "FOREBAY_LIBRARY_DIR": str(REAL_LIBRARY), **allowing_root()}


def _pattern(
    forebay: Forebay, directory: Path, ranks: int, program: str, *words: str, pause: str = ""
) -> dict[str, Any]:
    """What the program asked of MPI-IO."""
    launcher = [str(Launchers.hydra), "-n", str(ranks), str(PROGRAMS / program)]
    answer = forebay("trace", "-o", "run.trace", "--", *launcher, *words, "data")
    assert answer.code == 0, answer.errors
    pauses = ["--pause", pause] if pause else []
    answer = forebay("characterise", "app", "run.trace", "--json", "out.json", *pauses)
    assert answer.code == 0, answer.errors
    layers: dict[str, Any] = read_json(directory / "out.json")["layers"]
    assert list(layers) == ["mpiio"]  # what the MPI asked of the file system is not the program's
    return layers["mpiio"]  # type: ignore[no-any-return]


def _phases(layer: dict[str, Any]) -> list[tuple[str, int, int, str]]:
    """Operation, repetitions, calls of each, and the formula of the phases."""
    return sorted(
        (
            phase["operation"],
            phase["repetitions"],
            round(phase["calls_each"]),
            phase["formula"]["text"],
        )
        for phase in layer["phases"]
    )


def test_segments_are_blocks_of_the_ranks_in_turn(forebay: Forebay, tmp_path: Path) -> None:
    layer = _pattern(
        forebay,
        tmp_path,
        2,
        "segments",
        *("--block", "1MiB", "--transfer", "64KiB", "--segments", "3"),
        *("--files", "2", "--compute", "0.3", "--independent"),
    )
    formula = "offset = 0 + rank*1048576 + i*65536 + j*2097152"
    assert _phases(layer) == [("read", 2, 48, formula), ("write", 2, 48, formula)]
    assert all(phase["new_file_each_time"] for phase in layer["phases"])
    assert layer["global"]["request_size"]["common"] == [{"bytes": 65536, "calls": 384}]


def test_the_out_of_core_program_writes_rewrites_and_reads_its_matrices(
    forebay: Forebay, tmp_path: Path
) -> None:
    layer = _pattern(
        forebay,
        tmp_path,
        2,
        "outofcore",
        *("--own-files", "--matrices", "8", "--side", "64", "--compute", "0.3", "--independent"),
    )
    formula = "offset = 0 + i*16384"
    # S writes, W reads and writes, C reads.
    assert _phases(layer) == [("read", 2, 8, formula), ("write", 2, 8, formula)]
    assert {phase["shared"] for phase in layer["phases"]} == {"own files"}
    assert {phase["order"] for phase in layer["phases"]} == {"contiguous"}
    assert layer["global"]["operation"]["written_bytes"] == 2 * 2 * 8 * 16384


@dataclass(frozen=True)
class View:
    """Pieces of one turn of a file view; None where they are not all alike."""

    blocks: int
    block_bytes: int
    stride: int | None


@dataclass(frozen=True)
class Call:
    """What a rank asks in one call, from the first byte that it touches."""

    rank: int
    offset: int
    size: int
    view: View | None = None  # if it meets holes


# The runs differ in when the system makes them wait; their phases are to be told by files alone.
_NO_PAUSE = "3600s"
_FILES = 2


def _check(layer: dict[str, Any], calls: list[Call], call: str, turns: int) -> None:
    """Every call of `calls` is in a phase of the writes and in one of the reads, `turns` times, and
    nothing else is."""
    expected = Counter(calls * turns)
    assert sum(expected.values()) > 0
    name = "MPI_File_{}" + call.removeprefix("MPI_File_")
    for operation in ("write", "read"):
        phases = [phase for phase in layer["phases"] if phase["operation"] == operation]
        assert {phase["call"] for phase in phases} == {name.format(operation)}
        assert {phase["collective"] for phase in phases} == {call.endswith("_all")}
        assert sum((_calls_of(phase) for phase in phases), Counter()) == expected
    moved = 2 * sum(each.size for each in expected.elements())
    for phase in layer["phases"]:
        own = _calls_of(phase)
        assert phase["bytes"] == sum(each.size for each in own.elements())
        assert phase["bytes_share"] == pytest.approx(phase["bytes"] / moved)
    assert (layer["phases_not_listed"], layer["bytes_not_listed_share"]) == (0, 0)
    _check_whole(layer["global"], expected)


def _check_whole(whole: dict[str, Any], expected: Counter[Call]) -> None:
    """What all calls are together. All of `expected` are written, and then all of them read."""
    count = sum(expected.values())
    operation = whole["operation"]
    assert operation["kind"] == "reads and writes"
    assert operation["reads"] == operation["writes"] == count
    sizes = Counter(each.size for each in expected.elements())
    request = whole["request_size"]
    assert request["distinct"] == len(sizes)
    assert (request["least"], request["most"]) == (min(sizes), max(sizes))
    assert all(2 * sizes[each["bytes"]] == each["calls"] for each in request["common"])
    with_holes = sum(each.view is not None for each in expected.elements())
    assert whole["spatial"]["with_holes_share"] == with_holes / count


def _calls_of(phase: dict[str, Any]) -> Counter[Call]:
    """Those that the formula of a phase stands for."""
    assert phase["size_min"] == phase["size_max"]
    assert phase["formula"]["exact"] == 1
    right = phase["formula"]["text"].removeprefix("offset = ")
    loops = {t["index"]: t["count"] for t in phase["formula"]["terms"] if t["index"] in "ijkl"}
    view = None if phase["view"] is None else View(**phase["view"])
    found = Counter(
        Call(rank, eval(right, {"rank": rank, "rep": rep, **places}), phase["size_min"], view)
        for rank in phase["ranks"]
        for rep in range(phase["repetitions"])
        for turn in itertools.product(*map(range, loops.values()))
        for places in [dict(zip(loops, turn, strict=True))]
    )
    assert sum(found.values()) == phase["calls"]
    return found


def _through_view(rank: int, places: Iterable[int], unit: int) -> Call:
    """One call for the units of a file at `places`, each of `unit` bytes."""
    chosen = np.sort(np.fromiter(places, np.int64))
    begins = np.flatnonzero(np.append(True, np.diff(chosen) != 1))
    pieces = len(begins)
    view = None
    if pieces > 1:
        apart = np.unique(np.diff(chosen[begins]))
        lengths = np.unique(np.diff(np.append(begins, len(chosen))))
        assert len(lengths) == 1
        view = View(
            pieces, int(lengths[0]) * unit, int(apart[0]) * unit if len(apart) == 1 else None
        )
    return Call(rank, int(chosen[0]) * unit, len(chosen) * unit, view)


def _formulas(layer: dict[str, Any]) -> set[str]:
    return {phase["formula"]["text"].removeprefix("offset = ") for phase in layer["phases"]}


@pytest.mark.parametrize("collective", [True, False], ids=["collective", "independent"])
@pytest.mark.parametrize(
    ("ranks", "grid", "order", "formula", "kind"),
    [
        # Halves of the file: the program sets a view, but no call meets its hole.
        (2, (2, 1, 1), "c", "0 + rank*1024", "single calls"),
        (4, (2, 2, 1), "fortran", "0 + (rank%2)*512 + (rank//2)*64", "strided by the file view"),
    ],
)
def test_a_block_of_an_array_is_a_call_through_its_view(
    forebay: Forebay,
    tmp_path: Path,
    collective: bool,
    ranks: int,
    grid: tuple[int, int, int],
    order: str,
    formula: str,
    kind: str,
) -> None:
    side, double = np.array([8, 4, 4]), 8
    whole = np.arange(np.prod(side * grid)).reshape(side * grid, order="C" if order == "c" else "F")
    calls = []
    for rank in range(ranks):
        first = side * np.unravel_index(rank, grid)
        part = whole[tuple(slice(a, b) for a, b in zip(first, first + side, strict=True))]
        calls.append(_through_view(rank, part.ravel(), double))
    row = side[2] if order == "c" else side[0]
    layer = _pattern(
        forebay,
        tmp_path,
        ranks,
        "block3d",
        *("--size", "x".join(map(str, side)), "--grid", "x".join(map(str, grid))),
        *("--order", order, "--files", str(_FILES)),
        *([] if collective else ["--independent"]),
        pause=_NO_PAUSE,
    )
    _check(layer, calls, "_all" if collective else "", _FILES)
    assert _formulas(layer) == {formula}
    assert [phase["repetitions"] for phase in layer["phases"]] == [_FILES, _FILES]
    assert all(phase["new_file_each_time"] for phase in layer["phases"])
    assert layer["global"]["spatial"]["kind"] == kind
    if kind == "single calls":
        assert {each["kind"] for each in layer["sharing"]} == {"segmented"}
    # In memory a halo parts the rows, and the planes by more.
    types = Trace(tmp_path / "run.trace").table("datatypes").to_pylist()
    in_memory = [each for each in types if "at [1, 1, 1]" in each["shape"]]
    assert [(each["blocks"], each["stride"]) for each in in_memory] == [(8 * 4 * 4 // row, None)]


@pytest.mark.parametrize(
    ("ranks", "grid", "formula"),
    [
        # As the program has it by itself: the fastest dimension is split first.
        (2, (1, 1, 1, 2), "0 + rank*120"),
        (4, (1, 1, 2, 2), "0 + (rank%2)*120 + (rank//2)*720"),
        (4, (2, 1, 1, 2), "0 + (rank%2)*120 + (rank//2)*4320"),
    ],
)
def test_a_block_of_a_lattice_is_a_call_for_its_rows(
    forebay: Forebay, tmp_path: Path, ranks: int, grid: tuple[int, ...], formula: str
) -> None:
    local, site = np.array([2, 3, 3, 5]), 24
    whole = np.arange(np.prod(local * grid)).reshape(local * grid)
    calls = []
    for rank in range(ranks):
        first = local * np.unravel_index(rank, grid)
        part = whole[tuple(slice(a, b) for a, b in zip(first, first + local, strict=True))]
        calls.append(_through_view(rank, part.ravel(), site))
    rows = {(call.view.blocks, call.view.block_bytes) for call in calls if call.view}
    assert rows == {(2 * 3 * 3, 5 * site)}
    chosen = [] if grid[0] == 1 else ["--grid", "x".join(map(str, grid))]
    layer = _pattern(
        forebay,
        tmp_path,
        ranks,
        "lattice4d",
        *("--local", "x".join(map(str, local)), "--site", str(site), *chosen),
        *("--files", str(_FILES)),
        pause=_NO_PAUSE,
    )
    _check(layer, calls, "_all", _FILES)
    assert _formulas(layer) == {formula}
    assert [phase["repetitions"] for phase in layer["phases"]] == [_FILES, _FILES]
    assert all(phase["new_file_each_time"] for phase in layer["phases"])
    assert layer["global"]["spatial"]["kind"] == "strided by the file view"
    assert {each["kind"] for each in layer["sharing"]} == {"through views with holes"}


@pytest.mark.parametrize("ranks", [2, 4])
def test_interleaved_pieces_are_strided_by_the_view(
    forebay: Forebay, tmp_path: Path, ranks: int
) -> None:
    piece, pieces = 24, 42  # with 4 ranks, two of them have one more
    view = View(1, piece, ranks * piece)
    calls = [
        Call(rank, rank * piece, len(range(rank, pieces, ranks)) * piece, view)
        for rank in range(ranks)
    ]
    layer = _pattern(
        forebay,
        tmp_path,
        ranks,
        "interleave",
        *("--piece", str(piece), "--total", str(pieces * piece), "--memory", "strided"),
        *("--files", str(_FILES)),
        pause=_NO_PAUSE,
    )
    _check(layer, calls, "_all", _FILES)
    assert _formulas(layer) == (
        {"0 + rank*24"} if ranks == 2 else {"0 + rank*24", "48 + (rank-2)*24"}
    )
    assert {phase["repetitions"] for phase in layer["phases"]} == {_FILES}
    assert layer["global"]["spatial"]["kind"] == "strided by the file view"


@pytest.mark.parametrize("ranks", [2, 4])
def test_variables_of_a_checkpoint_follow_each_other(
    forebay: Forebay, tmp_path: Path, ranks: int
) -> None:
    blocks, side, unknowns = 3, 2, 5
    # Of a block: level and type, its neighbours, coordinates and size, bounding box, the unknowns.
    int32, double = 4, 8
    arrays = [int32, int32, 15 * int32, 3 * double, 3 * double, 6 * double]
    calls, begin = [], 0
    for of_block in arrays + unknowns * [side**3 * double]:
        size = blocks * of_block
        calls += [Call(rank, begin + rank * size, size) for rank in range(ranks)]
        begin += ranks * size
    layer = _pattern(
        forebay,
        tmp_path,
        ranks,
        "checkpoint",
        *("--blocks", str(blocks), "--nxb", str(side), "--unknowns", str(unknowns)),
        *("--guard", "1", "--files", str(_FILES)),
        *([] if ranks == 2 else ["--independent"]),
        pause=_NO_PAUSE,
    )
    _check(layer, calls, "_at_all" if ranks == 2 else "_at", _FILES)
    size, before = blocks * side**3 * double, ranks * blocks * sum(arrays)
    assert f"{before} + rank*{size} + i*{ranks * size}" in _formulas(layer)
    assert {phase["repetitions"] for phase in layer["phases"]} == {_FILES}
    assert {tuple(phase["ranks"]) for phase in layer["phases"]} == {tuple(range(ranks))}
    # Two pairs of variables and the unknowns are loops; five calls of eleven are in one of four.
    assert len(layer["phases"]) == 2 * (2 + 2 + 1)
    assert layer["global"]["spatial"]["kind"] == "ascending"
    assert layer["global"]["spatial"]["in_loops_share"] == pytest.approx(
        unknowns / len(calls) * ranks
    )
    assert {each["kind"] for each in layer["sharing"]} == {"interleaved"}


def _points_of(
    ranks: int, size: int, cells: int
) -> "np.ndarray[tuple[int, ...], np.dtype[np.int64]]":
    """The rank that has each point of a grid, by z, y and x: the diagonals of its cells are dealt
    out in turn."""
    z, y, x = np.indices((size, size, size)) * cells // size
    owner: np.ndarray[tuple[int, ...], np.dtype[np.int64]] = (
        (x - z) % cells + (y + z) % cells * cells
    ) % ranks
    return owner


@pytest.mark.parametrize("ranks", [2, 4])
def test_steps_of_parts_on_diagonals_are_one_call_each(
    forebay: Forebay, tmp_path: Path, ranks: int
) -> None:
    size, cells, steps, point = 4, 2, 3, 40
    owner = _points_of(ranks, size, cells).ravel()
    step = size**3 * point
    calls = []
    for rank in range(ranks):
        first = int(np.flatnonzero(owner == rank)[0]) * point
        share = np.count_nonzero(owner == rank) * point
        row = size // cells * point
        # Rows that touch are rows nevertheless: the program describes them one by one.
        view = View(share // row, row, None)
        calls += [Call(rank, first + i * step, share, view) for i in range(steps)]
    layer = _pattern(
        forebay,
        tmp_path,
        ranks,
        "multipart",
        *("--size", str(size), "--cells", str(cells), "--steps", str(steps)),
        pause=_NO_PAUSE,
    )
    _check(layer, calls, "_at_all", 1)
    by_rank = "rank*80" if ranks == 2 else "(rank%2)*80 + (rank//2)*320"
    assert _formulas(layer) == {f"0 + {by_rank} + i*{step}"}
    assert [phase["ranks"] for phase in layer["phases"]] == 2 * [list(range(ranks))]
    assert layer["global"]["spatial"]["kind"] == "strided by the file view"


@pytest.mark.parametrize("ranks", [2, 4])
def test_rows_of_parts_on_diagonals_are_calls_of_a_nest(
    forebay: Forebay, tmp_path: Path, ranks: int
) -> None:
    size, cells, steps, point = 4, 2, 3, 40
    owner = _points_of(ranks, size, cells)
    row = size // cells
    calls = [
        Call(int(owner[z, y, x]), (((s * size + z) * size + y) * size + x) * point, row * point)
        for s in range(steps)
        for z, y, x in itertools.product(range(size), range(size), range(0, size, row))
    ]
    layer = _pattern(
        forebay,
        tmp_path,
        ranks,
        "multipart",
        *("--variant", "simple", "--size", str(size), "--cells", str(cells)),
        *("--steps", str(steps)),
        pause=_NO_PAUSE,
    )
    _check(layer, calls, "_at", 1)
    assert layer["global"]["request_size"]["kind"] == "constant"
    assert layer["global"]["spatial"]["kind"] == "strided"
    assert {each["kind"] for each in layer["sharing"]} == {"interleaved"}
    assert {each["times_each_byte"] for each in layer["sharing"]} == {1}

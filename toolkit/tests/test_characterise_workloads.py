"""Goal: the patterns of the workloads, which their page tells, are found in traces of them.

Method: small runs of the real programs under `forebay trace`. What the MPI is asked and what it
asks of the file system are the same in these cases, so either layer of the trace will do.
"""

import os
from pathlib import Path
from typing import Any

import pytest
from conftest import Forebay, Launchers, allowing_root, read_json

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


def _pattern(forebay: Forebay, directory: Path, program: str, *words: str) -> dict[str, Any]:
    """The topmost layer of a run on two ranks."""
    launcher = [str(Launchers.hydra), "-n", "2", str(PROGRAMS / program)]
    answer = forebay("trace", "-o", "run.trace", "--", *launcher, *words, "data")
    assert answer.code == 0, answer.errors
    answer = forebay("characterise", "app", "run.trace", "--json", "out.json")
    assert answer.code == 0, answer.errors
    layers: dict[str, Any] = read_json(directory / "out.json")["layers"]
    return next(iter(layers.values()))  # type: ignore[no-any-return]


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
        "outofcore",
        *("--own-files", "--matrices", "8", "--side", "64", "--compute", "0.3", "--independent"),
    )
    formula = "offset = 0 + i*16384"
    # S writes, W reads and writes, C reads.
    assert _phases(layer) == [("read", 2, 8, formula), ("write", 2, 8, formula)]
    assert {phase["shared"] for phase in layer["phases"]} == {"own files"}
    assert {phase["order"] for phase in layer["phases"]} == {"contiguous"}
    assert layer["global"]["operation"]["written_bytes"] == 2 * 2 * 8 * 16384

"""The command with the real library, real launchers and a real MPI program (Forebay's own probe: a
collective write and read of a shared file, started without a compiler)."""

import os
import shutil
import sys
from pathlib import Path

import pytest
from conftest import Forebay, Launchers, allowing_root, read_json

from forebay import mpi_probe
from forebay.trace.directory import Trace

REPOSITORY = Path(__file__).resolve().parents[2]
REAL_LIBRARY = Path(os.environ.get("FOREBAY_LIBRARY_DIR", REPOSITORY / "build" / "lib"))
PROGRAMS = Path(os.environ.get("FOREBAY_PROXIES_DIR", REAL_LIBRARY.parent / "proxies"))
SONAMES = {"mpich": "libmpich.so.12", "openmpi": "libmpi.so.40"}
COMMANDS = {"mpich": [Launchers.hydra], "openmpi": [Launchers.openmpi, "--oversubscribe"]}
RANKS = 2

pytestmark = pytest.mark.mpi


@pytest.fixture(params=["mpich", "openmpi"])
def mpi(request: pytest.FixtureRequest) -> str:
    name = str(request.param)
    if COMMANDS[name][0] is None:
        pytest.skip(f"no launcher of {name}")
    if not (REAL_LIBRARY / f"libforebay-{name}.so").is_file():
        pytest.skip(f"libforebay-{name}.so is not built (make build, or set FOREBAY_LIBRARY_DIR)")
    return name


@pytest.fixture
def environ(environ: dict[str, str]) -> dict[str, str]:
    return {**environ, "FOREBAY_LIBRARY_DIR": str(REAL_LIBRARY), **allowing_root()}


def probe(mpi: str, path: str) -> list[str]:
    """The command that runs the probe on RANKS ranks."""
    launcher = [str(word) for word in COMMANDS[mpi]]
    program = [sys.executable, mpi_probe.__file__, SONAMES[mpi], path]
    return [*launcher, "-n", str(RANKS), *program]


def test_a_run_tells_what_the_engine_did(forebay: Forebay, mpi: str, tmp_path: Path) -> None:
    answer = forebay("run", "--json", "r.json", "--", *probe(mpi, "shared.dat"))
    assert answer.code == 0, answer.errors
    (file,) = read_json(tmp_path / "r.json")["files"]
    assert file["path"] == str(tmp_path / "shared.dat")
    assert (file["mode"], file["mpi"], file["ranks"]) == ("engine", mpi, RANKS)
    size = RANKS * mpi_probe.PART
    assert file["bytes_asked"] == {"write": size, "read": size}
    assert file["calls"]["write"] == RANKS


@pytest.mark.parametrize("verb", ["trace", "run"])
def test_a_trace_has_the_calls_of_all_ranks(
    forebay: Forebay, mpi: str, tmp_path: Path, verb: str
) -> None:
    options = ["-o", "job.trace"] if verb == "trace" else ["--trace", "job.trace", "--quiet"]
    answer = forebay(verb, *options, "--", *probe(mpi, "shared.dat"))
    assert answer.code == 0, answer.errors
    trace = Trace(tmp_path / "job.trace")
    assert trace.run.complete, trace.run.notes
    assert (trace.run.ranks, trace.run.mpi["name"]) == (RANKS, mpi)
    calls = trace.table("mpiio").to_pylist()
    writes = [row for row in calls if row["call"] == "MPI_File_write_at_all"]
    assert sorted(row["offset"] for row in writes) == [r * mpi_probe.PART for r in range(RANKS)]
    assert all(row["length"] == mpi_probe.PART and row["collective"] for row in writes)
    ranks = trace.table("processes").column("rank").to_pylist()
    assert sorted(ranks[row["process"]] for row in writes) == list(range(RANKS))
    modes = set(trace.table("openings").column("mode").to_pylist())
    assert modes == {"observe" if verb == "trace" else "engine"}
    places = {row["file"] for row in writes}
    below = [row for row in trace.table("posix").to_pylist() if row["file"] in places]
    written = sum(row["result"] for row in below if "write" in row["call"])
    assert written == RANKS * mpi_probe.PART


def test_a_comparison_finds_the_files_identical(forebay: Forebay, mpi: str, tmp_path: Path) -> None:
    answer = forebay(
        "compare", "-n", "1", "--limit", "--json", "c.json", "--", *probe(mpi, "shared.dat")
    )
    assert answer.code == 0, answer.output + answer.errors
    content = read_json(tmp_path / "c.json")
    assert content["identical"] is True
    assert [Path(file["path"]).name for file in content["files"]] == ["shared.dat"]
    assert content["files"][0]["bytes"] == RANKS * mpi_probe.PART
    assert content["ratio"]["write"]["median"] > 0
    assert content["ratio"]["read"]["median"] > 0
    assert content["storage"]["stock"]["write_bytes"] >= RANKS * mpi_probe.PART
    assert content["limit"]["write"]["seconds"] > 0
    assert list(content["environment"]["mpi"]) == [mpi]


HINTED = """
version = 1

[configuration.known]
engine = "mpi"
hints = { cb_nodes = 1, cb_buffer_size = "1MiB" }

[configuration.unknown]
engine = "mpi"
hints = { made_up_hint = 7 }
"""


def test_hints_of_the_mpi_are_proven_by_a_trace(forebay: Forebay, mpi: str, tmp_path: Path) -> None:
    """Open MPI says of no hint whether it has it: there the processes that write are counted, and
    what it does not read has no effect. Ranks' rows interleave, so that they write together."""
    program = PROGRAMS / mpi / "lattice4d"
    if not (REAL_LIBRARY / "libforebay-trace.so").is_file() or not program.is_file():
        pytest.skip("libforebay-trace.so or the workloads are not built (make build)")
    (tmp_path / "configurations.toml").write_text(HINTED)
    launcher = [*map(str, COMMANDS[mpi]), "-n", "4"]  # OMPIO has two write for themselves
    answer = forebay(
        "evaluate", "--configs", "known,unknown,stock", "-n", "1", "--json", "e.json",
        "--", *launcher, program, "--local", "8x4x4x4", "lattice",
    )  # fmt: skip
    assert answer.code == 0, answer.output + answer.errors
    content = read_json(tmp_path / "e.json")
    seen = "not reported by the MPI" if mpi == "mpich" else "no MPI that reads ROMIO_HINTS"
    assert "unknown: setting did not take effect" in answer.output
    assert content["verdicts"]["unknown"]["reasons"] == [
        f"unknown: made_up_hint: asked 7, observed {seen}"
    ]
    aggregators, buffer = content["settings"]["known"]
    counted = "1" if mpi == "mpich" else "1 of 4 processes moved the bytes"
    assert (aggregators["state"], aggregators["observed"]) == ("in force", [counted])
    if mpi == "mpich":
        assert (buffer["state"], buffer["observed"]) == ("in force", ["1048576"])
    else:
        assert (buffer["state"], buffer["observed"]) == ("not recorded", [])
    assert "known: too noisy" in answer.output
    timed = [run["configuration"] for run in content["runs"]]
    assert sorted(timed) == ["known", "stock"]  # what is traced is not timed


def test_files_that_only_a_trace_shows_are_compared(forebay: Forebay, tmp_path: Path) -> None:
    """A script writes one byte more each time where neither it is started nor its words point."""
    if not (REAL_LIBRARY / "libforebay-trace.so").is_file():
        pytest.skip("libforebay-trace.so is not built (make build)")
    (tmp_path / "configurations.toml").write_text(HINTED)
    place = tmp_path / "there"
    place.mkdir()
    (tmp_path / "grow.sh").write_text(f"echo >> {place}/count; cat {place}/count > {place}/out")
    answer = forebay("evaluate", "--configs", "known,stock", "-n", "2", "--ignore", "count",
                     "--", "sh", "grow.sh")  # fmt: skip
    assert answer.code == 3, answer.output + answer.errors
    assert f"{place}/out: 4 bytes after one run of 'known', " in answer.output


def test_the_launcher_of_another_mpi_is_told(forebay: Forebay, mpi: str, tmp_path: Path) -> None:
    """Each process then is a program of one rank, which is rarely what was meant."""
    other = "openmpi" if mpi == "mpich" else "mpich"
    if COMMANDS[other][0] is None:
        pytest.skip(f"no launcher of {other}")
    words = [str(word) for word in COMMANDS[other]]
    program = [sys.executable, mpi_probe.__file__, SONAMES[mpi], "alone.dat"]
    answer = forebay("run", "--", *words, "-n", "1", *program)
    assert f"the program uses {mpi}, but the launcher is {other}'s" in answer.errors


def test_emulated_nodes_are_told_in_the_record(forebay: Forebay, mpi: str, tmp_path: Path) -> None:
    words = ["run", "--ranks-per-node", "1", "--json", "r.json", "--"]
    answer = forebay(*words, *probe(mpi, "shared.dat"))
    assert answer.code == 0, answer.errors
    assert read_json(tmp_path / "r.json")["files"][0]["nodes"] == RANKS


def test_programs_without_mpi_run_untouched(forebay: Forebay, mpi: str) -> None:
    answer = forebay("run", "-q", "--", "sh", "-c", "echo out; ls /proc/self/fd | wc -l >/dev/null")
    assert (answer.code, answer.output, answer.errors) == (0, "out\n", "")


def test_the_doctor_finds_all_well(forebay: Forebay, mpi: str, tmp_path: Path) -> None:
    answer = forebay("doctor", tmp_path)
    launcher = str(COMMANDS[mpi][0])
    assert f"served by libforebay-{mpi}.so" in answer.output
    assert f"{RANKS} ranks writes and reads by" in answer.output
    assert shutil.which(launcher) is not None
    assert answer.code == 0, answer.output
    assert not list(tmp_path.glob(".forebay-probe-*"))


def test_the_doctor_tries_the_standard_abi(forebay: Forebay, tmp_path: Path) -> None:
    """PyPI's `mpich` puts an MPI with the standard ABI beside the interpreter."""
    beside = Path(sys.executable).parent
    if shutil.which("mpicc_abi", path=str(beside)) is None:
        pytest.skip("no MPI with the standard ABI beside the interpreter")
    if not (REAL_LIBRARY / "libforebay-abi.so").is_file():
        pytest.skip("libforebay-abi.so is not built (make build, or set FOREBAY_LIBRARY_DIR)")
    answer = forebay("doctor", tmp_path, PATH=f"{beside}{os.pathsep}{os.environ['PATH']}")
    assert "the standard ABI, served by libforebay-abi.so" in answer.output
    assert answer.code == 0, answer.output

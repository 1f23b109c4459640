"""What `make build` leaves in .venv: the command with its own native parts, as a user starts it;
and the demo."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Launchers, allowing_root

from forebay import mpi_probe

REPOSITORY = Path(__file__).resolve().parents[2]
INSTALLED = REPOSITORY / ".venv" / "bin" / "forebay"
DEMO_TIMEOUT_S = 300

pytestmark = [
    pytest.mark.mpi,
    pytest.mark.skipif(not INSTALLED.is_file(), reason=".venv holds no forebay (make build)"),
    pytest.mark.skipif(Launchers.hydra is None, reason="no MPICH"),
]


def run(
    words: list[str], directory: Path, timeout_s: float = 60, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Runs a command with nothing of Forebay's in the environment."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("FOREBAY_", "PYTHON"))}
    return subprocess.run(
        words,
        cwd=directory,
        env={**kept, **allowing_root(), **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def test_the_doctor_finds_the_installed_library_and_nothing_to_repair(tmp_path: Path) -> None:
    done = run([str(INSTALLED), "doctor", str(tmp_path)], tmp_path)
    assert f"libforebay.so: {INSTALLED.parents[1]}" in done.stdout
    assert done.returncode == 0, done.stdout


def test_a_program_runs_through_the_installed_library(tmp_path: Path) -> None:
    probe = [sys.executable, mpi_probe.__file__, "libmpich.so.12", "shared.dat"]
    command = [str(INSTALLED), "run", "--", str(Launchers.hydra), "-n", "2", *probe]
    done = run(command, tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"{tmp_path}/shared.dat  2 ranks" in done.stderr


def test_the_demo_ends_with_the_comparison_and_its_report(tmp_path: Path) -> None:
    if not (REPOSITORY / "build" / "proxies" / "mpich" / "lattice4d").is_file():
        pytest.skip("the workloads are not built (make build)")
    done = run(
        [str(REPOSITORY / "packaging" / "demo.sh")],
        tmp_path,
        DEMO_TIMEOUT_S,
        DEMO_PAIRS="1",
        DEMO_REPORTS=str(tmp_path / "reports"),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("written file is byte-identical") == 2
    assert done.stdout.splitlines()[-1] == f"report: {tmp_path}/reports/interleave/report.md"
    for workload in ("lattice4d", "interleave"):
        assert "| MPI-IO write |" in (tmp_path / "reports" / workload / "report.md").read_text()

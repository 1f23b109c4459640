"""Goal: what an MPI does with files of its own is in no pattern, funnel or finding of the
application, and is told apart.

Method: made-up traces with the names that Open MPI 4.1 and MPICH 4.0 were seen to use.
"""

from pathlib import Path

import pytest
from made_runs import MIB, MadeRun
from rich.console import Console

from forebay.characterise import app, app_report
from forebay.report import contents, terminal
from forebay.trace import mpi_files, places
from forebay.trace.places import Owner

DATA = "/scratch/out.dat"
OF_OPEN_MPI = [
    "/tmp/ompi.node7.1000",
    "/tmp/ompi.node7.1000/pid.27995/pmix_dstor_ds21_27995/smseg-27590657-0",
    "/scratch/tmp/ompi.node7.example.org.0/pid.27995/1/out.dat_cid-0-28012.sm",
    "/scratch/tmp/prte.node7.812.1000/dvm.812/1/0",
    "/dev/shm/vader_segment.node7.1a50001.0",
    "/users/me/.openmpi/mca-params.conf",
    "/scratch/out.dat.locktest.3",
    "/scratch/out.dat.data.0",
    "/scratch/out.dat.metadata.12",
    "/scratch/out.dat-854523905-24096.lock",
]
OF_MPICH = [
    "/dev/shm/mpich_shar_tmpyDuEyC",
    "/dev/shm/ucx_shm_posix_7befda58",
    "/scratch/.out.dat.shfp.2427965926.24549",
    "/scratch/.out.dat.shfp.24661",
]
OF_THE_USER = [
    "/scratch/other.data.0",  # no such file was opened through MPI
    "/scratch/out.dat.data",
    "/scratch/out.dat.data.0.gz",
    "/scratch/ompi.results",
    "/scratch/run-1-2.lock",
]


def run_with(tmp_path: Path, others: list[str]) -> MadeRun:
    """A rank that writes 4 MiB to DATA through MPI."""
    made = MadeRun(tmp_path / "t", ranks=1, files=[DATA, *others])
    made.openings.append({"file": 0})
    made.mpi("write_at_all", 100, 400, 4 * MIB, offset=0, collective=True)
    made.posix("pwrite", 200, 200, 4 * MIB, offset=0, within="mpi")
    return made


@pytest.mark.parametrize("path", OF_OPEN_MPI + OF_MPICH)
def test_files_that_an_mpi_has_for_itself_are_its_own(tmp_path: Path, path: str) -> None:
    found = places.owners(run_with(tmp_path, [path]).trace())
    assert found.tolist() == [Owner.APPLICATION, Owner.MPI, Owner.SYSTEM]


@pytest.mark.parametrize("path", OF_THE_USER)
def test_names_that_are_alike_are_the_applications(tmp_path: Path, path: str) -> None:
    assert places.applications(run_with(tmp_path, [path]).trace()).tolist() == [True, True, False]


def test_what_a_program_opens_through_mpi_is_not_the_mpis(tmp_path: Path) -> None:
    made = run_with(tmp_path, ["/scratch/out.dat.data.0"])
    made.openings.append({"file": 1})
    assert places.applications(made.trace()).tolist() == [True, True, False]


def test_the_mpis_own_files_are_counted_apart(tmp_path: Path) -> None:
    """The shared file pointer's file is read and written as often as the data, and opened again and
    again."""
    made = run_with(tmp_path, ["/scratch/.out.dat.shfp.7", OF_OPEN_MPI[2]])
    for turn in range(40):
        made.posix("open", 500 + turn, 0.5, file=1, within="mpi")
        made.posix("pread", 600 + turn, 0.5, 8, offset=0, file=1, within="mpi")
        made.posix("pwrite", 700 + turn, 1, MIB, offset=0, file=1, within="mpi")
    made.posix("write", 800, 1, 40, offset=0, file=2)
    trace = made.trace()
    found = mpi_files.of(trace)
    assert found is not None
    assert (found.files, found.calls) == (2, 121)
    assert (found.read_bytes, found.written_bytes) == (320, 40 * MIB + 40)
    assert found.seconds == pytest.approx(0.081)
    report = contents.examine(trace)
    assert report.funnel.amplification == 1.0
    assert not any("shfp" in line for f in report.findings for line in (f.title, *f.evidence))
    assert report.as_json()["mpi_files"] == found.as_json()
    application = app.characterise(trace)
    assert [layer.name for layer in application.layers] == ["mpiio"]
    with_all = app.characterise(trace, all_files=True)
    assert [layer.name for layer in with_all.layers] == ["mpiio", "posix"]
    for show in (
        lambda console: terminal.show(console, report),
        lambda console: app_report.show(console, application, 10, each_process=False),
    ):
        console = Console(record=True, width=200, quiet=False, file=(tmp_path / "o").open("w"))
        show(console)
        assert f"{found}" in console.export_text().replace("\n", " ")


def test_without_such_files_nothing_is_said(tmp_path: Path) -> None:
    trace = run_with(tmp_path, []).trace()
    assert mpi_files.of(trace) is None
    assert contents.examine(trace).as_json()["mpi_files"] is None

"""Goal: each measurement of `forebay characterise system` gives rates of what it says, and leaves
nothing behind. Method: real names, memory, fio and MPIs, on small files; what a rate is, is not
asserted, as that is the machine's."""

import os
import sys
from pathlib import Path

import pytest
from conftest import Launchers

from forebay import launcher
from forebay.characterise.system import (
    fio,
    mpi_probes,
    names_process,
    page_cache,
    place,
    probes,
    workspace,
)
from forebay.characterise.system.fio import FioJob
from forebay.characterise.system.mpi_probes import FilesProbe, NetworkProbe
from forebay.characterise.system.mpi_rates import MESSAGE_BYTES, WINDOW
from forebay.characterise.system.probes import FioProbe, MemoryProbe, NamesProbe, ProbeError, Sizes
from forebay.characterise.system.workspace import Sizing, Workspace
from forebay.errors import ForebayError
from forebay.started_together import StartedTogether

KIB, MIB = 1 << 10, 1 << 20


@pytest.fixture
def made(tmp_path: Path) -> Workspace:
    where = place.examine(tmp_path)
    return workspace.make(where, Sizing(2 * MIB, 1.0), 2, 1, lambda _: None)


def test_files_are_written_before_with_bytes_that_do_not_repeat(made: Workspace) -> None:
    (shared,) = made.files("shared", 1)
    own = made.files("own", 2)
    assert shared.stat().st_size == made.bytes == 2 * MIB
    assert [path.stat().st_size for path in own] == [MIB, MIB]
    pages = [
        path.read_bytes()[at : at + 4096]
        for path in (shared, *own)
        for at in range(0, path.stat().st_size, 4096)
    ]
    assert len(set(pages)) == len(pages)
    assert workspace.remove(made.directory) == ""
    assert not made.directory.exists()


def test_a_place_without_room_is_told_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> float:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(workspace, "_write", full)
    directories: list[Path] = []
    where = place.examine(tmp_path)
    with pytest.raises(ForebayError, match="No space left on device") as told:
        workspace.make(where, Sizing(2 * MIB, 1.0), 1, 1, directories.append)
    assert "quota" in told.value.advice
    assert len(directories) == 1  # and the campaign removes it


def test_what_is_dropped_from_the_page_cache_is_gone(made: Workspace) -> None:
    if made.place.in_memory:
        pytest.skip("nothing is dropped from memory")
    assert made.drop("own", 2) == 0
    assert page_cache.drop(made.files("shared", 1)[0]) == 0


@pytest.mark.parametrize("processes", [1, 2])
def test_operations_on_names_are_all_measured(made: Workspace, processes: int) -> None:
    samples = NamesProbe(made, processes, files=3).run(0.0, 1)
    told = [sample.subject.as_json() for sample in samples]
    expected = [*names_process.OPERATIONS, *(["tar"] if processes == 1 else [])]
    assert [each["operation"] for each in told] == expected
    assert {each.get("size_bytes") for each in told[:3]} == {0}
    assert {each.get("processes", 1) for each in told} == {processes}
    assert all(sample.rate > 0 for sample in samples)
    assert not (made.directory / "names").exists()


def test_a_directory_that_is_gone_is_an_error_in_words(made: Workspace) -> None:
    workspace.remove(made.directory)
    with pytest.raises(ProbeError, match="No such file or directory"):
        NamesProbe(made, 1, files=3).run(0.0, 1)


def test_processes_that_start_together_say_why_they_end() -> None:
    command = [sys.executable, "-c", "raise SystemExit('it broke')"]
    with StartedTogether([command]) as workers, pytest.raises(ChildProcessError, match="it broke"):
        workers.phase()


def test_memory_is_copied_by_several_processes() -> None:
    (sample,) = MemoryProbe(2, 4 * MIB).run(0.01, 1)
    assert sample.subject.as_json()["level"] == "memory"
    assert sample.rate > 0


def test_a_command_for_fio_names_no_directory_and_shares_a_file_out(made: Workspace) -> None:
    tool = fio.Fio("fio", {})
    words = tool.command(
        FioJob("shared", "write", 64 * KIB, 2 * MIB, 2, direct=True, in_flight=16), 1.5, 7,
        )  # fmt: skip
    assert {"--filename=shared", f"--offset_increment={MIB}", f"--size={MIB}"} <= set(words)
    assert {"--iodepth=16", "--direct=1", "--numjobs=2", "--runtime=1500ms"} <= set(words)
    assert not any("/" in word for word in words)
    once = tool.command(FioJob("fresh", "write", 4096, MIB, 2, False, once=True, sync=True), 1, 7)
    assert {"--filename_format=fresh.$jobnum", "--end_fsync=1", "--ioengine=psync"} <= set(once)
    assert "--time_based" not in once


def test_the_real_fio_measures_every_kind_and_leaves_the_files(made: Workspace) -> None:
    tool = fio.find(dict(os.environ))
    if tool is None:
        pytest.skip("no fio")
    before = {path.name: path.stat().st_size for path in made.directory.iterdir()}
    sizes = Sizes((64 * KIB,), (64 * KIB,), (4 * KIB,), (64 * KIB,))
    listed = probes.fio_probes(tool, made, sizes, [2], cached=not made.place.in_memory)
    for probe in listed:
        (sample,) = probe.run(0.02, 3)
        assert sample.rate > 0
        assert isinstance(probe, FioProbe)
        told = sample.subject.as_json()
        assert (told["level"], told["mode"]) == (probe.level, probe.mode)
    assert {path.name: path.stat().st_size for path in made.directory.iterdir()} == before


@pytest.mark.parametrize("wanted", ["mpich", "openmpi"])
def test_real_messages_and_shared_files_are_measured(made: Workspace, wanted: str) -> None:
    if (Launchers.hydra if wanted == "mpich" else Launchers.openmpi) is None:
        pytest.skip(f"no {wanted}")
    mpi, why = mpi_probes.find(wanted, None)
    assert mpi is not None, why
    messages = [sample.subject.as_json() for sample in NetworkProbe(mpi).run(0.01, 1)]
    assert {each["size_bytes"] for each in messages} == set(MESSAGE_BYTES)
    assert {each.get("in_flight", 1) for each in messages} == {1, WINDOW}
    files = FilesProbe(mpi, made, mpi_probes.STOCK, 2, 4 * KIB).run(0.01, 1)
    told = {(s.subject.as_json()["access"], s.subject.as_json()["operation"]) for s in files}
    assert len(told) == 4
    assert all(sample.rate > 0 for sample in files)
    assert not list(made.directory.glob("*mpi*"))


def test_words_of_the_user_start_the_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    if Launchers.hydra is None:
        pytest.skip("no mpich")
    found, _ = mpi_probes.find("auto", f"{Launchers.hydra} -n 3 -ppn 1")
    assert found is not None
    assert found.given
    assert found.dialect is launcher.Dialect.HYDRA
    assert found.words[1:] == ["-n", "3", "-ppn", "1"]

"""`forebay doctor`: what is missing is found, and each failure has a fix."""

import json
import mmap
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import Forebay

from forebay.filesystem import mount_of, stripe_of
from forebay.leftovers import (
    orphaned_buffers,
    orphaned_readers,
    orphaned_traces,
    remove_orphaned_traces,
)


def test_a_missing_library_fails_with_its_fix(forebay: Forebay, tmp_path: Path) -> None:
    answer = forebay("doctor", "--json", FOREBAY_LIBRARY_DIR=str(tmp_path))
    content = json.loads(answer.output)
    failed = [check for check in content["checks"] if check["level"] == "failure"]
    if content["healthy"]:
        pytest.skip("the package is installed with its library")
    assert answer.code == 1
    assert any("libforebay.so is not installed" in check["finding"] for check in failed)
    assert all(check["fix"] for check in failed)


def test_a_library_that_cannot_be_preloaded_fails(forebay: Forebay, tmp_path: Path) -> None:
    (tmp_path / "libforebay.so").write_text("no shared object")
    answer = forebay("doctor", FOREBAY_LIBRARY_DIR=str(tmp_path))
    if "preloading works" in answer.output:
        pytest.skip("the package is installed with its library")
    assert answer.code == 1
    assert "preloading does not work" in answer.output


def test_a_back_end_that_does_not_load_names_what_is_missing(
    forebay: Forebay, fake_library: Path, tmp_path: Path
) -> None:
    for path in fake_library.iterdir():
        shutil.copy(path, tmp_path)
    (tmp_path / "libforebay-mpich.so").write_text("no shared object")
    answer = forebay("doctor", FOREBAY_LIBRARY_DIR=str(tmp_path))
    if "libforebay-openmpi.so loads" in answer.output:
        pytest.skip("the package is installed with its library")
    assert answer.code == 1
    assert "libforebay-mpich.so does not load" in answer.output


def test_a_back_end_without_its_mpi_is_no_failure(
    forebay: Forebay, fake_library: Path, tmp_path: Path
) -> None:
    """A back end that is linked with libmpi_abi.so.1, which is taken away after the link."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    for path in fake_library.iterdir():
        shutil.copy(path, tmp_path)
    (tmp_path / "a.c").write_text("int other(void); int mine(void) { return other(); }\n")
    (tmp_path / "b.c").write_text("int other(void) { return 1; }\n")
    for words in (
        ["-Wl,-soname,libmpi_abi.so.1", "-o", "mpi.so", "b.c"],
        ["-o", "libforebay-abi.so", "a.c", "mpi.so"],
    ):
        subprocess.run([compiler, "-shared", "-fPIC", *words], cwd=tmp_path, check=True)
    answer = forebay("doctor", "--json", FOREBAY_LIBRARY_DIR=str(tmp_path))
    checks = json.loads(answer.output)["checks"]
    said = [check for check in checks if "libforebay-abi.so" in check["finding"]]
    if not any("programs that bring" in check["finding"] for check in said):
        pytest.skip("the package is installed with its library")
    assert [check["level"] for check in said] == ["info"]


def test_what_a_killed_run_left_is_found_with_its_removal(forebay: Forebay, tmp_path: Path) -> None:
    left = tmp_path / "my runs" / ".out.dat.forebay-pointer-1775989376081521279"
    left.parent.mkdir()
    left.write_bytes(bytes(8))
    for path in (left.parent, left.parent / "out.dat"):
        answer = forebay("doctor", path)
        assert f"{left} (a shared file pointer)" in answer.output
        assert f"rm -r '{left}'" in answer.output
    left.unlink()
    assert "forebay-pointer" not in forebay("doctor", left.parent).output


def test_a_shared_buffer_is_left_over_once_its_process_is_gone(tmp_path: Path) -> None:
    with subprocess.Popen(["true"]) as gone:
        pass
    for pid in (os.getpid(), gone.pid):
        (tmp_path / f"forebay-{pid}-0123456789abcdef").touch()
    assert [one.path.name for one in orphaned_buffers(tmp_path)] == [
        f"forebay-{gone.pid}-0123456789abcdef"
    ]


def test_what_readers_shared_is_left_over_once_none_has_it_mapped(tmp_path: Path) -> None:
    used = tmp_path / "forebay-reads-1-0-30-1f-10000000-18a1b2c3d4e5f607-f0000dfa"
    left = used.with_name("forebay-reads-1-0-30-2f-10000000-18a1b2c3d4e5f607-f0000dfa")
    window = used.with_name(
        "forebay-window-2-0-30-2f-10000000-18a1b2c3d4e5f607-c0ffee0c0ffee-f0000dfa"
    )
    (tmp_path / "forebay-reads-notes").touch()
    for path in (used, left, window):
        path.write_bytes(bytes(4096))
    with used.open("r+b") as file, mmap.mmap(file.fileno(), 0):
        assert [one.path for one in orphaned_readers(tmp_path)] == [left, window]
    assert [one.path for one in orphaned_readers(tmp_path)] == [used, left, window]


def test_what_the_kernel_writes_down_for_nobody_is_left_over(tmp_path: Path) -> None:
    with subprocess.Popen(["true"]) as gone:
        pass
    left, used = (tmp_path / f"forebay-{pid}" for pid in (gone.pid, os.getpid()))
    for path in (left, used, tmp_path / "others"):
        path.mkdir()
    assert [one.path for one in orphaned_traces(tmp_path)] == [left]
    remove_orphaned_traces(tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted([used, tmp_path / "others"])


def test_no_launcher_on_the_path_fails_with_its_fix(forebay: Forebay, tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    cat = shutil.which("cat")
    assert cat is not None
    (tools / "cat").symlink_to(cat)
    answer = forebay("doctor", PATH=str(tools))
    assert answer.code == 1
    assert "no MPI launcher on PATH" in answer.output


def test_the_path_asked_about_is_described(forebay: Forebay, tmp_path: Path) -> None:
    answer = forebay("doctor", tmp_path / "not" / "yet" / "there")
    assert f"{tmp_path}/not/yet/there: {mount_of(tmp_path).type}" in answer.output


def test_the_file_system_is_that_of_the_nearest_existing_directory(tmp_path: Path) -> None:
    assert mount_of(tmp_path / "a" / "b") == mount_of(tmp_path)
    assert mount_of(Path("/proc/self")).type == "proc"


def test_the_stripe_is_read_from_the_testbeds_attribute(tmp_path: Path) -> None:
    try:
        os.setxattr(tmp_path, "user.forebay.stripe", b"size=65536,count=4,lock=1")
    except OSError:
        pytest.skip("this file system has no user attributes")
    stripe = stripe_of(tmp_path / "not-there-yet")
    assert stripe is not None
    assert (stripe.size, stripe.count) == (65536, 4)


@pytest.mark.parametrize("value", [b"", b"size=x,count=4", b"count=4", b"nonsense"])
def test_a_damaged_attribute_is_no_stripe(tmp_path: Path, value: bytes) -> None:
    try:
        os.setxattr(tmp_path, "user.forebay.stripe", value)
    except OSError:
        pytest.skip("this file system has no user attributes")
    assert stripe_of(tmp_path) is None

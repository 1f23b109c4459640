"""`forebay testbed`: up, seen by doctor, counted by status, down; and what is refused."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Forebay

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAM = "forebay-testbedfs"


def real_program() -> Path | None:
    """The daemon that was built, if any."""
    places = [
        Path(os.environ.get("FOREBAY_LIBRARY_DIR", "/nonexistent")).parent / "bin",
        REPOSITORY / "build" / "testbed",
        REPOSITORY / "build" / "bin",
    ]
    return next((place / PROGRAM for place in places if (place / PROGRAM).is_file()), None)


@pytest.fixture
def native_parts(fake_library: Path, tmp_path: Path) -> Path:
    """A directory for FOREBAY_LIBRARY_DIR with the real daemon in it."""
    program = real_program()
    if program is None:
        pytest.skip("forebay-testbedfs is not built")
    if not os.access("/dev/fuse", os.R_OK | os.W_OK) or shutil.which("fusermount3") is None:
        pytest.skip("no FUSE here")
    parts = tmp_path / "parts"
    shutil.copytree(fake_library, parts)
    shutil.copy(program, parts)
    return parts


@pytest.fixture
def environ(environ: dict[str, str], native_parts: Path) -> dict[str, str]:
    return {**environ, "FOREBAY_LIBRARY_DIR": str(native_parts)}


@pytest.fixture
def mounted(forebay: Forebay, tmp_path: Path) -> Iterator[Path]:
    answer = forebay(
        "testbed", "up", "--mount", "pfs", "--servers", "2", "--bandwidth", "100MiB/s",
        "--latency", "1ms", "--stripe", "4KiB",
    )  # fmt: skip
    assert answer.code == 0, answer.errors
    assert "2 servers x 100.0 MiB/s" in answer.output
    yield tmp_path / "pfs"
    if os.path.ismount(tmp_path / "pfs"):
        forebay("testbed", "down", "--mount", "pfs")


def test_quantities_have_the_units_of_the_hints(forebay: Forebay, tmp_path: Path) -> None:
    answer = forebay(
        "testbed", "up", "--mount", "[pfs]", "--bandwidth", "2M", "--stripe", "4k",
        "--latency", "1.5", "--lock-cost", "250us", "--object-cost", "40us",
    )  # fmt: skip
    assert answer.code == 0, answer.errors
    (state,) = json.loads(forebay("testbed", "status", "--json").output)
    down = forebay("testbed", "down")
    assert str(tmp_path / "[pfs]") in answer.output
    assert "object cost 40 us" in answer.output
    assert str(tmp_path / "[pfs]") in down.output
    found = state["parameters"]
    assert found["bandwidth_bytes_per_s"] == 2 * 1024 * 1024
    assert found["stripe_bytes"] == 4096
    assert found["latency_s"] == pytest.approx(0.0015)
    assert found["lock_cost_s"] == pytest.approx(0.00025)
    assert found["object_cost_s"] == pytest.approx(0.00004)


def test_what_is_written_is_counted_at_the_servers(forebay: Forebay, mounted: Path) -> None:
    (mounted / "a").write_bytes(bytes(16384))
    (state,) = json.loads(forebay("testbed", "status", "--json").output)
    assert state["running"] is True
    assert [server["write_bytes"] for server in state["servers"]] == [8192, 8192]


def test_what_was_read_is_kept_in_the_page_cache(forebay: Forebay, tmp_path: Path) -> None:
    answer = forebay("testbed", "up", "--mount", "pfs", "--latency", "1ms", "--page-cache")
    assert answer.code == 0, answer.errors
    try:
        assert "page cache with a read-ahead of" in answer.output
        file = tmp_path / "pfs" / "a"
        file.write_bytes(bytes(10_000))  # its last page is there in part
        assert file.read_bytes() == file.read_bytes() == bytes(10_000)
        (state,) = json.loads(forebay("testbed", "status", "--json").output)
    finally:
        forebay("testbed", "down")
    assert state["parameters"]["page_cache"] is True
    assert state["parameters"]["read_ahead_bytes"] % 4096 == 0
    assert sum(server["read_bytes"] for server in state["servers"]) <= 10_000


def test_the_doctor_reads_its_stripe(forebay: Forebay, mounted: Path) -> None:
    assert "striped: 4.0 KiB over 2 servers" in forebay("doctor", mounted).output


def test_a_second_one_on_the_same_place_is_refused(forebay: Forebay, mounted: Path) -> None:
    answer = forebay("testbed", "up", "--mount", mounted)
    assert answer.code == 2
    assert "forebay testbed down" in answer.errors


def test_down_leaves_the_files_and_says_where(
    forebay: Forebay, mounted: Path, tmp_path: Path
) -> None:
    (mounted / "a").write_text("kept")
    answer = forebay("testbed", "down")
    assert answer.code == 0, answer.errors
    assert str(tmp_path / "pfs.files") in answer.output
    assert not os.path.ismount(mounted)
    assert (tmp_path / "pfs.files" / "a").read_text() == "kept"
    assert json.loads(forebay("testbed", "status", "--json").output) == []


def test_one_in_use_stays_up_and_says_so(forebay: Forebay, mounted: Path) -> None:
    with (mounted / "a").open("w"):
        answer = forebay("testbed", "down", "--mount", mounted)
    assert answer.code == 1
    assert "fuser -vm" in answer.errors
    assert os.path.ismount(mounted)


def test_no_testbed_to_end_is_said(forebay: Forebay) -> None:
    answer = forebay("testbed", "down")
    assert answer.code == 2
    assert "no testbed is up" in answer.errors


@pytest.mark.parametrize(
    "words",
    [
        ["--bandwidth", "fast"],
        ["--bandwidth", "0"],
        ["--latency", "soon"],
        ["--stripe", "wide"],
        ["--page-cache", "--read-ahead", "far"],
        ["--page-cache", "--read-ahead", "100B"],
    ],
)
def test_a_wrong_quantity_is_refused_before_anything_is_mounted(
    forebay: Forebay, words: list[str], tmp_path: Path
) -> None:
    answer = forebay("testbed", "up", "--mount", "pfs", *words)
    assert answer.code == 2
    assert "Write" in answer.errors
    assert not (tmp_path / "pfs").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--real", "glusterfs", "--latency", "3"], "--latency belongs to the emulated"),
        (["--real", "glusterfs", "--lock-cost", "0ms"], "--lock-cost belongs to the emulated"),
        (["--real", "glusterfs", "--page-cache"], "--page-cache belongs to the emulated"),
        (["--real", "glusterfs", "--read-ahead", "1MiB"], "--read-ahead belongs to the emulated"),
        (["--read-ahead", "1MiB"], "Add --page-cache"),
        (["--layout", "dispersed"], "--layout belongs to --real"),
        (["--redundancy", "1"], "--redundancy belongs to --real"),
        (["--real", "glusterfs", "--redundancy", "1"], "no redundancy"),
        (["--real", "lustre"], "glusterfs"),
    ],
)
def test_options_of_the_other_kind_are_refused(
    forebay: Forebay, words: list[str], said: str, tmp_path: Path
) -> None:
    answer = forebay("testbed", "up", "--mount", "pfs", *words)
    assert answer.code == 2
    assert said in answer.errors
    assert not (tmp_path / "pfs").exists()


def test_a_state_directory_that_somebody_else_made_is_refused(
    forebay: Forebay, tmp_path: Path
) -> None:
    """In the system's temporary directory anybody may make one."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / f"forebay-testbed-{os.getuid()}").symlink_to(elsewhere)
    answer = forebay("testbed", "status", XDG_RUNTIME_DIR="", TMPDIR=str(tmp_path))
    assert answer.code == 1
    assert "belongs to somebody else" in answer.errors

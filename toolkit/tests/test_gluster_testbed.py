"""`forebay testbed --real glusterfs` for real: both layouts, written by programs of both MPIs with
and without Forebay; and nothing is left of it, whole or not."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import Forebay, Launchers, allowing_root, clean_environ, forebay_in, read_json

from forebay import filesystem, gluster_daemons, mpi_probe, testbed_state
from forebay.errors import ForebayError
from forebay.gluster_daemons import Daemons

REPOSITORY = Path(__file__).resolve().parents[2]
REAL_LIBRARY = Path(os.environ.get("FOREBAY_LIBRARY_DIR", REPOSITORY / "build" / "lib"))
COMMANDS = {"mpich": [Launchers.hydra], "openmpi": [Launchers.openmpi, "--oversubscribe"]}
SONAMES = {"mpich": "libmpich.so.12", "openmpi": "libmpi.so.40"}
RANKS = 2
TIMEOUT_S = 600  # daemons that start one another, on a machine that may be busy


def why_not() -> str:
    """Why there can be no GlusterFS here; empty if there can."""
    if os.geteuid() != 0:
        return "GlusterFS needs root"
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "no /dev/fuse here"
    try:
        gluster_daemons.require_programs()
    except ForebayError as error:
        return error.message
    if subprocess.run(["unshare", "--net", "true"], capture_output=True, check=False).returncode:
        return "no network namespace can be made here"
    return ""


pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not())


@dataclass(frozen=True)
class Gluster:
    """One that is up. `forebay` runs the command beside its mount point."""

    layout: str
    mount: Path
    backing: Path
    forebay: Forebay

    def up(self) -> list[str]:
        """The command line that starts it."""
        return ["testbed", "up", "--real", "glusterfs", "--layout", self.layout, "--mount", "pfs"]

    def daemons(self) -> Daemons:
        return Daemons(self.mount, self.backing)


def require_bricks_in(place: Path) -> None:
    try:
        os.setxattr(place, "trusted.forebay", b"1")
    except OSError as error:
        pytest.skip(f"no trusted attributes in {place}: {error.strerror}")


@pytest.fixture(scope="module", params=["distributed", "dispersed"])
def gluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Gluster]:
    place = tmp_path_factory.mktemp(request.param)
    require_bricks_in(place)
    environ = {**clean_environ(REAL_LIBRARY, place / "runtime"), **allowing_root()}
    forebay = forebay_in(place, environ, TIMEOUT_S)
    made = Gluster(request.param, place / "pfs", place / "pfs.files", forebay)
    answer = forebay(*made.up())
    assert answer.code == 0, answer.errors
    assert f"bricks, {request.param}" in answer.output
    yield made
    forebay("testbed", "down", "--mount", "pfs")


def assert_nothing_left(daemons: Daemons) -> None:
    assert daemons.running() == []
    assert not daemons.run.exists()
    assert not testbed_state.mounted({"mount": str(daemons.mount)})


def require(mpi: str) -> None:
    if COMMANDS[mpi][0] is None:
        pytest.skip(f"no launcher of {mpi}")
    if not (REAL_LIBRARY / f"libforebay-{mpi}.so").is_file():
        pytest.skip(f"libforebay-{mpi}.so is not built (make build, or set FOREBAY_LIBRARY_DIR)")


def workload_of(mpi: str) -> Path:
    return REAL_LIBRARY.parent / "proxies" / mpi / "block3d"


@pytest.mark.mpi
@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_programs_write_the_same_with_and_without_forebay(gluster: Gluster, mpi: str) -> None:
    """A workload where one is built, else the probe."""
    require(mpi)
    workload = workload_of(mpi)
    if workload.is_file():
        program = [str(workload), "--size", "32x32x32", "pfs/array"]
    else:
        program = [sys.executable, mpi_probe.__file__, SONAMES[mpi], "pfs/array"]
    launcher = [str(word) for word in COMMANDS[mpi]]
    record = gluster.mount.with_name(f"{mpi}.json")
    answer = gluster.forebay(
        "compare", "-n", "1", "--json", record, "--", *launcher, "-n", str(RANKS), *program
    )
    assert answer.code == 0, answer.output + answer.errors
    content = read_json(record)
    assert content["identical"] is True
    (file,) = (one for one in content["files"] if one["mpi"])
    assert Path(file["path"]).is_relative_to(gluster.mount)
    assert file["bytes"] > 0
    assert {one["mode"] for one in content["engine"]} == {"engine"}
    (gluster.mount / "array").unlink(missing_ok=True)


@pytest.mark.mpi
@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
@pytest.mark.parametrize("flush", ["onclose", "deferred", "none"])
def test_what_a_cache_flushes_or_a_recovery_brings_there_is_all(
    gluster: Gluster, mpi: str, flush: str
) -> None:
    """Written through logs elsewhere, and read by the stock MPI, which checks every byte."""
    require(mpi)
    if not workload_of(mpi).is_file():
        pytest.skip(f"block3d is not built for {mpi} (make build)")
    launcher = [str(word) for word in COMMANDS[mpi]]
    program = [*launcher, "-n", str(RANKS), str(workload_of(mpi)), "--size", "32x32x32"]
    logs = gluster.mount.with_name(f"logs-{mpi}-{flush}")
    logs.mkdir(mode=0o700)
    hints = ["forebay_cache=enable", f"forebay_cache_path={logs}", f"forebay_cache_flush={flush}"]
    given = [word for hint in hints for word in ("--hint", hint)]
    record = gluster.mount.with_name(f"cached-{mpi}-{flush}.json")
    forebay = gluster.forebay
    wrote = forebay("run", "--json", record, *given, "--", *program, "--no-read", "pfs/cached")
    assert wrote.code == 0, wrote.output + wrote.errors
    (written,) = read_json(record)["records"]
    assert written["counters"]["cache_absorbed"] > 0, written["notes"]
    if flush == "none":
        recovered = forebay("cache", "recover", logs)
        assert recovered.code == 0, recovered.output + recovered.errors
    checked = forebay("run", "--observe", "--", *program, "--verify-only", "pfs/cached")
    assert checked.code == 0, checked.output + checked.errors
    (gluster.mount / "cached").unlink()


def test_status_counts_what_each_brick_did(gluster: Gluster) -> None:
    def written() -> list[int]:
        (state,) = json.loads(gluster.forebay("testbed", "status", "--json").output)
        assert (state["kind"], state["running"]) == ("glusterfs", True)
        assert all(server["online"] for server in state["servers"])
        return [server["write_bytes"] for server in state["servers"]]

    before = written()
    with (gluster.mount / "counted").open("wb") as file:
        file.write(bytes(1 << 20))
        os.fsync(file.fileno())
    more = [now - then for now, then in zip(written(), before, strict=True)]
    if gluster.layout == "distributed":
        assert sorted(more) == [0, 0, 0, 1 << 20]
    else:  # half the data each, and some of it twice where GlusterFS cuts inside of a stripe
        assert all(1 << 19 <= one < 1 << 20 for one in more), more


def test_the_doctor_names_its_layout(gluster: Gluster) -> None:
    said = {
        "distributed": "GlusterFS: 4 bricks, each file whole on one of them",
        "dispersed": "GlusterFS: 3 bricks, each file dispersed over 3 (2 data + 1 redundancy)",
    }
    answer = gluster.forebay("doctor", gluster.mount)
    assert "fuse.glusterfs mounted on" in answer.output
    assert said[gluster.layout] in answer.output
    assert "files of ranks on several nodes are left to the MPI library" in answer.output


def test_one_in_use_stays_up_and_says_so(gluster: Gluster) -> None:
    with (gluster.mount / "open").open("w"):
        answer = gluster.forebay("testbed", "down")
    assert answer.code == 1
    assert "fuser -vm" in answer.errors
    (state,) = json.loads(gluster.forebay("testbed", "status", "--json").output)
    assert state["running"] is True


def test_down_leaves_the_files_and_nothing_else(gluster: Gluster) -> None:
    (gluster.mount / "a").write_text("kept")
    daemons = gluster.daemons()
    sockets = [
        Path(one.words[one.words.index("-S") + 1]) for one in daemons.running() if "-S" in one.words
    ]
    assert sockets
    answer = gluster.forebay("testbed", "down")
    assert answer.code == 0, answer.errors
    assert str(gluster.backing) in answer.output
    assert_nothing_left(daemons)
    assert not any(socket.exists() for socket in sockets)
    assert json.loads(gluster.forebay("testbed", "status", "--json").output) == []

    other = gluster.forebay(*gluster.up(), "--servers", "5")
    assert other.code == 2
    assert f"not of 5 bricks, {gluster.layout}" in other.errors
    assert_nothing_left(daemons)

    again = gluster.forebay(*gluster.up())
    assert again.code == 0, again.errors
    assert (gluster.mount / "a").read_text() == "kept"


def test_what_a_killed_up_leaves_is_cleared_by_down(tmp_path: Path) -> None:
    require_bricks_in(tmp_path)
    environ = clean_environ(REAL_LIBRARY, tmp_path / "runtime")
    forebay = forebay_in(tmp_path, environ, TIMEOUT_S)
    daemons = Daemons(tmp_path / "pfs", tmp_path / "pfs.files")
    words = ["testbed", "up", "--real", "glusterfs", "--mount", "pfs"]
    starting = subprocess.Popen(
        [sys.executable, "-m", "forebay", *words],
        cwd=tmp_path,
        env=environ,
        stdout=subprocess.DEVNULL,
    )
    assert testbed_state.wait_until(lambda: daemons.glusterd() is not None, TIMEOUT_S)
    starting.send_signal(signal.SIGKILL)
    starting.wait()

    refused = forebay(*words)
    assert refused.code == 2
    assert "forebay testbed down" in refused.errors
    answer = forebay("testbed", "down")
    assert answer.code == 0, answer.errors
    assert_nothing_left(daemons)


def test_an_interrupted_up_leaves_nothing(tmp_path: Path) -> None:
    require_bricks_in(tmp_path)
    environ = clean_environ(REAL_LIBRARY, tmp_path / "runtime")
    daemons = Daemons(tmp_path / "pfs", tmp_path / "pfs.files")
    starting = subprocess.Popen(
        [sys.executable, "-m", "forebay", "testbed", "up", "--real", "glusterfs", "--mount", "pfs"],
        cwd=tmp_path,
        env=environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    assert testbed_state.wait_until(lambda: daemons.glusterd() is not None, TIMEOUT_S)
    starting.send_signal(signal.SIGINT)
    assert starting.wait() != 0
    assert_nothing_left(daemons)
    assert not daemons.mount.exists()
    assert not daemons.backing.exists()


def test_a_file_system_without_trusted_attributes_is_refused(tmp_path: Path) -> None:
    bricks = tmp_path / "ramfs"
    bricks.mkdir()
    made = subprocess.run(["mount", "-t", "ramfs", "ramfs", bricks], check=False)
    if made.returncode != 0:
        pytest.skip("ramfs cannot be mounted here")
    try:
        assert filesystem.mount_of(bricks).type == "ramfs"
        forebay = forebay_in(tmp_path, clean_environ(REAL_LIBRARY, tmp_path / "runtime"))
        answer = forebay(
            "testbed", "up", "--real", "glusterfs", "--mount", "pfs", "--backing", bricks / "b"
        )
    finally:
        subprocess.run(["umount", bricks], check=True)
    assert answer.code == 1
    assert "on ramfs, which keeps no trusted attributes" in answer.errors
    assert "--backing" in answer.errors
    assert not (tmp_path / "pfs").exists()

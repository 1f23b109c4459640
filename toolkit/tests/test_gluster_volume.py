"""What is said to GlusterFS and read from it, without one: volume files, layouts, XML answers."""

from pathlib import Path

import pytest

from forebay import gluster_daemons, gluster_mount, gluster_testbed, gluster_volume
from forebay.errors import ForebayError
from forebay.gluster_daemons import Daemons
from forebay.gluster_testbed import GlusterOptions
from forebay.gluster_volume import Kind, Layout

STATUS = """<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<cliOutput>
  <opRet>0</opRet>
  <volStatus><volumes><volume>
    <volName>forebay</volName>
    <node><path>/b/0</path><status>1</status><pid>24677</pid></node>
    <node><path>/b/1</path><status>0</status><pid>-1</pid></node>
    <node><hostname>Self-heal Daemon</hostname><path>localhost</path><status>1</status>
      <pid>24742</pid></node>
  </volume></volumes></volStatus>
</cliOutput>"""

PROFILE = """<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<cliOutput>
  <opRet>0</opRet>
  <volProfile>
    <brick>
      <brickName>127.1.0.1:/b/0</brickName>
      <cumulativeStats>
        <fopStats>
          <fop><name>READ</name><hits>321</hits></fop>
          <fop><name>WRITE</name><hits>3861</hits></fop>
          <fop><name>LOOKUP</name><hits>5</hits></fop>
        </fopStats>
        <totalRead>3094528</totalRead>
        <totalWrite>3812352</totalWrite>
      </cumulativeStats>
    </brick>
  </volProfile>
</cliOutput>"""

INFO = """<cliOutput><opRet>0</opRet><volInfo><volumes><volume>
  <brickCount>6</brickCount><redundancyCount>2</redundancyCount><typeStr>{kind}</typeStr>
</volume></volumes></volInfo></cliOutput>"""

REFUSED = """<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<cliOutput>
  <opRet>-1</opRet>
  <opErrno>30800</opErrno>
  <opErrstr>Volume nope does not exist</opErrstr>
</cliOutput>"""


def test_glusterd_is_told_directories_and_an_address_of_its_own(tmp_path: Path) -> None:
    daemons = Daemons(Path("/mnt/a"), Path("/srv/a"))
    text = daemons.volume_file()
    assert text.startswith("volume management\n    type mgmt/glusterd\n")
    assert text.endswith("end-volume\n")
    assert "    option working-directory /srv/a/glusterd\n" in text
    assert "    option logging-directory /srv/a/log\n" in text
    assert f"    option run-directory {daemons.run}\n" in text
    assert f"    option transport.socket.bind-address {gluster_volume.HOST}\n" in text


def test_testbeds_of_two_mount_points_share_no_directory() -> None:
    one = Daemons(Path("/mnt/a"), Path("/srv/a"))
    other = Daemons(Path("/mnt/b"), Path("/srv/b"))
    assert one.run != other.run


def test_a_socket_has_a_short_path_wherever_the_mount_is() -> None:
    deep = Daemons(Path("/" + "x" * 200), Path("/srv/a"))
    assert len(str(deep.run / "glusterd.socket")) < 108


@pytest.mark.parametrize("name", ["a b", "a:b", "a,b", 'a"b', "a\nb"])
def test_a_directory_that_volume_files_cannot_name_is_refused(name: str) -> None:
    with pytest.raises(ForebayError, match="cannot have bricks"):
        Daemons(Path("/mnt/a"), Path("/srv") / name)


def test_layouts_have_defaults_of_their_own() -> None:
    assert GlusterOptions(Path("m")).layout() == Layout(Kind.DISTRIBUTED, 4)
    dispersed = GlusterOptions(Path("m"), kind=Kind.DISPERSED).layout()
    assert dispersed == Layout(Kind.DISPERSED, 3, 1)
    assert dispersed.words() == ["disperse", "3", "redundancy", "1"]


@pytest.mark.parametrize(("servers", "redundancy", "least"), [(2, 1, 3), (4, 2, 5), (6, 3, 7)])
def test_too_few_servers_for_a_redundancy_are_refused(
    servers: int, redundancy: int, least: int
) -> None:
    with pytest.raises(ForebayError) as refused:
        Layout(Kind.DISPERSED, servers, redundancy)
    assert f"--servers {least}" in refused.value.advice


def test_the_layout_is_read_from_the_volume() -> None:
    read = gluster_volume.layout_in
    dispersed = read(gluster_volume.answer(INFO.format(kind="Disperse")))
    assert dispersed == Layout(Kind.DISPERSED, 6, 2)
    distributed = read(gluster_volume.answer(INFO.format(kind="Distribute")))
    assert distributed == Layout(Kind.DISTRIBUTED, 6)
    with pytest.raises(ForebayError, match="another kind: Replicate"):
        read(gluster_volume.answer(INFO.format(kind="Replicate")))


def test_bricks_have_the_counters_of_the_profile() -> None:
    first, second = gluster_volume.bricks_in(
        gluster_volume.answer(STATUS), gluster_volume.answer(PROFILE)
    )
    assert first == {
        "brick": "/b/0",
        "online": True,
        "pid": 24677,
        "read_requests": 321,
        "write_requests": 3861,
        "sync_requests": 0,
        "read_bytes": 3094528,
        "write_bytes": 3812352,
    }
    assert (second["brick"], second["online"], second["pid"]) == ("/b/1", False, None)
    assert second["write_bytes"] == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (REFUSED, "Volume nope does not exist"),
        ("Connection failed. Please check if gluster daemon is operational.", "Connection failed"),
        ("", "it said nothing"),
    ],
)
def test_what_gluster_refuses_is_said_in_its_words(text: str, said: str) -> None:
    with pytest.raises(ForebayError, match=said) as refused:
        gluster_volume.answer(text)
    assert refused.value.exit_code == 1


def graph(point: Path, kinds: list[str]) -> None:
    """What GlusterFS's client shows below a mount point, as far as it is read."""
    for number, kind in enumerate(kinds):
        part = point / ".meta" / "graphs" / "active" / f"v-{number}"
        part.mkdir(parents=True)
        (part / "type").write_text(f"{kind}\n")
        if kind == "cluster/disperse":
            for brick in "012":
                (part / "subvolumes" / brick).mkdir(parents=True)
            (part / "options").mkdir()
            (part / "options" / "redundancy").write_text("1\n")


@pytest.mark.parametrize(
    ("above", "said"),
    [
        (["cluster/distribute"], "6 bricks, each file whole on one of them"),
        (["cluster/replicate"] * 3, "6 bricks, each file whole on 2 of them"),
        (
            ["cluster/disperse"] * 2 + ["cluster/distribute"],
            "6 bricks, each file dispersed over 3 (2 data + 1 redundancy)",
        ),
    ],
)
def test_a_mount_tells_its_layout(tmp_path: Path, above: list[str], said: str) -> None:
    graph(tmp_path, ["protocol/client"] * 6 + above)
    assert gluster_mount.layout(tmp_path) == said


def test_a_mount_that_tells_nothing_has_no_layout(tmp_path: Path) -> None:
    assert gluster_mount.layout(tmp_path) is None


def test_without_root_it_is_said_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gluster_testbed.os, "geteuid", lambda: 1000)
    with pytest.raises(ForebayError, match="needs root") as refused:
        gluster_testbed.up(GlusterOptions(tmp_path / "m"))
    assert refused.value.exit_code == 1
    assert not (tmp_path / "m").exists()


def test_without_glusterfs_it_is_said_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gluster_testbed.os, "geteuid", lambda: 0)
    monkeypatch.setattr(
        gluster_daemons.shutil, "which", lambda name: None if "gluster" in name else f"/bin/{name}"
    )
    with pytest.raises(ForebayError, match="GlusterFS is not installed") as refused:
        gluster_testbed.up(GlusterOptions(tmp_path / "m"))
    assert refused.value.exit_code == 1
    assert "apt-get install glusterfs-server glusterfs-client" in refused.value.advice
    assert not (tmp_path / "m").exists()

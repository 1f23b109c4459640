"""Goal: the epilog that the guide prints for Slurm recovers as the job's user, needs no PATH, says
what was not recovered, and never fails: Slurm would drain the node.

Method: run the script as it stands on the page, but with commands of the test's own in the place of
its absolute paths; the words it gives to `forebay` are given to the real one.
"""

import dataclasses
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import Forebay
from made_logs import environ_with_tool, none_left

#: Of the command that is tried here, which is not installed.
VARIABLES = ("PYTHONPATH", "FOREBAY_LIBRARY_DIR")
PAGE = Path(__file__).resolve().parents[2] / "docs/guide/command.md"


@dataclass(frozen=True)
class Epilog:
    """The script, and commands that write down their words, one a line."""

    script: str
    place: Path

    def command(self, name: str, then: str) -> None:
        path = self.place / name
        path.write_text(f'#!/bin/bash\nprintf "%s\\n" "$@" >"$0.words"\n{then}\n')
        path.chmod(0o755)

    def words(self, name: str) -> list[str] | None:
        """None if it was not called."""
        path = self.place / f"{name}.words"
        return path.read_text().splitlines() if path.exists() else None

    def run(self, forebay: str) -> subprocess.CompletedProcess[str]:
        """As Slurm does; `forebay`: what that does."""
        self.command("runuser", 'while [ "$1" != -- ]; do shift; done; shift; exec "$@"')
        self.command("logger", "")
        self.command("forebay", forebay)
        return subprocess.run(
            ["/bin/bash", "-c", self.script],
            env={"SLURM_JOB_USER": "alice", "SLURM_JOB_ID": "4711", "PATH": "/nowhere"},
            capture_output=True,
            text=True,
            check=False,
        )

    @property
    def report(self) -> Path:
        return self.place / "forebay-epilog-4711.json"


@pytest.fixture
def epilog(tmp_path: Path) -> Epilog:
    scripts = re.findall(r"^```bash\n(#!/bin/bash\n.*?)^```$", PAGE.read_text(), re.M | re.S)
    (script,) = [script for script in scripts if "SLURM_JOB_USER" in script]
    for path in ("/usr/sbin/runuser", "/usr/bin/logger", "/opt/forebay/bin/forebay"):
        assert script.count(path) == 1, path
        script = script.replace(path, shlex.quote(str(tmp_path / Path(path).name)))
    assert script.count("/var/log/") == 1
    return Epilog(script.replace("/var/log/", f"{shlex.quote(str(tmp_path))}/"), tmp_path)


def test_it_recovers_as_the_user_of_the_job(epilog: Epilog, forebay: Forebay) -> None:
    done = epilog.run("echo '{}'")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    given = epilog.words("forebay")
    assert given is not None
    assert given[:2] == ["cache", "recover"]
    assert given[-2:] == ["/dev/shm", "/local/nvme"]
    assert epilog.words("runuser") == ["-u", "alice", "--", str(epilog.place / "forebay"), *given]
    assert epilog.report.read_text() == "{}\n"
    assert epilog.words("logger") is None
    assert forebay(*given, "--help").code == 0, "these are options that there are"


def test_it_brings_a_real_log_to_its_file(
    epilog: Epilog, environ: dict[str, str], tmp_path: Path
) -> None:
    environ = environ_with_tool(environ, tmp_path)
    left = none_left(environ, tmp_path)
    left.leave("--committed-blocks", "10")
    assert epilog.script.count("/dev/shm /local/nvme") == 1
    of_this_site = epilog.script.replace("/dev/shm /local/nvme", shlex.quote(str(left.local)))
    variables = shlex.join(f"{name}={environ[name]}" for name in VARIABLES)
    command = f'exec /usr/bin/env {variables} {shlex.quote(sys.executable)} -m forebay "$@"'
    done = dataclasses.replace(epilog, script=of_this_site).run(command)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert epilog.words("logger") is None, epilog.report.read_text()
    assert left.file.read_bytes() == left.data
    assert left.logs() == []


def test_what_was_not_recovered_is_told_and_drains_no_node(epilog: Epilog) -> None:
    done = epilog.run("echo '{}'; exit 1")
    assert (done.returncode, done.stderr) == (0, "")
    told = epilog.words("logger")
    assert told is not None
    assert "job 4711" in told[-1]
    assert str(epilog.report) in told[-1]


def test_a_report_that_cannot_be_written_drains_no_node(epilog: Epilog) -> None:
    epilog.report.mkdir()
    assert epilog.run("exit 0").returncode == 0
    assert epilog.words("forebay") is None
    assert epilog.words("logger") is not None

"""Goal: `forebay top` sees a program that `forebay trace` runs at that moment, by its directory and
by a process's number, and says so when it has ended.

Method: a program that fills a ring, says so by a pipe, and waits for a word by another.
"""

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import TIMEOUT_S, Forebay

from forebay.top import local_process

REPOSITORY = Path(__file__).resolve().parents[2]
REAL_LIBRARY = Path(os.environ.get("FOREBAY_LIBRARY_DIR", REPOSITORY / "build" / "lib"))
CALLS = 5000
RING = 4096  # core/engine/trace/ring.hpp

pytestmark = pytest.mark.skipif(
    not (REAL_LIBRARY / "libforebay-trace.so").is_file(),
    reason="libforebay-trace.so is not built (make build, or set FOREBAY_LIBRARY_DIR)",
)

PROGRAM = f"""
import os
file = os.open("data", os.O_RDWR | os.O_CREAT)
for i in range({CALLS}):
    os.pwrite(file, bytes(100), 100 * i)
with open("said", "w") as said:
    said.write(str(os.getpid()))
with open("word") as word:
    word.read()
"""


@pytest.fixture
def environ(environ: dict[str, str]) -> dict[str, str]:
    return {**environ, "FOREBAY_LIBRARY_DIR": str(REAL_LIBRARY)}


@pytest.fixture
def running(environ: dict[str, str], tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    for pipe in ("said", "word"):
        os.mkfifo(tmp_path / pipe)
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM)]
    with subprocess.Popen(
        [sys.executable, "-m", "forebay", "trace", "-o", "run.trace", "--", *command],
        cwd=tmp_path,
        env=environ,
        stdin=subprocess.DEVNULL,
    ) as started:
        try:
            yield started
        finally:
            started.kill()


def test_a_program_is_seen_while_it_runs(
    running: subprocess.Popen[bytes],
    forebay: Forebay,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    all_of_the_host = local_process.own_traces
    monkeypatch.setattr(  # other tests trace at the same time
        local_process,
        "own_traces",
        lambda: [place for place in all_of_the_host() if tmp_path in place.parents],
    )
    pid = int((tmp_path / "said").read_text())
    for word in ("run.trace", str(pid), str(running.pid)):
        told = json.loads(forebay("top", "--json", word).output)
        (process,) = [row for row in told["processes"] if row["pid"] == pid]
        assert process["state"] in ("active", "quiet")
        written = process["total"]["posix_write_bytes"]
        assert 100 * (RING // 2) < written <= 100 * CALLS
        files = {row["path"]: row["total"] for row in told["files"]}
        assert files[str(tmp_path / "data")]["posix_write_bytes"] == written
    text = forebay("top")
    assert "1 of 1 processes run" in text.output, text.errors
    (tmp_path / "word").write_text("end")
    assert running.wait(TIMEOUT_S) == 0
    ended = forebay("top", "run.trace")
    assert ended.code == 2
    assert "is the trace of a run that has ended" in ended.errors

"""Goal: the cache's hints do what they say, whatever then becomes of the program: when its bytes
are in the file, when they are in logs, and what is left of those.

Method: run intercept_cache_hints with hints, and look at file, logs and notice once it has ended or
all its ranks were killed; recover with forebay-cache where something is left; compare each byte.

Usage: intercept_cache_hints_check.py FOREBAY_CACHE DIRECTORY RANKS COMMAND...
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

BLOCK = 1000
BLOCKS = 32
NEWER = b"of another program"


@dataclass(frozen=True)
class Bench:
    """One run of the program, and what it leaves."""

    tool: str
    directory: Path
    ranks: int
    command: list[str]

    @property
    def data(self) -> Path:
        return self.directory / "data"

    @property
    def notice(self) -> Path:
        return self.directory / ".data.forebay-dirty"

    def run(self, ending: str, *hints: str) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)
        (self.directory / "logs").mkdir(parents=True)
        given = [
            "e10_cache=enable",
            f"e10_cache_path={self.directory / 'logs'}",
            "forebay_cache_capacity=32MiB",
            "romio_cb_write=enable",
            f"cb_nodes={self.ranks}",
            *hints,
        ]
        result = subprocess.run(
            [*self.command, ending, str(self.data)],
            env=os.environ | {"FOREBAY_HINTS": ";".join(given)},
            timeout=150,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (result.returncode == 0) == (ending in ("close", "read")), (
            ending,
            hints,
            result.stderr,
        )

    def expected(self) -> bytes:
        """What the second turn wrote."""
        content = bytearray()
        for i in range(BLOCKS):
            for rank in range(self.ranks):
                first = 120 + rank * 7
                content += bytes((first + j % 50) % 256 for j in range(i * BLOCK, (i + 1) * BLOCK))
        return bytes(content)

    def logs(self) -> list[Path]:
        return list((self.directory / "logs").glob("*/[!.]*"))

    def is_left(self) -> bool:
        """Whether logs are there, and a notice says so; both or neither."""
        assert bool(self.logs()) == self.notice.is_dir(), (self.logs(), self.notice)
        return self.notice.is_dir()

    def recover(self) -> dict[str, object]:
        """What became of the file, once all ranks are gone, which a launcher may not await."""
        command = [self.tool, "recover", "--incomplete", "drop"]
        command += ["--directory", str(self.directory / "logs"), "--file", str(self.data)]
        deadline = time.monotonic() + 60
        while True:
            result = subprocess.run(command, capture_output=True, text=True, check=True)
            (file,) = json.loads(result.stdout.splitlines()[-1])["files"]
            assert isinstance(file, dict)
            if file["state"] != "in use":
                break
            assert time.monotonic() < deadline, "the ranks live on"
            time.sleep(0.05)
        assert file["state"] == "recovered", file
        assert not self.is_left()
        return file


def without_a_flush(bench: Bench) -> None:
    """`none`: the file is not written until somebody recovers it, a sync and a close or not."""
    for ending in ("close", "sync"):
        bench.run(ending, "forebay_cache_flush=none")
        assert bench.data.read_bytes() == b"", ending
        assert bench.is_left(), ending
        bench.recover()
        assert bench.data.read_bytes() == bench.expected(), ending
    # What others read is brought to the file for them, also by a rank that is in its close.
    bench.run("read", "forebay_cache_flush=none")
    assert bench.is_left()
    bench.recover()
    assert bench.data.read_bytes() == bench.expected()


def synced_to_the_node(bench: Bench) -> None:
    """`node`: after a sync all is in the logs; `file`: it is in the file."""
    for flush in ("forebay_cache_flush=onclose", "e10_cache_flush_flag=flush_onclose"):
        bench.run("sync", flush, "forebay_cache_sync=node")
        assert bench.data.read_bytes() == b"", "nothing but a close flushes it"
        assert bench.is_left()
        bench.recover()
        assert bench.data.read_bytes() == bench.expected()
    bench.run("sync", "forebay_cache_flush=onclose", "forebay_cache_sync=file")
    assert bench.data.read_bytes() == bench.expected()
    file = bench.recover()
    assert file["written_bytes"] == 0, file


def kept_after_the_close(bench: Bench) -> None:
    """All is in the file, and nothing in the logs waits for anything: bytes that are newer stay."""
    for key in ("forebay_cache_discard", "e10_cache_discard_flag"):
        bench.run("close", f"{key}=enable")
        assert bench.data.read_bytes() == bench.expected()
        assert not bench.is_left()
        bench.run("close", f"{key}=disable")
        assert bench.data.read_bytes() == bench.expected()
        assert bench.logs()
        assert not bench.notice.exists(), "nobody need be warned"
        with bench.data.open("r+b") as data:
            data.write(NEWER)
        file = bench.recover()
        assert file["written_bytes"] == 0, file
        assert bench.data.read_bytes() == NEWER + bench.expected()[len(NEWER) :]


def flushed_when_told(bench: Bench) -> None:
    """E10's words, and what Forebay says for them."""
    for hint in ("e10_cache_flush_flag=flush_immediate", "forebay_cache_flush=immediate"):
        bench.run("await", hint)
        assert bench.data.read_bytes() == bench.expected(), hint
    for hint in ("e10_cache_flush_flag=flush_onclose", "forebay_cache_flush=onclose"):
        bench.run("die", hint)
        assert bench.data.read_bytes() == b"", hint
        assert bench.is_left(), hint
        bench.recover()
        assert bench.data.read_bytes() == bench.expected(), hint
        bench.run("close", hint)
        assert bench.data.read_bytes() == bench.expected(), hint
        assert not bench.is_left(), hint


def main() -> None:
    bench = Bench(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
    without_a_flush(bench)
    synced_to_the_node(bench)
    kept_after_the_close(bench)
    flushed_when_told(bench)
    shutil.rmtree(bench.directory)


if __name__ == "__main__":
    main()

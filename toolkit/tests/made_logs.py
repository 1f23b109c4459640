"""Write-behind logs that killed programs left, for tests."""

import dataclasses
import json
import os
import random
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
NATIVE = ("forebay-cache", "forebay-intent", "forebay-leave-log", "forebay-leave-protected-logs")
BLOCK = 10_000  # bytes of one write
SUPERBLOCK = 8192  # bytes
USER_DIRECTORY = f"forebay-cache-{os.getuid()}"


def native_directory() -> Path | None:
    """Where the tools and the programs that leave logs were built, if they were."""
    places = [
        Path(os.environ.get("FOREBAY_LIBRARY_DIR", "/nonexistent")).parent / "bin",
        REPOSITORY / "build" / "bin",
    ]
    return next((p for p in places if all((p / name).is_file() for name in NATIVE)), None)


def environ_with_tool(environ: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """That of the command, with the tool as it was built, and node-local storage of a test's own.
    Where the tool was not built, the test is skipped."""
    native = native_directory()
    if native is None:
        pytest.skip("forebay-cache is not built")
    return {**environ, "FOREBAY_LIBRARY_DIR": str(native), "TMPDIR": str(tmp_path / "local")}


@dataclass(frozen=True)
class Left:
    """A node-local directory with the log of a program that wrote ten blocks of `data` to `file`
    and was killed. The file itself is still empty."""

    native: Path
    local: Path
    file: Path
    data: bytes

    def leave(self, *options: str) -> None:
        """Runs a program that does so. Ranks and logs are named by `options`."""
        source = self.local / "data"
        source.write_bytes(self.data)
        done = subprocess.run(
            [str(self.native / "forebay-leave-log"), "--local", str(self.local),
             "--file", str(self.file), "--data", str(source), "--block", str(BLOCK), *options],
            check=False,
        )  # fmt: skip
        assert done.returncode == -9
        assert self.file.read_bytes() == b""

    def logs(self) -> list[str]:
        return sorted(path.name for path in (self.local / USER_DIRECTORY).iterdir())

    @property
    def notices(self) -> Path:
        return self.file.with_name(f".{self.file.name}.forebay-dirty")


def none_left(environ: dict[str, str], tmp_path: Path) -> Left:
    """Where no program has left a log yet."""
    local = tmp_path / "local"
    local.mkdir(mode=0o700)
    data = random.Random(1).randbytes(10 * BLOCK)
    return Left(Path(environ["FOREBAY_LIBRARY_DIR"]), local, tmp_path / "out [1].dat", data)


@dataclass(frozen=True)
class Nodes:
    """Node-local directories with the logs of a program that was killed: members wrote the blocks
    of `data` to `file` in turn, and parity logs on two more nodes protect them."""

    base: Path
    file: Path
    data: bytes
    members: int = 3

    def local(self, name: str) -> Path:
        return self.base / name

    def lose(self, *names: str) -> None:
        for name in names:
            shutil.rmtree(self.local(name))

    def left(self) -> list[Path]:
        return sorted(path for path in self.base.iterdir() if path.is_dir())


def spoil(log: Path, start: int, content: bytes) -> None:
    """Puts `content` at `start` of each segment."""
    segments = list(log.glob("segment-*"))
    assert segments
    for segment in segments:
        with segment.open("r+b") as file:
            file.seek(start)
            file.write(content)


def leave_nodes(left: Left, *options: str) -> Nodes:
    nodes = Nodes(left.local, left.file, left.data)
    source = left.local / "data"
    source.write_bytes(left.data)
    words = []
    for i in range(nodes.members):
        words += ["--member", str(nodes.local(f"member-{i}"))]
    for i in range(2):
        words += ["--parity", str(nodes.local(f"parity-{i}"))]
    for word in words[1::2]:
        Path(word).mkdir(mode=0o700)
    done = subprocess.run(
        [str(left.native / "forebay-leave-protected-logs"), *words, "--file", str(left.file),
         "--data", str(source), "--block", str(BLOCK), *options],
        check=False,
    )  # fmt: skip
    assert done.returncode == -9
    return nodes


def crc32c(data: bytes) -> int:
    """[RFC 3720, appendix B.4]"""
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
    return value ^ 0xFFFFFFFF


def mark_overtaken(left: Left) -> None:
    """Another program opens the file to write after the first has left its log."""
    content = json.dumps({"logs": ["log-0"]}, separators=(",", ":"))
    mark = {
        "format": "forebay overtaken logs",
        "version": 1,
        "content": {"logs": ["log-0"]},
        "checksum": f"{crc32c(content.encode()):08x}",
    }
    (left.notices / "newer.overtaken").write_text(json.dumps(mark))


def leave_newer(left: Left) -> bytes:
    """Another program opens the file after the first has left its log, writes all of it, and leaves
    a log, too. Returns what it wrote."""
    mark_overtaken(left)
    newer = random.Random(2).randbytes(10 * BLOCK)
    dataclasses.replace(left, data=newer).leave("--committed-blocks", "10", "--log", "log-1")
    return newer

"""Write-behind logs that killed programs left, for tests."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
NATIVE = ("forebay-cache", "forebay-leave-log", "forebay-leave-protected-logs")
BLOCK = 10_000  # bytes of one write
USER_DIRECTORY = f"forebay-cache-{os.getuid()}"


def native_directory() -> Path | None:
    """Where the tool and the program that leaves logs were built, if they were."""
    places = [
        Path(os.environ.get("FOREBAY_LIBRARY_DIR", "/nonexistent")).parent / "bin",
        REPOSITORY / "build" / "bin",
    ]
    return next((p for p in places if all((p / name).is_file() for name in NATIVE)), None)


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


def crc32c(data: bytes) -> int:
    """[RFC 3720, appendix B.4]"""
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
    return value ^ 0xFFFFFFFF

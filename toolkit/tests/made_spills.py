"""Spill files as a process would leave them, of which everything is known, for the tests of what
reads them while they grow (docs/formats/trace-spill.md)."""

import struct
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import xxhash

from forebay.trace import spills

S = 1_000_000_000
BEGUN_NS = 1_700_000_000 * S  # Unix time of the ticks 0; a tick is a nanosecond
READ, WRITE, OPEN, FILE, DETAILS, DUP, CHDIR, CLOSE = 1, 2, 3, 4, 5, 6, 7, 8
WRITE_ON, FGETS = 9, 10
CALLS = {
    **{READ: "read", WRITE: "pwrite", OPEN: "open", FILE: "is_file", DETAILS: "mpi_details"},
    **{DUP: "dup", CHDIR: "chdir", CLOSE: "close", WRITE_ON: "write", FGETS: "fgets"},
    **{256: "MPI_File_write_at_all", 257: "MPI_File_iwrite_at", 258: "MPI_File_close"},
    259: "MPI_File_read_at",
}
MPI_WRITE_ALL, MPI_IWRITE, MPI_CLOSE, MPI_READ = 256, 257, 258, 259
HERE = -100
_END = struct.Struct("<QQQ")


@dataclass
class MadeProcess:
    """Writes one spill file; times are seconds since BEGUN_NS."""

    directory: Path
    pid: int = 100
    rank: int = -1
    host: str = "elsewhere"
    program: str = "/opt/app"
    started_jiffies: int = 7
    begun_s: float = 0.0
    number: int = 0  # of its images
    _events: list[tuple[int, ...]] = field(default_factory=list)
    _definitions: list[bytes] = field(default_factory=list)
    _sequence: int = 0

    @property
    def path(self) -> Path:
        return self.directory / f"{self.pid}-{self.number}-0.spill"

    def begin(self) -> "MadeProcess":
        ticks = _ns(self.begun_s)
        fixed = struct.pack(
            "<qqqQqqIi",
            *(self.pid, 1, self.started_jiffies, ticks, ticks, BEGUN_NS + ticks, 0, self.rank),
        )
        words = b"\0".join([self.host.encode(), self.program.encode(), b"/run1", b""])
        self.define(spills.PROCESS, 0, fixed + words)
        for number, name in CALLS.items():
            self.define(spills.CALL, number, name.encode())
        return self

    def define(self, kind: int, key: int, content: bytes) -> None:
        padded = content + bytes(-len(content) % 8)
        self._definitions.append(struct.pack("<HHIQ", kind, 0, len(content), key) + padded)

    def name(self, name: str) -> int:
        key = xxhash.xxh3_64_intdigest(name.encode())
        self.define(spills.NAME, key, name.encode())
        return key

    def call(
        self,
        call: int,
        begin_s: float,
        took_s: float = 0.0,
        result: int = 0,
        descriptor: int = 3,
        within: int = 0,
        offset: int = 0,
        length: int = 0,
    ) -> None:
        times = _ns(begin_s), _ns(took_s)
        self._events.append((*times, offset, length, result, descriptor, call, within, 0))

    def open(
        self,
        name: str,
        at_s: float,
        descriptor: int = 3,
        directory: int = HERE,
        flags: int = 0,
        size: int = 0,
    ) -> None:
        key = np.uint64(self.name(name)).astype(np.int64)
        self.call(OPEN, at_s, 0.0, descriptor, directory, offset=flags, length=int(key))
        self.call(FILE, at_s, 0.0, 0o100644, descriptor, offset=5, length=size)

    def open_mpi(self, number: int, path: str, engine: bool = False) -> None:
        fixed = struct.pack("<Qiiii", 0, max(0, self.rank), 4, int(engine), 0)
        self.define(spills.MPI_OPENING, number, fixed + b"WRONLY\0" + path.encode() + b"\0")

    def datatype(self, key: int, size: int) -> None:
        self.define(spills.MPI_TYPE, key, struct.pack("<8q", size, *[0] * 7) + b"named\0x\0")

    def mpi(
        self,
        call: int,
        begin_s: float,
        took_s: float,
        moved: int,
        number: int = 0,
        count: int = 1,
        datatype: int = 0,
        error: int = 0,
    ) -> None:
        self.call(call, begin_s, took_s, moved, number, length=count)
        self.call(DETAILS, begin_s, 0.0, error, number, length=datatype)

    def end(self, at_s: float, cost_ns: int = 0) -> None:
        self.define(spills.END, 0, _END.pack(_ns(at_s), 0, cost_ns))
        self.spill(at_s)

    def piece(self, at_s: float, thread: int | None = None, lost: int = 0) -> bytes:
        """What was done since the last one, as it is written at that time."""
        events = np.array(self._events, spills.EVENT).tobytes()
        definitions = b"".join(self._definitions)
        fields = (
            *(1, len(self._events), 0, len(definitions), thread or self.pid, self._sequence),
            *(_ns(at_s), _ns(at_s), lost, 0),
        )
        whole = struct.pack("<8sIIQQqQQqQQ", spills.MAGIC, *fields) + definitions + events
        digest = xxhash.xxh3_64_intdigest(whole).to_bytes(8, "little")
        self._events, self._definitions = [], []
        self._sequence += 1
        return whole[:16] + digest + whole[24:]

    def spill(self, at_s: float, thread: int | None = None, lost: int = 0) -> None:
        content = self.piece(at_s, thread, lost)
        with self.path.open("ab") as file:
            file.write(content)


def _ns(seconds: float) -> int:
    return round(seconds * S)

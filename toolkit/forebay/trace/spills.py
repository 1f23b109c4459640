"""Spilled rings, as a traced process leaves them (docs/formats/trace-spill.md)."""

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from forebay.errors import ForebayError

VERSION = 1
MAGIC = b"FBSPILL\n"
EVENT = np.dtype(
    [
        ("begin", "<u8"),
        ("duration", "<u8"),
        ("offset", "<i8"),
        ("length", "<i8"),
        ("result", "<i8"),
        ("descriptor", "<i4"),
        ("call", "<u2"),
        ("within", "u1"),
        ("argument", "u1"),
    ]
)
MPI_CALLS_FROM = 256

# Kinds of definitions.
PROCESS, END, CALL, NAME, DESCRIPTOR = 1, 2, 3, 4, 5
MPI_PROCESS, MPI_OPENING, MPI_VIEW, MPI_HINTS, MPI_TYPE, EXEC = 6, 7, 8, 9, 10, 11
MPI_HINTS_ASKED = 12

_HEADER = struct.Struct("<8sIIQQqQQqQQ")
_CHECKSUM_AT = 16
_DEFINITION = struct.Struct("<HHIQ")
_PROCESS = struct.Struct("<qqqQqqIi")
_END = struct.Struct("<QQQ")
_DESCRIPTOR = struct.Struct("<QQQqqiIii")
# No process spills more at once: a larger number is a damaged header.
MOST_BYTES = 1 << 24


@dataclass(frozen=True)
class Process:
    """What a process said of itself as its trace began. `ticks`, `monotonic_ns` and `realtime_ns`
    are the same moment."""

    host: str
    executable: bytes
    directory: bytes
    pid: int
    parent: int
    started_jiffies: int
    ticks: int
    monotonic_ns: int
    realtime_ns: int
    tick_source: int
    rank: int


@dataclass(frozen=True)
class Farewell:
    """Ticks: of the end, for beginning, and for 256 calls as tried at the start."""

    ticks: int
    start_ticks: int
    cost_ticks: int


@dataclass(frozen=True)
class Found:
    """A descriptor that was open before the trace began."""

    name: bytes
    ticks: int
    device: int
    inode: int
    size: int
    position: int
    descriptor: int
    mode: int
    flags: int


@dataclass(frozen=True)
class Definition:
    """One that this module does not take apart."""

    kind: int
    key: int
    content: bytes
    ticks: int  # when its piece was spilled


@dataclass
class Thread:
    """The events of one thread in the order in which they ended, and its figures at the last."""

    tid: int
    parts: list[NDArray[Any]] = field(default_factory=list)
    lost: int = 0
    spill_ticks: int = 0

    def events(self) -> NDArray[Any]:
        return np.concatenate(self.parts) if self.parts else np.empty(0, EVENT)


@dataclass
class Image:
    """One spill file: a process, from the start of its trace, a fork or an exec to the next."""

    path: Path
    process: Process
    end: Farewell | None = None
    execs: bool = False  # its last word is that it was about to become another program
    calls: dict[int, str] = field(default_factory=dict)
    names: dict[int, bytes] = field(default_factory=dict)
    found: list[Found] = field(default_factory=list)
    threads: dict[int, Thread] = field(default_factory=dict)
    moments: list[tuple[int, int]] = field(default_factory=list)  # ticks and monotonic_ns
    definitions: list[Definition] = field(default_factory=list)
    damaged_bytes: int = 0
    missing_pieces: int = 0


def is_one_of(image: Image, events: NDArray[Any], names: Iterable[str]) -> NDArray[np.bool_]:
    """Which events are calls of these names."""
    wanted = set(names)
    ids = [key for key, name in image.calls.items() if name in wanted]
    return np.isin(events["call"], ids)


@dataclass(frozen=True)
class Piece:
    """What one thread spilled at once."""

    events: NDArray[Any]
    definitions: bytes
    thread: int
    sequence: int
    ticks: int
    monotonic_ns: int
    lost: int
    spill_ticks: int
    end: int  # where the next one begins in the file


def read(path: Path) -> Image | None:
    """What is whole in a spill file; None if what the process said of itself is not. Raises
    ForebayError for a file of a later version."""
    content = path.read_bytes()
    found = list(_pieces(content, path))
    pieces = [piece for piece in found if isinstance(piece, Piece)]
    processes = [
        data
        for piece in pieces
        for kind, _, data in definitions_in(piece.definitions)
        if kind == PROCESS
    ]
    if not processes:
        return None
    image = Image(path, process_of(processes[0]))
    image.damaged_bytes = sum(piece for piece in found if isinstance(piece, int))
    sequences = {piece.sequence for piece in pieces}
    image.missing_pieces = max(sequences) + 1 - len(sequences)
    became_another = 0
    for piece in pieces:
        for kind, key, data in definitions_in(piece.definitions):
            _define(image, Definition(kind, key, data, piece.ticks))
            if kind == EXEC:  # It was spilled at once.
                became_another = piece.ticks
        thread = image.threads.setdefault(piece.thread, Thread(piece.thread))
        if len(piece.events):
            thread.parts.append(piece.events)
        thread.lost = max(thread.lost, piece.lost)
        thread.spill_ticks = max(thread.spill_ticks, piece.spill_ticks)
        image.moments.append((piece.ticks, piece.monotonic_ns))
    image.execs = became_another > 0 and not any(
        np.any(part["begin"] > became_another)
        for thread in image.threads.values()
        for part in thread.parts
    )
    return image


def _pieces(content: bytes, path: Path) -> Iterator[Piece | int]:
    """The pieces that are whole, in their order, and how many bytes between them are not."""
    at = 0
    while at < len(content):
        piece = piece_at(content, at, path)
        if piece is not None:
            yield piece
            at = piece.end
            continue
        following = content.find(MAGIC, at + 1)
        following = len(content) if following < 0 else following
        yield following - at
        at = following


def piece_at(content: bytes, at: int, path: Path) -> Piece | None:
    """The piece that begins there, if it is whole. Raises ForebayError for a later version's."""
    if len(content) - at < _HEADER.size or not content.startswith(MAGIC, at):
        return None
    (_, version, count, checksum, definition_bytes, thread, sequence, ticks, monotonic_ns, lost) = (
        _HEADER.unpack_from(content, at)[:-1]
    )
    body = at + _HEADER.size
    if definition_bytes > MOST_BYTES:
        return None
    end = body + definition_bytes + count * EVENT.itemsize
    if end > len(content):
        return None
    digest = xxhash.xxh3_64(content[at : at + _CHECKSUM_AT] + bytes(8))
    digest.update(memoryview(content)[at + _CHECKSUM_AT + 8 : end])
    if digest.intdigest() != checksum:
        return None
    if version != VERSION:
        raise ForebayError(
            f"{path} has version {version} of the format of spills, and this command reads "
            f"{VERSION}",
            "Convert it with the Forebay that captured it.",
            exit_code=1,
        )
    return Piece(
        events=np.frombuffer(content, EVENT, count, body + definition_bytes),
        definitions=content[body : body + definition_bytes],
        thread=thread,
        sequence=sequence,
        ticks=ticks,
        monotonic_ns=monotonic_ns,
        lost=lost,
        spill_ticks=_HEADER.unpack_from(content, at)[-1],
        end=end,
    )


def may_begin(content: bytes, at: int) -> bool:
    """Whether a piece may begin there of which the content ends too early to tell."""
    left = content[at : at + _HEADER.size]
    if len(left) < _HEADER.size:
        return left.startswith(MAGIC[: len(left)])
    fields = _HEADER.unpack(left)
    count, definition_bytes = fields[2], fields[4]
    length = _HEADER.size + definition_bytes + count * EVENT.itemsize
    return left.startswith(MAGIC) and length <= MOST_BYTES and at + length > len(content)


def definitions_in(content: bytes) -> Iterator[tuple[int, int, bytes]]:
    at = 0
    while at + _DEFINITION.size <= len(content):
        kind, _, length, key = _DEFINITION.unpack_from(content, at)
        at += _DEFINITION.size
        yield kind, key, content[at : at + length]
        at += (length + 7) // 8 * 8


def _define(image: Image, given: Definition) -> None:
    if given.kind == END:
        image.end = farewell_in(given.content)
    elif given.kind == CALL:
        image.calls[given.key] = given.content.decode(errors="replace")
    elif given.kind == NAME:
        image.names[given.key] = given.content
    elif given.kind == DESCRIPTOR:
        image.found.append(found_in(given.content))
    elif given.kind not in (PROCESS, EXEC):
        image.definitions.append(given)


def farewell_in(content: bytes) -> Farewell:
    """Of the content of a definition of an end."""
    return Farewell(*_END.unpack_from(content))


def found_in(content: bytes) -> Found:
    """Of the content of a definition of a descriptor."""
    return Found(content[_DESCRIPTOR.size :], *_DESCRIPTOR.unpack_from(content)[:-1])


def process_of(data: bytes) -> Process:
    """Of the content of a definition of a process."""
    fields = _PROCESS.unpack_from(data)
    host, executable, directory = data[_PROCESS.size :].split(b"\0")[:3]
    return Process(host.decode(errors="replace"), executable, directory, *fields)

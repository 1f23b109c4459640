"""Which file is behind a descriptor of a running process, and behind an opening by MPI: followed
call by call, as the calls come."""

import posixpath
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forebay.top import known_calls
from forebay.top.known_calls import KnownCalls
from forebay.trace import descriptors, mpi_calls, spills
from forebay.trace.spills import Piece

_UNKNOWN = -1
_MOST_DESCRIPTORS = 1 << 20
# A thread says again what was pushed out of its memory of what it said (`keys_` in
# core/engine/trace/ring.hpp).
_SAID_LATELY = 256
_TYPE_SIZE = struct.Struct("<q")


class FollowedFiles:
    """`number` gives a file its number by its path."""

    def __init__(self, directory: bytes, number: Callable[[bytes], int]) -> None:
        self._number = number
        self._directory = directory
        self._table = np.full(64, _UNKNOWN, np.int64)  # by descriptor
        self._paths: dict[int, bytes] = {}  # likewise
        self._openings: dict[int, int] = {}
        # What each thread said lately, by its place there.
        self._said: dict[tuple[int, int], tuple[int, bytes]] = {}

    def files(self, piece: Piece, calls: KnownCalls) -> NDArray[np.int64]:
        """The number of each event's file. Its definitions count from the beginning on."""
        said = self._hear(piece)
        events = piece.events
        result = np.full(len(events), _UNKNOWN, np.int64)
        is_mpi = events["call"] >= spills.MPI_CALLS_FROM
        remarks = calls.remarks(events["call"])
        by_descriptor = ~is_mpi & ~remarks
        begin = 0
        for place in [*np.flatnonzero(calls.changes(events["call"])).tolist(), len(events)]:
            until = min(place + 1, len(events))
            part = slice(begin, until)
            result[part] = np.where(by_descriptor[part], self._of(events["descriptor"][part]), -1)
            numbers = events["descriptor"][part][is_mpi[part]].tolist()
            result[part][is_mpi[part]] = [self._openings.get(n, _UNKNOWN) for n in numbers]
            if place < len(events):
                self._change(piece, place, calls, said, result)
            begin = until
        return result

    def type_sizes(self, piece: Piece, keys: list[int]) -> list[int]:
        """Bytes of datatypes, after `files` of the piece; 0 where they are not known."""
        own = {key: data for kind, key, data in _said_in(piece) if kind == spills.MPI_TYPE}
        found = (own.get(key) or self._remembered(piece.thread, key) for key in keys)
        return [_TYPE_SIZE.unpack_from(data)[0] if data else 0 for data in found]

    def _hear(self, piece: Piece) -> dict[int, bytes]:
        """What the piece itself says, by key; what it said is remembered."""
        said: dict[int, bytes] = {}
        for kind, key, data in spills.definitions_in(piece.definitions):
            if kind == spills.DESCRIPTOR:
                found = spills.found_in(data)
                self._set(found.descriptor, found.name)
            elif kind == spills.MPI_OPENING:
                path = mpi_calls.opened_path(data)
                self._openings[key] = self._number(path) if path else _UNKNOWN
        for _, key, data in _said_in(piece):
            place = (piece.thread, key % _SAID_LATELY)
            before = self._said.get(place)
            if before is not None:
                said.setdefault(*before)
            said[key] = data
            self._said[place] = (key, data)
        return said

    def _remembered(self, thread: int, key: int) -> bytes:
        known, data = self._said.get((thread, key % _SAID_LATELY), (0, b""))
        return data if known == key else b""

    def _of(self, descriptor: NDArray[Any]) -> NDArray[np.int64]:
        known = (descriptor >= 0) & (descriptor < len(self._table))
        found: NDArray[np.int64] = self._table[np.where(known, descriptor, 0)]
        return np.where(known, found, _UNKNOWN)

    def _set(self, descriptor: int, path: bytes) -> None:
        if not 0 <= descriptor < _MOST_DESCRIPTORS:
            return
        while descriptor >= len(self._table):
            self._table = np.concatenate([self._table, np.full(len(self._table), _UNKNOWN)])
        self._table[descriptor] = self._number(path)
        self._paths[descriptor] = path

    def _change(
        self,
        piece: Piece,
        place: int,
        calls: KnownCalls,
        said: dict[int, bytes],
        result: NDArray[np.int64],
    ) -> None:
        event = piece.events[place]
        name = calls.names[int(event["call"])]
        if name == known_calls.FILE:
            descriptor = int(event["descriptor"])
            path = self._opened(piece, place, calls, said)
            self._set(descriptor, path or descriptors.path_by_inode(event))
            if path:
                result[place - 1] = self._table[descriptor]
        elif name == known_calls.COPY:
            path = self._paths.get(int(event["descriptor"]), b"")
            if path:
                self._set(int(event["result"]), path)
        elif name == known_calls.MPI_CLOSE:
            self._openings.pop(int(event["descriptor"]), None)
        elif event["result"] == 0:
            by_name = name == known_calls.CHDIR
            path = (
                self._path(piece, event, said)
                if by_name
                else self._paths.get(int(event["descriptor"]), b"")
            )
            self._directory = path or self._directory

    def _opened(self, piece: Piece, place: int, calls: KnownCalls, said: dict[int, bytes]) -> bytes:
        """The path of the opening before, of which this tells; empty: it is not known."""
        if place == 0:
            return b""
        opening = piece.events[place - 1]
        is_one = calls.is_opening(int(opening["call"]))
        if not is_one or opening["result"] != piece.events[place]["descriptor"]:
            return b""
        return self._path(piece, opening, said)

    def _path(self, piece: Piece, event: np.void, said: dict[int, bytes]) -> bytes:
        key = int(event["length"]) % (1 << 64)
        name = said.get(key) or self._remembered(piece.thread, key)
        if not name or name.startswith(b"/"):
            return descriptors.tidied(name)
        descriptor = int(event["descriptor"])
        beside = (
            self._directory
            if descriptor == descriptors.HERE
            else self._paths.get(descriptor, descriptors.unknown_directory(descriptor))
        )
        return descriptors.tidied(posixpath.join(beside, name))


def _said_in(piece: Piece) -> list[tuple[int, int, bytes]]:
    """What threads say again and again: names, and shapes of datatypes."""
    return [
        told
        for told in spills.definitions_in(piece.definitions)
        if told[0] in (spills.NAME, spills.MPI_TYPE)
    ]

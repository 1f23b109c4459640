"""Calls of MPI-IO in spills, with the openings, views, datatypes and hints that they refer to."""

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from forebay.trace import spills
from forebay.trace.descriptors import KnownFiles
from forebay.trace.spills import Image

Integers = NDArray[np.int64]

_OPENING = struct.Struct("<Qiiii")
_VIEW = struct.Struct("<QqQQ")
_TYPE = struct.Struct("<8q")
_PROCESS = struct.Struct("<qq")
_TICKS = struct.Struct("<Q")
_TYPE_COLUMNS = (
    *("size", "extent", "lower_bound", "true_lower_bound", "true_extent"),
    *("blocks", "block_bytes", "stride"),
)
_COLLECTIVE = re.compile(
    r"MPI_File_(i?(read|write)(_at)?_all|(read|write)_ordered).*"
    r"|MPI_File_(open|close|preallocate|seek_shared|set_atomicity|set_info|set_size|set_view|sync)"
)
_DETAILS = "mpi_details"
_NONE = -1


@dataclass(frozen=True)
class World:
    """What a process said of its MPI."""

    rank: int
    ranks: int
    name: str
    version: str


def world_of(image: Image) -> World | None:
    for definition in image.definitions:
        if definition.kind == spills.MPI_PROCESS:
            return world_in(definition.content)
    return None


def world_in(content: bytes) -> World:
    """Of the content of a definition of an MPI process."""
    rank, ranks = _PROCESS.unpack_from(content)
    name, version = _texts(content[_PROCESS.size :])[:2]
    return World(rank, ranks, name.decode(), version.decode(errors="replace"))


def opened_path(content: bytes) -> bytes:
    """Of the content of a definition of an opening; empty where it failed."""
    error = _OPENING.unpack_from(content)[-1]
    return _texts(content[_OPENING.size :])[1] if error == 0 else b""


def is_engines(content: bytes) -> bool:
    """Whether Forebay carries the data calls of an opening out, of the same."""
    return bool(_OPENING.unpack_from(content)[3])


def hints_in(content: bytes) -> dict[str, str]:
    """Of the content of a definition of hints."""
    texts = [text.decode(errors="replace") for text in _texts(content[_TICKS.size :])]
    return dict(zip(texts[0::2], texts[1::2], strict=False))


def _texts(content: bytes) -> list[bytes]:
    return content.split(b"\0")


class MpiTables:
    """What the calls of all processes refer to, each once."""

    def __init__(self, files: KnownFiles) -> None:
        self._files = files
        self._openings: list[dict[str, Any]] = []
        self._views: dict[tuple[int, int | None, int | None, str], int] = {}
        self._types: dict[int, int] = {}  # by key
        self._type_rows: list[dict[str, Any]] = []
        self._hints: dict[tuple[tuple[str, str], ...], int] = {}

    def columns(
        self,
        process: int,
        image: Image,
        events: NDArray[Any],
        thread: Integers,
        ns: Callable[[int], int],
    ) -> dict[str, NDArray[Any]]:
        """The calls of an image, but for their times. `place` is that of each in `events`; -1
        stands for null. `ns` makes times of ticks."""
        details_id = next((key for key, name in image.calls.items() if name == _DETAILS), -1)
        details = np.flatnonzero(events["call"] == details_id)
        details = details[details > 0]
        is_pair = (events["call"][details - 1] >= spills.MPI_CALLS_FROM) & (
            events["begin"][details - 1] == events["begin"][details]
        )
        details = details[is_pair]
        place = details - 1
        calls, more = events[place], events[details]
        self._add_types(image)
        known = self._add_openings(process, image, ns)
        number = calls["descriptor"].astype(np.int64)
        opening = np.array([known.get(int(n), (_NONE, _NONE))[0] for n in number], np.int64)
        file = np.array([known.get(int(n), (_NONE, _NONE))[1] for n in number], np.int64)
        self._close_openings(image, calls, opening, ns)
        self._add_asked(image, known)
        datatype, size = self._datatypes(more["length"])
        begin = calls["begin"].astype(np.int64)
        moves = datatype != _NONE
        count = np.where(moves, calls["length"], _NONE)
        return {
            "process": np.full(len(place), process, np.int64),
            "thread": thread[place],
            "place": place,
            "call": calls["call"].astype(np.int64),
            "file": file,
            "opening": opening,
            "view": _in_force(number, begin, self._view_changes(image)),
            "hints": _in_force(number, begin, self._hint_changes(image)),
            "datatype": datatype,
            "count": count,
            "position": np.maximum(calls["offset"], _NONE),
            "offset": np.maximum(more["offset"], _NONE),
            "length": np.where(moves, count * size, _NONE),
            "result": np.maximum(calls["result"], _NONE),
            "error": more["result"].astype(np.int64),
        }

    def tables(self) -> dict[str, pa.Table]:
        """Those that the calls refer to, by name."""
        view = ("displacement", "etype", "filetype", "representation")
        rows: dict[str, list[dict[str, Any]]] = {
            "openings": self._openings,
            "datatypes": self._type_rows,
            "views": [dict(zip(view, known, strict=True)) for known in self._views],
            "hints": [
                {"set": number, "key": key, "value": value}
                for pairs, number in self._hints.items()
                for key, value in pairs
            ],
        }
        return {name: pa.Table.from_pylist(listed) for name, listed in rows.items() if listed}

    def _add_types(self, image: Image) -> None:
        for definition in image.definitions:
            if definition.kind != spills.MPI_TYPE or definition.key in self._types:
                continue
            self._types[definition.key] = len(self._type_rows)
            numbers = dict(zip(_TYPE_COLUMNS, _TYPE.unpack_from(definition.content), strict=True))
            combiner, shape = _texts(definition.content[_TYPE.size :])[:2]
            # A stride may be negative. It is known where the size of the pieces is, of two or more.
            if numbers["block_bytes"] < 0 or numbers["blocks"] < 2:
                numbers["stride"] = None
            for name in ("blocks", "block_bytes"):
                if numbers[name] < 0:
                    numbers[name] = None
            row = {**numbers, "combiner": combiner.decode(), "shape": shape.decode()}
            self._type_rows.append(row)

    def _datatypes(self, keys: NDArray[Any]) -> tuple[Integers, Integers]:
        """Ids and sizes by key."""
        distinct, inverse = np.unique(keys, return_inverse=True)
        ids = [self._types.get(int(key) % (1 << 64), _NONE) for key in distinct]
        sizes = [self._type_rows[i]["size"] if i != _NONE else 0 for i in ids]
        places = inverse.ravel()
        return np.array(ids, np.int64)[places], np.array(sizes, np.int64)[places]

    def _add_openings(
        self, process: int, image: Image, ns: Callable[[int], int]
    ) -> dict[int, tuple[int, int]]:
        """Opening and file by the number that the process gave the opening."""
        known = {}
        for definition in image.definitions:
            if definition.kind != spills.MPI_OPENING:
                continue
            ticks, rank, ranks, is_engine, error = _OPENING.unpack_from(definition.content)
            mode, path = _texts(definition.content[_OPENING.size :])[:2]
            file = self._files.place(path)
            known[definition.key] = (len(self._openings) if error == 0 else _NONE, file)
            if error == 0:
                self._openings.append(
                    {
                        "process": process,
                        "file": file,
                        "rank": rank,
                        "ranks": ranks,
                        "amode": "|".join(sorted(mode.decode().split("|"))),
                        "mode": "engine" if is_engine else "observe",
                        "hints_asked": None,
                        "start_ns": ns(ticks),
                        "end_ns": None,
                    }
                )
        return known

    def _close_openings(
        self, image: Image, calls: NDArray[Any], opening: Integers, ns: Callable[[int], int]
    ) -> None:
        ids = [key for key, name in image.calls.items() if name == "MPI_File_close"]
        for place in np.flatnonzero(np.isin(calls["call"], ids) & (opening != _NONE)):
            ended = int(calls[place]["begin"]) + int(calls[place]["duration"])
            self._openings[int(opening[place])]["end_ns"] = ns(ended)

    def _add_asked(self, image: Image, known: dict[int, tuple[int, int]]) -> None:
        """What the program asked for with each opening, and later; the last value of a key."""
        asked: dict[int, dict[str, str]] = {}
        for definition in image.definitions:
            place, _ = known.get(definition.key, (_NONE, _NONE))
            if definition.kind == spills.MPI_HINTS_ASKED and place != _NONE:
                asked.setdefault(place, {}).update(hints_in(definition.content))
        for place, pairs in asked.items():
            self._openings[place]["hints_asked"] = self._hint_set(pairs)

    def _hint_set(self, pairs: dict[str, str]) -> int:
        return self._hints.setdefault(tuple(sorted(pairs.items())), len(self._hints))

    def _view_changes(self, image: Image) -> list[tuple[int, int, int]]:
        changes = []
        for definition in image.definitions:
            if definition.kind == spills.MPI_VIEW:
                ticks, displacement, etype, filetype = _VIEW.unpack_from(definition.content)
                representation = _texts(definition.content[_VIEW.size :])[0].decode()
                view = (
                    displacement,
                    self._types.get(etype),
                    self._types.get(filetype),
                    representation,
                )
                number = self._views.setdefault(view, len(self._views))
                changes.append((definition.key, ticks, number))
        return changes

    def _hint_changes(self, image: Image) -> list[tuple[int, int, int]]:
        changes = []
        for definition in image.definitions:
            if definition.kind == spills.MPI_HINTS:
                (ticks,) = _TICKS.unpack_from(definition.content)
                number = self._hint_set(hints_in(definition.content))
                changes.append((definition.key, ticks, number))
        return changes


def is_collective(name: str) -> bool:
    return _COLLECTIVE.fullmatch(name) is not None


def _in_force(number: Integers, begin: Integers, changes: list[tuple[int, int, int]]) -> Integers:
    """Of each call by an opening, what its last change before was to; -1: there was none."""
    result = np.full(len(number), _NONE, np.int64)
    if not changes:
        return result
    rows = np.array(sorted(changes), np.int64)
    order = np.argsort(number, kind="stable")
    numbers = number[order]
    for one in np.unique(rows[:, 0]):
        first, last = np.searchsorted(rows[:, 0], [one, one + 1])
        a, b = np.searchsorted(numbers, [one, one + 1])
        calls = order[a:b]
        place = np.searchsorted(rows[first:last, 1], begin[calls], side="right") - 1
        result[calls] = np.where(place >= 0, rows[first + np.maximum(place, 0), 2], _NONE)
    return result


def ticks_of_tracing(image: Image, events: NDArray[Any]) -> int:
    """What tracing the calls among `events` took beside adding them."""
    ids = [key for key, name in image.calls.items() if name == _DETAILS]
    return int(events["duration"][np.isin(events["call"], ids)].sum())


_NULLABLE = (
    *("file", "opening", "view", "hints", "datatype", "count", "position", "offset", "length"),
    "result",
)


def table(columns: dict[str, NDArray[Any]], words: list[str]) -> pa.Table:
    """As the directory has it. `call` is a place in `words`."""
    arrays: dict[str, pa.Array] = {}
    for name, values in columns.items():
        if name == "call":
            arrays[name] = pa.DictionaryArray.from_arrays(
                values.astype(np.int32), pa.array(words, pa.string())
            )
        else:
            arrays[name] = pa.array(values, mask=values < 0 if name in _NULLABLE else None)
    collective = np.array([*(is_collective(word) for word in words), False])
    arrays["collective"] = pa.array(collective[columns["call"]])
    return pa.table(arrays)

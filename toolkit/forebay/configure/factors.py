"""What can be set for a run: the factors, what their values are called, how two are compared."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from forebay.errors import ForebayError
from forebay.units import parse_size


class Kind(StrEnum):
    """What the values of a factor are."""

    COUNT = "a whole number"
    SIZE = "a size such as 4MiB"
    WORD = "a word"
    NODES = "how many lost nodes are survived: 0, 1, 2"


#: Factor to value; a factor that is missing is left to Forebay, or to the MPI.
Settings = Mapping[str, str]


@dataclass(frozen=True)
class Known:
    """A factor that Forebay knows. `others` are further names, those of the hints among them."""

    name: str
    kind: Kind
    meaning: str
    others: tuple[str, ...] = ()
    words: tuple[str, ...] = ()

    def amount(self, value: str) -> float | None:
        """What is compared by size; None of a word. Raises ForebayError for what is no value."""
        if self.kind is Kind.WORD:
            if self.words and value not in self.words:
                raise ForebayError(
                    f"'{value}' is no value of {self.name}", f"Known are: {', '.join(self.words)}."
                )
            return None
        if self.kind is Kind.SIZE:
            return parse_size(value)
        if self.kind is Kind.NODES and not _WHOLE.fullmatch(value):
            return survived_nodes(value)
        if not _WHOLE.fullmatch(value):
            raise ForebayError(f"'{value}' is no value of {self.name}", f"Write {self.kind}.")
        return int(value)


KNOWN = {
    factor.name: factor
    for factor in (
        Known("engine", Kind.WORD, "who does the I/O", words=("forebay", "mpi")),
        Known(
            "collective", Kind.WORD,
            "collective calls go through aggregators, or each rank writes its own pieces",
            ("collective_buffering", "romio_cb_write", "romio_cb_read"),
            ("enable", "disable", "automatic"),
        ),
        Known("aggregators", Kind.COUNT, "of a file, all nodes together", ("cb_nodes",)),
        Known("buffer_size", Kind.SIZE, "that an aggregator moves in a round",
              ("cb_buffer_size",)),
        Known("stripe_count", Kind.COUNT, "servers that a file is spread over",
              ("striping_factor", "stripe_width")),
        Known("stripe_size", Kind.SIZE, "consecutive bytes on one server", ("striping_unit",)),
        Known("alignment", Kind.SIZE, "what the MPI's aggregators begin at multiples of"),
        Known("sieving", Kind.WORD, "pieces are read and written with what lies between them",
              ("romio_ds_write", "romio_ds_read"), ("enable", "disable", "automatic")),
        Known("cache", Kind.WORD, "the write-behind cache", ("forebay_cache", "e10_cache"),
              ("enable", "disable")),
        Known("cache_path", Kind.WORD, "node-local directory of the cache's logs",
              ("forebay_cache_path", "e10_cache_path")),
        Known("cache_flush", Kind.WORD, "when the cache's logs are flushed",
              ("forebay_cache_flush",), ("immediate", "onsync", "onclose", "deferred")),
        Known("redundancy", Kind.NODES, "nodes that may be lost without losing what the cache "
              "holds; without the cache nothing waits there", ("forebay_cache_redundancy",)),
        Known("prefetch", Kind.WORD, "reads without MPI or by its independent calls: as traced "
              "(declare), or found by watching (watch)", words=("off", "watch", "declare")),
        Known("prefetch_budget", Kind.SIZE, "memory for what is read ahead of one opening",
              ("budget",)),
    )
}  # fmt: skip

_WHOLE = re.compile(r"[0-9]+")
_PARITY = re.compile(r"parity(?::\d+\+(\d+))?")


def survived_nodes(redundancy: str) -> int:
    """Lost nodes that a value of `forebay_cache_redundancy` survives (docs/guide/cache.md). Raises
    ForebayError."""
    if redundancy == "none":
        return 0
    if redundancy == "partner":
        return 1
    match = _PARITY.fullmatch(redundancy)
    if match is None:
        raise ForebayError(
            f"'{redundancy}' is no value of redundancy",
            "Write a number of nodes, none, partner or parity:k+m.",
        )
    return int(match.group(1) or 1)


@dataclass(frozen=True)
class Variable:
    """One of the program's own variables, with the values that may be tried."""

    name: str
    values: tuple[str, ...]


_VARIABLE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)")


def parse_variable(text: str) -> Variable:
    """`FILE_PER_PROCESS=0,1`. Raises ForebayError."""
    match = _VARIABLE.fullmatch(text)
    values = [value.strip() for value in match.group(2).split(",")] if match else []
    if match is None or len(dict.fromkeys(values)) < 2:
        raise ForebayError(
            f"'{text}' names no variable with values to choose from",
            "Write its name and two values or more: --variable FILE_PER_PROCESS=0,1.",
        )
    if match.group(1) in KNOWN or match.group(1).startswith("FOREBAY_"):
        raise ForebayError(
            f"'{match.group(1)}' is Forebay's own name", "Name a variable of the program."
        )
    if re.search(r"[\ud800-\udfff]", text):  # what stands for other bytes
        raise ForebayError(
            f"'{text}' is no UTF-8, which a file of configurations needs",
            "Give the program a link to that place, with another name.",
        )
    return Variable(match.group(1), tuple(dict.fromkeys(values)))

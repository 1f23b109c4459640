"""Reads 8 of the 40 branches of a TTree, in a ROOT file that uproot has written. As a person does
who has not heard of handlers: uproot then opens the file for every basket, in several threads."""

from __future__ import annotations

from pathlib import Path

import uproot

import reader
import table
from content import Numbers

ENTRIES_A_BASKET = 4000
"""32 kB of a branch, which is ROOT's own size of a basket."""

TREE = "events"


def create(path: Path, entries: int) -> None:
    """All branches, a basket of each after the other."""
    with uproot.recreate(path, compression=uproot.ZSTD(1)) as file:
        branches = file.mktree(TREE, dict.fromkeys(table.NAMES, "float64"))
        for batch in table.batches(entries, ENTRIES_A_BASKET):
            branches.extend(batch)


def read(path: Path, handler: type | None = None) -> list[Numbers]:
    """Column by column."""
    with uproot.open(path, handler=handler) as file:
        arrays = file[TREE].arrays(table.READ_NAMES, library="np")
    return [arrays[name] for name in table.READ_NAMES]


if __name__ == "__main__":
    about = __doc__ or ""
    reader.run(about, table.ROWS, create, lambda path, _: read(path), table.read_columns)

"""Reads 8 of the 40 branches of a TTree through a mapping, which uproot does if it is told to."""

from __future__ import annotations

import uproot

import reader
import table
import uproot_columns

if __name__ == "__main__":
    reader.run(
        __doc__ or "",
        table.ROWS,
        uproot_columns.create,
        lambda path, _: uproot_columns.read(path, uproot.MemmapSource),
        table.read_columns,
    )

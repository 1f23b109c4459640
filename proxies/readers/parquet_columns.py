"""Reads 8 of the 40 columns of a Parquet file, with pyarrow."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

import reader
import table
from content import Numbers

ROWS_A_GROUP = 40_000
"""320 kB of a column."""


def create(path: Path, rows: int) -> None:
    """All columns, group by group."""
    schema = pa.schema([(name, pa.float64()) for name in table.NAMES])
    with parquet.ParquetWriter(path, schema, compression="zstd", use_dictionary=False) as file:
        for batch in table.batches(rows, ROWS_A_GROUP):
            file.write_table(pa.table(batch, schema), row_group_size=ROWS_A_GROUP)


def read(path: Path) -> list[Numbers]:
    """The columns as one table."""
    found = parquet.read_table(path, columns=table.READ_NAMES)
    return [found[name].to_numpy() for name in table.READ_NAMES]


if __name__ == "__main__":
    reader.run(__doc__ or "", table.ROWS, create, lambda path, _: read(path), table.read_columns)

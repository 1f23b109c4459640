"""What is known of a pattern from Darshan's counters alone: sums, but no order and no moments."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from forebay.trace.directory import Trace

_TABLES = {
    "posix": ("counters_posix", "POSIX"),
    "mpiio": ("counters_mpi_io", "MPIIO"),
    "stdio": ("counters_stdio", "STDIO"),
}
_NEARLY_ALL = 0.9
# Darshan's most frequent sizes of a record.
_COMMON = 4


def pattern(trace: Trace, layer: str) -> dict[str, Any] | None:
    """The dimensions of a layer for all processes together; what counters cannot tell is None. None
    if the trace has no counters of the layer, or nothing was read or written."""
    name, prefix = _TABLES[layer]
    if not trace.rows(name):
        return None
    table = trace.table(name)

    def total(counter: str) -> float:
        column = f"{prefix}_{counter}"
        if column not in table.column_names:
            return 0.0
        values = np.nan_to_num(table.column(column).to_numpy())
        return float(values[values > 0].sum())

    reads, writes = _data_calls(total, layer, "READS"), _data_calls(total, layer, "WRITES")
    if reads + writes == 0:
        return None
    processes = max(1, trace.rows("processes"))
    spent = total("F_READ_TIME") + total("F_WRITE_TIME") + total("F_META_TIME")
    wall_s = trace.run.wall_ns / 1e9
    kind = "reads and writes" if reads and writes else "read only" if reads else "write only"
    collective = total("COLL_READS") + total("COLL_WRITES") if layer == "mpiio" else 0.0
    return {
        "operation": {
            "kind": kind,
            "reads": int(reads),
            "writes": int(writes),
            "other_calls": None,
            "read_bytes": int(total("BYTES_READ")),
            "written_bytes": int(total("BYTES_WRITTEN")),
            "read_s": total("F_READ_TIME"),
            "write_s": total("F_WRITE_TIME"),
            "other_s": total("F_META_TIME"),
            "share_of_time": spent / (wall_s * processes) if wall_s else None,
            "collective_share": collective / (reads + writes),
        },
        "request_size": None if layer == "stdio" else _request_size(table, prefix, reads + writes),
        "spatial": _spatial(total, reads + writes) if layer == "posix" else None,
        "temporal": None,
        "repetition": None,
    }


def _data_calls(total: Callable[[str], float], layer: str, verb: str) -> float:
    if layer != "mpiio":
        return total(verb)
    return float(sum(total(f"{how}_{verb}") for how in ("INDEP", "COLL", "SPLIT", "NB")))


def _request_size(table: pa.Table, prefix: str, calls: float) -> dict[str, Any]:
    """The sizes that records name as their most frequent ones, and how much of all they are."""
    counts: dict[int, int] = {}
    for place in range(1, _COMMON + 1):
        sizes: NDArray[np.int64] = table.column(f"{prefix}_ACCESS{place}_ACCESS").to_numpy()
        often: NDArray[np.int64] = table.column(f"{prefix}_ACCESS{place}_COUNT").to_numpy()
        for size, count in zip(sizes.tolist(), often.tolist(), strict=True):
            if count > 0:
                counts[size] = counts.get(size, 0) + count
    common = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:_COMMON]
    told = sum(count for _, count in common)
    few = told >= _NEARLY_ALL * calls
    kind = "constant" if few and len(common) == 1 else "few sizes" if few else "varying"
    return {
        "kind": kind,
        "least": None,
        "median": None,
        "most": None,
        "distinct": None,
        "common": [{"bytes": size, "calls": count} for size, count in common],
    }


def _spatial(total: Callable[[str], float], calls: float) -> dict[str, Any]:
    touches = (total("CONSEC_READS") + total("CONSEC_WRITES")) / calls
    ascends = (total("SEQ_READS") + total("SEQ_WRITES")) / calls
    if touches >= _NEARLY_ALL:
        kind = "contiguous"
    elif ascends >= _NEARLY_ALL:
        kind = "ascending"
    else:
        kind = "not only ascending"
    return {
        "kind": kind,
        "contiguous_share": touches,
        "ascending_share": max(0.0, ascends - touches),
    }

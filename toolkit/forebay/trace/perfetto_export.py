"""Traces made into what Perfetto (ui.perfetto.dev) and Chrome show: JSON of trace events, with a
track for each thread."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from forebay import output_paths
from forebay.trace import tables
from forebay.trace.directory import Trace

_PART = 1 << 17  # calls whose text is in memory at once
_ARGUMENTS = ("offset", "length", "result", "errno", "error", "count", "position")
_Window = tuple[float, float]


def export(trace: Trace, out: Path, window: _Window = (0.0, float("inf"))) -> int:
    """Writes the calls that touch `window`, in seconds of the run's clock; compressed if the name
    ends with .gz. Gives their number. Raises OSError, and leaves what was there before, then."""
    with output_paths.unfinished(out) as place:
        return _write(trace, place, window, out.suffix == ".gz")


def _write(trace: Trace, out: Path, window: _Window, is_compressed: bool) -> int:
    count = 0
    paths = trace.table("files").column("path").to_pylist()
    shown = pa.array([*map(_quoted, paths), "null"], pa.string())
    plain = _plain_threads(trace)
    file = tables.opened(out, "wb")
    with file, pa.output_stream(file, "gzip" if is_compressed else None) as stream:
        stream.write(b'{"displayTimeUnit":"ns","traceEvents":[\n')
        stream.write(",\n".join(_process_names(trace)).encode())
        for name in tables.CALLS:
            if name not in trace:
                continue
            table = _within(trace.table(name), window)
            for first in range(0, table.num_rows, _PART):
                part = table.slice(first, _PART)
                stream.write(_events(name, part, shown, plain, count + first))
            count += table.num_rows
        stream.write(b"\n]}\n")
    return count


def _within(table: pa.Table, window: _Window) -> pa.Table:
    start = tables.integers(table, "start_ns")
    end = start + tables.integers(table, "duration_ns")
    return table.filter(pa.array((end >= window[0] * 1e9) & (start <= window[1] * 1e9)))


def _process_names(trace: Trace) -> Iterator[str]:
    for number, process in enumerate(trace.table("processes").to_pylist()):
        rank, host = process["rank"], process["host"]
        words = [
            f"rank {rank}" if rank is not None else process["executable"] or "process",
            f"on {host}" if host else "",
            f"(pid {process['pid']})" if process["pid"] is not None else "",
        ]
        name = " ".join(word for word in words if word)
        yield f'{{"ph":"M","pid":{number},"name":"process_name","args":{{"name":{_quoted(name)}}}}}'
        yield (
            f'{{"ph":"M","pid":{number},"name":"process_sort_index",'
            f'"args":{{"sort_index":{number if rank is None else rank}}}}}'
        )


def _plain_threads(trace: Trace) -> NDArray[np.int64]:
    """The threads, as `_key` has them, whose calls overlap in no other way than that one is inside
    another: only those can be drawn as slices of one track."""
    calls = [
        trace.table(name, ["process", "thread", "start_ns", "duration_ns"])
        for name in tables.CALLS
        if name in trace
    ]
    if not calls:
        return np.empty(0, np.int64)
    table = pa.concat_tables(calls)
    key, start = _key(table), tables.integers(table, "start_ns")
    end = start + tables.integers(table, "duration_ns")
    order = np.lexsort((-end, start, key))
    key, start, end = key[order], start[order], end[order]
    # Each call lies inside the one that it follows, or behind all before it, or right behind its
    # predecessor inside the same one; deeper nesting is left to the other way of drawing.
    new = np.append(True, np.diff(key) != 0)
    number = np.cumsum(new) - 1
    shift = number * (int(end.max(initial=0)) + 1)  # keeps threads apart in one running maximum
    latest = np.maximum.accumulate(end + shift)
    behind_all = np.append(True, start[1:] + shift[1:] >= latest[:-1])
    outer_end = np.maximum.accumulate(np.where(behind_all, end + shift, 0))
    inside = end + shift <= outer_end
    touches = np.append(True, start[1:] >= end[:-1]) | np.append(True, behind_all[:-1])
    wrong = np.unique(key[~(behind_all | (inside & touches))])
    return np.setdiff1d(np.unique(key), wrong)


def _key(table: pa.Table) -> NDArray[np.int64]:
    return tables.integers(table, "process") << 32 | tables.integers(table, "thread")


def _events(
    name: str, table: pa.Table, paths: pa.Array, plain: NDArray[np.int64], first_id: int
) -> bytes:
    """The calls as text, each after a comma."""
    start, duration = (tables.integers(table, each) for each in ("start_ns", "duration_ns"))
    where = _joined(
        '"pid":', _text(table.column("process")), ',"tid":', _text(table.column("thread"))
    )
    call, words = tables.codes(table, "call")
    what = pa.array([*map(_quoted, words), '"?"'], pa.string()).take(pa.array(call))
    file = paths.take(pa.array(tables.integers(table, "file", len(paths) - 1)))
    fields = ['"file":', file]
    for argument in _ARGUMENTS:
        if argument in table.column_names:
            fields += [f',"{argument}":', _text(table.column(argument))]
    head = _joined('"cat":"', name, '","name":', what, ",", where)
    arguments = _joined(',"args":{', *fields, "}}")
    slices = _joined(
        ',\n{"ph":"X",', head, ',"ts":', _microseconds(start), ',"dur":', _microseconds(duration)
    )
    drawn_plainly = np.isin(_key(table), plain)
    texts = pc.binary_join_element_wise(slices, arguments, "")
    if not drawn_plainly.all():
        ids = _text(pa.array(np.arange(first_id, first_id + table.num_rows)))
        begin = _joined(',\n{"ph":"b","id":', ids, ",", head, ',"ts":', _microseconds(start))
        end = _joined(
            ',\n{"ph":"e","id":', ids, ",", head, ',"ts":', _microseconds(start + duration), "}"
        )
        texts = pc.if_else(
            pa.array(drawn_plainly), texts, pc.binary_join_element_wise(begin, arguments, end, "")
        )
    joined = pa.ListArray.from_arrays(pa.array([0, len(texts)], pa.int32()), _one_chunk(texts))
    return pc.binary_join(joined, "")[0].as_py().encode()  # type: ignore[no-any-return]


def _joined(*parts: "str | pa.Array") -> pa.Array:
    return _one_chunk(pc.binary_join_element_wise(*parts, ""))


def _one_chunk(array: "pa.Array | pa.ChunkedArray") -> pa.Array:
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _text(numbers: "pa.Array | pa.ChunkedArray") -> pa.Array:
    return _one_chunk(pc.cast(numbers, pa.string()).fill_null("null"))


def _microseconds(nanoseconds: NDArray[np.int64]) -> pa.Array:
    whole, rest = np.divmod(nanoseconds, 1000)
    digits = pc.utf8_lpad(_text(pa.array(rest)), 3, "0")
    return _joined(_text(pa.array(whole)), ".", digits)


def _quoted(text: str) -> str:
    return json.dumps(text)

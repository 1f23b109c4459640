"""How many bytes and calls each layer passed on for what the program asked."""

from dataclasses import dataclass, field, fields

import numpy as np
import pyarrow as pa

from forebay.report.layers import Flags, Layer
from forebay.trace import tables
from forebay.trace.calls import Kind
from forebay.trace.directory import Trace
from forebay.units import show_bytes

#: From here on a layer that moves more than it was asked for is worth a word.
AMPLIFIED = 1.05


@dataclass(frozen=True)
class Flow:
    """Reads and writes at one place: calls, and bytes."""

    reads: int = 0
    read_bytes: int = 0
    writes: int = 0
    written_bytes: int = 0

    @property
    def calls(self) -> int:
        return self.reads + self.writes

    @property
    def bytes(self) -> int:
        return self.read_bytes + self.written_bytes


@dataclass(frozen=True)
class Device:
    """What the kernel counted for a block device from the run's start to its end, whoever it was
    for."""

    name: str
    mount_points: list[str]
    flow: Flow


@dataclass(frozen=True)
class Funnel:
    """Of the files of MPI-IO: what was asked of it, what it says it moved, and what POSIX moved for
    it. Of all others: what was asked of POSIX, and what it moved. None where the trace has none.
    `notes` says what it does not tell. `source` is `calls` or `counters`."""

    asked_mpi: Flow | None
    mpi: Flow | None
    below: Flow | None
    asked_posix: Flow | None
    posix: Flow | None
    notes: list[str]
    devices: list[Device] = field(default_factory=list)
    source: str = "calls"

    @property
    def read_amplification(self) -> float | None:
        """Bytes that POSIX read for each that MPI-IO did; None where it read none."""
        return self._quotient("read_bytes")

    @property
    def write_amplification(self) -> float | None:
        return self._quotient("written_bytes")

    @property
    def amplification(self) -> float | None:
        """Bytes of both directions, so that what is read only to write around it counts."""
        return self._quotient("bytes")

    def places(self) -> dict[str, Flow]:
        """What there is, by name, from the program to the devices."""
        named = {
            "asked of MPI-IO": self.asked_mpi,
            "moved by MPI-IO": self.mpi,
            "moved by POSIX below MPI-IO": self.below,
            "asked of POSIX": self.asked_posix,
            "moved by POSIX": self.posix,
        } | {
            f"device {each.name} ({', '.join(each.mount_points)}), whole host": each.flow
            for each in self.devices
        }
        return {name: flow for name, flow in named.items() if flow is not None}

    def _quotient(self, amount: str) -> float | None:
        if self.below is None or self.mpi is None or not getattr(self.mpi, amount):
            return None
        return float(getattr(self.below, amount) / getattr(self.mpi, amount))

    def as_json(self) -> dict[str, object]:
        flows = {
            name: None if flow is None else dict(vars(flow))
            for name, flow in vars(self).items()
            if name not in ("notes", "devices", "source")
        }
        devices = [vars(device) | {"flow": vars(device.flow)} for device in self.devices]
        return {
            "source": self.source,
            **flows,
            "read_amplification": self.read_amplification,
            "write_amplification": self.write_amplification,
            "amplification": self.amplification,
            "devices": devices,
            "notes": self.notes,
        }


def of(trace: Trace, posix: Layer, mpi: Layer) -> Funnel:
    """By calls; by counters where there are no calls, or a log's calls are not all there."""
    devices, notes = _devices(trace)
    counted = trace.run.origin.get("kind") == "darshan" and bool(trace.run.losses)
    if counted or not (len(posix) or len(mpi)):
        return _by_counters(trace, notes)
    has_mpi = bool(mpi.data.any())
    if not has_mpi:
        notes.append("The program made no data calls of MPI-IO, or they are not in the trace.")
    elif not posix.below.any():
        notes.append("No POSIX calls below MPI-IO are in the trace.")
    own = posix.data & ~posix.below
    below = posix.data & posix.below
    return Funnel(
        asked_mpi=_asked(mpi, mpi.data) if has_mpi else None,
        mpi=_moved(mpi, mpi.data) if has_mpi else None,
        below=_moved(posix, below) if below.any() else None,
        asked_posix=_asked(posix, own) if own.any() else None,
        posix=_moved(posix, own) if own.any() else None,
        notes=notes,
        devices=devices,
    )


def _devices(trace: Trace) -> tuple[list[Device], list[str]]:
    """Devices below the run's files, and what is to be said of their counters."""
    storage = trace.run.storage
    devices = [
        Device(
            str(entry["name"]),
            [str(point) for point in entry["mount_points"]],
            Flow(*(int(entry[f.name]) for f in fields(Flow))),
        )
        for entry in storage.get("devices", [])
    ]
    notes = []
    if not devices:
        notes.append("What went on to devices is not known: the trace has no counters of them.")
    else:
        note = (
            f"A device's counters are those of all that {storage['host']} did with it during the "
            "run, by whomever."
        )
        dirty = storage.get("dirty_bytes")
        if dirty:
            note += (
                f" What waits in the page cache is not in them: {show_bytes(dirty['start'])} of "
                f"the whole host before the run, {show_bytes(dirty['end'])} after it."
            )
        notes.append(note)
    processes = storage.get("processes")
    if processes:
        notes.append(
            f"For the run's processes on {storage['host']} alone, the kernel fetched "
            f"{show_bytes(processes['read_bytes'])} from storage and took "
            f"{show_bytes(processes['written_bytes'])} to be written to it, of which "
            f"{show_bytes(processes['cancelled_bytes'])} were removed again before they were."
        )
    return devices, notes


def _asked(layer: Layer, rows: Flags) -> Flow:
    return _flow(layer, rows, "asked")


def _moved(layer: Layer, rows: Flags) -> Flow:
    return _flow(layer, rows, "moved")


def _flow(layer: Layer, rows: Flags, amount: str) -> Flow:
    values = getattr(layer, amount)
    reads, writes = rows & (layer.kind == Kind.READ), rows & (layer.kind == Kind.WRITE)
    return Flow(
        int(reads.sum()), int(values[reads].sum()), int(writes.sum()), int(values[writes].sum())
    )


def _by_counters(trace: Trace, notes: list[str]) -> Funnel:
    mpi_files = np.zeros(0, np.int64)
    mpi = None
    if trace.rows("counters_mpi_io"):
        table = trace.table("counters_mpi_io")
        mpi_files = np.unique(tables.integers(table, "file"))
        kinds = ("INDEP", "COLL", "SPLIT", "NB")
        mpi = Flow(
            sum(_total(table, f"MPIIO_{kind}_READS") for kind in kinds),
            _total(table, "MPIIO_BYTES_READ"),
            sum(_total(table, f"MPIIO_{kind}_WRITES") for kind in kinds),
            _total(table, "MPIIO_BYTES_WRITTEN"),
        )
    below = own = None
    if trace.rows("counters_posix"):
        table = trace.table("counters_posix")
        used = np.isin(tables.integers(table, "file"), mpi_files)
        below, own = _posix_counts(table, used), _posix_counts(table, ~used)
    notes.append("Counters do not tell what was asked for, only what was moved.")
    flows = (None, _some(mpi), _some(below), None, _some(own))
    return Funnel(*flows, notes, source="counters")


def _some(flow: Flow | None) -> Flow | None:
    return flow if flow is not None and flow.calls else None


def _posix_counts(table: pa.Table, rows: Flags) -> Flow:
    part = table.filter(pa.array(rows))
    return Flow(
        _total(part, "POSIX_READS"),
        _total(part, "POSIX_BYTES_READ"),
        _total(part, "POSIX_WRITES"),
        _total(part, "POSIX_BYTES_WRITTEN"),
    )


def _total(table: pa.Table, column: str) -> int:
    if column not in table.column_names:
        return 0
    values = tables.integers(table, column, 0)
    return int(values[values > 0].sum())

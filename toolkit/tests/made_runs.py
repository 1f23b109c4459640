"""Traces of runs of which everything is known, for the tests of the report."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from forebay.trace import tables
from forebay.trace.directory import Run, Trace, TraceWriter, paths

MS = 1_000_000
MIB = 1 << 20


@dataclass
class MadeRun:
    """Calls with times in ms, of `processes` that live for `wall_ms` each."""

    path: Path
    wall_ms: int = 1000
    processes: int = 1
    ranks: int = 0
    of_each_rank: int = 1  # processes, one behind the other
    files: list[str] = field(default_factory=lambda: ["/scratch/data"])
    kinds: list[str] = field(default_factory=list)
    file_systems: list[str] = field(default_factory=list)
    stripes: list[tuple[int, int] | None] = field(default_factory=list)  # bytes, servers
    openings: list[dict[str, Any]] = field(default_factory=list)
    views: list[dict[str, Any]] = field(default_factory=list)
    datatypes: list[dict[str, Any]] = field(default_factory=list)
    hints: list[dict[str, str]] = field(default_factory=list)  # a set each
    calls: dict[str, list[dict[str, Any]]] = field(
        default_factory=lambda: {"posix": [], "mpiio": []}
    )
    counters: dict[str, list[dict[str, Any]]] = field(default_factory=dict)  # of Darshan's modules
    run: dict[str, Any] = field(default_factory=dict)
    hosts: list[str] = field(default_factory=list)  # of the processes

    def posix(self, call: str, start: float, took: float, size: int = 0, **others: object) -> None:
        self._add("posix", call, start, took, size, {"within": "program", "errno": 0} | others)

    def mpi(self, call: str, start: float, took: float, size: int = 0, **others: object) -> None:
        self._add("mpiio", f"MPI_File_{call}", start, took, size, others)

    def _add(
        self, layer: str, call: str, start: float, took: float, size: int, others: dict[str, Any]
    ) -> None:
        row = {"process": 0, "thread": 0, "file": 0, "call": call, "length": size, "result": size}
        times = {"start_ns": round(start * MS), "duration_ns": round(took * MS)}
        self.calls[layer].append(row | times | others)

    def trace(self) -> Trace:
        writer = TraceWriter(self.path)
        for layer, rows in self.calls.items():
            ordered = sorted(rows, key=lambda r: (r["process"], r["thread"], r["start_ns"]))
            writer.add(layer, pa.Table.from_pylist(ordered, schema=tables.SCHEMAS[layer]))
        for module, records in self.counters.items():
            writer.add(f"counters_{module}", pa.Table.from_pylist(records))
        count = len(self.files)
        stripes = self.stripes or [None] * count
        writer.add(
            "files",
            pa.table(
                paths(name.encode() for name in self.files)
                | {
                    "kind": self.kinds or ["file"] * count,
                    "file_system": self.file_systems or ["ext4"] * count,
                    "mount_point": ["/scratch"] * count,
                    "stripe_size": pa.array([s and s[0] for s in stripes], pa.int64()),
                    "stripe_count": pa.array([s and s[1] for s in stripes], pa.int64()),
                }
            ),
        )
        opening = {"process": 0, "file": 0, "mode": "observe"}
        writer.add("openings", pa.Table.from_pylist([opening | each for each in self.openings]))
        for name, listed in (("views", self.views), ("datatypes", self.datatypes)):
            writer.add(name, pa.Table.from_pylist(listed))
        pairs = [
            {"set": number, "key": key, "value": value}
            for number, hints in enumerate(self.hints)
            for key, value in hints.items()
        ]
        writer.add("hints", pa.Table.from_pylist(pairs))
        ranked = self.ranks * self.of_each_rank
        ranks = [n // self.of_each_rank if n < ranked else None for n in range(self.processes)]
        writer.add(
            "processes",
            pa.table(
                {
                    "rank": pa.array(ranks, pa.int32()),
                    "host": pa.array(self.hosts or [None] * self.processes, pa.string()),
                    "start_ns": [0] * self.processes,
                    "end_ns": [self.wall_ms * MS] * self.processes,
                }
            ),
        )
        told: dict[str, Any] = {
            "origin": {"kind": "capture", "tool": "forebay"},
            "command": ["mpiexec", "-n", "4", "./a b"],
            "wall_ns": self.wall_ms * MS,
            "ranks": self.ranks,
            "levels": {layer: "events" if rows else "none" for layer, rows in self.calls.items()},
            "machine": {"hosts": ["node1"]},
        }
        writer.finish(Run(**(told | self.run)))
        return Trace(self.path)

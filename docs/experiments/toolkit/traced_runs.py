"""Runs that are traced, and what `forebay report` says of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import measuring
from forebay.report import contents
from forebay.trace.directory import Trace
from measuring import MeasuringError, Tools

RIGHT = "bytes are right"


@dataclass(frozen=True)
class Figures:
    """One run. Seconds are the mean of its processes."""

    run_s: float
    io_s: float  # in MPI-IO, or in calls on files beside it
    share: float  # of I/O, of the processes' time
    calls: int  # of MPI-IO, that move data
    operations: int  # reads and writes of the file system, for these
    bytes: int  # that the program moved
    by_kind_s: Mapping[str, float]  # I/O by kind, as in the report

    @property
    def rate(self) -> float:
        """Bytes a second of I/O."""
        return self.bytes / self.io_s

    @property
    def operations_per_s(self) -> float:
        return self.operations / self.io_s


def trace(tools: Tools, command: list[str], directory: Path, timeout_s: float) -> None:
    """Runs a program that checks what it reads, traced into `directory`. Raises MeasuringError if
    it fails, if it reads something wrong, or if calls are missing in its trace."""
    words = ["trace", "-o", str(directory), "--", *command]
    said = measuring.forebay(tools, words, timeout_s=timeout_s)
    if RIGHT not in said:
        raise MeasuringError(f"{' '.join(command)} did not check what it read:\n{said}")
    told = _told(directory)
    if told["losses"] or not told["complete"]:
        raise MeasuringError(f"{' '.join(command)}: its trace lacks {told['losses']}")


def mpi_version(directory: Path) -> str:
    """Of the library that a traced run used."""
    return str(_told(directory)["mpi"].get("version", "unknown"))


def _told(directory: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((directory / "run.json").read_text())
    return found


def report(directory: Path) -> dict[str, Any]:
    """What `forebay report --json` says of a trace, as in docs/guide/report.md."""
    return contents.examine(Trace(directory)).as_json()


def figures(report: Mapping[str, Any]) -> Figures:
    """What a campaign keeps of a report. Raises MeasuringError where it tells of no MPI-IO."""
    budget, funnel = report["budget"], report["funnel"]
    if budget["source"] != "calls" or funnel["mpi"] is None or funnel["below"] is None:
        raise MeasuringError(f"the report of {report['command']} tells of no calls of MPI-IO")
    processes = budget["processes"]
    spent = {kind: s / processes for kind, s in budget["seconds"].items() if kind != "compute"}
    moved, below = funnel["mpi"], funnel["below"]
    return Figures(
        run_s=budget["process_seconds"] / processes,
        io_s=sum(spent.values()),
        share=budget["io_share"],
        calls=moved["reads"] + moved["writes"],
        operations=below["reads"] + below["writes"],
        bytes=moved["read_bytes"] + moved["written_bytes"],
        by_kind_s=spent,
    )

"""What was planted for the toolkit to find, or not to find: a program with hardly any I/O, of which
no gain may be claimed; and three faults that `forebay report` is to name. One JSON document a
round."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import traced_runs
from campaign import Mpi, Workload
from configure_pairs import MEMORY, SPREAD, WHOLE, WIDE, System
from configure_runs import NOTHING_FASTER, RUNS_MOST
from machine_time import Stolen
from measuring import Tools, forebay


@dataclass(frozen=True)
class Fault:
    """A program with a fault, and the finding that should name it. On `without` the same program
    has no such fault."""

    key: str  # of the finding
    title: str
    about: str
    program: str
    arguments: tuple[str, ...]
    system: System
    without: System | None = None
    mpi: str = "mpich"
    ranks: int = 2


FAULTS = (
    Fault(
        "amplification",
        "amplification",
        "each process writes pieces of 512 bytes, every other one of the file, by independent "
        "calls: ROMIO reads what lies between and writes it again",
        "interleave",
        ("--independent", "--piece", "512", "--total", "4MiB", "--no-read"),
        WIDE,
    ),
    Fault(
        "hints-not-in-force",
        "hint not honoured",
        "the program asks for 2 aggregators by `cb_nodes`; ROMIO takes one on a node",
        "block3d",
        ("--grid", "1x1x2", "--size", "32x32x64", "--no-read", "--hints", "cb_nodes=2"),
        WIDE,
    ),
    Fault(
        "small-files-striped",
        "small files on many servers",
        "64 files of 32 KiB in a directory whose files lie on 48 servers, each of which costs the "
        "metadata server 0.2 ms where a file is opened, made or removed",
        "segments",
        ("--files", "64", "--block", "16KiB", "--transfer", "16KiB", "--segments", "1",
         "--no-read"),
        SPREAD,
        WHOLE,
    ),
)  # fmt: skip

# Hardly any I/O: what it computes is slept.
QUIET = Fault(
    "", "a program that computes", "", "segments",
    ("--files", "3", "--compute", "1.6", "--block", "12MiB", "--segments", "1", "--no-read"),
    MEMORY,
)  # fmt: skip
SYSTEMS = (MEMORY, WIDE, SPREAD, WHOLE)
TRIED = {"cache": {"forebay_cache": "enable"}, "collective": {"romio_cb_write": "enable"}}


def measure_round(
    tools: Tools, mpis: Mapping[str, Mpi], directories: Mapping[str, Path], limits: dict[str, Any]
) -> dict[str, Any]:
    """Each of these once. Raises MeasuringError."""
    stolen = Stolen()
    with tempfile.TemporaryDirectory(prefix="forebay-experiment-") as name:
        place = Path(name)
        system = place / "system.json"
        system.write_text(json.dumps(limits))
        quiet = _quiet(tools, mpis, directories, place, system)
        faults = [_fault(tools, mpis, directories, place, fault) for fault in FAULTS]
        versions = {key: traced_runs.mpi_version(place / "quiet") for key in (QUIET.mpi,)}
    return {
        "version": 1,
        "stolen_share": stolen.share(),
        "environment": {"mpi": versions},
        "quiet": quiet,
        "faults": faults,
    }


def _traced(
    tools: Tools, mpis: Mapping[str, Mpi], directory: Path, fault: Fault, trace: Path
) -> list[str]:
    """The command, of which a traced run was made; its files are removed."""
    workload = Workload(fault.program, fault.program, list(fault.arguments), "", {}, {})
    command = tools.command(mpis[fault.mpi], fault.ranks, workload, directory / "planted")
    forebay(tools, ["trace", "-o", str(trace), "--", *command])
    for file in directory.glob("planted*"):
        file.unlink()
    return command


def _fault(
    tools: Tools, mpis: Mapping[str, Mpi], directories: Mapping[str, Path], place: Path,
    fault: Fault,
) -> dict[str, Any]:  # fmt: skip
    trace = place / fault.key
    _traced(tools, mpis, directories[fault.system.name], fault, trace)
    told = traced_runs.report(trace)
    without_s = None
    if fault.without is not None:
        other = place / f"without-{fault.key}"
        _traced(tools, mpis, directories[fault.without.name], fault, other)
        without_s = traced_runs.report(other)["budget"]["wall_seconds"]
    kept = ("key", "title", "seconds", "share", "confidence")
    return {
        "key": fault.key,
        "run_s": told["budget"]["wall_seconds"],
        "without_s": without_s,
        "findings": [{key: finding[key] for key in kept} for finding in told["findings"]],
    }


def _quiet(
    tools: Tools, mpis: Mapping[str, Mpi], directories: Mapping[str, Path], place: Path,
    system: Path,
) -> dict[str, Any]:  # fmt: skip
    trace, told, judged = place / "quiet", place / "search.json", place / "evaluation.json"
    command = _traced(tools, mpis, directories[QUIET.system.name], QUIET, trace)
    words = ["configure", str(trace), "--system", str(system), "--max-runs", str(RUNS_MOST)]
    words += ["--history", str(place / "quiet.sqlite"), "--out", str(place / "quiet.toml")]
    forebay(tools, [*words, "--json", str(told), "--", *command], statuses=(0, NOTHING_FASTER))
    search = json.loads(told.read_text())
    tried = place / "tried.toml"
    tables = [
        f"[configuration.{name}.hints]\n"
        + "".join(f'{key} = "{value}"\n' for key, value in hints.items())
        for name, hints in TRIED.items()
    ]
    tried.write_text("version = 1\n\n" + "\n".join(tables))
    names = ",".join([*TRIED, "stock", "default"])
    words = ["evaluate", "--configs", names, "--file", str(tried), "--seed", "1"]
    forebay(tools, [*words, "--json", str(judged), "--", *command])
    evaluation = json.loads(judged.read_text())
    return {
        "ceiling": search["ceiling"],
        "stopped": search["stopped"],
        "runs": len(search["runs"]),
        "best": search["best"],
        "findings": [finding["key"] for finding in traced_runs.report(trace)["findings"]],
        "verdicts": evaluation["verdicts"],
    }

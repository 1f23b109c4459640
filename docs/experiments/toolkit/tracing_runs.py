"""What a trace costs: a call, a run, and the report of a million calls. One JSON document a
round."""

from __future__ import annotations

import json
import os
import random
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import measuring
from campaign import Mpi, Workload
from forebay.job import run_captured
from forebay.launcher import Launch
from forebay.statistics import median
from forebay.trace.directory import Trace
from machine_time import Stolen
from measuring import MeasuringError, Tools
from results import ROOT

TIMEOUT_S = 300.0
#: Runs of a program in a round, with a trace and without one each.
PAIRS = 4
BUILD = ROOT / "build"
RANKS = 2

#: Programs whose runs are traced, with as much I/O as they are usually given.
PROGRAMS = (
    Workload("block3d", "block3d", ["--size", "128x128x128"], "", {}, {}),
    Workload("segments", "segments", [], "", {}, {}),
    Workload("multipart", "multipart", ["--variant", "full"], "", {}, {}),
    Workload("outofcore", "outofcore", ["--side", "512", "--independent"], "", {}, {}),
    Workload("checkpoint", "checkpoint", [], "", {}, {}),
)

#: A program of little more than a million calls: so many of 512 bytes in MPI-IO by each rank, and
#: as many below them. It writes and reads its file.
MILLION = Workload(
    "a million calls",
    "segments",
    ["--block", "16MiB", "--transfer", "512", "--segments", "4", "--independent"],
    "",
    {},
    {},
)


@dataclass(frozen=True)
class Spent:
    """What a command took."""

    seconds: float
    peak_bytes: int  # of its largest process


def measure_round(
    tools: Tools, mpis: Sequence[Mpi], memory: Path, local: Path, shuffle: random.Random
) -> dict[str, Any]:
    """Each measurement once. Raises MeasuringError."""
    stolen = Stolen()
    versions: dict[str, str] = {}
    with measuring.place(memory) as quick, measuring.place(local) as disk:
        return {
            "version": 1,
            "file_system": disk.file_system,
            "libc_calls": _libc_calls(),
            "mpi_calls": {
                mpi.key: _mpi_calls(tools, mpi, quick.directory, versions) for mpi in mpis
            },
            "programs": _programs(tools, mpis[-1], disk.directory, quick.directory, shuffle),
            "million": _million(tools, mpis[-1], quick.directory),
            "stolen_share": stolen.share(),
            "environment": {"mpi": versions},
        }


def _libc_calls() -> dict[str, dict[str, float]]:
    """Nanoseconds of each call straight to the C library, and what tracing adds."""
    program = _built("bench/traced_call_bench")
    done = subprocess.run(
        [program, "--benchmark_format=json"], capture_output=True, text=True, check=False,
        timeout=TIMEOUT_S, env=measuring.environment(),
    )  # fmt: skip
    if done.returncode != 0:
        raise MeasuringError(f"{program}: exit status {done.returncode}\n{done.stderr[-500:]}")
    return {
        one["name"].split("/")[0]: {"plain_ns": one["libc_ns"], "added_ns": one["added_ns"]}
        for one in json.loads(done.stdout)["benchmarks"]
    }


def _built(name: str) -> Path:
    if not (BUILD / name).is_file():
        raise MeasuringError(
            f"{BUILD / name} is not there: cmake -B build -DFOREBAY_BENCH=ON; make"
        )
    return BUILD / name


def _mpi_calls(
    tools: Tools, mpi: Mpi, directory: Path, versions: dict[str, str]
) -> dict[str, dict[str, float]]:
    program = _built(f"mpi-tests/{mpi.key}/traced_calls_bench")
    said = _forebay(
        tools, "trace", "-o", str(directory / "calls"), "--quiet", "--",
        *mpi.start(1), str(program), str(directory),
    )  # fmt: skip
    told = Trace(directory / "calls").run.mpi
    versions[told["name"]] = told["version"]
    subprocess.run(["rm", "-rf", directory / "calls"], check=True)
    rows = [line.split("\t") for line in said.splitlines() if line.count("\t") == 2]
    return {
        name: {"plain_ns": float(plain), "added_ns": float(added)} for name, plain, added in rows
    }


def _programs(
    tools: Tools, mpi: Mpi, disk: Path, memory: Path, shuffle: random.Random
) -> dict[str, dict[str, float]]:
    """Each program with and without a trace, in shuffled order; the command's own wall time, the
    medians of PAIRS runs each."""
    found = {}
    for workload in shuffle.sample(PROGRAMS, len(PROGRAMS)):
        command = tools.command(mpi, RANKS, workload, disk / workload.name)
        directory = memory / "program"
        untraced_s, traced_s, overhead = [], [], {}
        for is_traced in shuffle.sample((True, False) * PAIRS, 2 * PAIRS):
            measuring.shell(f"sync --file-system {disk}")
            if not is_traced:
                untraced_s.append(_untraced(command))
                continue
            _forebay(tools, "trace", "-o", str(directory), "--quiet", "--", *command)
            told = Trace(directory).run
            if told.losses or not told.complete:
                raise MeasuringError(f"{workload.name}: its trace lacks calls")
            traced_s.append(told.wall_ns / 1e9)
            overhead = told.overhead
            subprocess.run(["rm", "-rf", directory], check=True)
        found[workload.name] = {
            "untraced_s": median(untraced_s),
            "traced_s": median(traced_s),
            **overhead,
        }
        subprocess.run(["rm", "-rf", disk / workload.name], check=True)
    return found


def _untraced(command: list[str]) -> float:
    """Its wall time, to the moment that it ends, as a traced one's is."""
    done = run_captured(Launch(command, measuring.environment()), TIMEOUT_S, ROOT)
    if done.exit_code != 0:
        raise MeasuringError(f"{' '.join(command)}: exit status {done.exit_code}")
    return done.wall_seconds


def _million(tools: Tools, mpi: Mpi, memory: Path) -> dict[str, Any]:
    """What is made of a trace of a million calls."""
    directory = memory / "million"
    command = tools.command(mpi, RANKS, MILLION, memory / "file")
    _forebay(tools, "trace", "-o", str(directory), "--quiet", "--", *command)
    report = _spent(tools, "report", str(directory), "-o", str(memory / "report.html"))
    pattern = _spent(tools, "characterise", "app", str(directory))
    trace = Trace(directory)
    found = {
        "calls": int(trace.run.overhead["calls"]),
        "report": vars(report),
        "report_bytes": (memory / "report.html").stat().st_size,
        "characterise": vars(pattern),
    }
    subprocess.run(["rm", "-rf", directory, memory / "file", memory / "report.html"], check=True)
    return found


def _spent(tools: Tools, *words: str) -> Spent:
    start = time.perf_counter()
    process = subprocess.Popen(
        [tools.forebay, *words], cwd=ROOT, env=measuring.environment(),
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise MeasuringError(f"forebay {' '.join(words)}: exit status {process.returncode}")
    return Spent(time.perf_counter() - start, usage.ru_maxrss * 1024)


def _forebay(tools: Tools, *words: str) -> str:
    return measuring.forebay(tools, list(words), timeout_s=TIMEOUT_S)

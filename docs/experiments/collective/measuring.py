"""Measurements by the `forebay` command, and by nothing else: this module starts it and reads the
JSON that it writes."""

import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from campaign import Hints, Mpi, Setting, Workload
from results import ROOT

# What a user's shell may hold and what would change a measurement unseen.
_NOT_INHERITED = (
    "FOREBAY_HINTS",
    "FOREBAY_INTENT",
    "FOREBAY_MODE",
    "FOREBAY_RANKS_PER_NODE",
    "FOREBAY_REPORT_DIR",
    "LD_PRELOAD",
    "ROMIO_HINTS",
)
_MCA_PREFIX = "OMPI_MCA_"

# tests/foreign/sleep_while_polling.c, as `make build` leaves it
SLEEPING = ROOT / "build/tests/foreign/libsleep_while_polling.so"

STOCK, FOREBAY = "stock", "forebay"


class MeasuringError(Exception):
    """A measurement that cannot be made; the text says what to do."""


@dataclass(frozen=True)
class Tools:
    """What is measured with: the command, and the directory that holds the workloads by MPI."""

    forebay: Path
    workloads: Path

    def check(self) -> None:
        """Raises MeasuringError if something was not built."""
        for path in (self.forebay, self.workloads):
            if not path.exists():
                raise MeasuringError(f"{path} does not exist: run 'make build' first")

    def command(self, mpi: Mpi, ranks: int, workload: Workload, file: Path) -> list[str]:
        """The workload as a user would start it, from the root of the tree."""
        program = self.workloads / mpi.key / workload.program
        if not program.is_file():
            raise MeasuringError(f"{program} does not exist: run 'make build' first")
        shown = program.relative_to(ROOT) if program.is_relative_to(ROOT) else program
        return [*mpi.start(ranks), str(shown), *workload.arguments, str(file)]


def environment(preload: Path | None = None) -> dict[str, str]:
    """Our variables without those that would change a measurement; `preload` is loaded into
    programs."""
    kept = {
        key: value
        for key, value in os.environ.items()
        if key not in _NOT_INHERITED and not key.startswith(_MCA_PREFIX)
    }
    if os.geteuid() == 0:  # Open MPI refuses to start as root unless told twice
        kept |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return kept | ({"LD_PRELOAD": str(preload)} if preload else {})


@contextmanager
def in_environment() -> Iterator[None]:
    """`environment()` for what is run from within this process, for the time."""
    before = dict(os.environ)
    _replace_environ(environment())
    try:
        yield
    finally:
        _replace_environ(before)


def _replace_environ(variables: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(variables)


def forebay(
    tools: Tools,
    words: list[str],
    statuses: Container[int] = (0,),
    timeout_s: float | None = None,
) -> str:
    """Runs the command, and returns what it said. Raises MeasuringError for another exit status
    than these, and for more time than that; then it ends what it has started, too."""
    command = [str(tools.forebay), *words]
    with subprocess.Popen(
        command, cwd=ROOT, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, errors="replace",
    ) as process:  # fmt: skip
        try:
            said = process.communicate(timeout=timeout_s)[0]
        except subprocess.TimeoutExpired:
            process.terminate()
            told = f"{' '.join(command)} took more than {timeout_s:g} s"
            raise MeasuringError(told) from None
        except BaseException:
            process.terminate()
            raise
    if process.returncode not in statuses:
        told = f"{' '.join(command)} ended with status {process.returncode}"
        raise MeasuringError(f"{told}:\n{said.strip()[-2000:]}")
    return said


@dataclass(frozen=True)
class CompareOptions:
    """Options of one `forebay compare`."""

    pairs: int
    timeout_s: float
    seed: int = 1
    prepare: str | None = None
    ranks_per_node: int | None = None
    stock_hints: Hints | None = None

    def words(self) -> list[str]:
        words = ["-n", str(self.pairs), "--limit", "--seed", str(self.seed)]
        words += ["--timeout", f"{self.timeout_s:g}"]
        if self.prepare:
            words += ["--prepare", self.prepare]
        if self.ranks_per_node:
            words += ["--ranks-per-node", str(self.ranks_per_node)]
        if self.stock_hints:
            words += ["--stock-hints", ";".join(f"{k}={v}" for k, v in self.stock_hints.items())]
        return words


def compare(tools: Tools, options: CompareOptions, command: list[str]) -> dict[str, Any]:
    """The document of one `forebay compare`, which is complete: also one of differing files or of a
    failing side. Raises KeyboardInterrupt if it was interrupted, MeasuringError if it said
    nothing."""
    with tempfile.TemporaryDirectory(prefix="forebay-experiment-") as directory:
        out = Path(directory) / "compare.json"
        words = [str(tools.forebay), "compare", *options.words(), "--json", str(out), "--"]
        done = subprocess.run(
            [*words, *command], cwd=ROOT, env=environment(), stdin=subprocess.DEVNULL, check=False
        )
        if done.returncode == 130:
            raise KeyboardInterrupt
        if not out.is_file():
            raise MeasuringError(f"'forebay compare' ended with status {done.returncode}")
        found = json.loads(out.read_text())
    assert isinstance(found, dict)
    return found


@dataclass(frozen=True)
class Run:
    """One `forebay run`."""

    exit_code: int  # not 0 also where it was ended because of its time
    records: list[dict[str, Any]]  # docs/formats/report.md
    rss_max_bytes: int  # of the largest process, which is a rank if it holds more than some 60 MiB

    def seconds(self) -> dict[str, float | None]:
        """As `forebay compare` counts: "write" is write calls, sync and close of what was written,
        "read" is read calls; each of the slowest rank, openings one after another."""
        return {
            "write": self._spent("write", lambda record: record["seconds_together"]["writing"]),
            "read": self._spent("read", lambda record: record["seconds"]["read"]["max"]),
        }

    def seconds_in_calls(self, kind: str) -> float:
        """Of the slowest rank in calls of that class alone, openings one after another."""
        return sum(float(record["seconds"][kind]["max"]) for record in self.records)

    def _spent(self, kind: str, seconds: Callable[[dict[str, Any]], float]) -> float | None:
        openings = [record for record in self.records if record["calls"][kind] > 0]
        return sum(map(seconds, openings)) if openings else None


def run(
    tools: Tools,
    command: list[str],
    timeout_s: float,
    *,
    observe: bool = False,
    ranks_per_node: int | None = None,
    stock_hints: Mapping[str, str] | None = None,
    hints: Mapping[str, str] | None = None,
    preload: Path | None = None,
) -> Run:
    """Runs the command once under Forebay, or with `observe` by the stock MPI, timed by the same
    layer; `stock_hints` as in `forebay compare`: a file for ROMIO, or Open MPI's parameters;
    `hints` for Forebay; `preload` is loaded into the program, too."""
    with tempfile.TemporaryDirectory(prefix="forebay-experiment-") as directory:
        out, log = Path(directory) / "run.json", Path(directory) / "log"
        variables = environment(preload) | _hint_variables(stock_hints or {}, Path(directory))
        if hints:
            variables["FOREBAY_HINTS"] = ";".join(f"{key}={value}" for key, value in hints.items())
        words = [str(tools.forebay), "run", "--quiet", "--json", str(out)]
        words += ["--observe"] if observe else []
        words += ["--ranks-per-node", str(ranks_per_node)] if ranks_per_node else []
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*words, "--", *command],
                cwd=ROOT,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
            timer = threading.Timer(timeout_s, process.terminate)
            timer.start()
            try:
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
            finally:
                timer.cancel()
        if process.returncode != 0:
            tail = log.read_text(errors="replace").strip().splitlines()[-5:]
            print(*tail, sep="\n", file=sys.stderr)
            return Run(process.returncode, [], 0)
        records = json.loads(out.read_text())["records"]
    return Run(0, records, usage.ru_maxrss * 1024)


def _hint_variables(hints: Mapping[str, str], directory: Path) -> dict[str, str]:
    variables = {key: value for key, value in hints.items() if key.startswith(_MCA_PREFIX)}
    romio = {key: value for key, value in hints.items() if not key.startswith(_MCA_PREFIX)}
    if romio:
        file = directory / "romio-hints"
        file.write_text("".join(f"{key} {value}\n" for key, value in romio.items()))
        variables["ROMIO_HINTS"] = str(file)
    return variables


def orders(pairs: int, seed: int) -> list[tuple[str, str]]:
    """Who runs first in each pair: both equally often, give or take one, in shuffled order."""
    first = [(STOCK, FOREBAY), (FOREBAY, STOCK)]
    dealt = [first[i % 2] for i in range(pairs)]
    random.Random(seed).shuffle(dealt)
    return dealt


def digest(file: Path) -> str:
    """The file's content in 128 bits."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def file_system(directory: Path) -> str:
    """The type of the file system that holds this directory: tmpfs, ext4, fuse.forebay-testbed."""
    done = subprocess.run(
        ["findmnt", "--noheadings", "--output", "FSTYPE", "--target", str(directory)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    name = done.stdout.strip().splitlines()
    if done.returncode != 0 or not name:
        raise MeasuringError(f"{directory}: findmnt does not know its file system")
    return name[-1]


@dataclass(frozen=True)
class Place:
    """A fresh directory that files are written into, and what it stands on."""

    directory: Path
    file_system: str

    @property
    def prepare(self) -> str | None:
        """What is to be done before each run: what the last one left is written out, lest the
        next one pays for it. Memory has nothing to write out."""
        return None if self.file_system == "tmpfs" else f"sync --file-system {self.directory}"


@contextmanager
def place(parent: Path) -> Iterator[Place]:
    """A place in this directory, removed at the end. Raises MeasuringError."""
    if not parent.is_dir():
        raise MeasuringError(f"{parent} is no directory: create it, or name another")
    with tempfile.TemporaryDirectory(prefix="forebay-experiment-", dir=parent.resolve()) as name:
        yield Place(Path(name), file_system(Path(name)))


def chosen(setting: Setting, only: list[str]) -> list[Workload]:
    """The workloads of these names, or all. Raises MeasuringError for an unknown one."""
    return named("workload", setting.workloads, only)


class _Named(Protocol):
    @property
    def name(self) -> str: ...


_One = TypeVar("_One", bound=_Named)


def named(sort: str, known: Sequence[_One], only: list[str]) -> list[_One]:
    """Those of these names, or all. Raises MeasuringError for a name that none has."""
    wanted = among(sort, [one.name for one in known], only)
    return [one for one in known if one.name in wanted]


_Value = TypeVar("_Value")


def among(sort: str, known: Sequence[_Value], only: list[_Value]) -> list[_Value]:
    """Those of these values, or all. Raises MeasuringError for one that is not known."""
    for one in only:
        if one not in known:
            there = ", ".join(map(str, known))
            raise MeasuringError(f"no {sort} '{one}'; there are {there}")
    return [one for one in known if not only or one in only]


def shell(command: str) -> None:
    """Runs a command that prepares a run. Raises MeasuringError if it fails."""
    done = subprocess.run(command, shell=True, check=False)
    if done.returncode != 0:
        raise MeasuringError(f"'{command}' ended with status {done.returncode}")

"""`forebay compare`: the same command by the stock MPI and through Forebay, in interleaved pairs,
with every written file compared byte for byte."""

import json
import random
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from forebay import environment, job, limit, output_paths, summary
from forebay.comparison import FOREBAY, STOCK, Comparison, Pair
from forebay.errors import ForebayError
from forebay.file_checks import FileChecks
from forebay.records import Record, Storage
from forebay.run import why_no_record, wrong_launcher
from forebay.settings import Settings
from forebay.timed_runs import TimedRun, TimedRuns, Way


@dataclass(frozen=True)
class CompareOptions:
    """One `forebay compare` command line."""

    command: list[str]
    settings: Settings
    pairs: int = 6
    prepare: str | None = None
    measure_limit: bool = False
    stock_hints: dict[str, str] = field(default_factory=dict)
    ignore: list[str] = field(default_factory=list)  # patterns of files that are not compared
    timeout_s: float | None = None  # per run
    seed: int = 1


class Campaign:
    """Carries the runs out and gathers their results in `result`."""

    def __init__(self, options: CompareOptions, console: Console) -> None:
        self.result = Comparison(
            options.command,
            options.seed,
            stock_hints=dict(options.stock_hints),
            hints=dict(options.settings.hints),
        )
        self._options = options
        self._console = console
        self._loads: list[limit.FileLoad] = []
        self._checks = FileChecks(options.ignore)
        self._runs = TimedRuns(
            options.command, options.settings.mpi, options.prepare, self._checks, options.timeout_s
        )
        self.result.notes = self._runs.notes
        self._ways = {
            STOCK: Way(STOCK, True, options.settings, options.stock_hints),
            FOREBAY: Way(FOREBAY, False, options.settings),
        }

    def run(self) -> Comparison:
        """All runs, or those until the first failure or an interrupt. Raises ForebayError."""
        with progress_bar(self._console) as progress, job.terminate_as_interrupt():
            total = 2 * (self._options.pairs + 1)
            task = progress.add_task("warm-up", total=total)
            try:
                ok = self._warm_up(lambda: progress.advance(task))
                shuffled = orders(self._options.pairs, self._options.seed)
                for number, order in enumerate(shuffled if ok else [], start=1):
                    progress.update(task, description=f"pair {number} of {len(shuffled)}")
                    if not self._timed_pair(order, lambda: progress.advance(task)):
                        break
            except KeyboardInterrupt:
                self.result.interrupted = True
            except ForebayError as error:
                if not self.result.pairs:
                    raise
                self.result.broken_off = f"{error.message}. {error.advice}".strip()
        return self.result

    def _warm_up(self, advance: Callable[[], None]) -> bool:
        """One untimed pair: counts what reaches the storage, and learns which files are written."""
        self._runs.begin()
        runs: dict[str, TimedRun] = {}
        for name in (STOCK, FOREBAY):
            if name == FOREBAY:
                self._runs.reset()
            runs[name] = self._runs.run(self._ways[name], count_storage=True)
            advance()
            if runs[name].failure:
                self.result.failure = runs[name].failure
                return False
        for name, run in runs.items():
            self.result.storage[name] = _storage(run.records)
        engine = runs[FOREBAY].records
        self.result.engine = [asdict(file) for file in summary.summarise(engine)]
        self.result.environment = environment.describe(
            self._options.command, engine, self._runs.files.paths
        )
        self._check(runs)
        self._note_surprises(runs)
        if self._options.measure_limit:
            self._loads = limit.loads(engine)
        return True

    def _note_surprises(self, runs: dict[str, TimedRun]) -> None:
        notes = self.result.notes
        if not any(run.records for run in runs.values()):
            notes += why_no_record(self._options.command, self._runs.dialect)
        notes += wrong_launcher(runs[FOREBAY].records, self._runs.dialect)
        if not self.result.files:
            notes.append("the program wrote no file that was seen: there is nothing to compare")
        if not self._options.prepare:
            notes += [
                f"{path} was there before and was written: each run starts from what the run "
                "before left; reset it with --prepare"
                for path in self._runs.files.kept
            ]
        notes += self._runs.crowded()
        problems = [text for file in self.result.engine for text in file["hint_problems"]]
        notes += [f"hint not understood: {text}" for text in dict.fromkeys(problems)]

    def _timed_pair(self, order: list[str], advance: Callable[[], None]) -> bool:
        runs: dict[str, TimedRun] = {}
        for name in order:
            self._runs.reset()
            runs[name] = self._runs.run(self._ways[name])
            advance()
            if runs[name].failure:
                self.result.failure = runs[name].failure
                return False
        measured = limit.measure(self._loads) if self._loads else None
        self.result.pairs.append(Pair(order, runs[STOCK].side, runs[FOREBAY].side, measured))
        self._check(runs)
        return True

    def _check(self, runs: dict[str, TimedRun]) -> None:
        """Compares the files of all pairs so far."""
        self._checks.add({name: run.files for name, run in runs.items()})
        self.result.files = self._checks.checks()


def orders(pairs: int, seed: int) -> list[list[str]]:
    """Who runs first in each pair: both equally often, give or take one, in shuffled order."""
    generator = random.Random(seed)
    first = [STOCK, FOREBAY] * (pairs // 2) + [generator.choice([STOCK, FOREBAY])] * (pairs % 2)
    generator.shuffle(first)
    return [[name, FOREBAY if name == STOCK else STOCK] for name in first]


def _storage(found: list[Record]) -> Storage | None:
    counted = [record.storage for record in found if record.storage is not None]
    if not counted:
        return None
    return Storage(
        read_calls=sum(s.read_calls for s in counted),
        write_calls=sum(s.write_calls for s in counted),
        read_bytes=sum(s.read_bytes for s in counted),
        write_bytes=sum(s.write_bytes for s in counted),
    )


def progress_bar(console: Console) -> Progress:
    """Runs done and to do, on a terminal only."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("runs"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def exit_code(result: Comparison) -> int:
    """0: identical; 1: not identical, failing only under Forebay, or broken off; 3: the command
    fails without Forebay; 130: interrupted."""
    if result.failure is not None:
        return 1 if result.failure.side == FOREBAY else 3
    if not result.identical or result.broken_off is not None:
        return 1
    return 130 if result.interrupted else 0


def write_json(result: Comparison, path: Path) -> None:
    output_paths.write_text(path, json.dumps(result.as_json(), indent=2) + "\n")

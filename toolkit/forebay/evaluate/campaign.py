"""`forebay evaluate`: the same command in several configurations, in blocks of shuffled order,
until each verdict is certain or the blocks are used up."""

import json
import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from rich.console import Console

from forebay import environment, job, output_paths
from forebay.compare import progress_bar
from forebay.comparison import FOREBAY, STOCK
from forebay.configurations import Configuration
from forebay.errors import ForebayError
from forebay.evaluate import background, in_force, storage_probe, traced_run, ways
from forebay.evaluate.blocks import shuffled
from forebay.evaluate.evaluation import EvaluatedRun, Evaluation
from forebay.evaluate.in_force import Setting, State
from forebay.evaluate.output_sizes import difference, output_sizes
from forebay.evaluate.verdict import Plan, is_decided
from forebay.file_checks import FileChecks, RunFiles
from forebay.run import why_no_record, wrong_launcher
from forebay.timed_runs import TimedRun, TimedRuns, Way

_NAMED = 4  # in a note
_NO_OUTPUT = (
    "no file that the command writes was seen, or --ignore leaves all out, or it writes none: so it"
    " is not shown that all runs did the same work. What is written without MPI is seen in the "
    "working directory and in directories that the command names"
)
_BUSY_SHARE = 0.2  # of the moments looked at, from which on a busy machine is worth a word


@dataclass(frozen=True)
class EvaluateOptions:
    """One `forebay evaluate` command line."""

    command: list[str]
    configurations: list[Configuration]
    reference: str
    seed: int
    plan: Plan = field(default_factory=Plan)
    quantity: str = "wall"
    mpi: str = "auto"
    ranks_per_node: int | None = None
    prepare: str | None = None
    ignore: list[str] = field(default_factory=list)  # patterns of files that are not compared
    timeout_s: float | None = None  # per run


class _StoppedError(Exception):
    """The campaign is over, and its result says why."""


class Campaign:
    """Carries the runs out and gathers what they show in `result`."""

    def __init__(self, options: EvaluateOptions, console: Console) -> None:
        self.result = Evaluation(
            options.command, options.configurations, options.reference, options.quantity,
            options.plan, options.seed,
        )  # fmt: skip
        self._options = options
        self._console = console
        ignored = FileChecks(options.ignore)
        variables = [v for c in options.configurations for v in c.environment.values()]
        self._runs = TimedRuns(
            options.command, options.mpi, options.prepare, ignored, options.timeout_s, variables
        )
        self.result.notes = self._runs.notes
        self._checks = self._new_checks()
        self._sizes: dict[str, dict[str, int]] = {}  # of each configuration's latest run
        self._undecided = list(self.result.candidates)
        self._ways: dict[str, Way] = {}
        self._places: list[Path] = []  # of the program's file systems
        self._traced: dict[str, dict[str, Setting]] = {}  # what traces tell, by configuration

    def _new_checks(self) -> dict[str, FileChecks]:
        options = self._options
        return {
            name: FileChecks(options.ignore, control=options.reference)
            for name in self.result.candidates
        }

    def run(self) -> Evaluation:
        """All runs, or those until a reason to stop. Raises ForebayError."""
        with (
            job.records_directory(self._runs.shared) as intents,
            progress_bar(self._console) as progress,
            job.terminate_as_interrupt(),
        ):
            options = self._options
            self._ways = {
                c.name: ways.way(c, intents, options.mpi, options.ranks_per_node)
                for c in options.configurations
            }
            most = self._options.plan.blocks_max
            runs = len(self._ways)
            stock = [c for c in options.configurations if c.stock and c.hints]
            task = progress.add_task("warm-up", total=runs * (most + 1) + 1 + len(stock))
            generator = np.random.default_rng(self._options.seed)
            try:
                self._warm_up(lambda: progress.advance(task))
                progress.update(task, description="traced runs")
                for configuration in stock:
                    self._trace(configuration)
                    progress.advance(task)
                self._note_unproven()
                self._drop_those_not_in_force()
                for block in range(1, most + 1):
                    if not self._undecided:
                        break
                    progress.update(task, description=f"block {block} of {most} at most")
                    self._block(block, generator, lambda: progress.advance(task))
            except _StoppedError:
                pass
            except KeyboardInterrupt:
                self.result.interrupted = True
            except ForebayError as error:
                if not self.result.runs:
                    raise
                self.result.broken_off = f"{error.message}. {error.advice}".strip()
        self._note_background()
        if self._sizes and not any(self._sizes.values()):
            self.result.notes.append(_NO_OUTPUT)
        return self.result

    def _warm_up(self, advance: Callable[[], None]) -> None:
        """Untimed: each configuration once, and the reference twice, for the size of its output.
        Learns which files are written, and whether settings hold and files are the same."""
        self._runs.begin()
        reference = self.result.reference
        found: dict[str, TimedRun] = {}
        for number, name in enumerate([reference, reference, *self.result.candidates]):
            if number:
                self._runs.reset()
            found[name] = self._one(name)
            advance()
        records = [record for run in found.values() for record in run.records]
        self.result.environment = environment.describe(
            self._options.command, records, self._runs.files.paths
        )
        used = [*self._runs.files.paths, *(record.path for record in records)]
        self._places = storage_probe.places_of(dict.fromkeys(used or [str(Path.cwd() / "any")]))
        self._note_surprises(found)
        self._check_files(found)
        if getattr(found[reference].side, self._options.quantity) is None:
            raise ForebayError(
                f"the command makes no calls of MPI-IO that '{self._options.quantity}' could time",
                "Leave --time out: then the whole command is timed.",
            )

    def _block(
        self, block: int, generator: np.random.Generator, advance: Callable[[], None]
    ) -> None:
        result = self.result
        found: dict[str, TimedRun] = {}
        for name in shuffled([result.reference, *self._undecided], generator):
            self._runs.reset()
            storage_before = storage_probe.probe(self._places)
            before = background.probe()
            found[name] = self._one(name)
            after = background.probe()
            storage_after = storage_probe.probe(self._places)
            result.runs.append(
                EvaluatedRun(
                    block, name, found[name].side, before, after, storage_before, storage_after
                )
            )
            advance()
        self._check_files(found)
        seconds = {
            name: getattr(run.side, self._options.quantity) or 0.0 for name, run in found.items()
        }
        for name in self._undecided:
            if not seconds[name] or not seconds[result.reference]:
                raise ForebayError(
                    f"a run of '{name}' or '{result.reference}' had nothing to time",
                    "Leave --time out: then the whole command is timed.",
                )
            result.tests[name].add(math.log(seconds[result.reference] / seconds[name]))
        self._drop_those_not_in_force()
        self._undecided = [
            name for name in self._undecided if not is_decided(result.tests[name], result.plan)
        ]

    def _one(self, name: str) -> TimedRun:
        """A run, looked at: whether it ended well, its output is as large as before, and its
        settings held."""
        run = self._runs.run(self._ways[name])
        result = self.result
        if run.failure is not None:
            result.failure = run.failure
            raise _StoppedError
        configuration = next(c for c in result.configurations if c.name == name)
        settings = self._with_traced(
            name, in_force.settings(configuration, run.records, run.read_ahead)
        )
        known = result.settings.get(name, [])
        if not any(setting.state == State.NOT_IN_FORCE for setting in known):
            result.settings[name] = settings
        sizes = output_sizes(run.files)
        earlier = self._sizes.setdefault(name, sizes)
        if sizes != earlier:
            result.unsteady = difference(name, earlier, sizes)
            raise _StoppedError
        return run

    def _trace(self, configuration: Configuration) -> None:
        """A traced run more of a configuration of the MPI alone, which leaves no record of hints.
        What goes wrong with it is told, and stops nothing."""
        name, known = configuration.name, self.result.settings[configuration.name]
        unknown = {
            each.key: each.asked
            for each in known
            if each.state == State.NOT_RECORDED and each.key in configuration.hints
        }
        if unknown:
            found = traced_run.settings(self._runs, self._ways[name], unknown)
            self._traced[name] = {setting.key: setting for setting in found.settings}
            self.result.settings[name] = self._with_traced(name, known)
            if found.files is not None:
                self._follow(name, found.files, found.written)

    def _follow(self, name: str, files: RunFiles, written: list[str]) -> None:
        """Files that only the trace of a run of `name` shows are looked at from now on. What runs
        left before is not compared with what they leave then: these were not looked for."""
        new = self._runs.follow(written)
        if not new:
            return
        self._sizes = {name: output_sizes(replace(files, others=files.others | new))}
        self._checks = self._new_checks()
        names = ", ".join(sorted(new)[:_NAMED])
        more = f" and {len(new) - _NAMED} more" if len(new) > _NAMED else ""
        self.result.notes.append(
            f"the traced run of '{name}' wrote elsewhere, too: {names}{more}; compared from there "
            "on, and not removed between runs"
        )

    def _with_traced(self, name: str, settings: list[Setting]) -> list[Setting]:
        """What records tell, and where they do not what the traced run told."""
        traced = self._traced.get(name, {})
        return [
            traced.get(each.key, each) if each.state == State.NOT_RECORDED else each
            for each in settings
        ]

    def _note_unproven(self) -> None:
        for name, settings in self.result.settings.items():
            unknown: dict[str, list[str]] = {}
            for setting in settings:
                if setting.state == State.NOT_RECORDED:
                    reason = setting.reason or "no record tells"
                    unknown.setdefault(reason, []).append(setting.key)
            self.result.notes += [
                f"{name}: not proven that {', '.join(dict.fromkeys(keys))} took effect: {reason}"
                for reason, keys in unknown.items()
            ]

    def _check_files(self, found: dict[str, TimedRun]) -> None:
        """Compares what the candidates left with what the reference left."""
        reference = found[self.result.reference].files
        for name, checks in self._checks.items():
            if name in found:
                checks.add({STOCK: reference, FOREBAY: found[name].files})
                self.result.files[name] = list(checks.checks().values())
        if any(self.result.differing(name) for name in self._checks):
            raise _StoppedError

    def _drop_those_not_in_force(self) -> None:
        self._undecided = [name for name in self._undecided if not self.result.lacking(name)]

    def _note_surprises(self, found: dict[str, TimedRun]) -> None:
        notes = self.result.notes
        dialect = self._runs.dialect
        read_ahead = any(run.read_ahead.files for run in found.values())
        if not read_ahead and not any(run.records for run in found.values()):
            notes += why_no_record(self._options.command, dialect)
        for run in found.values():
            notes += [n for n in wrong_launcher(run.records, dialect) if n not in notes]
        if not self._options.prepare:
            notes += [
                f"{path} was there before and was written: each run starts from what the run "
                "before left; reset it with --prepare"
                for path in self._runs.files.kept
            ]
        notes += self._runs.staying(found.values()) + self._runs.crowded()
        for name, run in found.items():
            problems = (text for record in run.records for text in record.hint_problems)
            notes += [f"{name}: hint not understood: {text}" for text in dict.fromkeys(problems)]
        notes += [
            f"{variable} is set, and holds for every configuration of Forebay"
            for variable in ("FOREBAY_HINTS", "FOREBAY_INTENT")
            if os.environ.get(variable)
        ]

    def _note_background(self) -> None:
        share = background.busy_share(self.result.loads(), os.cpu_count() or 1)
        if share >= _BUSY_SHARE:
            self.result.notes.append(
                f"the machine was busy with something else in {100 * share:.0f} % of the moments "
                "before and after runs: a quieter one needs fewer runs"
            )


def write_json(content: dict[str, object], path: Path) -> None:
    output_paths.write_text(path, json.dumps(content, indent=2) + "\n")

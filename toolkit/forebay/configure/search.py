"""`forebay configure`: carries a search out, run by run, until its budget is used up."""

import contextlib
import datetime
import json
import os
import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rich.console import Console

from forebay import environment, job, system_file
from forebay.compare import progress_bar
from forebay.comparison import FOREBAY, STOCK, Failure
from forebay.configurations import BUILT_IN, Configuration
from forebay.configurations import DEFAULT as DEFAULT_NAME
from forebay.configurations import STOCK as STOCK_NAME
from forebay.configure import asked, rates, result, space, workload
from forebay.configure import candidate as candidate_of
from forebay.configure.chooser import Candidate, Choice, Chooser, Ranked
from forebay.configure.constraints import Constraints
from forebay.configure.factors import Variable
from forebay.configure.history import History, Search, SearchRun, State, Why, forget
from forebay.configure.model import Model
from forebay.configure.proof import Proof
from forebay.configure.rates import Rates
from forebay.configure.result import SearchResult
from forebay.errors import ForebayError
from forebay.evaluate import in_force, traced_run, ways
from forebay.evaluate.output_sizes import difference, output_sizes
from forebay.file_checks import FileChecks, RunFiles
from forebay.run import why_no_record, wrong_launcher
from forebay.statistics import median
from forebay.timed_runs import TimedRun, TimedRuns, Way
from forebay.trace.directory import RUN_FILE, Trace, printable
from forebay.units import show_duration, show_seconds

# A run of so many times the reference's wall time is of no interest, and ended.
_SLOWER_MOST = 5
_SLOWER_S = 10.0


@dataclass(frozen=True)
class ConfigureOptions:
    """One `forebay configure` command line."""

    command: list[str]
    trace: Path
    history: Path
    seed: int
    system: Path | None = None
    constraints: Constraints = field(default_factory=Constraints)
    variables: list[Variable] = field(default_factory=list)
    runs_max: int = 30
    budget_s: float | None = None
    least_gain: float = 0.05
    quantity: str = "wall"
    mpi: str = "auto"
    ranks_per_node: int | None = None
    prepare: str | None = None
    ignore: list[str] = field(default_factory=list)
    timeout_s: float | None = None
    again: bool = False


#: Says what is being done.
_Tell = Callable[[str], None]


class _StoppedError(Exception):
    """The search is over, and its result says why."""


class Searcher:
    """Carries the runs out and gathers what they show in `result`."""

    def __init__(self, options: ConfigureOptions, console: Console) -> None:
        """Reads the trace and the system file, and works out what can be tried. Raises
        ForebayError."""
        self._options = options
        self._console = console
        trace = Trace(options.trace)
        self._workload = workload.of(trace)
        stock_only = not options.constraints.allow("engine", "forebay")
        digest = json.loads((options.trace / RUN_FILE).read_bytes())["checksum"]
        search = Search(
            command=options.command,
            directory=str(Path.cwd()),
            trace={"path": str(options.trace.absolute()), "checksum": digest},
            time=options.quantity,
            reference=STOCK_NAME if stock_only else DEFAULT_NAME,
            seed=options.seed,
            prepare=options.prepare,
            mpi=options.mpi,
            ranks_per_node=options.ranks_per_node,
            variables={v.name: list(v.values) for v in options.variables},
        )
        self.result = SearchResult(
            search, platform.node(), self._workload, options.constraints, options.least_gain,
            options.ignore,
        )  # fmt: skip
        self._note_trace()
        self._spent_s = 0.0
        self._controls: dict[tuple[str, ...], RunFiles] = {}
        self._chooser: Chooser | None = None
        self._named = 0  # candidates with a number
        self._proof = Proof()
        self._varying: set[str] = set()  # files that differ between runs of the reference

    def run(self) -> SearchResult:
        """The search, or the reason why there is none. Raises ForebayError."""
        speedup = self._workload.best_speedup
        if speedup is None or speedup - 1 < self._options.least_gain:
            self.result.stopped = result.CEILING
            return self.result
        points = self._limits()
        candidates = self._candidates(points)
        if self._options.again:
            forget(self._options.history)
        history = History(self._options.history, self.result.search)
        self.result.search = history.search
        with contextlib.closing(history):
            self._chooser = Chooser(candidates, self._options.runs_max, history.search.seed)
            self._recall(history)
            self._carry_out(history)
            self.result.ranking = self._chooser.ranking()
            self._note_unproven()
            self.result.notes += [
                f"run {run.number} took {show_seconds(run.seconds or 0.0)}, more than twice as "
                f"long as most runs of {run.configuration}: it does not count"
                for run in self.result.disturbed()
            ]
            history.conclude(self.result.as_json())
        return self.result

    def _limits(self) -> list[rates.Point]:
        """What the system file has, with a warning for what it has not."""
        options, notes = self._options, self.result.notes
        if options.system is None:
            notes.append(
                "no system file: what storage can do is taken from the traced calls; 'forebay "
                "characterise system' measures it"
            )
            return []
        system = system_file.load(options.system)
        differences = (
            system.differs_from_run("the traced run was", self._workload.trace.run.machine),
            system.difference("this search is", [platform.node()], environment.cpu_model()),
        )
        warnings = [
            f"{differs}: predictions hold only if these are alike"
            for differs in differences
            if differs is not None
        ]
        points = rates.of_system(system)
        known = Rates(points)
        mounts = {f.mount_point for f in self._workload.files if f.mount_point}
        warnings += [
            f"{options.system} has no limit of {mount}: the traced calls stand for it"
            for mount in sorted(mounts)
            if not known.knows(mount)
        ]
        notes += warnings
        self.result.system = {
            "path": str(options.system), "host": system.host, "warnings": warnings,
        }  # fmt: skip
        return points

    def _candidates(self, points: list[rates.Point]) -> list[Candidate]:
        """Those that are feasible, the reference first. Raises ForebayError where there is none."""
        options, found = self._options, self.result
        nodes = self._workload.nodes
        if options.ranks_per_node:
            nodes = max(1, -(-self._workload.ranks // options.ranks_per_node))
        built = space.SpaceBuilder(
            self._workload, options.constraints, options.variables, nodes
        ).build()
        feasible = space.candidates(built, options.constraints, options.seed)
        stock_only = found.search.reference == STOCK_NAME
        reference: dict[str, str] = {"engine": "mpi"} if stock_only else {}
        if reference not in feasible:
            broken = options.constraints.broken_by(built.effective(reference))
            if broken is not None:
                found.notes.append(
                    f"{found.search.reference} does not keep {broken}: it is run to compare with, "
                    "and not proposed"
                )
        found.notes += built.unheeded(options.constraints)
        settings = [reference]
        stock_too = not stock_only and self._workload.opens_through_mpi
        if stock_too and options.constraints.allow("engine", "mpi"):
            stock = {"engine": "mpi"}
            broken = options.constraints.broken_by(built.effective(stock))
            if broken is None:
                settings.append(stock)
            else:
                found.notes.append(f"{STOCK_NAME} does not keep {broken}: it is not tried")
        settings += [each for each in feasible if each not in settings]
        if len(settings) == 1:
            rules = ", ".join(map(str, options.constraints.all)) or "none are given"
            raise ForebayError(
                f"there is nothing to choose from (constraints: {rules})",
                "Left out are: " + "; ".join(f"{o.factor}: {o.reason}" for o in built.left_out),
            )
        model = Model(
            self._workload, built, Rates(points, self._workload.traced), options.variables,
            nodes, options.quantity,
        )  # fmt: skip
        candidates = [
            Candidate(each, built.effective(each), model.predict(each)) for each in settings
        ]
        found.notes += [
            f"{rule} {built.kept_by()}" for rule in options.constraints.of("redundancy")
        ]
        found.factors, found.left_out = built.values, built.left_out
        found.considered, found.candidates = built.considered, candidates
        if all(each.predicted is None for each in candidates):
            found.notes.append(
                "the trace has no single calls to predict from: the order of runs goes by what "
                "they show alone"
            )
        return candidates

    def _name(self, place: int) -> str:
        """Of a candidate, from its first run on: numbers go by the order of runs, so that they stay
        when other candidates come or go."""
        names, settings = self.result.names, self.result.candidates[place].settings
        if place not in names:
            if settings in ({}, {"engine": "mpi"}):
                names[place] = STOCK_NAME if settings else DEFAULT_NAME
            else:
                names[place] = f"c{self._named + 1:02d}"
                self._named += 1
            self._configure(names[place], settings)
        return names[place]

    def _configure(self, name: str, settings: dict[str, str]) -> None:
        self.result.configurations[name] = BUILT_IN.get(name) or candidate_of.configuration(
            name, settings, self._workload
        )

    def _recall(self, history: History) -> None:
        """Takes what earlier sessions ran; what is no candidate any more is told, and not used."""
        assert self._chooser is not None
        self.result.runs = history.runs
        for run in history.runs:
            place = self._chooser.place(run.settings)
            if run.side is not None:
                self._spent_s += float(run.side["wall"])
            if run.configuration not in self.result.configurations:
                self._configure(run.configuration, run.settings)
                self._named += run.configuration not in BUILT_IN
            self._proof.take(run)
            if place is None or (place == 0 and run.state is not State.MEASURED):
                continue  # a reference that failed may have been repaired
            self.result.names[place] = run.configuration
            candidate = self._chooser.candidates[place]
            broken = (
                asked.named_in(run.reason, candidate.settings)
                if run.state is State.NOT_IN_FORCE
                else []
            )
            self._chooser.add(place, run.why, run.state, run.lasted_s, broken)

    def _carry_out(self, history: History) -> None:
        options, found = self._options, self.result
        runs = TimedRuns(
            options.command, options.mpi, options.prepare, FileChecks(options.ignore),
            options.timeout_s,
            also=[value for variable in options.variables for value in variable.values],
        )  # fmt: skip
        self._require_no_leftovers(history)
        began = time.monotonic()
        with (
            job.records_directory(runs.shared) as intents,
            self._progress() as tell,
            job.terminate_as_interrupt(),
        ):
            session = _Session(runs, intents, began)
            try:
                runs.begin()
                session.begun = True
                choice = self._next(session)
                if not isinstance(choice, str):
                    self._learn_outputs(session, history, tell)
                    choice = self._next(session)
                while not isinstance(choice, str):
                    tell(self._time_left(session))
                    self._one(choice, session, history)
                    choice = self._next(session)
                found.stopped = choice
            except _StoppedError:
                pass
            except KeyboardInterrupt:
                found.stopped = result.INTERRUPTED
            except ForebayError as error:
                if not found.counted:
                    raise
                found.stopped = result.FAILURE
                found.failure_text = f"{error.message}. {error.advice}".strip()
            finally:
                # What a search wrote is of no use; and what comes next starts afresh.
                if session.begun:
                    runs.files.clear()
        found.notes += [note for note in runs.notes if note not in found.notes]

    def _learn_outputs(self, session: "_Session", history: History, tell: _Tell) -> None:
        """The reference once more in a search that goes on: which files there are, and what is in
        them, is known of this session alone."""
        assert self._chooser is not None
        if any(run.state is State.MEASURED for run in history.runs):
            tell("warm-up")
            self._one(Choice(0, Why.WARM_UP, None), session, history)

    def _require_no_leftovers(self, history: History) -> None:
        """Files that a killed search left would be taken for the user's own, and written over in
        place of being made. Nothing tells whether they are the user's by now, so nothing is
        removed. Raises ForebayError."""
        if self._options.prepare or not history.runs:
            return
        written = {path for run in history.runs for path in run.written if Path(path).is_file()}
        if written:
            names = " ".join(f"'{path}'" for path in sorted(written)[:8])
            raise ForebayError(
                f"an earlier session left files that each run is to make: {names}",
                f"If they are of no use, remove them: rm {names}. Else use --prepare to put the "
                "state of the beginning back.",
            )

    def _next(self, session: "_Session") -> Choice | str:
        assert self._chooser is not None
        budget = self._options.budget_s
        walls = [float(r.side["wall"]) for r in self.result.runs if r.side is not None]
        if budget is not None and walls:
            spent = self._spent_s + time.monotonic() - session.began_s
            if spent + median(walls) > budget:
                return result.BUDGET
        choice = self._chooser.next()
        unproven = self._unproven()
        if unproven is None or self._chooser.left == 0:
            return choice
        # What looks best after one run alone may be luck: then it costs no traced run.
        if isinstance(choice, str) or self._chooser.left == 1 or unproven.runs > 1:
            return Choice(unproven.candidate, Why.TRACED, None)
        return choice

    def _unproven(self) -> Ranked | None:
        """What would be proposed, if it has hints of which nothing tells whether they hold."""
        assert self._chooser is not None
        found = self.result
        found.ranking = self._chooser.ranking()
        best = found.best
        if best is None:
            return None
        configuration = found.configurations[found.name(best)]
        return best if self._proof.unknown(configuration, found.runs) else None

    def _note_unproven(self) -> None:
        found = self.result
        if found.best is not None:
            configuration = found.configurations[found.name(found.best)]
            found.notes += self._proof.notes(configuration, found.runs)

    def _one(self, choice: Choice, session: "_Session", history: History) -> None:
        """A run, and what came of it."""
        assert self._chooser is not None
        candidate = self._chooser.candidates[choice.candidate]
        name = self._name(choice.candidate)
        configuration = self.result.configurations[name]
        first = not session.started
        if not first and choice.why is not Why.TRACED:
            session.runs.reset()
        session.started = True
        run = SearchRun(
            number=len(history.runs) + 1,
            configuration=name,
            settings=candidate.settings,
            why=choice.why,
            started=datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds"),
            predicted=candidate.predicted,
            expected=None
            if choice.expected is None
            else dict(zip(("seconds", "low", "high"), choice.expected, strict=True)),
        )
        history.add(run)
        way = ways.way(
            configuration, session.intents, self._options.mpi, self._options.ranks_per_node
        )
        timed: TimedRun | None = None
        try:
            if choice.why is Why.TRACED:
                broken = self._prove(run, choice, configuration, way, session)
            else:
                timed = session.runs.run(way, timeout_s=self._timeout(choice))
        except KeyboardInterrupt:
            run.state, run.reason = State.INTERRUPTED, "the search was interrupted"
            history.update(run)
            raise
        except ForebayError as error:
            # It may be the candidate's own variables that keep the command from starting.
            run.state, run.reason, broken = State.FAILED, error.message, []
            if choice.candidate == 0:
                history.update(run)
                raise
        if timed is not None:
            broken = self._judge(run, candidate, configuration, timed)
        kept = set(session.runs.files.kept)
        run.written = [path for path in session.runs.files.paths if path not in kept]
        history.update(run)
        self._chooser.add(choice.candidate, run.why, run.state, run.lasted_s, broken)
        if choice.candidate == 0 and timed is not None:
            self._judge_reference(run, timed)
            if first:
                self._note_first(timed, session)

    def _timeout(self, choice: Choice) -> float | None:
        walls = [
            float(run.side["wall"])
            for run in self.result.runs
            if run.side is not None and run.configuration == self.result.search.reference
        ]
        if self._options.timeout_s or choice.candidate == 0 or not walls:
            return self._options.timeout_s
        return _SLOWER_MOST * median(walls) + _SLOWER_S

    def _judge(
        self, run: SearchRun, candidate: Candidate, configuration: Configuration, timed: TimedRun
    ) -> list[tuple[str, str]]:
        """Writes into `run` what came of it; returns the settings that did not hold."""
        run.side = asdict(timed.side)
        if timed.failure is not None:
            run.state, run.reason = State.FAILED, _told(timed.failure)
            run.timed_out = timed.failure.timed_out
            if "cache" in candidate.settings:
                self.result.notes.append(
                    f"{run.configuration} failed with the cache on: 'forebay cache ls' shows the "
                    "logs that it left"
                )
            return []
        run.seconds = getattr(timed.side, self._options.quantity)
        if not run.seconds:
            run.state = State.FAILED
            run.reason = f"it has no '{self._options.quantity}' that could be timed"
            return []
        held = in_force.settings(configuration, timed.records, timed.read_ahead)
        broken = _settle(run, held, candidate)
        other = self._other_files(candidate, timed.files)
        if candidate is self.result.candidates[0]:
            self._note_varying(other)
        elif other:
            run.state, run.reason = State.OTHER_FILES, f"other bytes in {', '.join(other[:4])}"
        return broken

    def _prove(
        self,
        run: SearchRun,
        choice: Choice,
        configuration: Configuration,
        way: Way,
        session: "_Session",
    ) -> list[tuple[str, str]]:
        """A traced run, which is not timed: writes into `run` what it showed of the hints; returns
        the settings that did not hold."""
        unknown = self._proof.unknown(configuration, self.result.runs)
        traced = traced_run.settings(session.runs, way, unknown, self._timeout(choice))
        run.side = None if traced.side is None else asdict(traced.side)
        assert self._chooser is not None
        broken = _settle(run, traced.settings, self._chooser.candidates[choice.candidate])
        if traced.side is None or traced.side.exit != 0:
            run.state, run.reason = State.FAILED, traced.settings[0].reason
        self._proof.take(run)
        if traced.side is None:
            self._proof.give_up()
        return broken

    def _other_files(self, candidate: Candidate, files: RunFiles) -> list[str]:
        """The files written through MPI that are not as the first run with the same variables of
        the program left them. Other variables may mean other files."""
        names = [variable.name for variable in self._options.variables]
        group = tuple(candidate.settings.get(name, "") for name in names)
        control = self._controls.setdefault(group, files)
        checks = FileChecks(self._options.ignore, control=self.result.search.reference)
        checks.add({STOCK: control, FOREBAY: files})
        return [
            check.path
            for check in checks.checks().values()
            if check.mpi and check.identical is False and check.path not in self._varying
        ]

    def _note_varying(self, paths: list[str]) -> None:
        """Files that the reference itself does not leave alike cannot tell anything."""
        self._varying.update(paths)
        self.result.notes += [
            f"{path} differs from one run of {self.result.search.reference} to another: it is not "
            "compared"
            for path in paths
        ]

    def _judge_reference(self, run: SearchRun, timed: TimedRun) -> None:
        """Whether the command can be searched for at all."""
        found = self.result
        if timed.failure is not None:
            found.stopped, found.failure = result.FAILURE, timed.failure
            found.failure_text = run.reason
            raise _StoppedError
        if run.state is State.FAILED:
            raise ForebayError(
                f"the command makes no calls of MPI-IO that '{self._options.quantity}' could time",
                "Leave --time out: then the whole command is timed.",
            )
        control = self._controls[tuple("" for _ in self._options.variables)]
        before, now = output_sizes(control), output_sizes(timed.files)
        if before != now:
            found.stopped = result.OUTPUT
            found.failure_text = difference(found.search.reference, before, now)
            raise _StoppedError

    def _note_trace(self) -> None:
        run, notes = self._workload.trace.run, self.result.notes
        # A trace has its command without what is no UTF-8.
        if run.command and run.command != printable({"words": self._options.command})["words"]:
            notes.append(
                f"{self._options.trace} is of another command ({' '.join(run.command)}): "
                "predictions are as good as the two are alike"
            )
        if not run.complete or run.losses:
            notes.append(f"{self._options.trace} does not have all of its run: sums are too low")
        notes += [
            f"{variable} is set, and holds for every configuration of Forebay"
            for variable in ("FOREBAY_HINTS", "FOREBAY_INTENT")
            if os.environ.get(variable)
        ]

    def _note_first(self, timed: TimedRun, session: "_Session") -> None:
        runs, notes = session.runs, self.result.notes
        if not timed.records and not timed.read_ahead.files:
            notes += why_no_record(self._options.command, runs.dialect)
        notes += wrong_launcher(timed.records, runs.dialect)
        if not self._options.prepare:
            notes += [
                f"{path} was there before and is written: each run starts from what the run "
                "before left, and its striping stays; reset it with --prepare"
                for path in runs.files.kept
            ]
        notes += runs.staying([timed]) + runs.crowded()

    @contextlib.contextmanager
    def _progress(self) -> Iterator[_Tell]:
        with progress_bar(self._console) as progress:
            task = progress.add_task("search", total=self._options.runs_max)

            def tell(description: str) -> None:
                done = sum(run.state is not State.INTERRUPTED for run in self.result.runs)
                progress.update(task, completed=done, description=description)

            yield tell

    def _time_left(self, session: "_Session") -> str:
        walls = [float(run.side["wall"]) for run in self.result.runs if run.side is not None]
        if not walls:
            return "search"
        left = median(walls) * max(1, self._options.runs_max - len(self.result.runs))
        if self._options.budget_s is not None:
            spent = self._spent_s + time.monotonic() - session.began_s
            left = min(left, self._options.budget_s - spent)
        return f"search, {show_duration(max(0.0, left))} left at most"


@dataclass
class _Session:
    """What goes on until the search is done or broken off."""

    runs: TimedRuns
    intents: Path
    began_s: float
    begun: bool = False
    started: bool = False


def _settle(
    run: SearchRun, held: list[in_force.Setting], candidate: Candidate
) -> list[tuple[str, str]]:
    """Writes into `run` what became of its settings; returns those that did not hold."""
    run.observed = [asdict(setting) for setting in held]
    lacking = [each for each in held if each.state is in_force.State.NOT_IN_FORCE]
    run.state = State.NOT_IN_FORCE if lacking else State.MEASURED
    run.reason = "; ".join(map(str, lacking))
    return [pair for setting in lacking for pair in asked.of(setting, candidate.settings)]


def _told(failure: Failure) -> str:
    last = failure.stderr.strip().splitlines()[-1:] or failure.stdout.strip().splitlines()[-1:]
    return f"{failure.how}{': ' + last[0] if last else ''}"

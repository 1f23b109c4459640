"""Timed runs of one command that all start alike, one after another, in several ways: by the stock
MPI or through Forebay, with these settings or those. What each leaves is looked at."""

import os
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from forebay import intent_file, job, launcher, native, prefetch_records, records
from forebay.comparison import Failure, Side, side_of
from forebay.errors import ForebayError
from forebay.exit_status import describe
from forebay.file_checks import FileChecks, Hashes, RunFiles
from forebay.prefetch_records import PrefetchRecords
from forebay.records import Record
from forebay.settings import Settings, runtime_variables
from forebay.stock_hints import stock_variables
from forebay.trace_run import Tracing
from forebay.watched_places import MOST_ENTRIES, WatchedPlaces
from forebay.written_files import FileHash, WrittenFiles, hash_file, named_places

_NAMED = 4  # in a note


@dataclass(frozen=True)
class Way:
    """One way to carry the command out."""

    name: str
    stock: bool  # the MPI does the I/O, and Forebay only times the calls
    settings: Settings = field(default_factory=Settings)
    stock_hints: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)  # further variables of the ranks


@dataclass(frozen=True)
class TimedRun:
    """One run and what it left."""

    side: Side
    records: list[Record]
    read_ahead: PrefetchRecords
    files: RunFiles
    failure: Failure | None


class TimedRuns:
    """Carries runs out. `notes` gathers what should be known of them."""

    def __init__(
        self,
        command: list[str],
        mpi: str = "auto",
        prepare: str | None = None,
        checks: FileChecks | None = None,
        timeout_s: float | None = None,
        also: Iterable[str] = (),
    ) -> None:
        """`prepare`: a shell command to run before each run. `checks` says which files need no
        hash. `also`: words beside the command that may name places where it writes. Raises
        ForebayError where nothing can be preloaded."""
        self.dialect = launcher.identify(command, mpi)
        self.shared = launcher.spans_hosts(command, self.dialect, os.environ)
        self.notes: list[str] = []
        self._command = command
        self._words = [*command, *also]
        self._prepare_command = prepare
        self._checks = checks or FileChecks()
        self._timeout_s = timeout_s
        self._preload = str(native.preload_library())
        self._files: WrittenFiles | None = None
        self._watched = WatchedPlaces([])

    @property
    def files(self) -> WrittenFiles:
        """What the runs wrote through MPI; there from `begin` on."""
        assert self._files is not None
        return self._files

    def crowded(self) -> list[str]:
        """A note for each place that holds too many files to be looked through."""
        return [
            f"{place} holds more than {MOST_ENTRIES} entries: files written there without MPI are "
            "not compared"
            for place in self._watched.crowded
        ]

    def staying(self, runs: Iterable[TimedRun]) -> list[str]:
        """A note on what `runs` wrote without MPI: nothing tells whether that is the user's own, so
        it is not removed. None where --prepare puts back what it wants."""
        left = {path for run in runs for path in run.files.others if not self._checks.ignores(path)}
        if self._prepare_command is not None or not left:
            return []
        names = ", ".join(sorted(left)[:_NAMED])
        more = f" and {len(left) - _NAMED} more" if len(left) > _NAMED else ""
        return [
            f"written without MPI, and not removed between runs: {names}{more}; if the program "
            "does something else where they are, remove them with --prepare"
        ]

    def follow(self, written: Iterable[str]) -> Hashes:
        """From the next run on, these files are looked at, too, if they are there and were not
        seen. Returns those, with what they hold."""
        known = {os.path.realpath(path) for path in self.files.paths}
        new = self._watched.follow(path for path in written if os.path.realpath(path) not in known)
        return {path: self._hash(path) for path in new if os.access(path, os.R_OK)}

    def begin(self) -> None:
        """Prepares the first run, and takes note of what is there. Raises ForebayError."""
        self._prepare()
        self._files = WrittenFiles(self._words)
        self._watched = WatchedPlaces(named_places(self._words))

    def reset(self) -> None:
        """Prepares a further run: files that the runs made are removed. Raises ForebayError."""
        self.files.clear()
        self._prepare()

    def run(
        self,
        way: Way,
        count_storage: bool = False,
        timeout_s: float | None = None,
        trace_to: Path | None = None,
    ) -> TimedRun:
        """One run, with a time-out of its own if given. With `trace_to` it is traced, and if it
        ends well, that is a trace directory then. Raises ForebayError where it cannot be started or
        traced."""
        tracing = None if trace_to is None else Tracing(self._command, trace_to)
        self._watched.begin()
        with job.records_directory(self.shared) as directory:
            mode = "observe" if way.stock else "engine"
            variables = way.environment | runtime_variables(
                way.settings, mode, directory, os.environ, count_storage
            )
            if way.stock:
                variables |= stock_variables(way.stock_hints, directory)
            preload = self._preloaded(way, variables)
            if tracing is not None:
                preload += f":{tracing.library}"
                variables |= tracing.begin({**os.environ, **variables})
            launch = launcher.rewrite(self._command, self.dialect, variables, os.environ, preload)
            outcome = job.run_captured(launch, timeout_s or self._timeout_s)
            found = records.load(directory)
            read_ahead = prefetch_records.load(directory)
        self.notes += [note for note in found.rejected if note not in self.notes]
        failure = self._failure(way.name, outcome) if outcome.exit_code != 0 else None
        side = side_of(outcome.wall_seconds, outcome.exit_code, found.records)
        left = self._left(found.written_paths(), failed=failure is not None)
        if tracing is not None and failure is None:
            tracing.finish()
        return TimedRun(side, found.records, read_ahead, left, failure)

    def _preloaded(self, way: Way, variables: dict[str, str]) -> str:
        intent = variables.get("FOREBAY_INTENT")
        if way.stock or intent is None or not intent_file.declares_reads(Path(intent)):
            return self._preload
        return f"{self._preload}:{native.posix_library()}"

    def _failure(self, name: str, outcome: job.Outcome) -> Failure:
        how = f"ended with {describe(outcome.exit_code, self.dialect)}"
        return Failure(
            side=name,
            exit=outcome.exit_code,
            how="did not end in time" if outcome.timed_out else how,
            timed_out=outcome.timed_out,
            stderr=outcome.error_tail,
            stdout=outcome.output_tail,
        )

    def _left(self, written: Iterable[str], failed: bool) -> RunFiles:
        """What a run left, `written` through MPI or otherwise."""
        written = list(written)
        self.files.add(written)
        known = {os.path.realpath(path) for path in self.files.paths}
        changed = [path for path in self._watched.changed() if os.path.realpath(path) not in known]
        places = self._watched.places
        for path in written:  # what else is written there is seen from the next run on
            self._watched.watch(Path(path).parent.resolve())
        if failed:
            return RunFiles({}, {}, places)
        kept = set(self.files.kept) - set(written)  # what is there is not this run's work
        return RunFiles(
            {path: None if path in kept else self._hash(path) for path in self.files.paths},
            {path: self._hash(path) for path in changed if os.access(path, os.R_OK)},
            places,
        )

    def _hash(self, path: str) -> FileHash | None:
        return None if self._checks.ignores(path) else hash_file(Path(path))

    def _prepare(self) -> None:
        command = self._prepare_command
        if command is None:
            return
        done = subprocess.run(
            command, shell=True, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            errors="replace", check=False,
        )  # fmt: skip
        if done.returncode != 0:
            raise ForebayError(
                f"--prepare '{command}' ended with status {done.returncode}",
                done.stderr.strip()[-2000:] or "Run it in a shell to see why.",
            )

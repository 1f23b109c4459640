"""`forebay characterise system`: every measurement in rounds, each round in a shuffled order."""

import datetime
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from forebay import environment, job, system_file
from forebay.characterise.system import (
    fio,
    mpi_probes,
    place,
    probes,
    results,
    striping,
    workspace,
)
from forebay.characterise.system.place import Place
from forebay.characterise.system.probes import Probe, ProbeError, Sizes
from forebay.characterise.system.results import Results
from forebay.characterise.system.sample import Sample
from forebay.characterise.system.scale import QUICK, Scale
from forebay.characterise.system.schedule import (
    LEAST_ROUNDS,
    QUICK_S,
    WARM_UP_RUN_S,
    Schedule,
    planned_quick,
)
from forebay.characterise.system.workspace import Workspace
from forebay.errors import ForebayError
from forebay.evaluate import background
from forebay.evaluate.background import Load
from forebay.evaluate.blocks import shuffled
from forebay.filesystem import Stripe
from forebay.json_document import shown
from forebay.units import show_bytes, show_duration

_MIB = 1 << 20
_BUSY_SHARE = 0.2  # of the moments looked at, from which on a busy machine is worth a word
_PROCESSES_MOST = 8  # if nobody says how many
_STRIPE_BYTES = _MIB  # where nothing tells the present one
_FEW_FAILURES = 2  # of one measurement, before it is left out
_MEMORY_BYTES = 64 * _MIB


@dataclass(frozen=True)
class SystemOptions:
    """One `forebay characterise system` command line."""

    paths: list[Path]
    out: Path
    seed: int
    scale: Scale = QUICK
    again: bool = False
    processes: int | None = None
    rounds: int | None = None
    mpi: str = "auto"
    launcher: str | None = None


@dataclass
class Outcome:
    """What `run` leaves: the document that was written, or None if there were too few rounds."""

    document: dict[str, Any] | None
    interrupted: bool
    notes: list[str] = field(default_factory=list)


class Campaign:
    """Measures, and writes the file."""

    def __init__(self, options: SystemOptions, console: Console) -> None:
        """Raises ForebayError for what cannot be measured, before anything is written."""
        self._options = options
        self._console = console
        self._notes: list[str] = []
        known = _known(options)
        self._results = Results(None if known is None else known.document)
        if known is not None:
            here = [os.uname().nodename]
            if differs := known.difference("this is", here, environment.cpu_model()):
                self._note(f"{differs}: they should be alike")
        self._places = [place.examine(path) for path in _paths(options, known)]
        cores = len(os.sched_getaffinity(0))
        self._processes = options.processes or min(cores, _PROCESSES_MOST)
        self._fio = fio.find(dict(os.environ))
        if self._fio is None:
            self._note(
                "no fio: the limits of devices and of reading and writing files are left out; "
                + fio.INSTALL
            )
        self._mpi, why = mpi_probes.find(options.mpi, options.launcher)
        if self._mpi is None:
            self._note(f"network and MPI-IO are left out: {why}")
        self._directories: list[Path] = []
        self._workspaces: list[Workspace] = []
        self._loads: list[Load | None] = []
        self._started = time.monotonic()
        self._start = datetime.datetime.now().astimezone()

    def run(self) -> Outcome:
        """All rounds, or those until Ctrl-C. Raises ForebayError."""
        finished = 0
        interrupted = False
        samples: list[tuple[float, Sample]] = []
        schedule: Schedule | None = None
        with job.terminate_as_interrupt():
            try:
                with _progress(self._console) as progress:
                    task = progress.add_task("preparing", total=None, left="")
                    schedule, numbers = self._prepared(progress, task)
                for samples_of_round in self._rounds(schedule, numbers):
                    samples += samples_of_round
                    finished += 1
            except KeyboardInterrupt:
                interrupted = True
            finally:
                self._remove()
        for at_s, sample in samples:
            self._results.add(sample, at_s)
        self._note_noise()
        document = self._document(finished, schedule, interrupted) if finished else None
        if document is not None and not document["limits"] and not document["metadata"]:
            document = None
        if document is None and not interrupted:
            raise ForebayError(
                "nothing could be measured", "; ".join(self._notes) or "", exit_code=1
            )
        if document is not None:
            results.write(document, self._options.out)
        return Outcome(document, interrupted, self._notes)

    def _prepared(self, progress: Progress, task: TaskID) -> tuple[Schedule, list[int]]:
        """The measurements, each of which was tried for a moment, and those that can be made."""
        scale = self._options.scale
        for where in self._places:
            progress.update(task, description=f"preparing {shown(where.path)}")
            self._make_workspaces(where)
        listed = self._probes()
        rounds = self._options.rounds or scale.rounds
        schedule = Schedule(listed, rounds, scale.run_s)
        usable = []
        for number, probe in enumerate(listed):
            progress.update(
                task, description=f"trying {probe.label}", total=len(listed), completed=number
            )
            before = time.monotonic()
            try:
                probe.run(WARM_UP_RUN_S, self._options.seed)
            except ProbeError as error:
                self._note(f"{_of(probe)} is left out: {error}")
                continue
            spent_s = time.monotonic() - before + background.WINDOW_S
            schedule.took(number, spent_s, WARM_UP_RUN_S)
            usable.append(number)
        if scale.limited:
            kept = planned_quick(schedule, usable, self._spent_s(), len(self._places))
            if len(kept) < len(usable):
                self._note(
                    f"{len(usable) - len(kept)} measurements of sizes between the smallest and the "
                    "largest are left out, as five minutes are too short for them on this machine"
                )
            usable = list(kept)
        return schedule, usable

    def _make_workspaces(self, where: Place) -> None:
        options = self._options
        made = workspace.make(
            where, options.scale.sizing, self._processes, options.seed, self._directories.append
        )
        self._workspaces.append(made)
        self._say(
            f"{shown(where.path)}: {where.mount.type}, {show_bytes(where.free_bytes)} free, of "
            f"which at most {show_bytes(place.written_bytes_most(made.bytes))} are used for a while"
        )
        if where.in_memory:
            self._note(f"{shown(where.path)} is in memory: there is nothing cold, direct or synced")
        elif not made.direct:
            self._note(f"{shown(where.path)} takes no O_DIRECT: those limits are left out")
        if not striping.settable(where.mount.type):
            return
        size = where.stripe.size if where.stripe else _STRIPE_BYTES
        for count in striping.counts(where.stripe):
            try:
                self._workspaces.append(
                    workspace.make(
                        where, options.scale.sizing, self._processes, options.seed,
                        self._directories.append, Stripe(size, count, "set here"),
                    )
                )  # fmt: skip
            except ForebayError as error:
                self._note(error.message)

    def _probes(self) -> list[Probe]:
        scale = self._options.scale
        several = sorted({1, *self._numbers_of_processes()})
        memory = min(_MEMORY_BYTES, place.available_memory_bytes() // 8 // self._processes)
        listed: list[Probe] = [probes.MemoryProbe(count, memory) for count in several]
        if self._mpi is not None:
            listed.append(mpi_probes.NetworkProbe(self._mpi))
        known = set()
        for where in self._workspaces:
            first = where.place.path not in known
            known.add(where.place.path)
            listed += self._of_files(where, first)
            for count in several if first else [1]:
                try:
                    listed.append(probes.names_probe(where, count, scale.names_s))
                except ProbeError as error:
                    self._note(f"{shown(where.place.path)}: metadata is left out: {error}")
        return listed

    def _of_files(self, where: Workspace, first: bool) -> list[Probe]:
        """`first`: of its place; others differ in the striping alone."""
        scale = self._options.scale
        found: list[Probe] = []
        if self._fio is not None:
            sizes = scale.sizes
            if not first:  # what striping is for: large files, alone and together
                sizes = Sizes((), (), (), sizes.together)
            cached = not where.place.in_memory
            found += probes.fio_probes(
                self._fio, where, sizes, self._numbers_of_processes(), cached
            )
        if self._mpi is not None and first:
            engines = [mpi_probes.STOCK]
            if mpi_probes.forebay_serves(self._mpi):
                engines.append(mpi_probes.FOREBAY)
            found += [
                mpi_probes.FilesProbe(self._mpi, where, engine, max(2, self._processes), piece)
                for engine in engines
                for piece in scale.pieces
            ]
        return found

    def _numbers_of_processes(self) -> list[int]:
        """That are measured together, beside one alone."""
        most = self._processes
        if not self._options.scale.powers:
            return [most]
        powers = [2**power for power in range(1, most.bit_length())]
        return sorted({number for number in powers if number <= most} | {most})

    def _rounds(
        self, schedule: Schedule, numbers: list[int]
    ) -> Iterator[list[tuple[float, Sample]]]:
        """The samples of each round that was finished."""
        generator = np.random.default_rng(self._options.seed)
        failures: dict[int, int] = {}
        quick = self._options.scale.limited
        left_s = schedule.rounds * schedule.round_s(numbers)
        self._say(
            f"{len(numbers)} measurements, {schedule.rounds} rounds: about "
            f"{show_duration(left_s)} to go"
        )
        with _progress(self._console) as progress:
            task = progress.add_task("", total=left_s, left="")
            for number_of_round in range(1, schedule.rounds + 1):
                rounds_left = schedule.rounds - number_of_round + 1
                if quick:
                    if self._is_over(schedule, numbers, number_of_round):
                        return
                    schedule.fit(numbers, QUICK_S - self._spent_s(), rounds_left)
                found: list[tuple[float, Sample]] = []
                order = [int(name) for name in shuffled([str(n) for n in numbers], generator)]
                for position, number in enumerate(order):
                    rest_s = schedule.round_s(order[position:])
                    rest_s += (rounds_left - 1) * schedule.round_s(numbers)
                    _show_left(progress, task, rest_s)
                    progress.update(
                        task,
                        description=f"round {number_of_round} of {schedule.rounds}, "
                        f"{schedule.probes[number].label}",
                    )
                    found += self._one(schedule, number, generator, failures)
                numbers = [n for n in numbers if failures.get(n, 0) < _FEW_FAILURES]
                yield found

    def _one(
        self, schedule: Schedule, number: int, generator: np.random.Generator,
        failures: dict[int, int],
    ) -> list[tuple[float, Sample]]:  # fmt: skip
        probe = schedule.probes[number]
        seed = int(generator.integers(2**31))
        began_s = self._spent_s()
        self._loads.append(background.probe())
        at_s = self._spent_s()
        try:
            found = probe.run(schedule.run_s, seed)
        except ProbeError as error:
            failures[number] = failures.get(number, 0) + 1
            self._note(f"{_of(probe)} failed: {error}")
            return []
        schedule.took(number, self._spent_s() - began_s, schedule.run_s)
        return [(at_s, sample) for sample in found]

    def _is_over(self, schedule: Schedule, numbers: list[int], number_of_round: int) -> bool:
        """Whether five minutes are not enough for the next round."""
        if number_of_round <= LEAST_ROUNDS:
            return False
        least = replace(schedule)
        least.fit(numbers, 0.0, 1)
        if self._spent_s() + least.round_s(numbers) <= QUICK_S:
            return False
        self._note(
            f"{number_of_round - 1} of {schedule.rounds} rounds: five minutes were over, as runs "
            "took longer than when they were tried"
        )
        return True

    def _document(
        self, finished: int, schedule: Schedule | None, interrupted: bool
    ) -> dict[str, Any]:
        few = self._results.too_few()
        if few:
            self._note(
                f"{len(few)} measurements were made fewer than {results.LEAST_SAMPLES} times, and "
                "are left out"
            )
        loads = [load for load in self._loads if load is not None]
        told = environment.describe([], [], [str(where.path) for where in self._places])
        del told["command"], told["mpi"]
        tools = {"fio": self._fio and self._fio.version, "mpi": self._mpi and self._mpi.version}
        campaign = {
            "start": self._start.isoformat(timespec="seconds"),
            "seconds": round(self._spent_s(), 1),
            "host": os.uname().nodename,
            "mode": self._options.scale.name,
            "rounds": finished,
            "complete": schedule is not None and not interrupted,
            "seed": self._options.seed,
            "file_bytes": {str(where.place.path): where.bytes for where in self._workspaces},
            "tools": {name: version for name, version in tools.items() if version},
            "environment": told,
            "busy_share": round(self._busy_share(), 3) if loads else None,
            "notes": self._notes,
        }
        places = [where.as_json() for where in self._places]
        return self._results.document(os.uname().nodename, campaign, places)

    def _note_noise(self) -> None:
        share = self._busy_share()
        if share >= _BUSY_SHARE:
            self._note(
                f"the machine was busy with something else in {100 * share:.0f} % of the moments "
                "before runs: measure --again when it is quieter"
            )

    def _busy_share(self) -> float:
        return background.busy_share(self._loads, os.cpu_count() or 1)

    def _remove(self) -> None:
        """What was made, whatever else is asked meanwhile."""
        asked = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            for directory in self._directories:
                if why := workspace.remove(directory):
                    self._note(why)
        finally:
            signal.signal(signal.SIGINT, asked)

    def _spent_s(self) -> float:
        return time.monotonic() - self._started

    def _note(self, text: str) -> None:
        if text not in self._notes:
            self._notes.append(text)

    def _say(self, line: str) -> None:
        self._console.print(line, markup=False, soft_wrap=True)


def _known(options: SystemOptions) -> system_file.System | None:
    """The file that is there, to be added to."""
    if not options.out.exists():
        return None
    if not options.again:
        raise ForebayError(
            f"{options.out} is there already",
            "--again adds this campaign to it; -o names another file.",
        )
    return system_file.load(options.out)


def _paths(options: SystemOptions, known: system_file.System | None) -> list[Path]:
    """Each once: those that were named, or those of the file."""
    paths = options.paths
    if not paths and known is not None:
        paths = [Path(where["path"]) for where in known.document.get("places", [])]
    if not paths:
        raise ForebayError(
            "there is no PATH", "Name a directory of each file system that is to be measured."
        )
    return list({os.path.realpath(path): path for path in paths}.values())


def _of(probe: Probe) -> str:
    """The label, with the place."""
    where = getattr(probe, "workspace", None)
    return f"{shown(where.place.path)}: {probe.label}" if where is not None else probe.label


def _progress(console: Console) -> Progress:
    """On a terminal only."""
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[left]}"),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def _show_left(progress: Progress, task: TaskID, left_s: float) -> None:
    spent = progress.tasks[task].elapsed or 0.0
    progress.update(
        task, completed=spent, total=spent + left_s, left=f"{show_duration(left_s)} left"
    )

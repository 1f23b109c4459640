"""`forebay trace`: one command, and a trace directory of its calls."""

import contextlib
import json
import os
import platform
import shlex
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

import forebay
from forebay import environment, job, launcher, native, output_paths, storage_counters
from forebay.errors import ForebayError, refused
from forebay.units import show_bytes, show_count, show_share

# Tables are loaded when the command has ended: their library has threads, and a signal that is for
# `job.run_attached` to wait for may come to one of those.
if TYPE_CHECKING:
    from forebay.trace.capture import Captured

_RUN_FILE = "command.json"
_TOLD_VARIABLES = ("FOREBAY_", "OMPI_", "MPICH_", "MPIR_", "ROMIO_", "I_MPI_", "HDF5_", "PNETCDF_")


@dataclass(frozen=True)
class TraceOptions:
    """One `forebay trace` command line."""

    command: list[str]
    directory: Path | None = None
    mpi: str = "auto"
    quiet: bool = False


class Tracing:
    """What a run needs to be traced, and what comes out of it. The spills stand beside the trace
    directory until that is made of them. As a context, in which the command is started: where that
    fails or is ended, nothing stays."""

    def __init__(self, command: list[str], directory: Path | None) -> None:
        """Raises ForebayError where there is no place for it."""
        self.directory = directory or _free_name(Path(command[0]).name)
        self.spills = self.directory.absolute().with_name(self.directory.name + ".spills")
        output_paths.require_new_directory(self.directory)
        self.library = native.trace_library()
        self._command = command
        self._begun_unix_ns = 0
        self._ends = contextlib.ExitStack()
        if self.spills.exists():
            raise ForebayError(
                f"{self.spills} is there: what a run traced, and nobody made a trace of",
                f"Make one: {self._again()}. Or remove it.",
            )

    def __enter__(self) -> "Tracing":
        self._ends.enter_context(job.terminate_as_interrupt())
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with self._ends:
            if kind is not None:
                self._remove_what_is_empty()

    def begin(self, environ: Mapping[str, str]) -> dict[str, str]:
        """The command is about to start in `environ`, to which the variables are added that this
        returns."""
        self.spills.mkdir(parents=True)
        self._begun_unix_ns = time.time_ns()
        told = {k: v for k, v in environ.items() if k.startswith(_TOLD_VARIABLES)}
        content = {
            "command": self._command,
            "begun": self._begun_unix_ns,
            "environment": told,
            "storage": storage_counters.sample(),
        }
        (self.spills / _RUN_FILE).write_text(json.dumps(content))
        return {"FOREBAY_TRACE_DIR": str(self.spills)}

    def finish(self) -> "Captured":
        """It has ended. Raises ForebayError; what was spilled stays then."""
        wall_ns = time.time_ns() - self._begun_unix_ns
        with self:
            return convert(self.spills, self.directory, wall_ns, storage_counters.sample())

    @property
    def is_finished(self) -> bool:
        """Whether the trace directory is one."""
        from forebay.trace.directory import RUN_FILE

        return (self.directory / RUN_FILE).exists()

    def kept(self) -> list[str]:
        """What to do with spills that no trace was made of."""
        is_kept = (self.spills / _RUN_FILE).exists()
        return [f"What was traced is kept: {self._again()}"] if is_kept else []

    def _again(self) -> str:
        return f"forebay trace --spills {shlex.quote(str(self.spills))} -o NAME"

    def _remove_what_is_empty(self) -> None:
        """Without a spill of a process they would only be in the way of the next run."""
        if not self._begun_unix_ns or not self.spills.is_dir():
            return
        if all(each.name == _RUN_FILE for each in self.spills.iterdir()):
            shutil.rmtree(self.spills)


def require_over(spills: Path) -> None:
    """Raises ForebayError while a process that has spilled is there, as far as this host and this
    user can see: what it spills later would be lost."""
    from forebay.trace.capture import SUFFIX

    begun = {path.name.partition("-")[0] for path in spills.glob(f"*{SUFFIX}")}
    running = sorted(int(pid) for pid in begun if pid.isdigit() and _spills_into(spills, int(pid)))
    if running:
        raise ForebayError(
            f"processes of the run still spill into {spills}: {', '.join(map(str, running))}",
            f"Wait until they have ended; to look at them: forebay top {shlex.quote(str(spills))}",
        )


def _spills_into(spills: Path, pid: int) -> bool:
    """Whether there is still such a process, and no other one by its number."""
    from forebay.top import local_process

    try:
        place = local_process.traced_into(pid)
    except OSError:  # gone, or not ours to look into
        return False
    return place is not None and place.resolve() == spills.resolve()


def convert(
    spills: Path,
    directory: Path,
    wall_ns: int = 0,
    storage: storage_counters.Sample | None = None,
) -> "Captured":
    """Makes the trace directory of what a run spilled, which is removed then; what cannot be is a
    note. `storage`: what was counted when the command ended, if that was just now. Raises
    ForebayError."""
    from forebay.trace import arrow_alone, capture
    from forebay.trace.directory import Run

    arrow_alone.leave_pandas_out()
    try:
        told: dict[str, Any] = json.loads((spills / _RUN_FILE).read_bytes())
        run = Run(
            origin={
                "kind": "capture",
                "source": str(spills),
                "tool": f"forebay {forebay.version()}",
            },
            command=told["command"],
            start_unix_ns=told["begun"],
            wall_ns=wall_ns,
            environment=told["environment"],
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ForebayError(
            f"{spills} holds no spills of a traced run", "Name a directory NAME.spills."
        ) from error
    machine = environment.describe([], [], [])
    run.machine = {key: machine[key] for key in ("cpu", "cores", "memory_bytes", "kernel")}
    run.machine["host"] = platform.node()
    if storage is not None and "storage" in told:
        run.storage = storage_counters.between(told["storage"], storage)
        run.storage["host"] = platform.node()
    with job.terminate_as_interrupt():
        captured = capture.convert(spills, directory, run)
    try:
        # First, so that a part of the others, if that stays, is not taken for what a run traced.
        (spills / _RUN_FILE).unlink()
        shutil.rmtree(spills)
    except OSError as error:  # such as by a process that outlives the command and spills on
        why = error.strerror or error
        captured.notes.insert(0, f"{spills} could not be removed ({why}), and is no use any more")
    return captured


def trace(options: TraceOptions, console: Console) -> int:
    """Runs the command and makes the trace directory. Returns the command's exit status, or 1 where
    that is 0 and there is no trace. Raises ForebayError before the command starts."""
    tracing = Tracing(options.command, options.directory)
    dialect = launcher.identify(options.command, options.mpi)
    preload = f"{native.preload_library()}:{tracing.library}"
    with tracing:
        variables = {"FOREBAY_MODE": "off", **tracing.begin(os.environ)}
        launch = launcher.rewrite(options.command, dialect, variables, os.environ, preload=preload)
        exit_code = job.run_attached(launch)
    code = tell(tracing, console, options.quiet)
    return exit_code or code


def tell(tracing: Tracing, console: Console, quiet: bool) -> int:
    """Makes the trace directory and says what is in it. The command's own status must not be lost
    for what goes wrong here: 1 is returned, or 130 if it is interrupted, and it is told."""
    try:
        captured = tracing.finish()
        lines = [] if quiet else summary(captured, tracing.directory)
        code = 0
    except (ForebayError, OSError) as error:
        failed = refused(error) if isinstance(error, OSError) else error
        lines = [f"forebay: no trace was made: {failed.message}", failed.advice, *tracing.kept()]
        code = 1
    except KeyboardInterrupt:
        made = "the trace" if tracing.is_finished else "no trace"
        lines = [f"forebay: interrupted: {made} was made", *tracing.kept()]
        code = 130
    with contextlib.suppress(OSError):
        for line in lines:
            console.print(line, markup=False, soft_wrap=True)
    return code


_MOST_NOTES = 5


def summary(captured: "Captured", directory: Path) -> list[str]:
    """What is in a trace, what is missing, and what tracing cost."""
    from forebay.json_document import shown

    lines = [
        f"{shown(directory)}: {show_count(captured.calls)} calls of "
        f"{show_count(captured.processes)} processes, {show_count(captured.files)} files, "
        f"{show_bytes(captured.stored_bytes)}",
        _cost(captured),
    ]
    if captured.lost:
        lines.append(f"forebay: {show_count(captured.lost)} calls are missing in it")
    if not captured.complete:
        lines.append(
            "forebay: it is not complete: a process was killed or outlived the command, or what it "
            "left is damaged"
        )
    lines += [f"note: {note}" for note in captured.notes[:_MOST_NOTES]]
    if len(captured.notes) > _MOST_NOTES:
        lines.append(f"{len(captured.notes) - _MOST_NOTES} notes more are in run.json")
    return lines


def _cost(captured: "Captured") -> str:
    cost, share = captured.ns_per_call, captured.share_of_wall
    if cost is None and share is None:
        return "what tracing took is not known: no process ended by itself"
    a_call = "an unknown time" if cost is None else f"{cost:.0f} ns"
    part = "an unknown part" if share is None else show_share(share)
    return f"tracing took {a_call} a call, {part} of the run's time"


def _free_name(program: str) -> Path:
    """A name for the trace directory that nothing has yet."""
    number = 1
    while True:
        path = Path(f"{program}.trace" if number == 1 else f"{program}-{number}.trace")
        if not path.exists() and not path.with_name(path.name + ".spills").exists():
            return path
        number += 1

"""A run that is traced and not timed, for what no record tells: whether the MPI's hints held, and
which files are written without MPI."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from forebay import job
from forebay.comparison import Side
from forebay.errors import ForebayError
from forebay.evaluate.in_force import Setting, State
from forebay.file_checks import RunFiles
from forebay.timed_runs import TimedRuns, Way


@dataclass(frozen=True)
class TracedRun:
    """What became of each hint, and how the run itself went; None if it could not be started.
    `written`: files that got bytes from the run, as the trace tells; `files`: what it left, as of
    any run. Without a trace there is neither."""

    settings: list[Setting]
    side: Side | None
    written: list[str] = field(default_factory=list)
    files: RunFiles | None = None


def settings(
    runs: TimedRuns, way: Way, hints: Mapping[str, str], timeout_s: float | None = None
) -> TracedRun:
    """What became of `hints` in one run more, which starts as others do. What goes wrong with it is
    the reason why nothing is recorded. Raises ForebayError where no run could be prepared."""
    runs.reset()
    try:
        return _told(runs, way, hints, timeout_s)
    except (ForebayError, OSError) as error:
        return TracedRun(_unknown(hints, str(error)), None)


def _unknown(hints: Mapping[str, str], reason: str) -> list[Setting]:
    return [Setting(k, asked, (), State.NOT_RECORDED, reason) for k, asked in hints.items()]


def _told(
    runs: TimedRuns, way: Way, hints: Mapping[str, str], timeout_s: float | None
) -> TracedRun:
    """Raises ForebayError where there is no trace."""
    with job.records_directory(runs.shared) as place:
        directory = place / "run.trace"
        run = runs.run(way, timeout_s=timeout_s, trace_to=directory)
        if run.failure is not None:
            return TracedRun(_unknown(hints, f"the traced run {run.failure.how}"), run.side)
        # Tables are loaded only where there is one to be read.
        from forebay.evaluate import traced_hints, traced_writes
        from forebay.trace.directory import Trace

        trace = Trace(directory)
        found = traced_hints.settings(hints, trace)
        return TracedRun(found, run.side, traced_writes.paths(trace), run.files)

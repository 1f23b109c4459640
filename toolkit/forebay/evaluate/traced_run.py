"""A run that is traced and not timed, for what no record tells: whether the MPI's hints held."""

from collections.abc import Mapping

from forebay import job
from forebay.errors import ForebayError
from forebay.evaluate.in_force import Setting, State
from forebay.timed_runs import TimedRuns, Way


def settings(runs: TimedRuns, way: Way, hints: Mapping[str, str]) -> list[Setting]:
    """What became of `hints` in one run more, which starts as others do. What goes wrong with it is
    the reason why nothing is recorded. Raises ForebayError where no run could be prepared."""
    runs.reset()
    try:
        return _told(runs, way, hints)
    except (ForebayError, OSError) as error:
        reason = str(error)
        return [Setting(k, asked, (), State.NOT_RECORDED, reason) for k, asked in hints.items()]


def _told(runs: TimedRuns, way: Way, hints: Mapping[str, str]) -> list[Setting]:
    """Raises ForebayError where there is no trace."""
    with job.records_directory(runs.shared) as place:
        directory = place / "run.trace"
        run = runs.run(way, trace_to=directory)
        if run.failure is not None:
            raise ForebayError(f"the traced run {run.failure.how}")
        # Tables are loaded only where there is one to be read.
        from forebay.evaluate import traced_hints
        from forebay.trace.directory import Trace

        return traced_hints.settings(hints, Trace(directory))

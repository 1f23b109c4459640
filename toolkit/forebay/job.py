"""One execution of the user's command: with the terminal handed through (`forebay run`), or
captured and timed (`forebay compare`)."""

import contextlib
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from forebay.errors import ForebayError
from forebay.launcher import Launch

_FORWARDED = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
_SI_KERNEL = 0x80  # siginfo's si_code of a signal that the terminal sent. [sigaction(2)]
_GRACE_S = 5.0  # between asking a command to end and killing it


def _require(argv: list[str]) -> None:
    if shutil.which(argv[0]) is None:
        raise ForebayError(
            f"'{argv[0]}' is not an executable on PATH",
            "Write the command as you would run it, after '--'.",
            exit_code=127,
        )


# What ends other programs: one that writes on and on into a pipe that nobody reads must end.
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)


def run_attached(launch: Launch) -> int:
    """Runs the command with our own terminal and files, forwards signals to it, and returns its
    exit status (128 + signal number if one killed it).

    The command stays in our process group, so Ctrl-C and Ctrl-Z at the terminal reach it without
    us; what others send to us alone is passed on."""
    _require(launch.argv)
    watched = {*_FORWARDED, signal.SIGCHLD}
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    try:
        try:
            pid = os.posix_spawnp(
                launch.argv[0],
                launch.argv,
                launch.environment,
                setsigmask=before,
                setsigdef=_IGNORED_BY_PYTHON,
            )
        except OSError as error:
            raise ForebayError(
                f"'{launch.argv[0]}' does not start: {error.strerror}", exit_code=126
            ) from error
        while True:
            caught = signal.sigwaitinfo(watched)
            if caught.si_signo != signal.SIGCHLD:
                if caught.si_code != _SI_KERNEL:
                    os.kill(pid, caught.si_signo)
                continue
            done, status = os.waitpid(pid, os.WNOHANG)
            if done == pid:
                code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else 128 - code
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def terminate_as_interrupt() -> Iterator[None]:
    """A batch system's SIGTERM, or the terminal's end, does as Ctrl-C does: what is half done
    goes, and what there is so far is told."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {
        number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@dataclass(frozen=True)
class Outcome:
    """How a captured command ended."""

    exit_code: int  # 128 + signal number if one killed it
    wall_seconds: float
    output_tail: str
    error_tail: str
    timed_out: bool = False


_TAIL_BYTES = 8192


def run_captured(
    launch: Launch, timeout_s: float | None = None, directory: Path | None = None
) -> Outcome:
    """Runs the command in a session of its own (in `directory`, if given), its output kept in
    files, so that neither a slow terminal nor a full pipe is in its way. An exception,
    KeyboardInterrupt too, ends the whole session first."""
    _require(launch.argv)
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        start = time.perf_counter()
        try:
            child = subprocess.Popen(
                launch.argv,
                env=launch.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                cwd=directory,
                start_new_session=True,
            )
        except OSError as error:
            raise ForebayError(
                f"'{launch.argv[0]}' does not start: {error.strerror}", exit_code=126
            ) from error
        timed_out = False
        try:
            code = _ended(child, timeout_s)
        except subprocess.TimeoutExpired:
            timed_out = True
            code = _end(child)
        except BaseException:
            _end(child)
            raise
        wall = time.perf_counter() - start
        tails = []
        for file in (output, errors):
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL_BYTES))
            tails.append(file.read().decode(errors="replace"))
    return Outcome(code if code >= 0 else 128 - code, wall, tails[0], tails[1], timed_out)


def _ended(child: "subprocess.Popen[bytes]", timeout_s: float | None) -> int:
    """Its exit status, at the moment that it ends: with a time-out, Python's own wait looks only
    every 50 ms, and runs with one would be timed longer than runs without. Raises
    TimeoutExpired."""
    if timeout_s is not None:
        process = os.pidfd_open(child.pid)
        try:
            end = select.poll()
            end.register(process, select.POLLIN)
            if not end.poll(timeout_s * 1000):
                raise subprocess.TimeoutExpired(child.args, timeout_s)
        finally:
            os.close(process)
    return child.wait()


def _end(child: "subprocess.Popen[bytes]") -> int:
    """Ends a session: politely, so that a launcher can tell its remote ranks, then by force."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, number)
        try:
            return child.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            continue
    return child.wait()


@contextlib.contextmanager
def records_directory(shared: bool) -> Iterator[Path]:
    """A fresh directory for the records, removed at the end. `shared`: ranks on other hosts must
    see it, so it stands in the working directory, as the job's own files mostly do."""
    base = Path.cwd() if shared else None
    try:
        directory = tempfile.TemporaryDirectory(prefix=".forebay-records-", dir=base)
    except OSError as error:
        raise ForebayError(
            f"there is no place for the records of the run: {error}",
            "Start it in a directory that you may write to and that all nodes share."
            if shared
            else "Free some space, or name another place by TMPDIR.",
            exit_code=1,
        ) from error
    with directory as name:
        yield Path(name)

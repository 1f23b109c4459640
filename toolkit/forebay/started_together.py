"""Processes that begin at one moment, phase after phase, and answer what they measured.

In each phase a process says "ready" on its standard output, reads a time (of time.perf_counter,
which all processes of a machine share) from its standard input, starts then, and answers a line.
"""

import contextlib
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Self

_WAKING_S = 0.002  # for all processes to wake up before they start together
_ENDING_S = 1.0


class StartedTogether:
    """Starts a process for each of `commands`, in `directory` if given, and ends them at the end of
    the `with` block."""

    def __init__(self, commands: Sequence[Sequence[str]], directory: Path | None = None) -> None:
        self._commands = commands
        self._directory = directory
        self._workers: list[subprocess.Popen[str]] = []
        self._open = contextlib.ExitStack()
        self._errors: IO[bytes]  # of all of them

    def __enter__(self) -> Self:
        self._errors = self._open.enter_context(tempfile.TemporaryFile())
        try:
            for command in self._commands:
                self._workers.append(
                    subprocess.Popen(
                        command,
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                        stderr=self._errors,
                        cwd=self._directory,
                        text=True,
                    )
                )
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _value: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self._end()

    def phase(self) -> list[str]:
        """The answers to the next phase. Raises ChildProcessError where a process has ended, with
        the end of what they said of it."""
        for worker in self._workers:
            assert worker.stdout is not None
            if worker.stdout.readline() != "ready\n":
                raise ChildProcessError(self._why())
        begin_at = time.perf_counter() + _WAKING_S
        for worker in self._workers:
            assert worker.stdin is not None
            worker.stdin.write(f"{begin_at!r}\n")
            worker.stdin.flush()
        answers = []
        for worker in self._workers:
            assert worker.stdout is not None
            answers.append(worker.stdout.readline())
            if not answers[-1]:
                raise ChildProcessError(self._why())
        return answers

    def _why(self) -> str:
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else "a process ended without a word"

    def _end(self) -> None:
        for worker in self._workers:
            if worker.poll() is None and worker.stdin is not None and not worker.stdin.closed:
                with contextlib.suppress(BrokenPipeError):
                    worker.stdin.close()
            try:
                worker.wait(_ENDING_S)
            except subprocess.TimeoutExpired:
                worker.kill()
                worker.wait()
            if worker.stdout is not None:
                worker.stdout.close()
        self._open.close()

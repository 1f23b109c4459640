"""Reads of programs that nothing can be preloaded into: forebay-pages sees them in the kernel's
page cache, and writes them down or reads ahead of them."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from forebay import leftovers, native
from forebay.errors import ForebayError

_WRONG_INTENT = 2  # exit status of forebay-pages

BROKE_OFF = "forebay: what was seen in the kernel is lost: forebay-pages broke off"


@contextmanager
def watched(records: Path, intent: Path | None) -> Iterator[list[str]]:
    """Of all that this process starts meanwhile: what it reads is left as traces in `records`, or,
    with an intent file, what that declares is brought into the page cache ahead of it, and figures
    are left. Afterwards the list holds what is to be told of it. Raises ForebayError where the
    kernel does not allow it."""
    words = [str(native.pages_program()), "--parent", str(os.getpid())]
    if intent is not None:
        words += ["--intent", str(intent)]
    with subprocess.Popen(
        words,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "FOREBAY_REPORT_DIR": str(records)},
    ) as watcher:
        assert watcher.stdout is not None
        assert watcher.stderr is not None
        if watcher.stdout.readline() != "ready\n":
            why = watcher.stderr.read().strip()
            if watcher.wait() == _WRONG_INTENT:
                raise ForebayError(why, "Correct the intent file.")
            raise ForebayError(
                f"what a program reads cannot be seen in the kernel: {why}",
                "Run forebay as root, on a kernel with the tracepoints of 'filemap', or without "
                "--pages.",
            )
        lines: list[str] = []
        try:
            yield lines
        finally:
            said, errors = watcher.communicate()
            leftovers.remove_orphaned_traces()  # its own, where it was killed
        lines += _told(said, errors)


def _told(said: str, errors: str) -> list[str]:
    lines = [f"forebay: {line}" for line in errors.splitlines()]
    try:
        figures = json.loads(said)
    except ValueError:
        return [*lines, BROKE_OFF]
    if figures["lost"]:
        lines.append(f"forebay: the kernel had no room for at least {figures['lost']} reads")
    if figures["unnamed"]:
        lines.append(
            f"forebay: {figures['unnamed']} files were open before the run, and are left out"
        )
    return lines

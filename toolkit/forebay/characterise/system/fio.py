"""fio: how it is started, and what its answer tells. [fio(1), 3.33]"""

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forebay import job
from forebay.launcher import Launch

INSTALL = "install it (Debian: apt-get install fio; elsewhere your site's module or package)"
_OUTPUT = "fio.json"
_ASKED_S = 20.0
_BEYOND_S = 60.0  # that a run may take longer than it was told


class FioError(Exception):
    """A run failed; the text says why."""


@dataclass(frozen=True)
class FioJob:
    """One run, on files in its working directory: `name` if shared, else `name`.0, `name`.1, ... of
    `bytes` together. `once`: no byte twice, however short the run then is."""

    name: str
    operation: str  # read or write
    size_bytes: int
    bytes: int
    processes: int = 1
    shared: bool = True
    random: bool = False
    direct: bool = False
    in_flight: int = 1
    once: bool = False
    sync: bool = False  # within the time
    drop: bool = False  # tells the kernel to drop the file from the page cache first


class Fio:
    """An installed fio."""

    def __init__(self, program: str, environ: dict[str, str]) -> None:
        self._program = program
        self._environ = environ
        self.version = _said([program, "--version"]).removeprefix("fio-") or "unknown"
        engines = _said([program, "--enghelp"]).split()
        self._queueing = "libaio" if "libaio" in engines else "posixaio"

    def rate(self, run: FioJob, seconds: float, seed: int, directory: Path) -> float:
        """Bytes per second of all processes, for at most `seconds` of reading or writing. Raises
        FioError."""
        output = directory / _OUTPUT
        output.unlink(missing_ok=True)
        launch = Launch(self.command(run, seconds, seed), self._environ)
        try:
            outcome = job.run_captured(launch, seconds + _BEYOND_S, directory)
            text = output.read_text(errors="replace") if output.exists() else ""
        finally:
            output.unlink(missing_ok=True)
        if outcome.timed_out:
            raise FioError(f"did not end within {seconds + _BEYOND_S:.0f} s")
        try:
            return rate_of(text, run.operation)
        except FioError:
            if outcome.exit_code == 0:
                raise
        said = (outcome.error_tail.strip() or text.strip()).splitlines()
        raise FioError(said[-1] if said else f"exit status {outcome.exit_code}")

    def command(self, run: FioJob, seconds: float, seed: int) -> list[str]:
        """File names have neither blanks nor colons, which fio would take apart; the directory's do
        not come into it."""
        part = run.bytes // run.processes // run.size_bytes * run.size_bytes
        words = {
            "name": "forebay",
            "rw": f"{'rand' if run.random else ''}{run.operation}",
            "bs": run.size_bytes,
            "size": part,
            "numjobs": run.processes,
            "ioengine": "psync" if run.in_flight == 1 else self._queueing,
            "iodepth": run.in_flight,
            "direct": int(run.direct),
            "invalidate": int(run.drop),
            "fallocate": "none",
            "runtime": f"{round(seconds * 1000)}ms",
            "randrepeat": 0,
            "randseed": seed,
            "output": _OUTPUT,
            "output-format": "json",
            "eta": "never",
        }
        if run.shared:
            words |= {"filename": run.name, "offset_increment": part}
        else:
            words["filename_format"] = f"{run.name}.$jobnum"
        flags = ["--thread", "--group_reporting"]
        if not run.once:
            flags.append("--time_based")
        if run.sync:
            flags.append("--end_fsync=1")
        return [self._program, *(f"--{key}={value}" for key, value in words.items()), *flags]


def find(environ: dict[str, str]) -> Fio | None:
    """None where none is installed."""
    program = shutil.which("fio", path=environ.get("PATH"))
    return None if program is None else Fio(program, environ)


def rate_of(text: str, operation: str) -> float:
    """Bytes per second of an answer in JSON, which lines of words may precede. Raises FioError."""
    try:
        document: Any = json.loads(text[max(0, text.find("{")) :])
        (told,) = document["jobs"]
        error = int(told["error"])
        moved = int(told[operation]["io_bytes"])
        spent_ms = float(told[operation]["runtime"])
    except (ValueError, KeyError, TypeError) as problem:
        raise FioError("gave no answer that can be read") from problem
    if error:
        said = re.findall(r"^fio: .*(?:error=|err=)(.*)$", text, re.MULTILINE)
        raise FioError(said[-1].strip() if said else f"error {error}")
    if moved <= 0 or spent_ms <= 0:
        raise FioError("moved nothing in the time")
    return moved / spent_ms * 1000


def _said(command: list[str]) -> str:
    try:
        answer = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
            timeout=_ASKED_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stdout.strip()

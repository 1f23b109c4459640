"""Measurements by an MPI library: messages, and files that processes share."""

import json
import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import forebay
from forebay import installed_launchers, job, launcher, native
from forebay.characterise.system.probes import ProbeError
from forebay.characterise.system.sample import LIMITS, Sample, subject
from forebay.characterise.system.workspace import Workspace
from forebay.errors import ForebayError
from forebay.installed_launchers import InstalledLauncher
from forebay.launcher import Dialect
from forebay.settings import Settings, runtime_variables

_PROGRAM = "forebay.characterise.system.mpi_rates"
_FILE = "mpi"
_STARTING_S = 60.0
_OF_ACCESSES = 4  # that a run of files times: two ways to write and to read
_USERS = ("FOREBAY_HINTS", "FOREBAY_INTENT")
STOCK, FOREBAY = "mpi", "forebay"


@dataclass(frozen=True)
class Mpi:
    """How programs are started on several ranks. `given`: by the user, whose number of ranks it
    has."""

    words: list[str]
    dialect: Dialect
    soname: str
    version: str
    family: str
    given: bool = False

    def start(
        self, processes: int, arguments: list[str], seconds: float, directory: Path | None,
        engine: str,
    ) -> dict[str, Any]:  # fmt: skip
        """What the program answers. Raises ProbeError."""
        command = list(self.words)
        if not self.given:
            command += ["-n", str(processes)]
        what, *rest = arguments
        command += [sys.executable, "-m", _PROGRAM, what, self.soname, *rest]
        environ = {key: value for key, value in os.environ.items() if key not in _USERS}
        # The ranks start in another directory, and find this package all the same.
        package = str(Path(forebay.__file__).parent.parent)
        environ["PYTHONPATH"] = os.pathsep.join(filter(None, (package, environ.get("PYTHONPATH"))))
        if os.geteuid() == 0:  # the program is ours, and harmless
            environ |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        try:
            outcome = self._outcome(command, environ, seconds, directory, engine)
        except ForebayError as error:
            raise ProbeError(error.message) from error
        if outcome.timed_out:
            raise ProbeError(f"did not end within {seconds + _STARTING_S:.0f} s")
        lines = outcome.output_tail.strip().splitlines()
        try:
            answer = json.loads(lines[-1])
        except (IndexError, ValueError):
            said = outcome.error_tail.strip().splitlines()
            raise ProbeError(said[-1] if said else f"exit status {outcome.exit_code}") from None
        if not isinstance(answer, dict):
            raise ProbeError("gave no answer that can be read")
        return answer

    def _outcome(
        self, command: list[str], environ: Mapping[str, str], seconds: float,
        directory: Path | None, engine: str,
    ) -> job.Outcome:  # fmt: skip
        shared = launcher.spans_hosts(command, self.dialect, environ)
        with job.records_directory(shared) as records:
            variables, preload = {}, None
            if engine == FOREBAY:
                variables = runtime_variables(Settings(), "engine", records, environ)
                preload = str(native.preload_library())
            launch = launcher.rewrite(command, self.dialect, variables, environ, preload)
            return job.run_captured(launch, seconds + _STARTING_S, directory)


def find(wanted: str, given: str | None) -> tuple[Mpi | None, str]:
    """The MPI to measure: that of the user's words before a program, else the first installed one
    of family `wanted` ("auto": any). Or None, and why. Raises ForebayError for wrong words."""
    installed = installed_launchers.find()
    if given is not None:
        words = shlex.split(given)
        if not words:
            raise ForebayError(
                "--launcher is empty", "Write what starts the ranks: --launcher 'srun -N 2'."
            )
        dialect = launcher.identify([*words, "program"], wanted)
        by_dialect = {Dialect.HYDRA: "mpich", Dialect.OPENMPI: "openmpi"}
        family = by_dialect.get(dialect) or wanted
        return _given(words, dialect, family, installed)
    installed = [one for one in installed if wanted in ("auto", one.family)]
    for one in installed:
        soname = one.library()
        if soname is not None:
            words = [str(one.path)]
            if one.dialect is Dialect.OPENMPI:
                words.append("--oversubscribe")
            return Mpi(words, one.dialect, soname, one.version, one.family), ""
    if installed:
        return None, (
            f"the loader finds no library of {installed[0].version}: put its directory on "
            "LD_LIBRARY_PATH (its module does)"
        )
    return None, "no MPI launcher on PATH: load your site's MPI module, or install one"


def _given(
    words: list[str], dialect: Dialect, family: str, installed: list[InstalledLauncher]
) -> tuple[Mpi | None, str]:
    for one in installed:
        soname = one.library() if family in ("auto", one.family) else None
        if soname is not None:
            return Mpi(words, dialect, soname, one.version, one.family, given=True), ""
    return None, f"no MPI is found that '{shlex.join(words)}' could start programs of"


def forebay_serves(mpi: Mpi) -> bool:
    """Whether the engine is built for this MPI."""
    names = (native.PRELOAD, native.BACK_ENDS[mpi.family])
    return all(native.find(name) is not None for name in names)


@dataclass(frozen=True)
class NetworkProbe:
    """Messages between the first and the last rank."""

    mpi: Mpi
    scales: bool = False
    spare: bool = False

    @property
    def label(self) -> str:
        return "network"

    def run(self, seconds: float, seed: int) -> list[Sample]:
        part = min(0.1, seconds / 8)
        answer = self.mpi.start(2, ["network", repr(part)], seconds, None, STOCK)
        return [
            _sample(rate, {
                "level": "network", "operation": "write", "mode": "transfer",
                "size_bytes": rate["size_bytes"], "in_flight": rate["in_flight"],
                "hosts": answer["hosts"],
            })
            for rate in answer["rates"]
        ]  # fmt: skip


@dataclass(frozen=True)
class FilesProbe:
    """Collective and independent accesses to a shared file, in pieces dealt out in turn."""

    mpi: Mpi
    workspace: Workspace
    engine: str
    processes: int
    piece_bytes: int
    scales: bool = True
    spare: bool = False

    @property
    def label(self) -> str:
        return f"MPI-IO by {'Forebay' if self.engine == FOREBAY else 'the MPI'}"

    def run(self, seconds: float, seed: int) -> list[Sample]:
        where = self.workspace
        part = seconds / _OF_ACCESSES
        # One pass takes about as long as it should, if pieces go as fast as large writes do.
        total = min(where.bytes, _MOST_BYTES, round(where.write_rate * part))
        words = ["files", repr(part), _FILE, str(total), str(self.piece_bytes), str(seed)]
        try:
            answer = self.mpi.start(self.processes, words, seconds, where.directory, self.engine)
        finally:
            for path in where.directory.glob(f"*{_FILE}*"):
                path.unlink(missing_ok=True)
        return [
            _sample(rate, {
                **where.keys(), "level": "library", "operation": rate["operation"],
                "mode": "warm", "size_bytes": self.piece_bytes,
                "processes": answer["processes"], "order": "interleaved", "files": "shared",
                "access": rate["access"], "engine": self.engine, "hosts": answer["hosts"],
            })
            for rate in answer["rates"]
        ]  # fmt: skip


_MOST_BYTES = 256 << 20


def _sample(rate: dict[str, Any], entry: dict[str, object]) -> Sample:
    return Sample(subject(LIMITS, entry), float(rate["rate"]))

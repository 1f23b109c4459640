"""Runs a test stock and under Forebay, and keeps what came of it as JSON."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from dataclasses import asdict, dataclass, field
from pathlib import Path

from suites import Mpi, Program

OK = "ok"
OVER_TIME = "over time"


@dataclass(frozen=True)
class Outcome:
    """What came of a program on `ranks` ranks, stock and under Forebay: "ok", "over time", "exit
    7", "fails" (its output lacks the word of success) or "check fails" (its file is not good)."""

    name: str
    ranks: int
    stock: str
    forebay: str

    @property
    def verdict(self) -> str:
        """The column it is counted in."""
        if self.forebay == OK:
            return "ok on both" if self.stock == OK else "better"
        return "worse" if self.stock == OK else "fails on both"


@dataclass
class SuiteRun:
    """A suite of `programs` under one MPI, and how it was run; it may not have come to its end."""

    suite: str
    mpi: str
    mpi_version: str
    source: str
    commit: str
    date: str
    ranks_max: int
    seconds_max: int
    sleep_while_polling: bool
    environment: dict[str, str]
    programs: int = 0
    outcomes: list[Outcome] = field(default_factory=list)

    def add(self, outcome: Outcome) -> None:
        """Puts `outcome` in the place of an earlier one of the same program."""
        kept = [one for one in self.outcomes if one.name != outcome.name]
        self.outcomes = [*kept, outcome]

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.mpi}-{self.suite}.json"
        path.write_text(json.dumps(asdict(self), indent=1) + "\n")


def load(path: Path) -> SuiteRun:
    raw = json.loads(path.read_text())
    raw["outcomes"] = [Outcome(**one) for one in raw["outcomes"]]
    return SuiteRun(**raw)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends a launcher; it takes its ranks with it."""
    process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def run_once(mpi: Mpi, test: Program, preload: list[Path], seconds_max: int, log: Path) -> str:
    """What comes of `test` with the libraries `preload` before all others; its output goes to
    `log`."""
    variable = ["env", f"LD_PRELOAD={':'.join(map(str, preload))}"] if preload else []
    launch = [*mpi.launch(test.ranks), *variable]
    status = 0
    with log.open("w") as out:
        for command in ([test.before] if test.before else [], test.command):
            if not command:
                continue
            process = subprocess.Popen(
                [*launch, *command],
                cwd=test.folder,
                env=os.environ | test.environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                status = process.wait(seconds_max)
            except subprocess.TimeoutExpired:
                _end(process)
                return OVER_TIME
        if status != 0:
            return f"exit {status}"
        if test.check:
            check = ["sh", "-c", test.check]
            done = subprocess.run(check, cwd=test.folder, stdout=out, stderr=out, check=False)
            if done.returncode != 0:
                return "check fails"
    if test.passes and test.passes.lower() not in log.read_text(errors="replace").lower():
        return "fails"
    return OK


@dataclass(frozen=True)
class Comparison:
    """How both sides are run: `library` is Forebay's, `both` go to both sides."""

    mpi: Mpi
    library: Path
    both: list[Path]
    seconds_max: int
    logs: Path

    def outcome(self, test: Program) -> Outcome:
        """Both sides of a test. Where they differ the side that was not good gets a second try,
        so that a busy machine is not taken for a defect; that it needed one is kept."""
        found = {side: self._try(test, side, "") for side in ("stock", "forebay")}
        if found["stock"] != found["forebay"]:
            for side in (side for side in found if found[side] != OK):
                again = self._try(test, side, ".again")
                if again != found[side]:
                    found[side] = f"{found[side]}, then {again}"
        return Outcome(test.name, test.ranks, found["stock"], found["forebay"])

    def _try(self, test: Program, side: str, suffix: str) -> str:
        preload = [*([self.library] if side == "forebay" else []), *self.both]
        log = self.logs / f"{test.name.replace('/', '.')}.{side}{suffix}"
        return run_once(self.mpi, test, preload, self.seconds_max, log)

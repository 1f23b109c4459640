"""Results on disk, one JSON document a measurement: those of `forebay compare --json` with the key
`experiment` added, which says by which command, from which commit and on which machine it was made;
and documents of the same shape for what `compare` does not measure."""

import json
import os
import platform
import shlex
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from forebay.environment import cpu_model
from forebay.statistics import Ratio, median_ratio

ROOT = Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "docs" / "experiments"))

import awake as awake  # noqa: E402  modules of this folder take it from here

SCRIPT = "docs/experiments/collective/run.py"

# What a measurement depends on; a change elsewhere leaves the commit's name true.
_CODE = ("CMakeLists.txt", "CMakePresets.json", "cmake", "core", "proxies", "testbed", "toolkit")


@dataclass(frozen=True)
class Result:
    """One stored document. Ratios are stock / Forebay."""

    raw: dict[str, Any]

    @property
    def experiment(self) -> dict[str, Any]:
        found = self.raw["experiment"]
        assert isinstance(found, dict)
        return found

    @property
    def failure(self) -> str | None:
        """Why there is nothing sound to show, or None."""
        failure = self.raw.get("failure")
        if failure:
            how = "timed out" if failure["timed_out"] else f"exit status {failure['exit']}"
            return f"{failure['side']}: {how}"
        return "interrupted" if self.raw.get("interrupted") else None

    @property
    def identical(self) -> bool:
        return self.raw["identical"] is True

    @property
    def pairs(self) -> list[dict[str, Any]]:
        found = self.raw["pairs"]
        assert isinstance(found, list)
        return found

    def ratio(self, quantity: str) -> Ratio | None:
        """Median over pairs with its interval; None if there are no such calls."""
        return _ratio(self.raw["ratio"].get(quantity))

    def fraction(self, side: str, quantity: str) -> Ratio | None:
        """The part of the physical limit that a side reaches; None where it was not measured."""
        limit = (self.raw.get("limit") or {}).get(quantity)
        return _ratio(limit[side]) if limit else None

    def limit_seconds(self, quantity: str) -> float | None:
        limit = (self.raw.get("limit") or {}).get(quantity)
        return float(limit["seconds"]) if limit else None

    def rates(self, side: str, quantity: str) -> list[float]:
        """Bytes per second of each pair's run by this side (or "limit"): what the program asked for
        over the seconds of the phase. Empty where the engine did not count (everything was passed
        through)."""
        asked = [file["bytes_asked"] for file in self.raw["engine"] if file["bytes_asked"]]
        total = sum(int(counted[quantity]) for counted in asked)
        spent = [pair[side][quantity] for pair in self.pairs if pair[side]]
        return [total / seconds for seconds in spent if seconds and total]


def _ratio(raw: dict[str, Any] | None) -> Ratio | None:
    if raw is None:
        return None
    return Ratio(raw["median"], raw["low"], raw["high"], raw["coverage"], raw["pairs"])


def ratio_of(values: list[float]) -> dict[str, Any] | None:
    """Median and interval of `values`, in the form that `forebay compare --json` has."""
    found = median_ratio(values)
    if found is None:
        return None
    return {
        "median": found.median,
        "low": found.low,
        "high": found.high,
        "coverage": found.coverage,
        "pairs": found.pairs,
        "detectable": found.detectable,
    }


def load(path: Path) -> Result | None:
    """The result in this file; None if it was not measured yet. Raises ValueError if the file holds
    something else."""
    if not path.is_file():
        return None
    raw = json.loads(path.read_text())
    if not isinstance(raw, dict) or "experiment" not in raw:
        raise ValueError(f"{path}: no result of a campaign; remove it and measure again")
    return Result(raw)


def done(path: Path) -> bool:
    """Whether this measurement need not be made again."""
    found = load(path)
    return found is not None and found.failure is None


def store(path: Path, raw: dict[str, Any], script: str = SCRIPT) -> None:
    """Writes one result, made by this script. A reader meets the old one or the new one, whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.new")
    beside.write_text(json.dumps({"experiment": experiment(script), **raw}, indent=1) + "\n")
    beside.replace(path)


def experiment(script: str = SCRIPT) -> dict[str, Any]:
    """By which command, from which sources and on which machine a result is made."""
    return {
        "invocation": f".venv/bin/python {script} {shlex.join(sys.argv[1:])}",
        "commit": commit(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": platform.release(),
        "load_average": os.getloadavg()[0],
        "kept_awake": awake.is_kept(),
    }


def commit() -> str:
    """The sources' commit, marked where the code differs from it; "unknown" outside git."""
    try:
        name = _git("rev-parse", "--short=12", "HEAD").strip()
        changed = _git("status", "--porcelain", "--untracked-files=no", "--", *_CODE).strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{name} with changes" if changed else name


def _git(*words: str) -> str:
    return subprocess.run(
        ["git", "-C", str(ROOT), *words], check=True, capture_output=True, text=True
    ).stdout

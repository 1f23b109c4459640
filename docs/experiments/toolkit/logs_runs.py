"""What `forebay import` and `forebay report` make of logs that Darshan left: those that PyDarshan's
package brings, and others beside them. One JSON document a round."""

from __future__ import annotations

import importlib.util
import json
import tempfile
import time
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

import measuring
from forebay.trace.directory import Trace
from forebay.trace.tables import COUNTERS_PREFIX
from machine_time import Stolen
from measuring import MeasuringError, Tools

PACKAGE = "darshan"


def sample_logs(others: Iterable[Path] = ()) -> list[tuple[str, Path]]:
    """Each log by the name it is told by, its path below the package, or below one of the `others`
    with that directory's name in front. Raises MeasuringError where there is none."""
    found = importlib.util.find_spec(PACKAGE)
    places = [Path(found.origin).parent] if found is not None and found.origin else []
    logs = [(_name(log, place), log) for place in places for log in _below(place)]
    logs += [
        (f"{place.name}/{_name(log, place)}", log)
        for place in others
        for log in _below(place.absolute())
    ]
    if not logs:
        raise MeasuringError(f"no log is below {', '.join(map(str, [*places, *others]))}")
    return logs


def _below(place: Path) -> list[Path]:
    return sorted(place.rglob("*.darshan"))


def _name(log: Path, place: Path) -> str:
    return str(log.relative_to(place))


def measure_round(tools: Tools, logs: Iterable[tuple[str, Path]]) -> dict[str, Any]:
    """Each of these once, by the command. A log that fails is told, and does not end the round."""
    stolen = Stolen()
    found = []
    for name, log in logs:
        with tempfile.TemporaryDirectory(prefix="forebay-experiment-") as place:
            one: dict[str, Any] = {
                "log": name,
                "bytes": log.stat().st_size,
                "digest": measuring.digest(log),
            }
            try:
                one |= _examined(tools, log, Path(place))
            except MeasuringError as error:
                told = str(error).replace(str(log), name).replace(place, "")
                one["error"] = " ".join(told.replace(str(tools.forebay), "forebay").split())
            found.append(one)
    return {
        "version": 1,
        "package": f"PyDarshan {metadata.version(PACKAGE)}",
        "logs": found,
        "stolen_share": stolen.share(),
        "environment": {},
    }


def _examined(tools: Tools, log: Path, place: Path) -> dict[str, Any]:
    """A log that is imported, and what the report says of it. Raises MeasuringError."""
    directory, told = place / "run", place / "report.json"
    import_s = _seconds(tools, ["import", str(log), "-o", str(directory)])
    words = ["report", str(directory), "-o", str(place / "report.html"), "--json", str(told)]
    report_s = _seconds(tools, words)
    trace, report = Trace(directory), json.loads(told.read_text())
    run = trace.run
    counters = [name for name in trace.names() if name.startswith(COUNTERS_PREFIX)]
    return {
        "format": run.origin["log_version"],
        "tool": run.origin["tool"],
        "levels": run.levels,
        "modules": sorted(name.removeprefix(COUNTERS_PREFIX) for name in counters),
        "partial": sorted(run.losses),
        "processes": run.ranks,
        "files": trace.rows("files"),
        "records": sum(trace.rows(name) for name in counters),
        "calls": trace.rows("posix") + trace.rows("mpiio"),
        "io_share": report["budget"]["io_share"],
        "findings": [finding["title"] for finding in report["findings"]],
        "lines": len(report["lines"]),
        "verdict": report["verdict"],
        "import_s": import_s,
        "report_s": report_s,
    }


def _seconds(tools: Tools, words: list[str]) -> float:
    start = time.perf_counter()
    measuring.forebay(tools, words)
    return time.perf_counter() - start

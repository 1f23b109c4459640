"""Searches of which everything is known, for the tests of their report."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from made_campaigns import NASTY

from forebay.configurations import BUILT_IN, Configuration
from forebay.configure.history import History, Search, SearchRun, State, Why
from forebay.evaluate.in_force import Setting
from forebay.evaluate.in_force import State as Held

COMMAND = ["mpiexec", "-n", "4", f"./a {NASTY}"]
TWO, EIGHT, SMALL, BAD, DEAF = (
    {"aggregators": "2"},
    {"aggregators": "8"},
    {"aggregators": "2", "buffer_size": "1MiB"},
    {"buffer_size": "64KiB"},
    {"collective": "disable"},
)
# Settings, what the run is for, seconds measured (None: it failed), what the model said.
RUNS: list[tuple[dict[str, str], Why, float | None, float]] = [
    ({}, Why.WARM_UP, 2.9, 2.0),
    ({}, Why.REFERENCE, 2.0, 2.0),
    (EIGHT, Why.MODEL, 2.2, 1.1),
    (TWO, Why.SEARCH, 1.25, 1.6),
    (BAD, Why.SEARCH, None, 1.4),
    (SMALL, Why.SEARCH, 1.4, 1.5),
    (DEAF, Why.SEARCH, 1.9, 1.9),
    (TWO, Why.AGAIN, 1.3, 1.6),
    ({}, Why.AGAIN, 2.04, 2.0),
    (TWO, Why.AGAIN, 1.28, 1.6),
]
NAMES = {"": "default", "aggregators=8": "c01", "aggregators=2": "c02", "buffer_size=64KiB": "c03",
         "aggregators=2,buffer_size=1MiB": "c04", "collective=disable": "c05"}  # fmt: skip
BEST = Configuration("c02", description="aggregators 2", hints={"cb_nodes": "2"})


def search(trace: Path | None = None, checksum: str = "0123456789abcdef") -> Search:
    return Search(
        command=COMMAND,
        directory="/scratch",
        trace={"path": str(trace or "/scratch/job.trace"), "checksum": checksum},
        time="write",
        reference="default",
        seed=7,
    )


def name_of(settings: dict[str, str]) -> str:
    return NAMES[",".join(f"{key}={value}" for key, value in settings.items())]


def runs() -> list[SearchRun]:
    made = []
    for number, (settings, why, seconds, predicted) in enumerate(RUNS, start=1):
        run = SearchRun(
            number, name_of(settings), settings, why, "2026-01-01T00:00:00.000+00:00", predicted,
            seconds=seconds, state=State.MEASURED,
        )  # fmt: skip
        if seconds is None:
            run.state, run.reason = State.FAILED, f"ended with exit status 4: no space {NASTY}"
        if settings == DEAF:
            held = Setting("romio_cb_write", "disable", ("enable",), Held.NOT_IN_FORCE)
            run.state, run.reason, run.observed = State.NOT_IN_FORCE, str(held), [asdict(held)]
        if settings == TWO:
            run.observed = [asdict(Setting("cb_nodes", "2", ("2",), Held.IN_FORCE))]
        made.append(run)
    return made


def ending(**others: object) -> dict[str, Any]:
    """What is not in the runs, as `configure --json` has it."""
    estimates = (("c02", 1.28, 3), ("c04", 1.4, 1), ("default", 2.02, 2), ("c01", 2.2, 1))
    made = [BEST, *(Configuration(name, description=name) for name in ("c01", "c03", "c04", "c05"))]
    made.append(BUILT_IN["default"])
    return {
        "format": "forebay search",
        "version": 1,
        **asdict(search()),
        "host": "node1",
        "system": None,
        "constraints": ["aggregators<=8"],
        "least_gain": 0.05,
        "ceiling": {"io_share": 0.6, "best_speedup": 2.5},
        "factors": [{"name": "aggregators", "values": ["2", "8"]}],
        "left_out": [{"factor": "cache", "value": None, "reason": "nothing is written by MPI"}],
        "candidates": {"considered": 20, "feasible": 12},
        "configurations": {each.name: each.as_json() for each in made},
        "ranking": [
            {"configuration": name, "seconds": s, "low": 0.95 * s, "high": 1.05 * s, "runs": count}
            for name, s, count in estimates
        ],
        "best": "c02",
        "stopped": "runs",
        "failure": None,
        "notes": ["no system file <b>"],
        **others,
    }


def history(path: Path, concluded: bool = True, **others: object) -> Path:
    """A history as a search leaves it; one that was killed is not concluded."""
    made = History(path, search())
    for run in runs():
        made.add(run)
    if concluded:
        made.conclude(ending(**others))
    made.close()
    return path

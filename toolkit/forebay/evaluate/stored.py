"""A campaign as `forebay evaluate --json` left it, read back."""

import math
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from forebay import json_document
from forebay.comparison import QUANTITIES, Failure, FileCheck, Side
from forebay.configurations import configuration_of
from forebay.errors import ForebayError
from forebay.evaluate import in_force
from forebay.evaluate.background import Load
from forebay.evaluate.evaluation import VERSION, EvaluatedRun, Evaluation
from forebay.evaluate.storage_probe import StorageLoad
from forebay.evaluate.verdict import Kind, Plan, Verdict

_NEEDED = {"verdicts", "log_ratios", "runs"}
_ADVICE = (
    "'forebay evaluate --json FILE -- COMMAND' writes one; what --aa writes is a count of claims."
)


@dataclass
class StoredEvaluation(Evaluation):
    """With the verdicts as they were given, by whichever version of Forebay."""

    given: dict[str, Verdict | None] = field(default_factory=dict)

    def verdict(self, name: str) -> Verdict | None:
        """As the file has it."""
        return self.given[name]


def load(path: Path) -> StoredEvaluation:
    """Raises ForebayError for what is no such file, is damaged or is of a later version."""
    document = json_document.load(
        path, "result of an evaluation", VERSION, _NEEDED.issubset, _ADVICE
    )
    try:
        return _evaluation(document)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ForebayError(f"{path} is damaged: {error!r}", _ADVICE, exit_code=1) from error


def _evaluation(document: dict[str, Any]) -> StoredEvaluation:
    reference = str(document["reference"])
    configurations = [configuration_of(*item) for item in document["configurations"].items()]
    names = {configuration.name for configuration in configurations}
    if reference not in names or len(names) < 2:
        raise ValueError(f"the reference {reference!r} is not among several configurations")
    quantity = str(document["time"])
    if quantity not in QUANTITIES:
        raise ValueError(f"{quantity!r} is no time of a run")
    plan = Plan(
        float(document["alpha"]), float(document["least_gain"]), int(document["blocks_max"])
    )
    failure = document["failure"]
    found = StoredEvaluation(
        command=[str(word) for word in document["command"]],
        configurations=configurations,
        reference=reference,
        quantity=quantity,
        plan=plan,
        seed=int(document["seed"]),
        runs=[_run(entry) for entry in document["runs"]],
        settings={
            str(name): [in_force.setting_of(entry) for entry in entries]
            for name, entries in document["settings"].items()
        },
        files={
            str(name): [_file(entry) for entry in entries]
            for name, entries in document["files"].items()
        },
        environment=dict(document["environment"]),
        notes=[str(note) for note in document["notes"]],
        failure=None if failure is None else Failure(**failure),
        unsteady=document["unsteady"],
        interrupted=bool(document["interrupted"]),
        broken_off=document["broken_off"],
    )
    found.given = {name: _verdict(document["verdicts"][name]) for name in found.candidates}
    for name, test in found.tests.items():
        for ratio in document["log_ratios"][name]:
            test.add(float(_number(ratio)))
    if not {run.configuration for run in found.runs} <= names:
        raise ValueError("a run is of no configuration")
    return found


def _run(entry: dict[str, Any]) -> EvaluatedRun:
    seconds = {key: _number(value) for key, value in entry["side"].items()}
    return EvaluatedRun(
        block=int(entry["block"]),
        configuration=str(entry["configuration"]),
        side=Side(**seconds | {"wall": float(entry["side"]["wall"])}),
        before=_load(entry["before"]),
        after=_load(entry["after"]),
        # An earlier result has no loads of file systems.
        storage_before=[_storage(each) for each in entry.get("storage_before", [])],
        storage_after=[_storage(each) for each in entry.get("storage_after", [])],
    )


def _storage(entry: dict[str, Any]) -> StorageLoad:
    return StorageLoad(str(entry["path"]), _number(entry["write_s"]), _number(entry["read_s"]))


def _load(entry: dict[str, Any] | None) -> Load | None:
    return None if entry is None else Load(**{key: float(value) for key, value in entry.items()})


def _number(value: object) -> Any:  # noqa: ANN401
    """A finite number, or None. Raises ValueError."""
    if value is None or (isinstance(value, (int, float)) and math.isfinite(value)):
        return value
    raise ValueError(f"{value!r} is no number")


def _file(entry: dict[str, Any]) -> FileCheck:
    known = {key: value for key, value in entry.items() if not key.startswith("hash")}
    return FileCheck(**known, hash_stock=entry["hash_reference"], hash_forebay=entry["hash"])


def _verdict(entry: dict[str, Any] | None) -> Verdict | None:
    if entry is None:
        return None
    known = {item.name for item in fields(Verdict)} - {"kind", "reasons"}
    told = {key: _number(value) for key, value in entry.items() if key in known}
    told["confidence"] = float(entry["confidence"])
    reasons = tuple(str(reason) for reason in entry["reasons"])
    return Verdict(kind=Kind(entry["verdict"]), reasons=reasons, **told)

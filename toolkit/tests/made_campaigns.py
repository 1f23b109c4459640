"""Results of evaluations of which everything is known, for the tests of their report."""

import math
from collections.abc import Sequence

import numpy as np

from forebay.comparison import FileCheck, Side
from forebay.configurations import BUILT_IN, Configuration
from forebay.evaluate.background import Load
from forebay.evaluate.evaluation import EvaluatedRun, Evaluation
from forebay.evaluate.in_force import Setting, State
from forebay.evaluate.verdict import Plan

NASTY = "<script>alert(1)</script> & 'data'"
BEST = Configuration(
    "best",
    description="eight aggregators",
    hints={"cb_nodes": "8"},
    environment={"WAY": NASTY},
    sections=[{"path": "*.h5", "striping_factor": 4, "cache": {"mode": "enable"}}],
)


SAME = Configuration("same", hints={"cb_nodes": "1"})


def evaluation(
    gains: Sequence[tuple[Configuration, float]] = ((BEST, 0.3), (SAME, 0.0)),
    blocks: int = 12,
    reference: str = "default",
) -> Evaluation:
    """Each block a run of each configuration, in an order that changes; the gain of each candidate
    over the reference, in noise of 2 %."""
    found = Evaluation(
        ["mpiexec", "-n", "4", f"./a {NASTY}"],
        [*(configuration for configuration, _ in gains), BUILT_IN[reference]],
        reference,
        "write",
        Plan(blocks_max=blocks),
        seed=7,
    )
    generator = np.random.default_rng(5)
    speeds = {configuration.name: gain for configuration, gain in gains}
    speeds[reference] = 0.0
    for block in range(1, blocks + 1):
        seconds = {
            name: 2 / (1 + gain) * math.exp(generator.normal(0, 0.02))
            for name, gain in speeds.items()
        }
        for name in generator.permutation(list(speeds)).tolist():
            load = Load(float(generator.uniform(0, 0.4)), 1e6)
            found.runs.append(EvaluatedRun(block, name, side(seconds[name]), load, None))
        for name in found.candidates:
            found.tests[name].add(math.log(seconds[reference] / seconds[name]))
    found.settings = {
        "best": [Setting("cb_nodes", "8", ("8",), State.IN_FORCE)],
        "same": [Setting("cb_nodes", "1", (), State.NOT_RECORDED)],
    }
    found.files = {"best": [FileCheck(f"/scratch/{NASTY}", 4096, "a", "a", identical=True)]}
    found.environment = {"cores": 4, "cpu": "Z80", "file_systems": {"/scratch": "lustre"}}
    found.notes = ["hint not understood: <b>"]
    return found


def side(seconds: float, others: Sequence[float | None] = (None, None, None)) -> Side:
    read, data, mpiio = others
    return Side(wall=seconds + 0.5, write=seconds, read=read, data=data, mpiio=mpiio, exit=0)

"""`forebay evaluate --aa`: what evaluate claims of two configurations that are the same.

Campaigns are made up, and judged by the same code as real ones. The noise is what shared machines
have: log-normal runs, a spread that differs from campaign to campaign (2 to 40 %), drift (linear,
by the hour, and a random walk), and bursts in which several runs in a row take up to five times as
long.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from forebay.evaluate.blocks import shuffled
from forebay.evaluate.sequential import Array, PairedTest
from forebay.evaluate.verdict import Kind, Plan, Verdict, is_decided, judge

_REFERENCE, _CANDIDATE = "a", "b"


@dataclass(frozen=True)
class SelfTest:
    """The outcome of all campaigns."""

    plan: Plan
    seed: int
    verdicts: list[Verdict]

    @property
    def claims(self) -> int:
        """Campaigns in which a difference was claimed."""
        return sum(verdict.kind in (Kind.IMPROVED, Kind.SLOWER) for verdict in self.verdicts)

    @property
    def claim_rate(self) -> float:
        return self.claims / len(self.verdicts)

    def as_json(self) -> dict[str, Any]:
        """The document of `forebay evaluate --aa --json`."""
        kinds = Counter(verdict.kind for verdict in self.verdicts)
        return {
            "version": 1,
            "campaigns": len(self.verdicts),
            "false_claims": self.claims,
            "false_claim_rate": self.claim_rate,
            "alpha": self.plan.alpha,
            "least_gain": self.plan.least_gain,
            "blocks_max": self.plan.blocks_max,
            "blocks_mean": float(np.mean([verdict.blocks for verdict in self.verdicts])),
            "verdicts": {kind.value: kinds[kind] for kind in Kind if kinds[kind]},
            "seed": self.seed,
        }


def machine_noise(generator: np.random.Generator, runs: int) -> Array:
    """Logs of the factors by which a shared machine stretches `runs` runs, one after another."""
    time = np.linspace(0.0, 1.0, runs)
    spread = generator.uniform(0.02, 0.4)
    noise = generator.normal(0.0, spread, runs)
    noise += generator.normal(0.0, 0.3) * time
    noise += generator.uniform(0.0, 0.3) * np.sin(
        2 * np.pi * (generator.uniform(0.5, 4) * time + generator.uniform())
    )
    noise += np.cumsum(generator.normal(0.0, generator.uniform(0.0, 0.05), runs))
    begins, ends = generator.uniform(0.0, 0.1), generator.uniform(0.2, 0.8)
    burst = 0.0
    for run in range(runs):
        if burst:
            burst = 0.0 if generator.random() < ends else burst
        elif generator.random() < begins:
            burst = generator.uniform(np.log(1.5), np.log(5.0))
        noise[run] += burst
    return noise


def campaign(generator: np.random.Generator, noise: Array, gain: float, plan: Plan) -> Verdict:
    """One made-up campaign on a machine with this noise (two runs a block), in which the candidate
    is `gain` (log ratio) faster, looked at after every block."""
    test = PairedTest(plan.alpha)
    effect = {_REFERENCE: 0.0, _CANDIDATE: -gain}
    for block in range(plan.blocks_max):
        order = shuffled([_REFERENCE, _CANDIDATE], generator)
        times = {name: effect[name] + noise[2 * block + slot] for slot, name in enumerate(order)}
        test.add(float(times[_REFERENCE] - times[_CANDIDATE]))
        if is_decided(test, plan):
            break
    return judge(test, plan)


def false_claims(campaigns: int, plan: Plan, seed: int) -> SelfTest:
    """Campaigns without a difference."""
    generator = np.random.default_rng(seed)
    verdicts = [
        campaign(generator, machine_noise(generator, 2 * plan.blocks_max), 0.0, plan)
        for _ in range(campaigns)
    ]
    return SelfTest(plan, seed, verdicts)

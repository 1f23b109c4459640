"""The order of the runs of a block."""

from collections.abc import Sequence

import numpy as np


def shuffled(names: Sequence[str], generator: np.random.Generator) -> list[str]:
    """Every order with the same probability, whatever the orders before were: the test rests on
    it. (Orders that are balanced over the campaign would not do.)"""
    return [names[index] for index in generator.permutation(len(names))]

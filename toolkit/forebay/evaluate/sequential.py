"""A test of paired log ratios that may be looked at after every pair, and the interval it gives.

In a block each configuration runs once, in an order that a fair coin decides. Whatever the machine
does in the block (drift, bursts, a loaded neighbour) could as well have met the other one. So if
the true log ratio is `theta`, then `ratio - theta` is symmetric about 0 given all blocks before.
Nothing else is assumed: no distribution, no equal spread, no independence of the machine's state.
For x symmetric, E[exp(x - log cosh x)] = 1; hence for each `bet` b > 0

    evidence(b) = prod exp(x - log cosh x),   x = b (ratio - theta), within -2 .. 2,

is a martingale that starts at 1, and so is any mean over bets. It reaches 1/alpha with probability
of at most alpha, however often one looks (Ville's inequality). Values of `theta` that it has not
ruled out make an interval that holds the true one at all times with 1 - alpha. [Ville 1939;
de la Pena 1999, conditionally symmetric variables; Ramdas et al. 2023, game-theoretic statistics]
"""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

# In units of 1 / log ratio. The best bet is about effect / variance: 200 suits an effect of 1 %
# where runs spread by less, 0.5 runs that differ by a factor of e from time to time. Smaller ones
# wait for noise in which only thousands of runs tell anything, and get a tenth of the stake.
_SMALL_BETS: Array = np.geomspace(0.01, 0.4, 10)
_USUAL_BETS: Array = np.geomspace(0.5, 200.0, 25)
_BETS: Array = np.concatenate([_SMALL_BETS, _USUAL_BETS])
_STAKES: Array = np.concatenate(
    [
        np.full(_SMALL_BETS.size, 0.1 / _SMALL_BETS.size),
        np.full(_USUAL_BETS.size, 0.9 / _USUAL_BETS.size),
    ]
)
# A pair can raise the evidence by a factor of 2 at most; this allows 1.96, and a burst in the other
# direction costs no more than what 5 pairs earn.
_STAKE_MAX = 2.0
_POWER_Z = 0.8416  # the normal quantile of 0.8: the power with which "detectable" is meant
_BISECTIONS = 45
_FAR = 2000.0  # log ratio at which every bet is settled: 0.01 * 2000 > 2
BLOCKS_MAX = 1 << 17  # nobody runs more


def _logs(deviations: Array) -> Array:
    """What each deviation adds to the log of each bet's evidence; a row for each bet."""
    x = np.clip(np.outer(_BETS, deviations), -_STAKE_MAX, _STAKE_MAX)
    logs: Array = x - np.log(np.cosh(x))
    return logs


def log_evidence(ratios: Array, theta: float) -> float:
    """The log of the evidence that the true log ratio is above `theta`: at most the log of 1/alpha
    with probability 1 - alpha, if it is not. Falls as `theta` rises."""
    if ratios.size == 0:
        return 0.0
    return _mixed(_logs(ratios - theta).sum(axis=1))


def _mixed(logs: Array) -> float:
    """The log of all bets' evidence together; `logs` are those of each."""
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top) @ _STAKES))


class PairedTest:
    """Log ratios of pairs, one by one, tested on both sides with `alpha` together."""

    def __init__(self, alpha: float) -> None:
        self.alpha = alpha
        self._ratios: list[float] = []
        self._bar = math.log(2 / alpha)  # half of alpha on each side

    def add(self, log_ratio: float) -> None:
        """One more pair. A ratio is reference / candidate, so above 0 is a gain."""
        self._ratios.append(log_ratio)

    @property
    def ratios(self) -> Array:
        return np.array(self._ratios)

    @property
    def blocks(self) -> int:
        return len(self._ratios)

    def above(self, theta: float) -> bool:
        """Whether it is shown that the true log ratio is above `theta`."""
        return log_evidence(self.ratios, theta) >= self._bar

    def below(self, theta: float) -> bool:
        """Whether it is shown that it is below."""
        return log_evidence(-self.ratios, -theta) >= self._bar

    def interval(self) -> tuple[float, float]:
        """The log ratios that are not ruled out; infinite on a side where too few pairs were seen
        to rule out anything (below 6 for alpha = 0.05)."""
        return self._lowest(self.ratios), -self._lowest(-self.ratios)

    def estimate(self) -> float:
        """The median of all means of two of them (Hodges and Lehmann): the centre of symmetry, in
        which a burst has little say. There is one pair at least."""
        ratios = self.ratios
        first, second = np.triu_indices(len(ratios))
        return float(np.median((ratios[first] + ratios[second]) / 2))

    def _lowest(self, ratios: Array) -> float:
        if ratios.size == 0:
            return -math.inf
        low, high = float(ratios.min()) - _FAR, float(ratios.max())
        if log_evidence(ratios, low) < self._bar:
            return -math.inf
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            if log_evidence(ratios, middle) >= self._bar:
                low = middle
            else:
                high = middle
        return low


class _Forecast:
    """What pairs as noisy as these will show: their deviations, with both signs, repeated."""

    def __init__(self, ratios: Sequence[float] | Array, alpha: float) -> None:
        """There are 2 of `ratios` at least."""
        noise = np.asarray(ratios, dtype=np.float64)
        noise = noise - np.median(noise)
        self._noise: Array = np.concatenate([noise, -noise])
        self._bar = math.log(2 / alpha)
        self.widest = float(self._noise.max()) + _FAR

    def shows(self, theta: float, blocks: int) -> bool:
        """Whether `blocks` pairs about `theta` show that it is above 0 in four campaigns of five.
        What a pair adds to a bet's evidence is bounded, so a burst counts for what it costs the
        test, however long it took; the spread of the ratios themselves would take it as it is."""
        logs = _logs(self._noise + theta)
        low = blocks * logs.mean(axis=1) - _POWER_Z * math.sqrt(blocks) * logs.std(axis=1)
        return _mixed(low) >= self._bar


def smallest_detectable(ratios: Sequence[float] | Array, blocks: int, alpha: float) -> float:
    """The log ratio that `blocks` pairs as noisy as these would show with a probability of 0.8;
    infinite where so few cannot show any. There are 2 of `ratios` at least.
    Worked example: a spread of 0.1 and 20 blocks: about 0.11, hence a gain of 11 %."""
    forecast = _Forecast(ratios, alpha)
    low, high = 0.0, forecast.widest
    if not forecast.shows(high, blocks):
        return math.inf
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (low, middle) if forecast.shows(middle, blocks) else (middle, high)
    return high


def blocks_needed(ratios: Sequence[float] | Array, gain: float, alpha: float) -> int | None:
    """Blocks after which a log ratio of `gain` is detectable in such noise; None if not before
    BLOCKS_MAX. There are 2 of `ratios` at least."""
    forecast = _Forecast(ratios, alpha)

    def enough(blocks: int) -> bool:
        return forecast.shows(gain, blocks)

    low, high = 1, 2
    while not enough(high):
        low, high = high, 2 * high
        if low >= BLOCKS_MAX:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high

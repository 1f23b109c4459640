"""What the model gets wrong, learnt from runs: a Gaussian process on log(measured / predicted).

Candidates that are alike are wrong alike. Where nothing was run the model's word counts, with a
spread that says how little is known; each run narrows it around itself. Next comes the run of which
most improvement is expected, runs of the same settings included, for one noisy time proves little.
[Jones 1998, expected improvement; Huang 2006, its form for noisy runs]
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forebay.configure.factors import KNOWN, Kind, Settings

Array = NDArray[np.float64]

# A model that is wrong by a factor of 1.6 either way is no surprise, and noise of 10 % is none.
_SPREAD = 0.25
_SPREAD_BOUNDS = (0.02, 4.0)
_LENGTH_BOUNDS = (0.3, 3.0)
_NOISE = 0.01
_NOISE_BOUNDS = (1e-4, 0.25)
# From so many runs on the spread, the length and the noise are fitted, too.
_FITTED_FROM = 6


class Features:
    """Settings as points in a space in which those that are alike are near: amounts by their
    logarithm, words by a corner each, and the model's prediction."""

    def __init__(self, effective: Sequence[Settings], predicted: Array) -> None:
        """Of all candidates: what is in force under each, and its predicted seconds."""
        columns = [np.log(predicted)] if np.ptp(np.log(predicted)) > 0 else []
        for factor in dict.fromkeys(name for settings in effective for name in settings):
            columns += _columns(factor, [settings.get(factor) for settings in effective])
        scaled = [column for column in map(_scaled, columns) if column is not None]
        self.points: Array = (
            np.stack(scaled, axis=1) if scaled else np.zeros((len(effective), 1), np.float64)
        )


def _columns(factor: str, values: Sequence[str | None]) -> list[Array]:
    known = KNOWN.get(factor)
    if known is not None and known.kind in (Kind.COUNT, Kind.SIZE):
        amounts = [known.amount(value) if value is not None else None for value in values]
        there = [np.log2(max(1.0, amount)) for amount in amounts if amount is not None]
        usual = float(np.median(there)) if there else 0.0
        numbers = [usual if a is None else np.log2(max(1.0, a)) for a in amounts]
        return [np.array(numbers, np.float64)]
    words = sorted({value for value in values if value is not None})
    return [np.array([value == word for value in values], np.float64) for word in words]


def _scaled(column: Array) -> Array | None:
    """From 0 to 1; None for what never changes."""
    span = float(np.ptp(column))
    return (column - column.min()) / span if span > 0 else None


@dataclass(frozen=True)
class Estimate:
    """Of each candidate the logarithm of its seconds, and how sure that is (standard deviation)."""

    mean: Array
    deviation: Array
    noise: float  # of one run

    def seconds(self, candidate: int) -> float:
        return float(np.exp(self.mean[candidate]))

    def interval(self, candidate: int) -> tuple[float, float]:
        """That holds the estimate's seconds with 95 %, as far as the process is right."""
        half = 1.96 * self.deviation[candidate]
        mean = self.mean[candidate]
        return float(np.exp(mean - half)), float(np.exp(mean + half))


class Residual:
    """Learns from runs. `points` are those of Features; `predicted` are seconds."""

    def __init__(self, points: Array, predicted: Array, seed: int) -> None:
        self._points = points
        self._prior = np.log(predicted)
        self._seed = seed

    def learn(self, candidates: Sequence[int], seconds: Sequence[float]) -> Estimate:
        """The estimate of every candidate after these runs, of which there is at least one."""
        # Takes a second to load, which who is told of a wrong option need not wait for.
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

        rows = np.asarray(candidates, np.int64)
        wrong = np.log(np.asarray(seconds, np.float64)) - self._prior[rows]
        # The model's common factor of error says nothing of which candidate is best.
        common = float(np.median(wrong))
        fitted = len(rows) >= _FITTED_FROM
        kernel = ConstantKernel(_SPREAD, _SPREAD_BOUNDS) * Matern(
            1.0, _LENGTH_BOUNDS, nu=2.5
        ) + WhiteKernel(_NOISE, _NOISE_BOUNDS)
        process = GaussianProcessRegressor(
            kernel,
            optimizer="fmin_l_bfgs_b" if fitted else None,
            n_restarts_optimizer=1 if fitted else 0,
            random_state=self._seed,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # a bound is reached: it may be
            process.fit(self._points[rows], wrong - common)
        noise = float(np.sqrt(process.kernel_.k2.noise_level))
        mean, deviation = process.predict(self._points, return_std=True)
        # The deviation is that of another run; of the true time it lacks the noise.
        true = np.sqrt(np.maximum(deviation**2 - noise**2, 1e-12))
        return Estimate(self._prior + common + mean, true, noise)


def improvement(estimate: Estimate, best: float) -> Array:
    """Of each candidate the expected part by which one more run of it lowers `best`, a logarithm of
    seconds; less where it was run so often that another run tells little."""
    from scipy.special import ndtr  # slow to load, as above

    spread = np.maximum(estimate.deviation, 1e-9)
    gain = best - estimate.mean
    z = gain / spread
    density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    expected = gain * ndtr(z) + spread * density
    told = 1 - estimate.noise / np.sqrt(spread**2 + estimate.noise**2)
    product: Array = expected * told
    return product

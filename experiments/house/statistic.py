"""Effects of the house sample: one number a problem, for every question of the main paper."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from sims.diversity import DEFINITIONS, correlation, normalised_errors
from sims.judgement.answers import Effects
from sims.judgement.effects_of_problems import gap, of_batches, order
from sims.study.results import Results
from sims.weighting import optimal

from .sets import HAAR, INDICES, ORTHOGONAL

NEARLY_ALIGNED = 0
"""Place of the set whose heads are nearest to one another."""
MATRICES = ("subspaces", "noise", "variance", "errors")
"""What an index of diversity may be computed from."""


class Sample:
    """The sample in arrays; matrices are (…, set, head, head2), filled up with NaN.

    Attributes:
        law: theory of all M problems.
        estimates: simulation of the first N.
    """

    def __init__(self, results: Results) -> None:
        self.law = results.predictions["law"]
        names = sorted(results.estimates)
        self.estimates = [results.estimates[name] for name in names]

    @cached_property
    def heads(self) -> np.ndarray:
        """Heads of each problem, (M,)."""
        return self.law["heads"].values.astype(int)

    @property
    def valid(self) -> np.ndarray:
        """Where first-order theory is in its range at every set, (M,)."""
        return self.law["in_range"].values.astype(bool)

    def simulated(self, function: Any) -> np.ndarray:
        """A function of a problem's matrices (batch, set, head, head2), stacked over problems."""
        return np.stack([function(*_matrices(data)) for data in self.estimates])

    def predicted(
        self, function: Any, averaged: bool = False, noise: np.ndarray | None = None
    ) -> np.ndarray:
        """The same by theory, of all problems; ``averaged`` over targets, of other noise (M,)."""
        names = ("mean_bias", "mean_signal") if averaged else ("bias", "signal")
        parts = [self.law[name].values for name in (*names, "noise")]
        if noise is not None:
            scale = (noise / self.law["noise_sd"].values) ** 2
            parts[2] = parts[2] * scale[:, None, None, None]
        return np.stack(
            [function(*(part[k][..., :h, :h] for part in parts)) for k, h in enumerate(self.heads)]
        )


def _matrices(data: xr.Dataset) -> tuple[np.ndarray, ...]:
    """Products of biases, signal and noise covariances of a simulated problem."""
    names = ("bias_product", "signal_covariance", "noise_covariance")
    return tuple(data[f"integrated_{name}"].values for name in names)


def error(bias: np.ndarray, signal: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """The ensemble's mean squared error, (…, set)."""
    return np.asarray((bias + signal + noise).mean((-2, -1)))


def share_kept(bias: np.ndarray, signal: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """The share of a head's variance that averaging keeps, (…, set).

    Of batches, its numerator less the ratio of means times its denominator: mean and spread are
    those of the ratio, to first order.
    """
    return _ratio((signal + noise).mean((-2, -1)), _diagonal(signal + noise))


def over_mean_head(bias: np.ndarray, signal: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """The error over that of the mean head, (…, set)."""
    errors = bias + signal + noise
    return _ratio(errors.mean((-2, -1)), _diagonal(errors))


OUTCOMES = {"error": error, "variance kept": share_kept, "error / mean head": over_mean_head}
TARGETS = ("given target", "averaged target")


def _diagonal(matrix: np.ndarray) -> np.ndarray:
    return np.asarray(np.diagonal(matrix, axis1=-2, axis2=-1).mean(-1))


def _ratio(top: np.ndarray, bottom: np.ndarray) -> np.ndarray:
    """A ratio of expectations: pseudo-values where batches lead (two axes), else the ratio."""
    if top.ndim == 1:
        return np.asarray(top / bottom)
    ratio = top.mean(0) / bottom.mean(0)
    return np.asarray(ratio + (top - ratio * bottom) / bottom.mean(0))


def halves(bias: np.ndarray, signal: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """The relative fall of the error as the first half of the heads becomes all, (…, set)."""
    errors = bias + signal + noise
    half = errors.shape[-1] // 2
    return 1 - _ratio(errors.mean((-2, -1)), errors[..., :half, :half].mean((-2, -1)))


def indices(of: str) -> Any:
    """The mean index of a matrix of heads, as a function of a problem's matrices."""

    def index(bias: np.ndarray, signal: np.ndarray, noise: np.ndarray) -> np.ndarray:
        if of == "errors":
            return DEFINITIONS["mean"](normalised_errors(bias + signal + noise))
        return DEFINITIONS["mean"](correlation(noise if of == "noise" else signal + noise))

    return index


def effects(results: Results) -> Mapping[str, Effects]:
    """Every question's effects, and those of the figure's curve and table."""
    sample = Sample(results)
    law, valid = sample.law, sample.valid
    index, *others = (law["index"].sel(summary=name).values for name in INDICES)
    made = _gaps(sample)
    shares, errors, gains = (
        (sample.simulated(function), sample.predicted(function))
        for function in (share_kept, error, halves)
    )
    made["not-heads-alone"] = _between(*shares, valid, NEARLY_ALIGNED, HAAR)
    made["adding-heads"] = _between(*gains, valid, HAAR, NEARLY_ALIGNED)
    made["extremes"] = _least(*shares, valid, law["fits"].values.astype(bool))
    made["hdi"], made["hdi-pairs"] = order(index, *shares, valid)
    made["hdi-monotone"], made["hdi-monotone-pairs"] = order(index, *errors, valid)
    natural = sample.predicted(error, noise=law["natural_noise"].values)
    made["hdi-monotone-natural"] = order(index, errors[0], natural, valid)[1]
    for name, other in zip(INDICES[1:], others, strict=True):
        made[f"{name}-pairs"] = order(other, *errors, valid)[1]
    for of in MATRICES:
        matrix_index = index if of == "subspaces" else sample.predicted(indices(of))
        for target in TARGETS:
            for outcome, function in OUTCOMES.items():
                values = sample.predicted(function, target == TARGETS[1])
                made[f"{of}, {outcome}, {target}"] = order(matrix_index, shares[0], values, valid)[
                    1
                ]
    made["weighting"] = _weighted(sample, valid)
    return made


def _gaps(sample: Sample) -> dict[str, Effects]:
    """Gaps of the two roads at the first Haar set."""
    valid, count = sample.valid, len(sample.estimates)
    made = {}
    functions = {"squared_bias": _squared_bias, "variance": _variance, "mse": error}
    for name, function in functions.items():
        simulated, predicted = sample.simulated(function), sample.predicted(function)
        made[name] = gap(simulated[..., HAAR], predicted[..., HAAR], valid)
    # A covariance may vanish: it is held against the variance.
    simulated, predicted = sample.simulated(_pairs)[..., HAAR], sample.predicted(_pairs)[:, HAAR]
    variance = np.where(valid, sample.predicted(_variance)[:, HAAR], np.nan)[:count, None]
    apart = (simulated - predicted[:count, None]) / variance
    made["covariance"] = of_batches(apart, kind="gap")
    exact = sample.law["exact"].values
    made["exact"] = gap(sample.simulated(error)[..., HAAR], exact)
    # First-order theory at the queries of all problems against the law, a mean over all queries.
    apart = sample.predicted(_noise_correlation)[:, HAAR] - sample.law["by_angles"].values
    made["angles"] = Effects(apart, np.zeros(len(apart)), "gap")
    return made


def _squared_bias(bias: np.ndarray, signal: np.ndarray, noise: np.ndarray) -> np.ndarray:
    return np.asarray(bias.mean((-2, -1)))


def _variance(bias: np.ndarray, signal: np.ndarray, noise: np.ndarray) -> np.ndarray:
    return _diagonal(signal + noise)


def _noise_correlation(bias: np.ndarray, signal: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Mean over pairs, (…, set)."""
    return _ratio(_pairs(bias, 0 * noise, noise), _diagonal(noise))


def _pairs(bias: np.ndarray, signal: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Mean covariance of two heads, (…, set)."""
    covariance = signal + noise
    count = covariance.shape[-1]
    return np.asarray(
        (covariance.sum((-2, -1)) - count * _diagonal(covariance)) / (count * (count - 1))
    )


def _between(
    simulated: np.ndarray, predicted: np.ndarray, valid: np.ndarray, more: int, less: int
) -> Effects:
    """By how much a value at one set exceeds that at another."""
    apart = predicted[:, more] - predicted[:, less]
    return of_batches(simulated[..., more] - simulated[..., less], predicted=apart, valid=valid)


def _least(
    simulated: np.ndarray, predicted: np.ndarray, valid: np.ndarray, fits: np.ndarray
) -> Effects:
    """By how much the orthogonal set keeps less variance than the best of the others.

    Which is the best theory says, so that choosing it has no part in the error.
    """
    best = predicted[:, :ORTHOGONAL].argmin(1)
    rows = np.arange(len(best))
    apart = np.where(fits, predicted[rows, best] - predicted[:, ORTHOGONAL], np.nan)
    count = len(simulated)
    other = np.take_along_axis(simulated, best[:count, None, None], -1)[..., 0]
    values = np.where(fits[:count, None], other - simulated[..., ORTHOGONAL], np.nan)
    return of_batches(values, predicted=apart, valid=valid)


def _weighted(sample: Sample, valid: np.ndarray) -> Effects:
    """The excess of uniform weights' error over that of the best weights at the first Haar set."""

    def excess(bias: np.ndarray, signal: np.ndarray, noise: np.ndarray) -> float:
        errors = (bias + signal + noise)[HAAR]
        weights = optimal(errors)
        return float(errors.mean() / (weights @ errors @ weights) - 1)

    values = sample.predicted(excess)
    count = len(sample.estimates)
    return Effects(values[:count], np.zeros(count), "estimate", values, valid)


def parameters(results: Results) -> pd.DataFrame:
    """What the law drew and what was solved, a row a problem.

    ``share`` is that of variance in the error of the first Haar set: where the bandwidth was tuned
    it is not the one that was drawn.
    """
    sample = Sample(results)
    columns = {k: v.values for k, v in sample.law.data_vars.items() if v.dims == ("number",)}
    square = sample.predicted(_squared_bias)[:, HAAR] / sample.predicted(error)[:, HAAR]
    return pd.DataFrame(columns | {"share": 1 - square})

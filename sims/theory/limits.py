"""What averaged heads do not see: their error as n → ∞, and its least value over temperatures.

For Gaussian keys X ~ N(0, Σ), queries of the same law, a series ``m = Σ_j a_j cos(ω_j·x + c_j)``
and gaussian or softmax heads of any frames. As n → ∞ a head is the mean of m over the keys that its
kernel tilts, which are N(M_h x, C_h)::

    m*_h(x) = Σ_j a_j exp(−½ ω_jᵀC_hω_j) cos(M_hᵀω_j·x + c_j)

The bias of the average is therefore a series in the query, of (H + 1) J waves, and its mean square
is a sum over pairs of waves. Derivation: docs/theory/exact.md, "Unseen".
"""

from typing import NamedTuple

import jax
import numpy as np
from numpy.typing import ArrayLike

from sims.base.errors import Uncovered
from sims.base.terms import ensemble_weights
from sims.problem import Heads, Task, TrigonometricSeries
from sims.problem.design_laws import GaussianDesign
from sims.theory.coverage import series_of
from sims.theory.first_order.tilts import Tilt, tilt_of, tilted_moments

LOGS = np.arange(-5, 5.25, 0.5) * np.log(2)
"""Logarithms of the factors of all bandwidths that are tried before the least error is refined."""
NAME = "error as n → ∞"
"""Name of the theory in messages."""


class Unseen(NamedTuple):
    """The least error of averaged heads over temperatures as n → ∞.

    Attributes:
        error: in the squared unit of Y.
        variance: of the target over the keys.
        factor: of all bandwidths at the least error; ∞ where a constant is as good.
    """

    error: float
    variance: float
    factor: float

    @property
    def coverage(self) -> float:
        """Share of the target's variance that the heads see, ``1 − error/variance``, 0 to 1."""
        return 1 - self.error / self.variance


def limit_bias(
    task: Task, heads: Heads, weights: ArrayLike | None = None, factor: float = 1.0
) -> TrigonometricSeries:
    """The bias ``Σ_h α_h m*_h(x) − m(x)`` of the ensemble as n → ∞, a series in the query x.

    Args:
        task: a Gaussian design, any Σ, and a series.
        heads: of the gaussian or the softmax kernel.
        weights: ensemble weights α (H,), sum 1; None is uniform.
        factor: of all bandwidths.

    Raises:
        Uncovered: the design, target or kernel is another one.
        InputError: weights have the wrong shape or do not sum to 1.
    """
    if not isinstance(task.design, GaussianDesign):
        raise Uncovered("design", type(task.design).__name__, f"GaussianDesign ({NAME})")
    target = jax.tree.map(np.asarray, series_of(task, NAME))
    alpha = ensemble_weights(weights, heads.count)
    frames = np.asarray(heads.frames)[:, None]
    key_frames = np.asarray(heads.of_keys)[:, None]
    bandwidth = factor * np.asarray(heads.bandwidth)[:, None]
    # Means are linear in the query: those of unit queries are the columns of M_h.
    sigma = np.asarray(task.design.covariance)
    tilt = tilt_of(heads.kernel)(sigma, frames, key_frames, bandwidth, np.eye(heads.dimension))
    seen = target.frequency @ tilt.mean.swapaxes(-1, -2)
    spread = ((target.frequency @ tilt.covariance) * target.frequency).sum(-1)
    damped = alpha[:, None] * target.amplitude * np.exp(-0.5 * spread)
    return TrigonometricSeries(
        np.concatenate([*damped, -target.amplitude]),
        np.concatenate([*seen, target.frequency]),
        np.tile(target.phase, heads.count + 1),
    )


def limit_error(
    task: Task, heads: Heads, weights: ArrayLike | None = None, factor: float = 1.0
) -> float:
    """Mean square of :func:`limit_bias` over queries of the keys' law; arguments are the same."""
    bias = limit_bias(task, heads, weights, factor)
    return _moments(bias, task)[1]


def unseen(task: Task, heads: Heads, weights: ArrayLike | None = None) -> Unseen:
    """The least :func:`limit_error` over a common factor of all bandwidths.

    A constant is the limit of wide bandwidths, so the least error is the target's variance at most.
    Arguments and errors are those of :func:`limit_bias`. Factors from 1/32 to 32 are searched.
    """
    mean, square = _moments(series_of(task, NAME), task)
    variance = square - mean**2

    def error(log: float) -> float:
        return limit_error(task, heads, weights, float(np.exp(log)))

    errors = np.array(list(map(error, LOGS)))
    place = int(np.clip(errors.argmin(), 1, len(LOGS) - 2))
    nodes = LOGS[place - 1 : place + 2]
    # The vertex of the parabola through three points, and of the one about it.
    for _ in range(2):
        before, least, after = map(error, nodes)
        step = nodes[1] - nodes[0]
        bend = max(before - 2 * least + after, 1e-300)
        middle = nodes[1] + step * float(np.clip(0.5 * (before - after) / bend, -1, 1))
        nodes = middle + step / 4 * np.arange(-1, 2)
    log, least = min(zip(nodes, map(error, nodes), strict=True))
    if least >= variance:
        return Unseen(variance, variance, np.inf)
    return Unseen(float(least), variance, float(np.exp(log)))


def _moments(series: TrigonometricSeries, task: Task) -> tuple[float, float]:
    """Mean and mean square of a series over the keys' law."""
    design = task.design
    assert isinstance(design, GaussianDesign)  # for the type checker; see limit_bias
    law = Tilt(np.zeros(1), np.zeros((1, task.dimension)), np.asarray(design.covariance))
    mean, square = tilted_moments(jax.tree.map(np.asarray, series), law)
    return float(mean[0]), max(float(square[0]), 0.0)

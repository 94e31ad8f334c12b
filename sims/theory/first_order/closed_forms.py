"""Closed forms: every term of the decomposition, to first order in 1/n.

Valid if many keys are attended to. Two numbers measure this for every prediction: the
effective number of keys ``n_eff,h(x) = n/r_hh(x)``, and ``n_third = n r_hh p_h³/E[K_h³]`` from the
third moment. The relative remainder is O(1/n_eff + 1/n_third). For the gaussian kernel both are of
similar size; for softmax, whose weights are log-normal, n_third is near n_eff²/n and much smaller.
Reconstruction, from the ratio (delta-method) expansion of f̂ = N/D with N = (1/n) Σ K_i Y_i and
D = (1/n) Σ K_i; the derivation is in ``docs/theory/first_order.md``.

Designs: Gaussian, any Σ ⪰ 0. Targets: trigonometric series. Kernels: gaussian and softmax, any
frames, of queries U_h and of keys V_h, one bandwidth per head. All float64. The formulas accept
NumPy or JAX arrays: :func:`first_order_terms` is NumPy, where nothing needs
compiling, and :func:`first_order_arrays` is JAX, differentiable in every argument (n may be a float
array, for scaling laws at very large n).
"""

import operator
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
import xarray as xr
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from sims.base import terms
from sims.base.errors import Uncovered
from sims.problem import Heads, Target, Task, check_compatible
from sims.problem.design_laws import GaussianDesign
from sims.problem.kernels import GaussianKernel
from sims.theory import rounding
from sims.theory.arrays import Number, Numbers, namespace
from sims.theory.coverage import series_of
from sims.theory.first_order.tilts import Tilt, about, tilt_of, tilted_mean, tilted_moments

Chosen = Int[Numbers, "*sets m"]
"""Numbers of m heads. Types of inner functions are defined here, since each costs a small sum."""
ByPair = Float[Numbers, "P Q"]
"""Values for every pair of heads, each pair once."""
TOGETHER = 2**17
"""Numbers of float64 that the pairs of heads of a step may take: what a core's cache holds."""


class FirstOrder(NamedTuple):
    """Arrays of the first-order theory.

    Attributes:
        bias: ``E f̂_h − m(x)``.
        signal_covariance: ``Cov(Σ_i w_hi m(X_i), Σ_i w_gi m(X_i))``.
        noise_covariance: ``σ² E Σ_i w_hi w_gi``.
        n_eff: effective number of keys.
        n_third: third-moment keys; the theory is valid where both are large.
        limit: ``m*_h``, the head's value as n → ∞.
        log_mass: ``log E K_h``.
    """

    bias: Float[Numbers, "Q H"]
    signal_covariance: Float[Numbers, "Q H H"]
    noise_covariance: Float[Numbers, "Q H H"]
    n_eff: Float[Numbers, "Q H"]
    n_third: Float[Numbers, "Q H"]
    limit: Float[Numbers, "Q H"]
    log_mass: Float[Numbers, "Q H"]


@jax.jit
def first_order_arrays(
    task: Task, heads: Heads, n: Number, queries: Float[Numbers, "Q d"]
) -> FirstOrder:
    """First-order terms as arrays, traced by JAX; valid where n_eff and n_third are large.

    With ``p_h = E K_h``, ``r_hg = E[K_hK_g]/(p_h p_g)``, ``m*_h = E_h m``::

        bias               m*_h − m(x) − (r_hh/n) E_hh[m − m*_h]
        signal covariance  (r_hg/n) E_hg[(m − m*_h)(m − m*_g)]
        noise covariance   σ² r_hg/n
        n_eff              n/r_hh
        n_third            n r_hh p_h³/E[K_h³]

    Args:
        task: task with a Gaussian design.
        heads: kernel gaussian or softmax.
        n: number of keys > 0; a float is allowed.
        queries: (Q, d).

    Returns:
        The terms, the limits m*_h (Q, H) and log p_h (Q, H).

    Raises:
        InputError: the weights are not a kernel's.
    """
    return _closed_forms(task, heads, n, queries, jax.lax.map)


def _closed_forms(
    task: Task,
    heads: Heads,
    n: Number,
    queries: Float[Numbers, "Q d"],
    evaluate: Callable[..., tuple[Numbers, ...]],
) -> FirstOrder:
    """:func:`first_order_arrays` in NumPy or JAX; ``evaluate`` maps over a first axis.

    The mapped function takes a head or a pair of heads, or a stack of them.
    """
    assert isinstance(task.design, GaussianDesign)  # for the type checker; see first_order_terms
    sigma = task.design.covariance
    xp = namespace(queries)
    series = series_of(task, "first order")
    # Weights of sum 1 do not see the constant part, in which the rest would drown.
    amplitude = xp.where((series.frequency != 0).any(1), series.amplitude, 0.0)
    constant = (series.amplitude - amplitude) @ xp.cos(series.phase)
    target = eqx.tree_at(lambda t: t.amplitude, series, amplitude)
    tilted_by = tilt_of(heads.kernel)

    def tilt_by(selected: Chosen) -> Tilt:
        """The design reweighted by the product of these heads' kernels."""
        frames = heads.frames[selected]
        key_frames = heads.of_keys[selected]
        return tilted_by(sigma, frames, key_frames, heads.bandwidth[selected], queries)

    def single_terms(indices: tuple[Numbers]) -> tuple[Numbers, Numbers, Numbers]:
        (head,) = indices
        # m*_h = E_h m, log p_h, and E[K_h³]/p_h³ from the kernel's cube.
        tilt = tilt_by(head[..., None])
        cube = tilt_by(xp.stack([head] * 3, axis=-1)).log_mass
        return tilted_mean(target, tilt), tilt.log_mass, xp.exp(cube - 3 * tilt.log_mass)

    limit, log_mass, third = evaluate(single_terms, (np.arange(heads.count),))
    # Indices are constants: in JAX they took a quarter of the compile time.
    first, second = np.triu_indices(heads.count)
    place = np.zeros((heads.count, heads.count), int)
    place[first, second] = place[second, first] = np.arange(len(first))
    diagonal = np.diagonal(place)

    def pair(indices: tuple[Numbers, Numbers]) -> tuple[Numbers, Numbers, Numbers]:
        # r_hg, r_hg E_hg[(m − m*_h)(m − m*_g)] and E_hg m (docs/theory/first_order.md).
        selected = xp.stack(indices, axis=-1)
        tilt = tilt_by(selected)
        overlap = xp.exp(tilt.log_mass - log_mass[selected].sum(-2))
        mean, square = tilted_moments(target, tilt)
        product = about((1.0, mean, square), *xp.moveaxis(limit[selected], -2, 0))
        return overlap, overlap * product, mean

    # Few pairs at a time: of their (J, J) matrices few live at once, not all.
    overlap, signal, mean = evaluate(pair, (first, second))

    def symmetric(values: ByPair) -> Numbers:
        return xp.moveaxis(values[place], 2, 0)

    # The bias's last term is −E[A_h δ_h].
    self_overlap = overlap[diagonal]
    truth = xp.cos(queries @ target.frequency.T + target.phase) @ target.amplitude
    bias = limit - truth - self_overlap * (mean[diagonal] - limit) / n
    return FirstOrder(
        bias.T,
        symmetric(signal) / n,
        task.noise_sd**2 * symmetric(overlap) / n,
        (n / self_overlap).T,
        (n * self_overlap / third).T,
        limit.T + constant,
        log_mass.T,
    )


def _in_groups(
    function: Callable[..., tuple[np.ndarray, ...]],
    items: tuple[np.ndarray, ...],
    *,
    size: int,
) -> tuple[np.ndarray, ...]:
    """``jax.lax.map`` in NumPy, of a function that takes a stack of ``size`` items at a time."""
    results = []
    for start in range(0, len(items[0]), size):
        group = slice(start, start + size)
        results.append(function(tuple(map(operator.itemgetter(group), items))))
    return tuple(map(np.concatenate, zip(*results, strict=True)))


def first_order_terms(
    task: Task, heads: Heads, n: int, queries: ArrayLike, *, weights: ArrayLike | None = None
) -> xr.Dataset:
    """First-order terms as a labelled result, valid where n_eff and n_third are large.

    Args:
        task: task with a Gaussian design.
        heads: kernel gaussian or softmax.
        n: number of keys, ≥ 1.
        queries: (Q, d).
        weights: ensemble weights α (H,), sum 1; None is uniform.

    Returns:
        The dataset of :mod:`sims.base.terms` without batches, with ``n_eff`` and
        ``n_third`` (query, head), and the attributes ``rounding`` (a bound relative to the heads'
        bias² + signal variance or noise variance) and ``faults`` if that is too large.

    Raises:
        InputError: parts do not fit together, the weights are not a kernel's, no closed form exists
            for the design or kernel, or float64 cannot hold the problem.
    """
    if not isinstance(task.design, GaussianDesign):
        allowed = "GaussianDesign (first order); any by order exact (custom: with log_density)"
        raise Uncovered("design", type(task.design).__name__, allowed)
    tilt_of(heads.kernel)
    series_of(task, "first order")
    points = check_compatible(task, heads, n, queries)
    sigma = np.asarray(task.design.covariance)
    task, heads, points = jax.tree.map(np.asarray, (task, heads, points))

    # What lives of one pair of heads: covariances of keys and of waves, and angles.
    count = task.target.terms + heads.dimension
    evaluate = partial(_in_groups, size=max(1, TOGETHER // (count * (count + len(points)))))
    gram = 0.0
    if isinstance(heads.kernel, GaussianKernel):
        keys = np.asarray(heads.of_keys)
        seen = keys.swapaxes(1, 2) @ sigma @ keys
        gram = rounding.gram_rounding(seen, np.asarray(heads.bandwidth))
    with np.errstate(all="ignore"):  # ∞ where n_eff is 0 to float64, or input out of range
        arrays = _closed_forms(task, heads, float(n), points, evaluate)
    facts = {"n_eff": arrays.n_eff, "n_third": arrays.n_third}
    target = rounding.without_constant(task).target
    covariances = arrays.signal_covariance, arrays.noise_covariance
    return labelled(target, points, n, arrays.bias, *covariances, facts, weights, gram)


def labelled(
    target: Target,
    points: Float[np.ndarray, "Q d"],
    n: int,
    bias: Float[Numbers, "Q H"],
    signal: Float[Numbers, "Q H H"],
    noise: Float[Numbers, "Q H H"],
    facts: Mapping[str, Float[Numbers, "Q H"]],
    weights: ArrayLike | None,
    gram: float = 0.0,
) -> xr.Dataset:
    """First-order terms of a target without a constant part, with bounds on their rounding.

    ``facts`` of heads, ``n_eff`` among them, become variables; ``gram``: as of
    :func:`sims.theory.rounding.rounding_attributes`.
    """
    with np.errstate(all="ignore"):
        by_keys = np.asarray(bias) ** 2 + np.diagonal(np.asarray(signal), axis1=1, axis2=2)
        by_noise = np.diagonal(np.asarray(noise), axis1=1, axis2=2)
        attrs = rounding.rounding_attributes(
            "first", target, points, by_keys, by_noise, 1 / np.asarray(facts["n_eff"]), gram
        )
    product = bias[:, :, None] * bias[:, None, :]
    variables: dict[str, Any] = terms.label_terms(bias, product, signal, noise, weights=weights)
    variables |= {name: ((terms.QUERY, terms.HEAD), values) for name, values in facts.items()}
    return xr.Dataset(variables, attrs={"order": "first", "n": n} | attrs)

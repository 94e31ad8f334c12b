"""First-order theory: every term in closed form, to first order in 1/n.

Valid where many keys are attended to. Two numbers beside every prediction say how many: the
effective number of keys ``n_eff,h(x) = n/r_hh(x)``, and ``n_third = n r_hh p_h³/E[K_h³]`` from the
third moment. The relative remainder is O(1/n_eff + 1/n_third). For the gaussian kernel both are of
one size; for softmax, whose weights are log-normal, n_third is near n_eff²/n and much the smaller.
Reconstruction, from the ratio (delta-method) expansion of f̂ = N/D with N = (1/n) Σ K_i Y_i and
D = (1/n) Σ K_i; the derivation stands in ``docs/theory.md``, "First order in 1/n".

Designs: Gaussian, any Σ ⪰ 0. Targets: trigonometric series. Kernels: gaussian and softmax, any
frames, one bandwidth a head. All float64. The formulas run on NumPy's arrays or JAX's, whichever
they get: :func:`first_order_terms` is NumPy, where nothing needs compiling, and
:func:`first_order_arrays` is JAX, differentiable in every argument but n's type (n may be a float
array, so scaling laws can be taken far out).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float

from sims import terms
from sims.errors import InputError
from sims.problem import Heads, Task, TrigonometricSeries, check_compatible
from sims.problem.design_laws import GaussianDesign
from sims.problem.kernels import GAUSSIAN, SOFTMAX


class Tilt(NamedTuple):
    """The design reweighted by a product of kernels, at Q queries: a Gaussian again.

    Attributes:
        log_mass: log E K_S, shape (Q,).
        mean: μ_S, shape (Q, d).
        covariance: C_S, shape (d, d); the same for every query.
    """

    log_mass: Float[Array, " Q"]
    mean: Float[Array, "Q d"]
    covariance: Float[Array, "d d"]


def _namespace(array: Any) -> Any:
    """``numpy`` or ``jax.numpy``, by what the array is."""
    return np if isinstance(array, np.ndarray) else jnp


def _solve_lower(root: Array, right: Array) -> Array:
    return jax.scipy.linalg.solve_triangular(root, right, lower=True)


def gaussian_tilt(
    sigma: Float[Array, "d d"],
    frames: Float[Array, "m d k"],
    bandwidth: Float[Array, " m"],
    queries: Float[Array, "Q d"],
) -> Tilt:
    """Tilt by ``Π_h exp(−‖U_hᵀ(x−X)‖²/2b_h²)`` over the m given heads.

    With ``S = [U_1/b_1, …, U_m/b_m]`` and ``G = I + SᵀΣS``::

        log E K = −½ log det G − ½ (Sᵀx)ᵀ G⁻¹ (Sᵀx)
        X | K   ~ N(ΣS G⁻¹ Sᵀx, Σ − ΣS G⁻¹ SᵀΣ)

    (completing the square; G ≻ 0 for any frames, also when heads coincide).
    """
    xp = _namespace(queries)
    stacked = xp.moveaxis(frames / bandwidth[:, None, None], 0, 1).reshape(len(sigma), -1)
    spread = sigma @ stacked
    gram = xp.eye(stacked.shape[1]) + stacked.T @ spread
    root = xp.linalg.cholesky(gram)
    # NumPy has no triangular solve; the general one costs little here.
    solve: Callable[..., Any] = np.linalg.solve if xp is np else _solve_lower
    whitened, gain = solve(root, stacked.T @ queries.T), solve(root, spread.T)
    log_det = xp.sum(xp.log(xp.diagonal(root)))
    return Tilt(
        -log_det - 0.5 * xp.sum(whitened**2, axis=0),
        whitened.T @ gain,
        sigma - gain.T @ gain,
    )


def softmax_tilt(
    sigma: Float[Array, "d d"],
    frames: Float[Array, "m d k"],
    bandwidth: Float[Array, " m"],
    queries: Float[Array, "Q d"],
) -> Tilt:
    """Tilt by ``Π_h exp(⟨U_hᵀx, U_hᵀX⟩/s_h)``, s_h = b_h², over the m given heads.

    With ``v = Σ_h U_hU_hᵀx/s_h``: ``log E K = ½ vᵀΣv`` and ``X | K ~ N(Σv, Σ)`` (exponential
    tilting of a Gaussian).
    """
    scaled = frames / bandwidth[:, None, None]
    direction = ((queries @ scaled) @ scaled.swapaxes(1, 2)).sum(0)
    mean = direction @ sigma
    return Tilt(0.5 * (direction * mean).sum(1), mean, sigma)


TILTS = {GAUSSIAN: gaussian_tilt, SOFTMAX: softmax_tilt}
"""Kernels with closed forms, each with its ``(Σ, frames, bandwidth, queries) -> Tilt``."""


def tilted_mean(target: TrigonometricSeries, tilt: Tilt) -> Float[Array, " Q"]:
    """``E_S m = Σ_j a_j exp(−½ ω_jᵀC_Sω_j) cos(ω_j·μ_S + c_j)``, shape (Q,)."""
    xp = _namespace(tilt.mean)
    spread = ((target.frequency @ tilt.covariance) * target.frequency).sum(1)
    angle = tilt.mean @ target.frequency.T + target.phase
    return xp.cos(angle) @ (target.amplitude * xp.exp(-0.5 * spread))


def tilted_moments(
    target: TrigonometricSeries, tilt: Tilt
) -> tuple[Float[Array, " Q"], Float[Array, " Q"]]:
    """``E_S m`` and ``E_S m²``, shape (Q,) each.

    Products of cosines become cosines of sums and differences; with ``s_j = ω_j·μ + c_j`` and
    ``C_jk = ω_jᵀCω_k``::

        E m² = Σ_jk a_j a_k ½ [(E⁻ + E⁺) cos s_j cos s_k + (E⁻ − E⁺) sin s_j sin s_k],
        E^± = exp(−½ (C_jj + C_kk ± 2 C_jk)) ≤ 1.

    The (J, J) matrices are the same for all queries, which therefore cost one product each.
    """
    xp = _namespace(tilt.mean)
    covariance = target.frequency @ tilt.covariance @ target.frequency.T
    own = xp.diagonal(covariance)
    both = -0.5 * (own[:, None] + own[None, :])
    # The exponents are −½ Var(ω_j·X ± ω_k·X); the bound removes rounding above zero.
    difference = xp.exp(xp.minimum(both + covariance, 0.0))
    total = xp.exp(xp.minimum(both - covariance, 0.0))
    angle = tilt.mean @ target.frequency.T + target.phase
    cosine, sine = xp.cos(angle) * target.amplitude, xp.sin(angle) * target.amplitude
    square = 0.5 * (
        xp.sum(cosine @ (difference + total) * cosine, axis=1)
        + xp.sum(sine @ (difference - total) * sine, axis=1)
    )
    return cosine @ xp.exp(-0.5 * own), square


def tilted_product(
    target: TrigonometricSeries, tilt: Tilt, first: Float[Array, " Q"], second: Float[Array, " Q"]
) -> Float[Array, " Q"]:
    """``E_S[(m − first)(m − second)]``, shape (Q,)."""
    mean, square = tilted_moments(target, tilt)
    return square - (first + second) * mean + first * second


class FirstOrder(NamedTuple):
    """Arrays of the first-order theory; shapes (Q, H) and (Q, H, H)."""

    bias: Float[Array, "Q H"]
    signal_covariance: Float[Array, "Q H H"]
    noise_covariance: Float[Array, "Q H H"]
    n_eff: Float[Array, "Q H"]
    n_third: Float[Array, "Q H"]
    limit: Float[Array, "Q H"]
    log_mass: Float[Array, "Q H"]


@jax.jit
def first_order_arrays(task: Task, heads: Heads, n: Any, queries: Any) -> FirstOrder:
    """The closed forms.

    With ``p_h = E K_h``, ``r_hg = E[K_hK_g]/(p_h p_g)``, ``m*_h = E_h m``::

        bias               m*_h − m(x) − (r_hh/n) E_hh[m − m*_h]
        signal covariance  (r_hg/n) E_hg[(m − m*_h)(m − m*_g)]
        noise covariance   σ² r_hg/n
        n_eff              n/r_hh
        n_third            n r_hh p_h³/E[K_h³]

    Args:
        task: with a Gaussian design.
        heads: kernel gaussian or softmax.
        n: number of keys > 0; a float is allowed.
        queries: (Q, d).

    Returns:
        The terms, the limits m*_h (Q, H) and log p_h (Q, H).
    """
    return _closed_forms(task, heads, n, queries, jax.lax.map)


def _closed_forms(
    task: Task, heads: Heads, n: Any, queries: Any, each: Callable[[Any, Any], Any]
) -> FirstOrder:
    """:func:`first_order_arrays`, on arrays of NumPy or of JAX; ``each`` maps over a first axis."""
    tilt_of = TILTS[heads.kernel]
    assert isinstance(task.design, GaussianDesign)  # for the type checker; see first_order_terms
    sigma, target, xp = task.design.covariance, task.target, _namespace(queries)

    def one(head: Array) -> tuple[Array, Array, Array]:
        tilt = tilt_of(sigma, heads.frames[head][None], heads.bandwidth[head][None], queries)
        thrice = xp.stack([head] * 3)
        cube = tilt_of(sigma, heads.frames[thrice], heads.bandwidth[thrice], queries).log_mass
        return tilted_mean(target, tilt), tilt.log_mass, xp.exp(cube - 3 * tilt.log_mass)

    limit, log_mass, third = each(one, np.arange(heads.count))
    # Indices are constants: in JAX they took a quarter of the compile time.
    first, second = np.triu_indices(heads.count)
    place = np.zeros((heads.count, heads.count), int)
    place[first, second] = place[second, first] = np.arange(len(first))
    diagonal = np.diagonal(place)

    def pair(indices: tuple[Array, Array]) -> tuple[Array, Array, Array]:
        chosen = xp.stack(indices)
        tilt = tilt_of(sigma, heads.frames[chosen], heads.bandwidth[chosen], queries)
        overlap = xp.exp(tilt.log_mass - log_mass[chosen].sum(0))
        mean, square = tilted_moments(target, tilt)
        product = square - limit[chosen].sum(0) * mean + limit[chosen].prod(0)
        return overlap, overlap * product, mean

    # One pair at a time: the (J, J) matrices of one pair live at once, not of all.
    overlap, signal, mean = each(pair, (first, second))

    def symmetric(values: Float[Array, "P Q"]) -> Float[Array, "Q H H"]:
        return xp.moveaxis(values[place], 2, 0)

    own = overlap[diagonal]
    truth = tilted_mean(target, Tilt(limit[0], queries, xp.zeros_like(sigma)))
    bias = limit - truth - own * (mean[diagonal] - limit) / n
    return FirstOrder(
        bias.T,
        symmetric(signal) / n,
        task.noise_sd**2 * symmetric(overlap) / n,
        (n / own).T,
        (n * own / third).T,
        limit.T,
        log_mass.T,
    )


def _one_by_one(function: Callable[[Any], Any], items: Any) -> Any:
    """``jax.lax.map`` in NumPy, for a function that returns a tuple."""
    rows = zip(*items, strict=True) if isinstance(items, tuple) else items
    return tuple(np.stack(parts) for parts in zip(*map(function, rows), strict=True))


def first_order_terms(
    task: Task, heads: Heads, n: int, queries: Any, *, weights: Any = None
) -> xr.Dataset:
    """The first-order prediction as a labelled result.

    Args:
        task: with a Gaussian design.
        heads: kernel gaussian or softmax.
        n: number of keys, ≥ 1.
        queries: (Q, d).
        weights: ensemble weights α (H,), sum 1; None is uniform.

    Returns:
        The dataset of :mod:`sims.terms` without batches, with ``n_eff`` and
        ``n_third`` (query, head).

    Raises:
        InputError: parts do not fit together, or no closed form exists for the design or kernel.
    """
    if not isinstance(task.design, GaussianDesign):
        allowed = "GaussianDesign (first order); any by order exact (custom: with log_density)"
        raise InputError("design", type(task.design).__name__, allowed)
    if heads.kernel not in TILTS:
        allowed = f"{', '.join(k.name for k in TILTS)} (first order); any by order exact"
        raise InputError("heads.kernel", heads.kernel.log_value, allowed)
    queries = check_compatible(task, heads, n, queries)
    task, heads, queries = jax.tree.map(np.asarray, (task, heads, queries))
    with np.errstate(over="ignore", invalid="ignore"):  # ∞ where n_eff is 0 to double precision
        arrays = _closed_forms(task, heads, float(n), queries, _one_by_one)
    bias = arrays.bias
    data = terms.assemble(
        bias,
        bias[:, :, None] * bias[:, None, :],
        arrays.signal_covariance,
        arrays.noise_covariance,
        weights=weights,
        attrs={"road": "theory", "order": "first", "n": n},
    )
    where = (terms.QUERY, terms.HEAD)
    return data.assign(n_eff=(where, arrays.n_eff), n_third=(where, arrays.n_third))

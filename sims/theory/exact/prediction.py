"""Exact finite-n theory: every term of the decomposition at any n, with an error on each number.

There is no expansion in 1/n and no condition on the number of attended keys. Derivation:
docs/theory/exact.md.
"""

import warnings

import numpy as np
import xarray as xr
from jaxtyping import Float
from numpy.typing import ArrayLike

from sims.base import terms
from sims.base.checks import check_within
from sims.problem import Heads, Kernel, Task, check_compatible
from sims.theory import rounding
from sims.theory.coverage import LEAST_PERCENT, check_exact, without_value
from sims.theory.exact.adaptive import solve_adaptive
from sims.theory.exact.conditioning import GaussianLaw
from sims.theory.exact.gram import Moments
from sims.theory.exact.percent import half_width, solve_percent
from sims.theory.exact.refinement import solve
from sims.theory.exact.solution import Facts, Progress, Solution, no_progress

RTOL_GRIDS, RTOL_POINTS = 1e-4, 0.01
"""Default relative accuracy where grids reach, and of points."""
LOST, LEAST_SQUARES = 0.5, 0.99
"""Defect above which, and ``E Σ_i w_i²`` over 1/n below which, an integral has lost its mass."""
LEAST_RTOL, MOST_RTOL = 1e-9, 0.1
"""Range of accuracies: rounding sets the lower end, usefulness the upper."""


@np.errstate(all="ignore")  # what is not finite is refused
def exact_terms(
    task: Task,
    heads: Heads,
    n: int,
    queries: ArrayLike,
    *,
    rtol: float | None = None,
    weights: ArrayLike | None = None,
    max_level: int = 8,
    progress: Progress = no_progress,
) -> xr.Dataset:
    """Exact terms as a labelled result: no expansion in 1/n, valid at every n ≥ 1.

    Args:
        task: any target; a design whose keys are independent, a custom one with a
            ``log_density``.
        heads: any kernel that never vanishes or has a ``support``; any frames, of queries and of
            keys. Or, with a Gaussian design and d_k of 1 or 2, α-entmax of distances (ν from 1 to
            50, 30 attended keys or more).
        n: number of keys, ≥ 1.
        queries: (Q, d).
        rtol: requested accuracy of the ensemble's MSE at every query, relative to the larger of
            itself and the mean over queries. Points where kernels reach
            (:mod:`sims.theory.exact.percent`) give 2 % at any d_k and n in 0.1 to 0.6 CPU seconds
            per query of two to eight heads, and half the error at 2.7 times the cost. Below 0.005
            product quadrature (:mod:`sims.theory.exact.refinement`) serves where it reaches: a
            Gaussian design and a series, heads of softmax or of d_k ≤ 3 that are not nearly
            aligned. Its accuracy is that of the noise covariance relative to itself, of the signal
            covariance relative to √(S_hh S_gg), of the bias relative to √(β_h² + S_hh). None is
            1e-4 where quadrature reaches, else 0.01.
        weights: ensemble weights α (H,), sum 1; None is uniform.
        max_level: maximum number of refinements of a number.
        progress: function called occasionally with the numbers of finished and of all parts (heads
            and pairs of heads at queries); None reports nothing.

    Returns:
        The dataset of :mod:`sims.base.terms` without batches, ``n_eff`` (query, head), 1/E Σ w²,
        and

        - ``<name>_error`` for every term: of points half the width of a 95 % interval over
          randomisations; of quadrature the difference of the last two levels plus the defect,
          and of derived terms the sum of their parts' errors;
        - ``defect`` (query, head, head2): deviation of Σ_i w_hi Σ_j w_gj from 1, computed like
          the terms;
        - ``converged`` (query, head, head2): whether rtol was met;
        - ``empty_probability`` (query, head): P(K_h = 0)^n, with f̂ = 0 there; 0 for
          kernels that never vanish. The defect is then relative to P(not empty);
        - for adaptive radii, also the variables of first-order theory
          (:func:`.adaptive.adaptive_terms`): ``radius`` and ``attended`` as n → ∞, ``radius_sd``
          and ``expected_attended`` exact;

        and the attributes ``rounding`` (a bound on rounding of m, relative to the heads' bias² +
        signal variance) and ``faults`` if that is too large.

    Raises:
        InputError: parts do not fit together, the weight rule is not covered, too few keys are
            attended to, the kernel is so narrow that no query has a value, the design has no
            density, the kernel vanishes without a ``support``, or float64 cannot hold the problem.
    """
    if rtol is not None:
        check_within("rtol", rtol, LEAST_RTOL, MOST_RTOL)
    points = check_compatible(task, heads, n, queries)
    check_exact(task, heads)
    if not isinstance(heads.rule, Kernel) or heads.rule.support is None:
        # Weights of sum 1 do not see it. A compact kernel's, which may all be 0, do.
        task = rounding.without_constant(task)
    queries = np.asarray(points)
    truth = task.target.values(points)
    problem = task, heads, n, queries, truth
    solution = None
    samples = None
    facts = Facts()
    fine = rtol or RTOL_GRIDS
    if not isinstance(heads.rule, Kernel):
        solution, facts = solve_adaptive(*problem, fine, progress)
    elif fine < LEAST_PERCENT and (law := GaussianLaw.from_task(task)):
        solution = solve(law, *problem[1:], fine, max_level, progress)
    if solution is None:
        fine = rtol or RTOL_POINTS
        solution, samples = solve_percent(*problem, fine, max_level, weights, progress)
    check_values(solution, heads, n)
    noise = float(task.noise_sd) ** 2
    bias = solution.mean - truth[:, None]
    signal = np.diagonal(solution.signal, axis1=1, axis2=2)
    weight = np.diagonal(solution.noise, axis1=1, axis2=2)
    rounding_facts = rounding.rounding_attributes(
        "exact", task.target, queries, bias**2 + signal, noise * weight, weight
    )
    values = task.target.rounding(queries)[:, None]
    solution.mean_error = np.maximum(solution.mean_error, values)
    # The error of β_h β_g, to first order with half the product of errors.
    bound = np.abs(bias) + 0.5 * solution.mean_error
    product_error = solution.mean_error[:, :, None] * bound[:, None, :]
    product_error = product_error + np.swapaxes(product_error, 1, 2)
    data = terms.assemble(
        bias,
        bias[:, :, None] * bias[:, None, :],
        solution.signal,
        noise * solution.noise,
        weights=weights,
        attrs={
            "order": "exact",
            "n": n,
            "rtol": fine,
            **rounding_facts,
            "method": ", ".join(sorted(solution.methods)),
        },
    )
    noise_error = noise * solution.noise_error
    errors = _errors(
        solution.mean_error, product_error, solution.signal_error, noise_error, weights
    )
    if samples is not None:
        errors = percent_errors(samples, noise, weights)
    data = data.assign(errors)
    pair = (terms.QUERY, terms.HEAD, terms.HEAD2)
    single = (terms.QUERY, terms.HEAD)
    squares = np.diagonal(solution.noise, axis1=1, axis2=2)
    data = data.assign(
        n_eff=(single, 1 / squares),
        defect=(pair, solution.defect),
        converged=(pair, solution.converged),
        empty_probability=(single, solution.empty),
    ).assign({name: (single, values) for name, values in facts.items()})
    if missed := int((~solution.converged).sum()):
        warnings.warn(
            f"exact theory: {missed} of {solution.converged.size} (query, head, head2) entries did "
            f"not reach rtol = {fine:g}; see `converged` and the `_error` variables, or raise "
            "max_level",
            stacklevel=2,
        )
    return data


def check_values(solution: Solution, heads: Heads, n: int) -> None:
    """Raise InputError if a head or a pair of heads has a value that weights cannot have.

    Weights of sum 1 have ``Σ_i w_i² ≥ 1/n``.
    """
    sums = solution.mean[:, :, None] + solution.signal + solution.noise
    lost = ~np.isfinite(sums) | ~(solution.defect <= LOST)
    squares = np.diagonal(solution.noise + solution.noise_error, axis1=1, axis2=2)
    lost |= (squares < LEAST_SQUARES * (1 - solution.empty) / n)[:, :, None]
    single = np.diagonal(lost, axis1=1, axis2=2)
    if lost.any():
        query, head, *_ = map(int, np.argwhere(single if single.any() else lost)[0])
        raise without_value(n, heads.bandwidth[head], f"query {query}, head {head}")


def percent_errors(
    samples: Moments, noise: float, weights: ArrayLike | None
) -> dict[str, xr.DataArray]:
    """Errors of all terms from their values in every randomisation."""
    product = samples.mean[..., :, None] * samples.mean[..., None, :]
    values = terms.label_terms(
        samples.mean, product, samples.signal, noise * samples.noise, weights=weights
    )
    errors = {}
    for name, variable in values.items():
        errors[f"{name}_error"] = xr.DataArray(half_width(variable.values), dims=variable.dims[1:])
    return errors


def _errors(
    bias: Float[np.ndarray, "Q H"],
    product: Float[np.ndarray, "Q H H"],
    signal: Float[np.ndarray, "Q H H"],
    noise: Float[np.ndarray, "Q H H"],
    weights: ArrayLike | None,
) -> dict[str, xr.DataArray]:
    """Errors of all terms: the terms are linear in these arrays, so errors add up likewise."""
    size = None if weights is None else np.abs(np.asarray(weights, float))
    total = 1.0 if size is None else size.sum()
    errors = terms.assemble(
        bias, product, signal, noise, weights=None if size is None else size / total
    )
    named = {f"{name}_error": values for name, values in errors.data_vars.items()}
    # The two forms in α scale with (Σ|α|)², which is above 1 where weights are negative.
    for name in ("squared_bias", "ensemble_variance"):
        named[f"{name}_error"] = named[f"{name}_error"] * total**2
    named["mse_error"] = named["squared_bias_error"] + named["ensemble_variance_error"]
    return named

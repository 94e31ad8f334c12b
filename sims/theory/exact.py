"""Exact finite-n theory: every term of the decomposition at any n, with an error on each number.

No expansion in 1/n and no condition on the number of keys attended to; see
:mod:`sims.theory.exact_integrals` for the formulas and :mod:`sims.theory.exact_solve` for how the
accuracy is reached.
"""

import warnings
from typing import Any

import numpy as np
import xarray as xr

from sims import terms
from sims.errors import InputError
from sims.problem import GaussianDesign, Heads, Task, check_compatible
from sims.theory.exact_ambient import solve_ambient
from sims.theory.exact_law import GaussianLaw
from sims.theory.exact_solve import Solution, solve


def exact_terms(
    task: Task,
    heads: Heads,
    n: int,
    queries: Any,
    *,
    rtol: float | None = None,
    weights: Any = None,
    exchangeable: bool = False,
    max_level: int = 8,
) -> xr.Dataset:
    """The exact prediction as a labelled result.

    Args:
        task: with a Gaussian design (any Σ, singular ones included), whose complement to what
            heads see is integrated in closed form; or a sphere, cube, mixture, or custom design
            with a ``log_density``, by randomised quasi-Monte Carlo over R^d.
        heads: any kernel that never vanishes or has a ``support``; any frames.
        n: number of keys, ≥ 1.
        queries: (Q, d).
        rtol: accuracy asked for: of the noise covariance relative to itself, of the signal
            covariance relative to √(S_hh S_gg), of the bias relative to its root mean squared
            error √(β_h² + S_hh). None is 1e-4 for Gaussian designs and 1e-3 for others.
        weights: ensemble weights α (H,), sum 1; None is uniform.
        exchangeable: compute head 0 and the pair (0, 1) only and copy them to all heads and
            pairs. The *query averages* are then right in expectation, if the law of the queries
            and of the target is invariant under the maps that carry one pair to another: noise
            covariances of equiangular heads with x ~ N(0, κ²I) and Σ = I are such, signal and bias
            of one fixed target are **not**. Nothing is gained where heads are the same at every
            query (redundant views with queries that have ξ = 0): such copies are found and
            computed once anyway.
        max_level: refinements tried before giving up on a number.

    Returns:
        The dataset of :mod:`sims.terms` without batches, ``n_eff`` (query, head) as in the
        first-order theory, and

        - ``<name>_error`` beside every term: an estimate of its absolute error, from grid
          refinement (difference of the last two levels) or 3 standard errors of independent
          randomisations, plus the defect; derived terms carry the sum of their parts' errors;
        - ``defect`` (query, head, head2): distance from 1 of what must be 1, Σ_i w_hi Σ_j w_gj,
          computed as the terms were;
        - ``converged`` (query, head, head2): whether rtol was met;
        - ``empty_probability`` (query, head): P(K_h = 0)^n, with f̂ = 0 there; 0 for
          kernels that never vanish. The defect is then relative to P(not empty).

    Raises:
        InputError: parts do not fit together, the design has no density, or the kernel vanishes
            without a ``support``.
    """
    gaussian = isinstance(task.design, GaussianDesign)
    if rtol is None:
        rtol = 1e-4 if gaussian else 1e-3
    if not 1e-9 <= rtol <= 0.1:
        raise InputError("rtol", rtol, "1e-9 to 0.1")
    queries = np.asarray(check_compatible(task, heads, n, queries))
    if exchangeable:
        if not isinstance(task.design, GaussianDesign):
            raise InputError("exchangeable", type(task.design).__name__, "GaussianDesign")
        check_exchangeable(np.asarray(task.design.covariance), heads)
    truth = np.asarray(task.target(queries))
    solution = (
        solve(GaussianLaw(task), heads, n, queries, truth, rtol, exchangeable, max_level)
        if gaussian
        else solve_ambient(task, heads, n, queries, truth, rtol, max_level)
    )
    noise = float(task.noise_sd) ** 2
    bias = solution.mean - truth[:, None]
    bias_error = solution.mean_error
    bound = np.abs(bias) + 0.5 * bias_error
    bias_product_error = bias_error[:, :, None] * bound[:, None, :]
    bias_product_error = bias_product_error + np.swapaxes(bias_product_error, 1, 2)
    data = terms.assemble(
        bias,
        bias[:, :, None] * bias[:, None, :],
        solution.signal,
        noise * solution.noise,
        weights=weights,
        attrs={
            "road": "theory",
            "order": "exact",
            "n": n,
            "rtol": rtol,
            "exchangeable": int(exchangeable),
            "method": ", ".join(sorted(solution.methods)),
        },
    )
    data = data.assign(
        _errors(
            bias_error,
            bias_product_error,
            solution.signal_error,
            noise * solution.noise_error,
            weights,
        )
    )
    pair, single = (terms.QUERY, terms.HEAD, terms.HEAD2), (terms.QUERY, terms.HEAD)
    data = data.assign(
        n_eff=(single, solution.effective_keys),
        defect=(pair, solution.defect),
        converged=(pair, solution.converged),
        empty_probability=(single, solution.empty),
    )
    _warn(solution, rtol)
    return data


def check_exchangeable(covariance: np.ndarray, heads: Heads) -> None:
    """Raise InputError unless all heads and all pairs have the same geometry.

    Bandwidths, the spectrum of Cov Z_h and the singular values of Cov(Z_h, Z_g) must agree.
    """
    frames = np.asarray(heads.frames)
    cross = np.einsum("hdi,de,gej->hgij", frames, covariance, frames)
    spectra = np.linalg.svd(cross, compute_uv=False)
    own = spectra[np.arange(heads.count), np.arange(heads.count)]
    pairs = spectra[np.triu_indices(heads.count, 1)]
    tolerance = 1e-8 * spectra.max()
    if np.ptp(np.asarray(heads.bandwidth)) > 1e-12 * float(heads.bandwidth[0]):
        raise InputError("exchangeable", "unequal bandwidths", "heads of the same bandwidth")
    for name, values in (("head covariances", own), ("pair covariances", pairs)):
        if len(values) and np.max(np.ptp(values, axis=0)) > tolerance:
            raise InputError(
                "exchangeable", f"unequal {name}", "heads and pairs of the same geometry"
            )


def _errors(bias: Any, product: Any, signal: Any, noise: Any, weights: Any) -> dict[str, Any]:
    """Errors of all terms: the terms are linear in these arrays, so errors add up likewise."""
    size = None if weights is None else np.abs(np.asarray(weights, float))
    total = 1.0 if size is None else size.sum()
    errors = terms.assemble(
        bias, product, signal, noise, weights=None if size is None else size / total
    )
    out = {f"{name}_error": values for name, values in errors.data_vars.items()}
    # The two forms in α scale with (Σ|α|)², which is above 1 where weights are negative.
    for name in ("squared_bias", "ensemble_variance"):
        out[f"{name}_error"] = out[f"{name}_error"] * total**2
    out["mse_error"] = out["squared_bias_error"] + out["ensemble_variance_error"]
    return out


def _warn(solution: Solution, rtol: float) -> None:
    missed = int((~solution.converged).sum())
    if missed:
        unknown = int(np.isnan(solution.noise).sum())
        warnings.warn(
            f"exact theory: {missed} of {solution.converged.size} (query, head, head2) entries did "
            f"not reach rtol = {rtol:g}, {unknown} of them have no value; see `converged` and the "
            "`_error` variables, or raise max_level",
            stacklevel=3,
        )

"""Rounding of theory's numbers in float64: bounds, and refusal where they are too large."""

import equinox as eqx
import numpy as np
from jaxtyping import Float

from sims.base.errors import InputError
from sims.problem import Target, Task

EPS = float(np.finfo(float).eps)
LARGEST = 1e-2
"""Rounding, as a share of the heads' MSE, up to which a prediction is given; as a share of a term,
up to which it counts as one."""


def without_constant(task: Task) -> Task:
    """The task without the target's constant part, for weights of sum 1."""
    target = task.target.without_constant()
    return task if target is task.target else eqx.tree_at(lambda t: t.target, task, target)


def gram_rounding(
    projected: Float[np.ndarray, "H p p"], bandwidth: Float[np.ndarray, " H"]
) -> float:
    """Bound on the relative rounding of E K_hK_g: ``2ε ‖V_hᵀΣV_h‖/b_h²``, of the worst head.

    ``G = I + SᵀΣS`` of two heads, or of one twice, has that norm at most and eigenvalues down to 1:
    more of them than ε of the largest is lost, and with it the determinant.

    Raises:
        InputError: a bandwidth is so narrow that hardly a digit is left.
    """
    narrowest = np.sqrt(2 * EPS / LARGEST * np.linalg.norm(projected, 2, axis=(1, 2)))
    worst = int(np.argmin(bandwidth / np.maximum(narrowest, np.finfo(float).tiny)))
    if bandwidth[worst] < narrowest[worst]:
        allowed = f"about {narrowest[worst]:.2g} or more here, for closed forms in float64"
        raise InputError("heads.bandwidth", float(bandwidth[worst]), allowed)
    return LARGEST * float(narrowest[worst] / bandwidth[worst]) ** 2


def rounding_attributes(
    order: str,
    target: Target,
    x: Float[np.ndarray, "Q d"],
    by_keys: Float[np.ndarray, "Q H"],
    noise: Float[np.ndarray, "Q H"],
    weight: Float[np.ndarray, "Q H"],
    gram: float = 0.0,
) -> dict[str, float | str]:
    """The attributes of a prediction that say what rounding does to the heads' squared errors.

    A value's error δ moves the bias by δ, and ``E_hg[(m − m*_h)(m − m*_g)]`` is a difference of
    squares of numbers of the size of the target's summands.

    Args:
        order: order of the theory.
        target: m, without a constant part.
        x: queries.
        by_keys: β² + signal variance of every head at every query; exact theory's may be unknown.
        noise: its noise variance.
        weight: ``E Σ_i w_hi²``, by which that expectation enters.
        gram: the relative rounding of all of them, of :func:`gram_rounding`.

    Raises:
        InputError: float64 cannot hold the problem.
    """
    location = f"problem, theory of order {order} in float64"
    value = target.rounding(x)[:, None]
    finite = np.isfinite(by_keys + noise)
    moves = value * (2 * np.sqrt(np.maximum(by_keys, 0.0)) + value)
    moves = (moves + EPS * target.largest(x) ** 2 * weight)[finite].sum()
    sizes = np.array([np.abs(by_keys[finite]).sum(), noise[finite].sum()])
    with np.errstate(all="ignore"):
        term, share = gram + (moves / [sizes[0], sizes.sum()] if moves > 0 else np.zeros(2))
    if not share <= LARGEST:
        allowed = f"at most {LARGEST:g} of it: a smoother or smaller target, or a wider bandwidth"
        raise InputError(location, f"rounding by {share:.2g} of the MSE", allowed)
    if term <= LARGEST:
        return {"rounding": float(term)}
    fault = f"theory's bias and signal are lost in rounding, which is {term:.1g} of them"
    return {"rounding": float(term), "faults": fault}

"""What float64 leaves of theory's numbers: bounds on rounding, and where they end in a refusal."""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Float, PyTree

from sims.errors import InputError
from sims.problem import Heads, Target, Task

EPS = float(np.finfo(float).eps)
LARGEST = 1e-2
"""Rounding, as a share of the heads' MSE, up to which a prediction is given; as a share of a term,
up to which it counts as one."""
HEADS, QUERIES = 4, 2
"""Of how many heads (the narrowest) and queries (the farthest out) conditioning is looked at."""

Tree = TypeVar("Tree", bound=PyTree)
Parts = Callable[[Task, Heads, np.ndarray], Float[np.ndarray, "2 Q H H"]]
"""Of the second moments of the heads' errors at queries: ``β_h β_g`` + signal covariance, and noise
covariance."""


class Shares(NamedTuple):
    """What rounding is, as a share of the heads' MSE and of the part that it spoils most."""

    mse: float
    term: float

    @classmethod
    def of(cls, moves: np.ndarray, sizes: np.ndarray) -> "Shares":
        """From absolute errors (2,) of the parts of the MSE and their sizes (2,)."""
        with np.errstate(all="ignore"):
            shares = np.where(moves == 0, 0.0, moves / sizes)
            whole = moves.sum() / sizes.sum() if moves.any() else 0.0
        return cls(float(whole), float(shares.max()))


def without_constant(task: Task) -> Task:
    """The task without the target's constant part, for weights of sum 1."""
    target = task.target.without_constant()
    return task if target is task.target else eqx.tree_at(lambda t: t.target, task, target)


def of_gram(seen: Float[np.ndarray, "H p p"], bandwidth: Float[np.ndarray, " H"]) -> float:
    """Bound on the relative rounding of E K_hK_g: ``2ε ‖V_hᵀΣV_h‖/b_h²``, of the worst head.

    ``G = I + SᵀΣS`` of two heads, or of one twice, has that norm at most and eigenvalues down to 1:
    more of them than ε of the largest is lost, and with it the determinant.

    Raises:
        InputError: a bandwidth is so narrow that hardly a digit is left.
    """
    least = np.sqrt(2 * EPS / LARGEST * np.linalg.norm(seen, 2, axis=(1, 2)))
    worst = int(np.argmin(bandwidth / np.maximum(least, np.finfo(float).tiny)))
    if bandwidth[worst] < least[worst]:
        allowed = f"about {least[worst]:.2g} or more here, for closed forms in float64"
        raise InputError("heads.bandwidth", float(bandwidth[worst]), allowed)
    return LARGEST * float(least[worst] / bandwidth[worst]) ** 2


def of_conditioning(parts: Parts, task: Task, heads: Heads, x: Float[np.ndarray, "Q d"]) -> Shares:
    """How far the parts of the second moments move if all input moves by ε, beside the largest.

    Of the narrowest heads and the queries farthest out, where forms are worst conditioned; values
    that are not finite are not looked at.
    """
    narrow = np.argsort(heads.bandwidth)[:HEADS]
    heads = eqx.tree_at(
        lambda h: (h.frames, h.bandwidth), heads, (heads.frames[narrow], heads.bandwidth[narrow])
    )
    if heads.key_frames is not None:
        heads = eqx.tree_at(lambda h: h.key_frames, heads, heads.key_frames[narrow])
    x = x[np.argsort(np.abs(x).sum(axis=1))[-QUERIES:]]
    rng = np.random.default_rng(0)

    def moved(tree: Tree) -> Tree:
        return jax.tree.map(lambda v: v * (1 + EPS * rng.uniform(-1, 1, np.shape(v))), tree)

    before, after = parts(task, heads, x), parts(moved(task), moved(heads), moved(x))
    moves = np.where(np.isfinite(before) & np.isfinite(after), np.abs(after - before), 0.0)
    sizes = np.where(np.isfinite(before), np.abs(before), 0.0)
    return Shares.of(moves.max(axis=(1, 2, 3)), sizes.max(axis=(1, 2, 3)))


def of_target(
    target: Target,
    x: Float[np.ndarray, "Q d"],
    by_keys: Float[np.ndarray, "Q H"],
    noise: Float[np.ndarray, "Q H"],
    weight: Float[np.ndarray, "Q H"],
) -> Shares:
    """What the rounding of m does to the heads' mean squared errors.

    A value's error δ moves the bias by δ, and ``E_hg[(m − m*_h)(m − m*_g)]`` is a difference of
    squares of numbers of the size of the target's summands.

    Args:
        target: m, without a constant part.
        x: queries.
        by_keys: β² + signal variance of every head at every query.
        noise: its noise variance.
        weight: ``E Σ_i w_hi²``, by which that expectation enters.
    """
    value = target.rounding(x)[:, None]
    size = EPS * target.largest(x) ** 2
    known = np.isfinite(by_keys + noise)
    moves = (value * (2 * np.sqrt(np.maximum(by_keys, 0.0)) + value) + size * weight)[known]
    return Shares.of(
        np.array([moves.sum(), 0.0]), np.array([by_keys[known].sum(), noise[known].sum()])
    )


def said(order: str, *found: Shares) -> dict[str, float | list[str]]:
    """The attributes of a prediction that say how far it is rounded.

    Raises:
        InputError: float64 cannot hold the problem.
    """
    whole, term = (sum(share) for share in zip(*found, strict=True))
    where = f"problem, theory of order {order} in float64"
    if np.isnan(whole):
        raise InputError(where, "values out of range", "a target nearer 1, or a wider bandwidth")
    if whole > LARGEST:
        allowed = f"at most {LARGEST:g} of it: slower or smaller waves, or a wider bandwidth"
        raise InputError(where, f"rounding by {whole:.2g} of the MSE", allowed)
    if term <= LARGEST:
        return {"rounding": term}
    fault = f"theory's bias and signal are lost in rounding, which is {term:.1g} of them"
    return {"rounding": term, "faults": [fault]}

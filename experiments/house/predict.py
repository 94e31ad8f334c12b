"""The sample by first-order theory: the given target, and the mean over targets of its family."""

import warnings
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import equinox as eqx
import jax
import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from sims.theory import FEW_KEYS, noise_correlation_law
from sims.theory import predict as theory
from sims.theory.first_order.closed_forms import first_order_arrays

from .problems import Problem, stacked
from .sets import HAAR, INDICES

TERMS = {"bias": "bias_product", "signal": "signal_covariance", "noise": "noise_covariance"}
MOST = 8
"""Heads that matrices are filled up to with NaN."""
FEWEST_KEYS, EXACT = 64, 8
"""Keys of the problems that exact theory predicts, and the most that H·d_k and d_k² may be."""
ACCURATE, LEVELS = 1e-3, 4
"""Bound on exact theory's error, as a share of the error, up to which it counts; and how often it
refines a number at most, for one problem would take longer than all others together."""


def predicted(problem: Problem, targets: int) -> xr.Dataset:
    """The matrices of a problem by set, averaged over queries, and its parameters.

    ``bias``, ``signal`` and ``noise`` (set, head, head2) are of the given target, ``mean_bias`` and
    ``mean_signal`` means over so many targets of its family; ``n_eff`` and ``n_third`` (set) the
    least of a head at a query.
    """
    task, heads, n, queries = stacked(problem)
    extra = task.dimension - problem.task.dimension
    # The other targets are one draw: waves are independent, and their amplitudes equal.
    others, parameters = targets - 1, problem.parameters
    wide = parameters | {"features": others * parameters["features"]}
    waves = replace(problem, parameters=wide).target(1).padded(extra)

    def joined(first: jax.Array, rest: jax.Array) -> np.ndarray:
        return np.concatenate([first[None], np.reshape(rest, (others, *first.shape))])

    family = jax.tree.map(joined, task.target, waves)
    amplitude = np.broadcast_to(family.amplitude[:1], family.amplitude.shape)
    family = eqx.tree_at(lambda target: target.amplitude, family, amplitude)
    matrices = _of_sets(task, heads, n, queries, family)
    return labelled(problem, matrices)


def of_given_target(problem: Problem) -> xr.Dataset:
    """The same of the given target alone, without angles or exact theory: what a search asks."""
    every = [theory(problem.task, heads, problem.n, problem.queries) for heads in problem.sets]
    matrices = {
        k: np.stack([terms[f"integrated_{v}"] for terms in every]) for k, v in TERMS.items()
    }
    matrices |= {k: np.array([terms[k].min() for terms in every]) for k in ("n_eff", "n_third")}
    matrices |= {"mean_bias": matrices["bias"], "mean_signal": matrices["signal"]}
    return labelled(problem, matrices).assign(by_angles=np.nan, exact=np.nan)


def labelled(problem: Problem, terms: Mapping[str, ArrayLike]) -> xr.Dataset:
    """Matrices (set, head, head2) and numbers of keys (set) by name, and the parameters."""
    count = problem.parameters["heads"]
    rest = [(0, 0)] + [(0, MOST - count)] * 2
    matrices = {
        name: (
            ("set", "head", "head2"),
            np.pad(np.asarray(terms[name]), rest, constant_values=np.nan),
        )
        for name in ("bias", "signal", "noise", "mean_bias", "mean_signal")
    }
    keys = {name: ("set", np.asarray(terms[name])) for name in ("n_eff", "n_third")}
    in_range = bool(min(np.min(terms["n_eff"]), np.min(terms["n_third"])) >= FEW_KEYS)
    values = list(problem.parameters["index"].values())
    index = {"index": (("summary", "set"), values), "summary": list(INDICES)}
    drawn = {k: v for k, v in problem.parameters.items() if k != "index"}
    return xr.Dataset({**matrices, **keys, **index, **drawn, "in_range": in_range})


def by_angles(problem: Problem) -> float:
    """Mean noise correlation of the first Haar set's pairs by the angle law.

    The law is that of isotropic keys and one map for queries and keys; elsewhere it is what
    principal angles alone say. NaN where its average over queries is infinite.
    """
    frames = np.asarray(problem.sets[HAAR].frames)
    first, second = np.triu_indices(len(frames), 1)
    cosines = np.linalg.svd(
        np.einsum("pdi,pdj->pij", frames[first], frames[second]), compute_uv=False
    )
    drawn = problem.parameters
    law = noise_correlation_law(
        np.minimum(cosines, 1.0), drawn["bandwidth"], drawn["reach"], drawn["kernel"]
    )
    correlation = float(np.mean(law))
    return correlation if np.isfinite(correlation) else np.nan


def exact(problem: Problem) -> float:
    """The error of the first Haar set at 64 keys by exact theory; NaN elsewhere."""
    heads = problem.sets[HAAR]
    size = heads.width * max(heads.count, heads.width)
    if problem.n != FEWEST_KEYS or size > EXACT:
        return np.nan
    with warnings.catch_warnings():  # of accuracy that was missed: the bound says the same
        warnings.filterwarnings("ignore", "exact theory: ", UserWarning)
        terms = theory(
            problem.task, heads, problem.n, problem.queries, order="exact", max_level=LEVELS
        )
    mse, bound = float(terms["mse"]), float(terms["mse_error"])
    return mse if bound <= ACCURATE * mse else np.nan


@jax.jit
def _of_sets(task, heads, n, queries, targets) -> dict[str, jax.Array]:  # type: ignore[no-untyped-def]
    def of_target(task, heads, target):  # type: ignore[no-untyped-def]
        return first_order_arrays(eqx.tree_at(lambda t: t.target, task, target), heads, n, queries)

    def of_set(heads):  # type: ignore[no-untyped-def]
        terms = jax.vmap(partial(of_target, task, heads))(targets)
        product = terms.bias[..., :, None] * terms.bias[..., None, :]
        bias, signal = product.mean(1), terms.signal_covariance.mean(1)
        return {
            "bias": bias[0],
            "signal": signal[0],
            "noise": terms.noise_covariance[0].mean(0),
            "mean_bias": bias.mean(0),
            "mean_signal": signal.mean(0),
            "n_eff": terms.n_eff[0].min(),
            "n_third": terms.n_third[0].min(),
        }

    return jax.lax.map(of_set, heads)

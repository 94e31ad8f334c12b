"""Stacks with hidden scores beside plain ones on the same draws, and heads of a second layer.

Of two arms the first is plain attention, the second has memory.
"""

from collections.abc import Mapping

import numpy as np

from sims.attention import hidden
from sims.attention.attention import softmax
from sims.montecarlo import Draw, HostBatches

from .problems import Problem

LAYERS = 24
STACK = ("log_residual", "log_odds", "keys")
LEAST = -1e12
"""log ρ where tokens are equal."""
SETS = 4
"""Sets of keys for every replicate of a stack."""


def stack_sampler(problem: Problem) -> HostBatches:
    """Both arms of a stack and of a head, on the same draws."""
    dims = {**dict.fromkeys(STACK, ("layer", "arm")), "mse": ("arm",)}
    return HostBatches(batch, constants=problem, dims=dims)


def batch(draw: Draw, replicates: int, problem: Problem) -> Mapping[str, np.ndarray]:
    """Residuals without skip and norm; log-odds and keys with both; errors of heads."""
    rng = draw.rng()
    residual = stack(rng, replicates, problem, normed=False)["log_residual"]
    normed_stack = stack(rng, replicates, problem, normed=True)
    return {**normed_stack, "log_residual": residual, "mse": heads(rng, SETS * replicates, problem)}


def layer_weights(
    rng: np.random.Generator, draws: int, problem: Problem
) -> tuple[np.ndarray, np.ndarray]:
    """M and W of one layer, (R, 1, d, d).

    Off the diagonal scores of tokens of norm √d have standard deviation β, whether M is Gaussian or
    the positive semidefinite GGᵀ; W has entries N(0, v²/d).
    """
    fields, d = problem.drawn, problem.drawn["d"]
    form, value = rng.normal(size=(2, draws, 1, d, d))
    if fields["matrix"] == "semidefinite":
        form = form @ form.swapaxes(-1, -2) / np.sqrt(2 * d)
    return fields["score_scale"] / d * form, fields["value_scale"] / np.sqrt(d) * value


def stack(
    rng: np.random.Generator, draws: int, problem: Problem, normed: bool
) -> dict[str, np.ndarray]:
    """log ρ and its log-odds after every layer, and keys attended to in it over n, (layer, arm).

    Means over draws of tokens and weights, which the arms share.

    Args:
        rng: for the draws.
        draws: how many.
        problem: of the law.
        normed: whether layers have the skip weight, and an RMS norm after them.
    """
    fields, memory = problem.drawn, np.array([0.0, problem.drawn["memory"]])
    shape = draws, len(memory), fields["n"], fields["d"]
    stream = hidden.split(np.broadcast_to(rng.normal(size=(draws, 1, *shape[2:])), shape))
    skip, measures = fields["skip"] if normed else 0.0, []
    for layer in range(LAYERS):
        if layer == 0 or fields["weights"] == "independent":
            form, value = layer_weights(rng, draws, problem)
        share = 1 - memory if layer else hidden.first_share(memory, fields["start"])
        stream = hidden.split_layer(stream, form, value, memory, skip, share)
        attention = softmax(stream.common[..., None, :] + stream.rows)
        keys = 1 / (fields["n"] * (attention**2).sum(-1).mean(-1))
        stream = hidden.split_rms_norm(stream) if normed else stream
        residual = np.maximum(stream.log_residual, LEAST)
        odds = np.minimum(stream.log_odds, -2 * LEAST)
        measures.append([part.mean(0) for part in (residual, odds, keys)])
    return dict(zip(STACK, np.moveaxis(np.array(measures), 1, 0), strict=True))


def heads(rng: np.random.Generator, sets: int, problem: Problem) -> np.ndarray:
    """Mean squared errors of the second layer's head, (arm,), over sets of keys and queries.

    Tokens do not move: both layers see the same keys N(0, I_2), each through a view of its own.
    """
    fields, (amplitude, frequency, phase) = problem.drawn, problem.waves

    def target(points: np.ndarray) -> np.ndarray:
        return np.asarray(np.cos(points @ frequency.T + phase) @ amplitude)

    keys = rng.normal(size=(sets, 1, fields["keys"], 2))
    labels = target(keys) + fields["noise_sd"] * rng.normal(size=keys.shape[:-1])
    scores = []
    for view in problem.views:
        query, key = (problem.queries @ view)[:, None], keys @ view
        gaps = query * key if fields["kernel"] == "softmax" else -0.5 * (query - key) ** 2
        scores.append(gaps / problem.bandwidth**2)
    errors = []
    for memory in (0.0, fields["memory"]):
        weights = softmax(hidden.accumulate(np.stack(scores), memory, fields["start"])[-1])
        error = (weights * labels).sum(-1) - target(problem.queries)
        errors.append(np.mean(error**2))
    return np.array(errors)

"""Stacks with hidden scores next to plain ones on the same draws, and heads of a second layer.

Of two arms the first is plain attention, the second has memory.
"""

import numpy as np

from sims.attention import hidden
from sims.attention.attention import softmax
from sims.montecarlo import Draw, HostBatches

from .problems import DRAWN, FACTORS, Problem

ARMS = ("log_residual", "cosine", "keys", "head_keys")
"""What a batch has of both arms."""
LEAST_RESIDUAL = -1e12
"""log ρ where tokens are equal."""
SETS = 4
"""Sets of keys for every replicate of a stack."""


def sampler(problem: Problem) -> HostBatches:
    """Both arms of a stack and of a head, on the same draws."""
    dims = {**dict.fromkeys(ARMS, ("arm",)), "mse": ("arm", "factor")}
    return HostBatches(batch, constants=problem, dims=dims)


def batch(draw: Draw, replicates: int, problem: Problem) -> dict[str, np.ndarray]:
    """Residuals without skip and norm; cosines and keys with both; errors and keys of heads."""
    rng = draw.rng()
    alone, _ = stack(rng, replicates, problem, problem["depth"], normed=False)
    log_residual, keys = stack(rng, replicates, problem, problem["deep"], normed=True)
    # Exact of tokens of equal size, which the norm leaves.
    cosine = 1 - problem["n"] / (problem["n"] - 1) * np.exp(2 * log_residual)
    mse, head_keys = heads(rng, SETS * replicates, problem)
    return {
        "log_residual": alone.mean(0),
        "cosine": cosine.mean(0),
        "keys": keys[problem["depth"] - 1],
        "first_keys": keys[0, 0],
        "mse": mse,
        "head_keys": head_keys,
    }


def draw_weights(
    rng: np.random.Generator, draws: int, problem: Problem
) -> tuple[np.ndarray, np.ndarray]:
    """M and W of one layer, (R, 1, 1, d, d).

    Off the diagonal scores of tokens of norm √d have standard deviation β, whether M is Gaussian or
    the positive semidefinite GGᵀ; W has entries N(0, v²/d).
    """
    d = problem["d"]
    form, value = rng.normal(size=(2, draws, 1, 1, d, d))
    if problem["matrix"] == "semidefinite":
        form = form @ form.swapaxes(-1, -2) / np.sqrt(2 * d)
    return problem["score_scale"] / d * form, problem["value_scale"] / np.sqrt(d) * value


def stack(
    rng: np.random.Generator, draws: int, problem: Problem, layers: int, normed: bool
) -> tuple[np.ndarray, np.ndarray]:
    """log ρ after the last layer, (draw, arm), and the share of keys attended to, (layer, arm).

    That share is the inverse of Σw², the mean over rows and then over draws, over n. Arms share the
    draws of tokens and weights. With skip and norm half as many are drawn: every stack is followed
    by the one with values W of the opposite sign, which takes much of the spread out of the mean.
    Without, both would be the same.

    Args:
        rng: Generator of the draws.
        draws: Number of stacks.
        problem: One problem of the law.
        layers: Number of layers.
        normed: Whether layers have the skip weight, and an RMS norm after them.
    """
    memory = np.array([0.0, problem["memory"]])
    signs = np.array([1.0, -1.0])[: 1 + normed, None, None, None]
    count = draws // len(signs)
    tokens = rng.normal(size=(count, 1, 1, problem["n"], problem["d"]))
    stream = hidden.split(np.tile(tokens, (1, len(signs), 2, 1, 1)))
    skip = normed * problem["skip"]
    keys = []
    for layer in range(layers):
        if layer == 0 or problem["weights"] == "independent":
            form, value = draw_weights(rng, count, problem)
            value = signs * value
        share = 1 - memory if layer else hidden.first_share(memory, problem["start"])
        stream = hidden.split_layer(stream, form, value, memory, skip, share)
        attention = softmax(stream.common[..., None, :] + stream.rows)
        keys.append(effective_share(attention).mean((0, 1)))
        if normed:
            stream = hidden.split_rms_norm(stream)
    log_residual = stream.log_residual.reshape(-1, 2)
    return np.maximum(log_residual, LEAST_RESIDUAL), np.array(keys)


def effective_share(attention: np.ndarray) -> np.ndarray:
    """n_eff/n of attention (…, rows, n): the inverse of the mean Σw² over rows, over n."""
    return 1 / (attention.shape[-1] * (attention**2).sum(-1).mean(-1))


def heads(rng: np.random.Generator, sets: int, problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Mean squared errors of the second layer's head over sets of keys, (arm, factor), and n_eff/n.

    The share of keys is that at the drawn bandwidth, (arm,).
    Tokens do not move: both layers see the same keys N(0, I_2), each through its view.
    """
    target = problem.target.values
    keys = rng.normal(size=(sets, 1, problem["keys"], 2))
    labels = target(keys) + problem["noise_sd"] * rng.normal(size=keys.shape[:-1])
    scores = []
    for view in problem.views:
        query = (problem.queries @ view)[:, None]
        key = keys @ view
        score = query * key if problem["kernel"] == "softmax" else -0.5 * (query - key) ** 2
        scores.append(score / problem.bandwidth**2)
    arms = []
    for memory in (0.0, problem["memory"]):
        last = hidden.accumulate(np.stack(scores), memory, problem["start"])[-1]
        for factor in FACTORS:
            weights = softmax(last / factor**2)
            gap = (weights * labels).sum(-1) - target(problem.queries)
            arms.append((np.mean(gap**2), effective_share(weights).mean()))
    mse, shares = np.transpose(arms).reshape(2, 2, len(FACTORS))
    return mse, shares[:, DRAWN]

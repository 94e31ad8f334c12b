"""Stacks with hidden scores next to plain ones on the same draws.

Of two arms the first is plain attention, the second has memory.
"""

import numpy as np

from sims.attention import hidden
from sims.attention.attention import softmax
from sims.montecarlo import Draw, HostBatches
from sims.study.problem import Drawn

ARMS = ("log_residual", "cosine", "keys")
"""What a batch has of both arms."""
LEAST_RESIDUAL = -1e12
"""log ρ where tokens are equal."""


def sampler(problem: Drawn) -> HostBatches:
    """Both arms of a stack, on the same draws."""
    return HostBatches(batch, constants=problem, dims=dict.fromkeys(ARMS, ("arm",)))


def batch(draw: Draw, replicates: int, problem: Drawn) -> dict[str, np.ndarray]:
    """Residuals without skip and norm; cosines and keys with both."""
    rng = draw.rng()
    alone, _ = stack(rng, replicates, problem, problem["depth"], normed=False)
    log_residual, keys = stack(rng, replicates, problem, problem["deep"], normed=True)
    # Exact of tokens of equal size, which the norm leaves.
    cosine = 1 - problem["n"] / (problem["n"] - 1) * np.exp(2 * log_residual)
    return {
        "log_residual": alone.mean(0),
        "cosine": cosine.mean(0),
        "keys": keys[problem["depth"] - 1],
        "first_keys": keys[0, 0],
    }


def draw_weights(
    rng: np.random.Generator, draws: int, problem: Drawn
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
    rng: np.random.Generator, draws: int, problem: Drawn, layers: int, normed: bool
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

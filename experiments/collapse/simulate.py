"""Stacks of layers, whose residual is followed, and heads, which are recovered from their mix."""

from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np
from scipy import linalg

from sims.attention.hidden import Stream, split, split_layer, split_rms_norm
from sims.montecarlo import Draw, HostBatches

from .problems import Problem

Array = np.ndarray
PATH = 12
"""Layers that are shown one by one; a stack has as many at least."""
DRAWS = 96
"""Draws of heads in a batch."""


def sampler(problem: Problem) -> HostBatches:
    """Residuals of stacks, and what is lost of heads."""
    dims = {"path": ("layer",), "ends": ("end",), "lost": ("gates",)}
    return HostBatches(batch, constants=problem, dims=dims)


def batch(draw: Draw, replicates: int, problem: Problem) -> dict[str, Array]:
    """Mean log ρ along a stack and at the depths L and 2L, and what is lost of heads."""
    depth = problem["depth"]
    long = short = stack(draw.rng(), replicates, problem, 2 * depth)
    if problem.scaled:
        # Of the same tokens and first weights, which takes most of the spread out of the ratio.
        short = stack(draw.rng(), replicates, problem, depth)
    return {
        "path": long[: PATH + 1],
        "ends": np.array([short[depth], long[2 * depth]]),
        "lost": lost_shares(draw.rng(), problem),
    }


def stack(rng: np.random.Generator, replicates: int, problem: Problem, depth: int) -> Array:
    """Mean log ρ before the first layer and after every one, (depth + 1,).

    Half as many as replicates are drawn. With a residual stream there are as many with branches of
    the opposite sign, which takes most of the spread out of the mean; alone they would be the same.
    """
    signs = np.ones(1) if problem.alone else np.array([1.0, -1.0])
    count = replicates // 2
    tokens = problem.tokens(rng, 1, count)
    stream = split(np.repeat(tokens, len(signs), axis=0))
    branch = signs[:, None, None, None] * (depth**-0.5 if problem.scaled else 1.0)
    logs = [mean_log(stream)]
    for _ in range(depth):
        stream = pass_layer(stream, rng, problem, branch)
        logs.append(mean_log(stream))
    return np.array(logs)


def pass_layer(stream: Stream, rng: np.random.Generator, problem: Problem, branch: Array) -> Stream:
    """The stream after attention and, in some residual streams, an MLP, times the branch's factor.

    Their weights are drawn.
    """
    count = stream.mean.shape[1]
    query, key, value, output = problem.matrices(rng, 1, count)
    score = query @ key.swapaxes(-1, -2) / problem.width**0.5
    heads = partial(attention, score=score, value=branch * value @ output, bias=problem.bias)
    stream = pass_block(stream, heads, problem)
    if problem["mlps"] and not problem.alone:
        d = problem["dimension"]
        inner = rng.normal(size=(1, count, d, 4 * d)) / d**0.5
        outer = rng.normal(size=(1, count, 4 * d, d)) * (problem["variance"] / (4 * d)) ** 0.5
        stream = pass_block(stream, partial(mlp, inner=inner, outer=branch * outer), problem)
    return stream


def pass_block(stream: Stream, block: Callable[[Stream], Stream], problem: Problem) -> Stream:
    """The stream after a block, with its norm, and with a skip unless attention is alone."""
    norm = {"layer": layer_norm, "rms": split_rms_norm}[problem["norm"]]
    placed = problem["placed"]
    after = block(norm(stream) if placed == "before" else stream)
    if not problem.alone:
        pairs = zip(stream[:3], after[:3], strict=True)
        after = total(*map(np.stack, pairs))
    return norm(after) if placed == "after" else after


def mean_log(stream: Stream) -> float:
    """Mean log ρ, but of stacks whose tokens a saturated softmax has made equal to all digits."""
    logs = stream.log_residual
    return float(np.mean(logs, where=np.isfinite(logs)))


def total(mean: Array, centred: Array, log_scale: Array) -> Stream:
    """The sum of streams along the first dimension of their parts."""
    top = log_scale.max(0)
    combined = split((np.exp(log_scale - top)[..., None, None] * centred).sum(0))
    return combined._replace(mean=mean.sum(0), log_scale=top + combined.log_scale)


def layer_norm(stream: Stream) -> Stream:
    """LayerNorm: RMSNorm of tokens whose features are centred."""
    mean = stream.mean - stream.mean.mean(-1, keepdims=True)
    centred = stream.centred - stream.centred.mean(-1, keepdims=True)
    return split_rms_norm(stream._replace(mean=mean, centred=centred))


def attention(stream: Stream, score: Array, value: Array, bias: Array | None) -> Stream:
    """Heads along the first dimension of the matrices, and their sum."""
    heads = split_layer(stream, score, value, 0.0, 0.0, 1.0, 1.0, bias)
    return total(heads.mean, heads.centred, heads.log_scale)


def mlp(stream: Stream, inner: Array, outer: Array) -> Stream:
    """``tanh(X W_1) W_2`` on split tokens.

    ``tanh(a + u) − tanh(a) = tanh(u)(1 − tanh²a)/(1 + tanh(a) tanh(u))`` cancels nothing; where u
    is no small number the plain difference serves.
    """
    scale = np.exp(stream.log_scale)[..., None, None]
    middle = stream.mean[..., None, :] @ inner
    moved = stream.centred @ inner
    level = np.tanh(middle)
    step = scale * moved
    near = np.abs(step) < 1
    small = np.where(near & (step != 0), step, 1e-9)
    turn = np.tanh(small)
    close = moved * turn / small * (1 - level**2) / (1 + level * turn)
    far = (np.tanh(middle + step) - level) / np.maximum(scale, 1e-300)
    moved = np.where(near, close, far)
    shift = moved.mean(-2, keepdims=True)
    mean = ((level + scale * shift) @ outer)[..., 0, :]
    return stream._replace(mean=mean, centred=(moved - shift) @ outer)


def lost_shares(rng: np.random.Generator, problem: Problem) -> Array:
    """Squared error of recovered heads over the square of the heads, by decoder, (3,).

    The same heads and noise are recovered each time.
    """
    factors = problem.layer.factors
    heads, _, rank = factors.shape
    every = decoders(problem)
    sources, channels = every[0][0].shape
    values = rng.normal(size=(DRAWS, sources))
    noise = rng.normal(size=(DRAWS, channels))

    def square(drawn: Array) -> float:
        return float(np.sum((factors @ drawn.reshape(DRAWS, heads, rank, -1)) ** 2))

    errors = []
    for mixing, inverse, noise_sd in every:
        errors.append(square(values - (values @ mixing + noise_sd * noise) @ inverse))
    return np.array(errors) / square(values)


@lru_cache(maxsize=1)
def decoders(problem: Problem) -> list[tuple[Array, Array, float]]:
    """The best decoders of a problem's layer, by ridge regression.

    Without gates and with, each with noise relative to its own output, and with gates and the noise
    that is there without.

    Each is the map of all heads of all tokens to the mixed output, (H r d_k, n d), the regression
    of heads on the output and its noise, and the noise's standard deviation. Of normal heads no
    function of the output has less error.
    """
    layer = problem.layer
    every: list[tuple[Array, Array, float]] = []
    for gates in (*layer.gates, layer.gates[1]):
        mixing = np.einsum("nh,hnr,hkd->hrknd", gates, layer.factors, layer.output, optimize=True)
        mixing = mixing.reshape(-1, len(gates) * layer.output.shape[2])
        size = float(np.sqrt(np.sum(mixing**2) / mixing.shape[1]))
        noise_sd = every[0][2] if len(every) == 2 else problem["noise"] * size
        square = mixing @ mixing.T + noise_sd**2 * np.eye(len(mixing))
        every.append((mixing, linalg.solve(square, mixing, assume_a="pos").T, noise_sd))
    return every

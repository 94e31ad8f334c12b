"""Stacks of layers, whose residual is followed, and heads, which are recovered from their mix."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
from scipy import linalg

from sims.attention.hidden import Stream, split, split_layer, split_rms_norm
from sims.montecarlo import Draw

from .problems import ALONE, Problem

Array = np.ndarray
PATH = 12
"""Layers that are shown one by one; a stack has as many at least."""
DRAWS = 96
"""Draws of heads in a batch."""


def batch(draw: Draw, replicates: int, problem: Problem) -> Mapping[str, Array]:
    """Mean log ρ along a stack and at the depths L and 2L, and what is lost of heads."""
    depth = problem.drawn["depth"]
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
    fields = problem.drawn
    alone = fields["block"] == ALONE
    signs = np.ones(1) if alone else np.array([1.0, -1.0])
    count = replicates // 2
    tokens = problem.tokens(rng, 1, count)
    stream = split(np.repeat(tokens, len(signs), axis=0))
    branch = signs[:, None, None, None] * (depth**-0.5 if problem.scaled else 1.0)
    logs = [mean_log(stream)]
    for _ in range(depth):
        for block in draw_blocks(rng, count, problem, branch):
            after = block(norm(stream, fields["norm"]) if fields["placed"] == "before" else stream)
            if not alone:
                after = total(*map(np.stack, zip(stream[:3], after[:3], strict=True)))
            stream = norm(after, fields["norm"]) if fields["placed"] == "after" else after
        logs.append(mean_log(stream))
    return np.array(logs)


def draw_blocks(
    rng: np.random.Generator, count: int, problem: Problem, branch: Array
) -> Sequence[Callable[[Stream], Stream]]:
    """Attention of one layer, and in a residual stream its MLP, times the branch's factor."""
    fields = problem.drawn
    query, key, value, output = problem.matrices(rng, 1, count)
    score = query @ key.swapaxes(-1, -2) / problem.width**0.5
    blocks = [partial(attention, score=score, value=branch * value @ output, bias=problem.bias)]
    if fields["mlps"] and fields["block"] != ALONE:
        d = fields["dimension"]
        inner = rng.normal(size=(1, count, d, 4 * d)) / d**0.5
        outer = rng.normal(size=(1, count, 4 * d, d)) * (fields["variance"] / (4 * d)) ** 0.5
        blocks.append(partial(mlp, inner=inner, outer=branch * outer))
    return blocks


def mean_log(stream: Stream) -> float:
    """Mean log ρ, but of stacks whose tokens a saturated softmax has made equal to all digits."""
    logs = stream.log_residual
    return float(np.mean(logs, where=np.isfinite(logs)))


def total(mean: Array, centred: Array, log_scale: Array) -> Stream:
    """The sum of streams along the first dimension of their parts."""
    top = log_scale.max(0)
    combined = split((np.exp(log_scale - top)[..., None, None] * centred).sum(0))
    return combined._replace(mean=mean.sum(0), log_scale=top + combined.log_scale)


def norm(stream: Stream, kind: str) -> Stream:
    """RMSNorm, or LayerNorm, which centres the features before."""
    if kind == "layer":
        mean, centred = (x - x.mean(-1, keepdims=True) for x in stream[:2])
        stream = stream._replace(mean=mean, centred=centred)
    return split_rms_norm(stream)


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
    middle, moved = stream.mean[..., None, :] @ inner, stream.centred @ inner
    level, step = np.tanh(middle), scale * moved
    near = np.abs(step) < 1
    small = np.where(near & (step != 0), step, 1e-9)
    turn = np.tanh(small)
    close = moved * turn / small * (1 - level**2) / (1 + level * turn)
    moved = np.where(near, close, (np.tanh(middle + step) - level) / np.maximum(scale, 1e-300))
    shift = moved.mean(-2, keepdims=True)
    mean = ((level + scale * shift) @ outer)[..., 0, :]
    return stream._replace(mean=mean, centred=(moved - shift) @ outer)


def lost_shares(rng: np.random.Generator, problem: Problem) -> Array:
    """Squared error of recovered heads over the square of the heads, without gates and with.

    The same heads and noise are recovered twice.
    """
    readers = decoders(problem)
    factors = problem.layer.factors
    heads, _, rank = factors.shape
    values = rng.normal(size=(DRAWS, len(readers[0].mixing)))
    noise = rng.normal(size=(DRAWS, readers[0].mixing.shape[1]))

    def square(drawn: Array) -> float:
        return float(np.sum((factors @ drawn.reshape(DRAWS, heads, rank, -1)) ** 2))

    wrong = [values - (values @ r.mixing + r.noise_sd * noise) @ r.inverse for r in readers]
    return np.array([square(rest) for rest in wrong]) / square(values)


@dataclass(frozen=True)
class Decoder:
    """What recovers heads from their mixed output.

    Attributes:
        mixing: the map of all heads of all tokens to the mixed output, (H r d_k, n d).
        inverse: the regression of heads on the mixed output and its noise.
        noise_sd: of the mixed output.
    """

    mixing: Array
    inverse: Array
    noise_sd: float


def decoder(factors: Array, gates: Array, output: Array, noise: float) -> Decoder:
    """The best one, by ridge regression: of normal heads no function of the output has less error.

    Args:
        factors, output: as of :class:`.problems.Layer`.
        gates: (n, H).
        noise: over the root mean square of the mixed output.
    """
    mixing = np.einsum("nh,hnr,hkd->hrknd", gates, factors, output, optimize=True)
    mixing = mixing.reshape(-1, len(gates) * output.shape[2])
    noise_sd = noise * float(np.sqrt(np.sum(mixing**2) / mixing.shape[1]))
    square = mixing @ mixing.T + noise_sd**2 * np.eye(len(mixing))
    return Decoder(mixing, linalg.solve(square, mixing, assume_a="pos").T, noise_sd)


@lru_cache(maxsize=1)
def decoders(problem: Problem) -> list[Decoder]:
    """Decoders of a problem's layer, without gates and with."""
    layer = problem.layer
    gate_sets = np.ones_like(layer.gates), layer.gates
    noise = problem.drawn["noise"]
    return [decoder(layer.factors, gates, layer.output, noise) for gates in gate_sets]

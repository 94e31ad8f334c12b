"""What is drawn, and searches for counterexamples of one size after another."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from sims.attention import hierarchy
from sims.montecarlo import Draw

EPS = 2.0**-52


def drawn(
    rng: np.random.Generator, tokens: int, width: int, levels: int, head_width: int | None = None
) -> tuple[np.ndarray, np.ndarray, list[tuple[np.ndarray, np.ndarray]], np.ndarray]:
    """Tokens, two taps, a pair of projections for every level, and convex weights of levels."""
    shape = (levels, 2, width, head_width or width)
    pairs = [(q, k) for q, k in rng.normal(size=shape)]
    taps = rng.choice([-1.0, 1.0], size=2) * rng.uniform(0.5, 1.5, size=2)
    return rng.normal(size=(tokens, width)), taps, pairs, rng.dirichlet(np.ones(levels))


def copies(x: np.ndarray, taps: np.ndarray, levels: int) -> list[np.ndarray]:
    """Z_0, …, Z_{L−1}."""
    own = hierarchy.levels(x, taps, levels)
    return [hierarchy.repeated(part, level, len(x)) for level, part in enumerate(own)]


def rank(matrix: np.ndarray) -> int:
    """Numerical rank, −1 where kept and dropped singular values are less than 10³ apart."""
    values = np.linalg.svd(matrix, compute_uv=False)
    kept = values > 1e-9 * values[0]
    dropped = max(values[~kept].max(initial=0.0), EPS * values[0])
    return int(kept.sum()) if values[kept].min() > 1e3 * dropped else -1


def strict(
    tokens: int, width: int, levels: int, draws: int, draw: Draw, replicates: int, _: None
) -> dict[str, np.ndarray]:
    """How far apart two inputs come out that differ in the order of tokens before the last.

    Of attention with one level, causal and without positions, the last output is the same.
    """
    rng, out = draw.rng(), []
    for _one in range(draws * replicates):
        x, taps, pairs, weights = drawn(rng, tokens, width, levels)
        pairs = [(q, k / width) for q, k in pairs]
        value = np.eye(width)
        other = x.copy()
        other[: tokens - 1] = x[tokens - 2 :: -1] if tokens > 1 else x[:0]
        ends = [hierarchy.attend(y, taps, pairs, weights, value)[-1] for y in (x, other)]
        plain = [hierarchy.attend(y, taps, pairs[:1], [1.0], value)[-1] for y in (x, other)]
        assert np.abs(plain[0] - plain[1]).max() <= 1e-9 * (1 + np.abs(x).max())
        out.append(np.abs(ends[0] - ends[1]).max() / np.abs(x).max())
    return {"violation": np.array(out)}


def leak(
    tokens: int, width: int, levels: int, draws: int, draw: Draw, replicates: int, _: None
) -> dict[str, np.ndarray]:
    """How far an output moves with a later token when coarser copies are means of blocks."""
    rng, out = draw.rng(), []
    for _one in range(draws * replicates):
        x, taps, pairs, weights = drawn(rng, tokens, width, levels)
        other = x.copy()
        other[-1] += rng.normal(size=width)
        both = [
            hierarchy.attend(y, taps, pairs, weights, np.eye(width), hierarchy.block_means)[:-1]
            for y in (x, other)
        ]
        out.append(np.abs(both[0] - both[1]).max(initial=0.0) / np.abs(x).max())
    return {"violation": np.array(out)}


def needless(
    tokens: int, width: int, levels: int, draws: int, draw: Draw, replicates: int, _: None
) -> dict[str, np.ndarray]:
    """By how much the last M^s is indefinite where S^s is positive semidefinite, of its size.

    All other levels are definite; the weights are equal.
    """
    rng, out = draw.rng(), []
    for _one in range(draws * replicates):
        x, taps, _pairs, _weights = drawn(rng, tokens, width, levels)
        z = copies(x, taps, levels)
        forms = rng.normal(size=(levels, width, width))
        forms = forms + np.swapaxes(forms, 1, 2)
        forms[:-1] = [4 * form @ form for form in forms[:-1]]
        whole = sum(part @ form @ part.T for part, form in zip(z, forms, strict=True))
        values = np.linalg.eigvalsh(whole)
        worst = -np.linalg.eigvalsh(forms[-1])[0] / np.abs(forms[-1]).max()
        full = rank(np.concatenate(z, axis=1)) == levels * width
        holds = values[0] >= -1e-13 * values[-1]
        out.append((worst if holds else 0.0, worst if holds and full else 0.0))
    found = np.maximum(np.array(out), 0.0)
    return {"violation": found[:, 0], "full rank": found[:, 1]}


def dear(
    tokens: int, width: int, levels: int, draws: int, draw: Draw, replicates: int, _: None
) -> dict[str, np.ndarray]:
    """By how much scores cost more than 4/3 of one level's, by the numbers of tokens of levels."""
    x, taps, _pairs, _weights = drawn(draw.rng(), tokens, width, levels)
    sizes = [len(part) for part in hierarchy.levels(x, taps, levels)]
    return {"violation": np.array([max(sum(n * n for n in sizes) / tokens**2 - 4 / 3, 0.0)])}


SEARCHES: dict[str, Callable[..., dict[str, np.ndarray]]] = {
    "strict": strict,
    "leak": leak,
    "needless": needless,
    "needless, long": needless,
    "dear": dear,
}
"""Searches by name: functions of (T, d, L), budget and draw."""


def multiplications(function: Callable[..., Any], *arrays: np.ndarray) -> int:
    """Multiply–adds of the matrix products of a function, read off its trace."""
    count = 0
    for equation in jax.make_jaxpr(function)(*arrays).eqns:
        if equation.primitive.name == "dot_general":
            (over, _), _ = equation.params["dimension_numbers"]
            left = equation.invars[0].aval.shape
            count += int(np.prod(equation.outvars[0].aval.shape)) * int(
                np.prod([left[axis] for axis in over])
            )
    return count

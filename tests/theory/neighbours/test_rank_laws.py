"""Ranks after norms, layers and MLPs: against exact fractions and against brute force."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from sims.theory.neighbours.ranks import (
    attention_rank,
    energy_share,
    layer_norm_ranks,
    mlp_rank,
    rank_of,
    rms_norm_ranks,
    tail_exponent,
)

pytestmark = pytest.mark.theory


def exact_rank(rows):
    """Rank by elimination of fractions, which no rounding touches."""
    rows, rank = [[Fraction(v) for v in row] for row in rows], 0
    for column in range(len(rows[0])):
        pivot = next((r for r in rows[rank:] if r[column]), None)
        if pivot is None:
            continue
        rows.remove(pivot)
        rows.insert(rank, pivot)
        rows[rank + 1 :] = [
            [v - r[column] / pivot[column] * p for v, p in zip(r, pivot, strict=True)]
            for r in rows[rank + 1 :]
        ]
        rank += 1
    return rank


def affine(rows):
    """Rank of the differences from the first token."""
    return exact_rank([[a - b for a, b in zip(row, rows[0], strict=True)] for row in rows[1:]])


def cases():
    """Tokens whose norms are rational multiples of one number: multiples of permuted vectors."""
    rng = np.random.default_rng(0)
    for base in ([0, 1, 3], [-1, 0, 1], [0, 1, 2, 5], [1, 1, -1, -1]):
        orders = list(itertools.permutations(base))
        for n in (2, 3, 4, 6):
            for _ in range(6):
                chosen = [orders[k] for k in rng.integers(len(orders), size=n)]
                factors = [int(f) for f in rng.integers(1, 4, size=n) * rng.choice([-1, 1], size=n)]
                shifts = [int(s) for s in rng.integers(-2, 3, size=n)]
                yield chosen, factors, shifts


def test_layer_norm_and_rms_norm_against_exact_fractions():
    """LN of ``c·π(v) + b·1`` is ``sign(c) π(v − v̄)`` times one number, RMSNorm of ``c·π(v)``
    ``sign(c) π(v)``, so that ranks after the norm are those of integers."""
    changes = set()
    for chosen, factors, shifts in cases():
        signs = [f // abs(f) for f in factors]
        x = [[f * v + s for v in row] for row, f, s in zip(chosen, factors, shifts, strict=True)]
        mean = Fraction(sum(chosen[0]), len(chosen[0]))
        normed = [[g * (v - mean) for v in row] for row, g in zip(chosen, signs, strict=True)]
        found = layer_norm_ranks(x)
        assert found == (affine(x), affine(normed), exact_rank(normed), True)
        changes.add(found.after - found.before)
        x = [[f * v for v in row] for row, f in zip(chosen, factors, strict=True)]
        normed = [[g * v for v in row] for row, g in zip(chosen, signs, strict=True)]
        assert rms_norm_ranks(x) == (affine(x), affine(normed), exact_rank(normed), True)
    assert changes == {-2, -1, 0}


def test_a_gained_dimension_against_exact_fractions():
    """Collinear tokens 12u + tv, t = 0, 9, 16, have norms 12, 15, 20: fractions again."""
    u, v = (1, -1, 0, 0), (0, 0, 1, -1)
    x = [[12 * a + t * b for a, b in zip(u, v, strict=True)] for t in (0, 9, 16)]
    normed = [[Fraction(a, s) for a in row] for row, s in zip(x, (12, 15, 20), strict=True)]
    assert (affine(x), affine(normed), exact_rank(normed)) == (1, 2, 2)
    assert layer_norm_ranks(x) == (1, 2, 2, True)


def test_a_rank_without_a_gap_is_not_clear():
    assert rank_of(np.diag([1.0, 1e-5, 0.0])) == (2, True)
    assert rank_of(np.diag([1.0, 3e-10, 1e-12])) == (2, False)


@pytest.mark.parametrize("residual", [False, True])
def test_rank_after_attention_by_drawn_integers(residual):
    rng = np.random.default_rng(2)
    for n, d, r, heads, width in (
        (6, 7, 2, 2, 1),
        (6, 7, 2, 1, 3),
        (4, 9, 3, 2, 2),
        (9, 3, 2, 2, 1),
    ):
        x = rng.integers(-9, 10, size=(n, r)) @ rng.integers(-9, 10, size=(r, d))
        z = residual * x
        for _ in range(heads):
            mixed = rng.integers(0, 9, size=(n, n)) @ x
            z = z + mixed @ rng.integers(-9, 10, (d, width)) @ rng.integers(-9, 10, (width, d))
        rank = exact_rank([[int(v) for v in row] for row in z])
        assert rank == attention_rank(n, d, r, heads, width, residual)


def test_rank_after_an_mlp():
    """Even on a line: n tokens of rank 1 come out with rank min(n, d, d_ff)."""
    rng = np.random.default_rng(3)
    for n, d, inner in ((4, 6, 8), (5, 3, 8), (5, 6, 2)):
        x = rng.normal(size=(n, 1)) @ rng.normal(size=(1, d))
        hidden = np.tanh(3 * x @ rng.normal(size=(d, inner)) + rng.normal(size=inner))
        z = hidden @ rng.normal(size=(inner, d))
        assert np.linalg.matrix_rank(z) == mlp_rank(n, d, inner)
        assert np.linalg.matrix_rank(np.repeat(z[:2], 2, axis=0)) == mlp_rank(2, d, inner)


def test_energy_share_by_a_basis_of_matrices():
    """A quadratic form of iid N(0, 1) entries has the mean of its sum over unit matrices."""
    rng = np.random.default_rng(4)
    d, r = 6, 2
    x = rng.normal(size=(5, r)) @ rng.normal(size=(r, d))
    mixed = rng.random((5, 5)) @ x
    outside = np.eye(d) - np.linalg.pinv(x) @ x
    both = np.zeros(2)
    for i, j in itertools.product(range(d), repeat=2):
        unit = np.zeros((d, d))
        unit[i, j] = 1
        both += [np.sum((mixed @ unit @ outside) ** 2), np.sum((mixed @ unit) ** 2)]
    assert both[0] / both[1] == pytest.approx(energy_share(r, d), rel=1e-12)


@pytest.mark.parametrize(("n", "d"), [(3, 2), (3, 3), (4, 3), (4, 4), (6, 3)])
def test_tail_exponent_is_the_codimension_of_matrices_of_one_rank_less(n, d):
    """Of (n − 1) × d matrices: entries less the rank of ``(dU)Vᵀ + U(dV)ᵀ`` at a drawn point."""
    rng, rows = np.random.default_rng(5), n - 1
    rank = min(rows, d) - 1
    u, v = rng.normal(size=(rows, rank)), rng.normal(size=(d, rank))
    tangents = [
        np.outer(np.eye(rows)[i], v[:, k]).ravel() for i in range(rows) for k in range(rank)
    ]
    tangents += [np.outer(u[:, k], np.eye(d)[j]).ravel() for j in range(d) for k in range(rank)]
    own = np.linalg.matrix_rank(np.array(tangents)) if tangents else 0
    assert rows * d - own == tail_exponent(n, d)

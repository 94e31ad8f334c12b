"""Hierarchical scores against plain loops."""

import numpy as np
import pytest

from sims.attention import hierarchy


def drawn(n, d=3, levels=3, seed=0):
    rng = np.random.default_rng(seed)
    pairs = [(q, k) for q, k in rng.normal(size=(levels, 2, d, d))]
    return rng.normal(size=(n, d)), rng.normal(size=2), pairs, rng.dirichlet(np.ones(levels))


def coarse(tokens, taps):
    """The next level, token by token."""
    out = []
    for t in range((len(tokens) + 1) // 2):
        total = np.zeros(tokens.shape[1])
        for k, tap in enumerate(taps):
            if 2 * t - k >= 0:
                total += tap * tokens[2 * t - k]
        out.append(total)
    return np.array(out)


@pytest.mark.parametrize("n", [1, 5, 8])
def test_one_head_by_loops(n):
    tokens, taps, pairs, weights = drawn(n)
    value = np.random.default_rng(1).normal(size=(3, 3))
    scores, level_tokens = np.zeros((n, n)), tokens
    for level, ((query, key), weight) in enumerate(zip(pairs, weights, strict=True)):
        for i in range(n):
            for j in range(n):
                a, b = level_tokens[i // 2**level], level_tokens[j // 2**level]
                scores[i, j] += weight * a @ query @ key.T @ b
        level_tokens = coarse(level_tokens, taps)
    out = []
    for i in range(n):
        raised = np.exp(scores[i, : i + 1] - scores[i, : i + 1].max())
        out.append(raised @ tokens[: i + 1] @ value / raised.sum())
    found = hierarchy.attend(tokens, taps, pairs, weights, value)
    np.testing.assert_allclose(found, out, rtol=1e-10, atol=1e-12)
    whole = hierarchy.attend(np.stack([tokens, 2 * tokens]), taps, pairs, weights, value)
    np.testing.assert_allclose(whole[0], found, rtol=1e-12, atol=1e-12)
    lengths = [len(part) for part in hierarchy.levels(tokens, taps, 4)]
    assert lengths == [-(-n // 2**level) for level in range(4)]


def test_no_output_depends_on_later_tokens():
    tokens, taps, pairs, weights = drawn(4)
    other = tokens.copy()
    other[-1] += 1.0
    outputs = hierarchy.attend(tokens, taps, pairs, weights, np.eye(3))
    moved = hierarchy.attend(other, taps, pairs, weights, np.eye(3)) - outputs
    assert np.abs(moved[:-1]).max() < 1e-12 < 1e-3 < np.abs(moved[-1]).max()

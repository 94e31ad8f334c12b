"""The experiment `angles`: shared noise by plain loops, radii and the gaussian kernel."""

import jax
import numpy as np
import pytest

from experiments.angles import predict, problems, simulate
from sims import nw_weights
from tests.experiments.drawing import fields_of


def drawn(number=0, **changes):
    return problems.Problem(fields_of("angles", number, **changes))


@pytest.mark.parametrize("width", [1, 2])
def test_shared_noise_by_plain_loops(width):
    """Of the biweight kernel, whose weights are written out; frames have the drawn angles."""
    problem = drawn(rule="biweight", width=width, keys=32, radius=1.2)
    result = simulate.shared_noise(
        jax.random.key(4), (problem.heads, np.asarray(0.4)), None, n=32, queries=2
    )
    for_keys, for_queries = jax.random.split(jax.random.key(4))
    keys = np.asarray(jax.random.normal(for_keys, (32, 4), np.float64))
    points = 0.4 * np.asarray(jax.random.normal(for_queries, (2, 4), np.float64))
    angles = np.array([problem.drawn["first"], problem.drawn["second"]])[:width]
    pair, alone = np.zeros((2, 2)), []
    for i, x in enumerate(points):
        every = []
        for turn in (0 * angles, angles, angles / 2):
            frame = np.zeros((4, width))
            frame[:width], frame[2 : 2 + width] = (
                np.diag(f(np.deg2rad(turn))) for f in (np.cos, np.sin)
            )
            square = ((x @ frame - keys @ frame) ** 2).sum(1) / (1.44 * width)
            parts = np.maximum(1 - square, 0) ** 2
            every.append(parts / max(parts.sum(), 1e-300))
        pair[i] = [every[0] @ other for other in every[1:]]
        alone.append(np.mean([weights @ weights for weights in every]))
    np.testing.assert_allclose(result["pair"], pair.mean(0), rtol=1e-9)
    np.testing.assert_allclose(result["own"], np.mean(alone), rtol=1e-9)


@pytest.mark.parametrize("rule", problems.POWERS)
def test_adaptive_rules_have_the_drawn_radius_in_a_large_sample(rule):
    problem = drawn(rule=rule, keys=20_000, radius=0.8, width=2)
    keys = np.random.default_rng(1).normal(size=(20_000, 4))
    weights = np.asarray(nw_weights(problem.heads, np.zeros(4), keys))[0]
    farthest = np.linalg.norm(keys[weights > 0, :2], axis=1).max()
    assert farthest == pytest.approx(0.8 * 2**0.5, rel=0.02)


@pytest.mark.theory
@pytest.mark.parametrize("width", [1, 2])
def test_the_gaussian_kernel_is_its_own_match_and_a_product(width):
    problem = drawn(rule="gaussian", width=width, radius=0.7, first=60, second=50)
    result = predict.correlations(problem)
    assert result["gaussian"] == pytest.approx(result["correlation"], rel=1e-3)
    assert result["product"] == pytest.approx(0, abs=1e-3) or width == 1


@pytest.mark.theory
@pytest.mark.parametrize("kernel", ["gaussian", "softmax"])
def test_the_gap_of_the_angle_law_by_plain_loops(kernel):
    """1 − ρ at the eight queries by 4,000 draws of keys, over the law's by its closed form."""
    problem = drawn(pair_kernel=kernel, pair_width=2, pair_keys=64)
    found = predict.reach_of_law(problem)
    _, heads, n, queries = predict.pair(problem)
    first, second = np.asarray(heads.frames)
    b = float(heads.bandwidth[0])
    rng = np.random.default_rng(0)
    moments = []
    for _ in range(4_000):
        keys = rng.normal(size=(n, queries.shape[1]))
        weights = []
        for frame in (first, second):
            q, k = queries @ frame, keys @ frame
            score = q @ k.T if kernel == "softmax" else -((q[:, None] - k) ** 2).sum(2) / 2
            parts = np.exp((score - score.max(1, keepdims=True)) / b**2)
            weights.append(parts / parts.sum(1, keepdims=True))
        products = [weights[0] * weights[1], *(w**2 for w in weights)]
        moments.append([product.sum(1).mean() for product in products])
    cross, own, other = np.transpose(moments)
    apart = 1 - cross.mean() / (own + other).mean() * 2
    spread = np.std(cross - (1 - apart) * (own + other) / 2) / 4_000**0.5 / own.mean()
    sigma, overlap = np.eye(queries.shape[1]), []
    for u, v in ((first, second), (first, first), (second, second)):
        rows = []
        for x in queries:
            if kernel == "softmax":
                rows.append(np.exp(x @ u @ u.T @ v @ v.T @ x / b**4))
                continue
            frames, mass = np.concatenate([u, v], 1), []
            for part in (frames, u, v):
                gram = np.eye(part.shape[1]) + part.T @ sigma @ part / b**2
                z = part.T @ x / b
                mass.append(-0.5 * (np.linalg.slogdet(gram)[1] + z @ np.linalg.solve(gram, z)))
            rows.append(np.exp(mass[0] - mass[1] - mass[2]))
        overlap.append(np.mean(rows))
    law = 1 - overlap[0] / np.mean(overlap[1:])
    assert abs(apart / law - 1 - found["pair_gap"]) < 4 * spread / law + 0.02 * apart / law
    assert found["pair_attended"] == pytest.approx(1 / own.mean(), rel=0.05)

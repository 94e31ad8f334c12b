"""Closed forms of low-rank scores against solvers, quadrature-free perturbation, softmax itself."""

import numpy as np
import pytest
from scipy.optimize import minimize

from sims.problem import TARGETS, GaussianDesign, Heads, Task, gaussian_queries
from sims.problem.compression import compressed
from sims.theory import predict
from sims.theory.neighbours import spectra

pytestmark = pytest.mark.theory


@pytest.fixture
def law():
    """Second moments of keys and queries, (4, 4) each, without common axes."""
    rng = np.random.default_rng(1)
    parts = rng.standard_normal((2, 9, 4)) * np.array([2.0, 1.0, 0.7, 0.4])
    return tuple(part.T @ part / 9 for part in parts @ rng.standard_normal((2, 4, 4)))


def risk(product, keys, queries):
    change = product - np.eye(len(keys))
    return np.trace(keys @ change @ queries @ change.T)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_optimum_by_descent_over_factors(law, rank):
    """Quasi-Newton descent over A and B from random starts: a method of no linear algebra."""
    rng = np.random.default_rng(rank)

    def loss(flat):
        a, b = flat.reshape(2, 4, rank)
        change = a @ b.T - np.eye(4)
        slope = 2 * law[0] @ change @ law[1]
        return risk(a @ b.T, *law), np.concatenate([(slope @ b).ravel(), (slope.T @ a).ravel()])

    found = min(
        minimize(loss, rng.standard_normal(8 * rank), jac=True, options={"gtol": 1e-10}).fun
        for _ in range(6)
    )
    assert spectra.optimum(spectra.squares(*law), rank) == pytest.approx(found, rel=1e-6)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_gap_formula(law, rank):
    v = np.linalg.svd(law[0])[0][:, :rank]
    own = spectra.keys_only_error(*law, rank)
    assert own == pytest.approx(risk(v @ v.T, *law))
    least = spectra.optimum(spectra.squares(*law), rank)
    assert spectra.gap(*law, rank) == pytest.approx(own - least, rel=1e-9)
    assert spectra.gap(law[0], np.eye(4), rank) == pytest.approx(0, abs=1e-12)


def test_excess_by_the_curvature_of_the_risk():
    """Moments moved one entry at a time, the projector by eigenvectors of a plain matrix.

    E over Gaussian samples is then a sum over entries: those off the diagonal have variance 1/n in
    coordinates with unit moments, those on it 2/n.
    """
    keys, queries, rank, step = np.diag([3.0, 2.0, 1.0]), np.diag([2.0, 1.5, 0.5]), 1, 1e-3

    def moved(k, q):
        values, vectors = np.linalg.eig(
            queries**0.5 @ (np.eye(3) + q) @ queries**0.5 @ keys**0.5 @ (np.eye(3) + k) @ keys**0.5
        )
        top = np.argsort(-values.real)[:rank]
        left = np.linalg.inv(vectors)[top]
        return risk((vectors[:, top] @ left).real, keys, queries)

    base, total = moved(np.zeros((3, 3)), np.zeros((3, 3))), np.zeros(2)
    for i in range(3):
        for j in range(i, 3):
            change = np.zeros((3, 3))
            change[i, j] = change[j, i] = step
            variance = 2 if i == j else 1
            for side, (k, q) in enumerate(((change, 0 * change), (0 * change, change))):
                curvature = moved(k, q) + moved(-k, -q) - 2 * base
                total[side] += variance * curvature / (2 * step**2)
    values = spectra.squares(keys, queries)
    expected = spectra.excess(values, rank)
    np.testing.assert_allclose(total, expected, rtol=1e-4)
    law = spectra.excess_risk(values, rank, 100, 50)
    assert law == pytest.approx(total @ [1 / 100, 1 / 50], rel=1e-4)
    assert np.isinf(spectra.excess(np.array([2.0, 2.0, 1.0]), 1))
    assert spectra.neighbour_ratio(100, 50) == pytest.approx(total @ [1, 2] / total[0], rel=1e-4)


def test_effective_keys_of_compressed_heads():
    """Mean log n_eff by first-order theory of the heads as a problem, against err/s²."""
    rng = np.random.default_rng(4)
    frames, key_frames = rng.standard_normal((2, 1, 5, 4)) / 2
    covariance = np.diag([1.0, 0.8, 0.5, 0.3, 0.2])
    queries = np.asarray(gaussian_queries(5, 40, 0.5, seed=2))
    task = Task(GaussianDesign(covariance), TARGETS["rbf"](5, lengthscale=2.0), noise_sd=0.5)
    whole = Heads(frames, "softmax", 1.3**0.5, key_frames=key_frames)
    seen = queries.T @ queries / 40
    small = compressed(whole, 2, covariance, seen)
    assert small.width == 2
    logs = [
        np.log(predict(task, heads, 1000, queries)["n_eff"].values).mean()
        for heads in (whole, small)
    ]
    moments = (key_frames[0].T @ covariance @ key_frames[0], frames[0].T @ seen @ frames[0])
    error = spectra.optimum(spectra.squares(*moments), 2)
    assert logs[1] - logs[0] == pytest.approx(spectra.log_keys_gain(error, 1.3), rel=1e-9)


def test_sink_ratio_by_softmax_itself():
    """A finite perturbation along the polar factor; ε I for comparison, which is smaller."""
    for length in (4, 11, 20):
        scores = np.full((length, length), -40.0)
        scores[np.arange(length), np.arange(length)] = 0
        scores[:, 0] = 0
        values = np.ones(length)
        values[0] = -(length - 1)
        slope = np.full((length, length), 0.0)
        slope[np.arange(1, length), np.arange(1, length)] = 1
        slope[1:, 0] = -1
        left, _, right = np.linalg.svd(slope)
        found = []
        for change in (left @ right, np.eye(length)):
            weights = [
                np.exp(s) / np.exp(s).sum(1, keepdims=True)
                for s in (scores, scores + 1e-5 * change)
            ]
            moved = np.linalg.norm((weights[1] - weights[0]) @ values)
            found.append(moved / (1e-5 * np.linalg.norm(values)))
        assert found[0] == pytest.approx(spectra.sink_ratio(length), rel=1e-3)
        assert found[1] <= found[0] * (1 + 1e-4)
    assert spectra.sink_ratio(10) < 1 < spectra.sink_ratio(11)

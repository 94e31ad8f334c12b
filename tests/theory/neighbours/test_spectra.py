"""Closed forms of low-rank scores against solvers, quadrature-free perturbation, softmax itself."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import softmax

from sims.attention.low_rank import kq_svd
from sims.problem import TARGETS, GaussianDesign, Heads, Task, gaussian_queries
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
    """``Σ_{i≤r} σ_i² − tr PΣ_KPΣ_Q`` above the least error, 0 for isotropic queries."""
    v = np.linalg.svd(law[0])[0][:, :rank]
    frame, values = v @ v.T, spectra.squares(*law)
    own = spectra.keys_only_error(*law, rank)
    assert own == pytest.approx(risk(frame, *law))
    gap = values[:rank].sum() - np.trace(frame @ law[0] @ frame @ law[1])
    assert 0 < gap == pytest.approx(own - spectra.optimum(values, rank), rel=1e-9)
    even = spectra.optimum(spectra.squares(law[0], np.eye(4)), rank)
    assert spectra.keys_only_error(law[0], np.eye(4), rank) == pytest.approx(even)


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
    expected = sum(values[0] * v / (values[0] - v) for v in values[1:])
    np.testing.assert_allclose(total, expected, rtol=1e-4)
    law = spectra.excess_risk(keys, queries[None], rank, 100, 50)
    assert law == pytest.approx(total @ [1 / 100, 1 / 50], rel=1e-4)
    assert np.isinf(spectra.excess_risk(np.diag([2.0, 2.0, 1.0]), np.eye(3)[None], 1, 9, 9))
    # With isotropic queries the keys' own factors pay the keys' part alone.
    even = spectra.excess_risk(keys, np.eye(3)[None], rank, 100, 50)
    assert even == pytest.approx(3 * spectra.excess_risk(keys, np.eye(3)[None], rank, 100, np.inf))


def test_effective_keys_of_compressed_heads():
    """Mean log n_eff by first-order theory of the heads as a problem, against err/s²."""
    rng = np.random.default_rng(4)
    frames, key_frames = rng.standard_normal((2, 1, 5, 4)) / 2
    covariance = np.diag([1.0, 0.8, 0.5, 0.3, 0.2])
    queries = np.asarray(gaussian_queries(5, 40, 0.5, seed=2))
    task = Task(GaussianDesign(covariance), TARGETS["rbf"](5, lengthscale=2.0), noise_sd=0.5)
    rows = covariance**0.5 @ key_frames[0], queries @ frames[0] / 40**0.5
    moments, maps = [part.T @ part for part in rows], kq_svd(*rows, 2)
    pairs = (frames, key_frames), (frames @ maps.query_map, key_frames @ maps.key_map)
    logs = [
        np.log(predict(task, Heads(f, "softmax", 1.3**0.5, k), 1000, queries)["n_eff"].values)
        for f, k in pairs
    ]
    error = spectra.optimum(spectra.squares(*moments), 2)
    assert (logs[1] - logs[0]).mean() == pytest.approx(error / 1.3**2, rel=1e-9)


def test_sink_ratio_by_softmax_itself():
    """The printed bound fails from 11 tokens on: ``¼(T − 2 + √T)√T/(T − 1)`` times it.

    A finite perturbation along the polar factor; ε I for comparison, which is smaller.
    """
    for length in (4, 10, 11, 20):
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
            change_of_weights = softmax(scores + 1e-5 * change, axis=1) - softmax(scores, axis=1)
            moved = np.linalg.norm(change_of_weights @ values)
            found.append(moved / (1e-5 * np.linalg.norm(values)))
        root = length**0.5
        ratio = (length - 2 + root) * root / (4 * (length - 1))
        assert found[0] == pytest.approx(ratio, rel=1e-3)
        assert found[1] <= found[0] * (1 + 1e-4)
        assert (found[0] > 1) == (length > 10)

"""What simulators of `kq_svd` return, by plain loops over the same draws."""

import numpy as np
import pytest

from sims.study.experiment import load_experiment

compression = load_experiment("kq_svd")
problems, caches = (compression.module(name) for name in ("problems", "simulate"))


def cache_of(rng, rows, moment):
    """Rows whose second moment is T times the one given: an orthonormal frame times its root."""
    values, vectors = np.linalg.eigh(moment)
    frame = np.linalg.qr(rng.standard_normal((rows, len(moment))))[0]
    return rows**0.5 * frame @ np.diag(values**0.5) @ vectors.T


def tail(matrix, rank):
    """The sum of squares of all singular values but the first ones."""
    return (np.linalg.svd(matrix, compute_uv=False)[rank:] ** 2).sum()


def kept_error(rows, keys, queries, rank):
    """The error of scores, as a share, of keys and queries on the rows' first singular vectors."""
    frame = np.linalg.svd(rows)[2][:rank]
    missed = keys @ (np.eye(len(frame.T)) - frame.T @ frame) @ queries.T
    return (missed**2).sum() / ((keys @ queries.T) ** 2).sum()


@pytest.fixture
def law():
    factors = np.random.default_rng(5).standard_normal((2, 4, 4))
    return problems.Moments(*(f @ f.T for f in factors))


def test_the_price_of_a_shared_key_map_is_in_squared_scores_of_all_heads():
    """``1 − Σ_h Σ_{i>r} σ_i²(KQ_hᵀ)/Σ_{i>r} σ_i²(K[Q_1; …]ᵀ)``, by heads of different sizes."""
    own = {"length": 7, "d": 4, "count": 3, "rank": 2, "steps": 200}
    found = caches.groups(np.random.default_rng(6), own)

    rng = np.random.default_rng(6)
    keys = rng.standard_normal((7, 4)) @ rng.standard_normal((4, 4))
    queries = rng.standard_normal((3, 7, 4)) @ rng.standard_normal((3, 4, 4))
    alone = [tail(keys @ q.T, 2) for q in queries]
    shared = tail(keys @ np.vstack(list(queries)).T, 2)
    assert found["apart"] == pytest.approx(1 - sum(alone) / shared)
    assert abs(found["together"]) < 1e-6


def test_eigen_goes_to_the_keys_factors_on_one_side_and_to_the_queries_on_the_other(law):
    """``|err(Eigen) − err(·)|`` of βK and Q/β against K-SVD, of K/β and βQ against Q-only."""
    balances, rank = [1.0, 1.5, 4.0], 2
    own = {"length": 6, "rank": rank, "balances": balances}
    found = caches.balance(np.random.default_rng(7), (law, own))

    rng = np.random.default_rng(7)
    keys, queries = cache_of(rng, 6, law.keys), cache_of(rng, 6, law.queries)
    for name, rows, sign in (("to_keys", keys, 1), ("to_queries", queries, -1)):
        alone = kept_error(rows, keys, queries, rank)
        for place, beta in enumerate(balances):
            f = beta**sign
            both = np.vstack([f * keys, queries / f])
            gap = abs(kept_error(both, f * keys, queries / f, rank) - alone)
            assert found[name][place] == pytest.approx(gap, rel=1e-9)


def changed_coordinates(law, own, seed):
    """The caches that ``coordinates`` draws, and its rotation times a factor."""
    rng = np.random.default_rng(seed)
    keys, queries = (cache_of(rng, own["length"], moment) for moment in law)
    rotation = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    return keys, queries, np.exp(rng.uniform(-1, 1)) * rotation


COORDINATES = {"length": 6, "rank": 2, "deficient": 2, "offset": 1.5}


def test_a_scale_of_keys_is_said_to_move_the_method_that_it_moves(law, monkeypatch):
    """``|err after/err before − 1|`` of Eigen; as "K-SVD", had the two been exchanged."""
    keys, queries, change = changed_coordinates(law, COORDINATES, 8)
    moved = keys @ change, queries @ np.linalg.inv(change).T
    errors = [kept_error(np.vstack([k, q]), k, q, 2) for k, q in (moved, (keys, queries))]
    gap = abs(errors[0] / errors[1] - 1)
    found = caches.coordinates(np.random.default_rng(8), (law, COORDINATES))
    assert found["joint_scaled"] == pytest.approx(gap)
    assert found["keys_scaled"] < 1e3

    real = caches.methods
    monkeypatch.setattr(caches, "methods", lambda *args: [real(*args)[i] for i in (0, 2, 1)])
    found = caches.coordinates(np.random.default_rng(8), (law, COORDINATES))
    assert found["keys_scaled"] == pytest.approx(gap / (2.0**-52 * 4))
    assert found["joint_scaled"] < 1e-12


def test_one_method_that_misses_the_optimum_of_balanced_factors_is_seen(law, monkeypatch):
    """K-SVD of one rank less leaves ``σ_r²`` more than the tail; over the unit of rounding."""
    keys, queries, _ = changed_coordinates(law, COORDINATES, 9)
    sizes = np.linalg.svd(keys @ queries.T, compute_uv=False)[:4] ** 2
    real = caches.methods

    def with_less(keys, queries, rank):
        best, _, joint = real(keys, queries, rank)
        return [best, caches.k_svd(keys, rank - 1), joint]

    found = caches.coordinates(np.random.default_rng(9), (law, COORDINATES))
    assert found["balanced"] < 1e3
    monkeypatch.setattr(caches, "methods", with_less)
    found = caches.coordinates(np.random.default_rng(9), (law, COORDINATES))
    missed = sizes[1] / sizes[2:].sum()
    unit = 2.0**-52 * sizes[0] / sizes[2:].sum() * 4
    assert found["balanced"] == pytest.approx(missed / unit)


ENSEMBLE = {
    "d": 3,
    "heads": 2,
    "key_decay": 0.5,
    "gain_decay": 1.5,
    "queries": 5,
    "scale": 1.0,
    "ranks": [3, 2, 1],
}
REGIME = {"lengthscale": 1.0, "noise_sd": 0.5, "n": 20}


def scores_of(head):
    """Matrices M of the scores ``xᵀMk`` of every head."""
    keys = np.asarray(head.key_frames)
    return np.asarray(head.frames) @ keys.swapaxes(1, 2) / float(head.bandwidth[0]) ** 2


def test_whole_heads_tilt_keys_by_gains_that_fall_as_a_power():
    """Keys N(0, Σ) under e^{xᵀMk} have the mean ΣMᵀx: ΣMᵀ has the eigenvalues i^{−decay}."""
    whole = problems.compressed_heads(ENSEMBLE, REGIME, 2)[3]
    covariance = np.diag([1.0, 2.0**-1, 3.0**-1])
    np.testing.assert_allclose(np.asarray(whole.task.design.covariance), covariance, rtol=1e-6)
    for matrix in scores_of(whole.heads):
        gains = np.sort(np.linalg.eigvals(covariance @ matrix.T).real)[::-1]
        np.testing.assert_allclose(gains, [1.0, 2.0**-1.5, 3.0**-1.5], rtol=1e-5)


def test_compressed_heads_lose_as_little_of_their_scores_as_a_rank_must():
    """Of Σ_x^{½}MΣ_k^{½} the last squared singular values are lost, and no more: least squares."""
    found = problems.compressed_heads(ENSEMBLE, REGIME, 2)
    keys = np.diag([1.0, 2.0**-0.5, 3.0**-0.5])
    queries = np.asarray(found[3].queries) / 5**0.5
    for rank in (2, 1):
        pairs = zip(scores_of(found[3].heads), scores_of(found[rank].heads), strict=True)
        for matrix, small in pairs:
            lost = ((queries @ (matrix - small) @ keys) ** 2).sum()
            assert lost == pytest.approx(tail(queries @ matrix @ keys, rank), rel=1e-4)

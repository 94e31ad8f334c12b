"""The experiment `kq_svd`: a replicate by loops, and its regression."""

import numpy as np
import pytest
from scipy.special import softmax

from experiments.kq_svd import problems, simulate
from sims import nw_weights
from sims.theory import predict as library
from sims.theory.neighbours import spectra
from tests.experiments.drawing import fields_of


def drawn(number=0, **changes):
    return problems.make_problem(fields_of("kq_svd", number, **changes))


def best_product(keys, queries, rank):
    """``ABᵀ`` whose scores are the best of a rank: those of the score matrix's singular vectors."""
    left = np.linalg.svd(keys @ queries.T)[0][:, :rank]
    return np.linalg.pinv(keys) @ left @ left.T @ keys


def test_errors_of_an_estimator_by_plain_loops():
    """Point by point, on the tokens that follow the calibration sample."""
    problem = drawn(heads=2, width=8, tokens=64, rank_share=0.25, key_mean=1, score_sd=1.0)
    result = simulate.replicate(np.random.default_rng(5), problem)["mse"]
    rng = np.random.default_rng(5)
    product = best_product(*simulate.calibrated(rng, problem), 2)
    tokens = rng.standard_normal((64, 16))[:, :8]
    keys = tokens @ problem.of_keys + problem.mean
    target = lambda x: np.asarray(problem.target(x))  # noqa: E731
    for place, kept in enumerate((np.eye(8), product)):
        errors = []
        for x in problem.points:
            scores = [keys @ kept @ (x @ head) for head in problem.of_queries]
            w = softmax(np.array(scores) / problem.temperature, axis=1).mean(0)
            off = w @ target(tokens) - target(x[None])[0]
            errors.append(off**2 + problem.noise_sd**2 * (w @ w))
        assert result[place] == pytest.approx(np.mean(errors), rel=1e-5)


@pytest.mark.theory
@pytest.mark.parametrize(("heads", "mean"), [(1, 0), (4, 3)])
def test_calibration_costs_what_the_law_says(heads, mean):
    """1,500 samples of 20,000 tokens: 4.5 standard errors, and 2 % for the next order."""
    problem, rng = drawn(heads=heads, key_mean=mean, calibration=20000), np.random.default_rng(0)
    rank, moments = problem.rank, (problem.key_moment, problem.query_moments.sum(0))
    risks = []
    for _ in range(1500):
        cache = simulate.kq_svd(*simulate.calibrated(rng, problem), rank)
        change = cache.product - np.eye(problem.drawn["width"])
        risks.append(((moments[0] @ change) * (change @ moments[1])).sum())
    least = spectra.optimum(spectra.squares(*moments), rank)
    law = spectra.excess_risk(
        problem.key_moment, problem.query_moments, rank, 20000, 20000, problem.mean
    )
    error = np.std(risks) / 1500**0.5
    assert np.mean(risks) - least == pytest.approx(law, abs=4.5 * error + 0.02 * law)


@pytest.mark.theory
def test_compressed_heads_are_heads_with_frames_of_queries_and_of_keys():
    """Weights of the ensemble are those of low-rank scores; noise gives variance its share."""
    problem = drawn(heads=2, width=8, rank_share=0.25, key_mean=3, score_sd=0.5, share=0.6)
    rows = np.vstack([problem.of_keys, problem.mean])
    product = best_product(rows, problem.of_queries.reshape(-1, 8), 2)
    keys = np.random.default_rng(1).standard_normal((20, 16))
    for compressed, middle in ((False, np.eye(8)), (True, product)):
        _, heads, _, points = problem.regression(compressed, 1.0)
        for h in range(2):
            scores = keys[:, :8] @ problem.of_keys @ middle
            scores = scores @ (problem.points[0] @ problem.of_queries[h]) / problem.temperature
            expected = softmax(scores)
            result = nw_weights(heads, points[0], keys)
            np.testing.assert_allclose(result[h], expected, rtol=1e-4)
            np.testing.assert_allclose(result[h + 2], expected, rtol=1e-4)
    terms = library(*problem.regression(False, problem.noise_sd))
    assert float(terms["ensemble_variance"] / terms["mse"]) == pytest.approx(0.6, rel=1e-3)

"""The experiment `kq_svd`: the price of calibration, and compressed heads as heads."""

import numpy as np
import pytest
from scipy.special import softmax

from experiments.kq_svd import problems, simulate
from sims import nw_weights
from sims.problem import Heads
from sims.theory.neighbours import spectra
from tests.experiments.drawing import fields_of


def drawn(number=0, **changes):
    return problems.make_problem(fields_of("kq_svd", number, **changes))


def best_product(keys, queries, rank):
    """``ABᵀ`` whose scores are the best of a rank: those of the score matrix's singular vectors."""
    left = np.linalg.svd(keys @ queries.T)[0][:, :rank]
    return np.linalg.pinv(keys) @ left @ left.T @ keys


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
    """Weights of the ensemble are those of low-rank scores."""
    problem = drawn(heads=2, width=8, rank_share=0.25, key_mean=3, score_sd=0.5)
    rows = np.vstack([problem.of_keys, problem.mean])
    maps = simulate.kq_svd(rows, simulate.stacked(problem.of_queries), 2)
    product = best_product(rows, problem.of_queries.reshape(-1, 8), 2)
    rng = np.random.default_rng(1)
    keys, query = rng.standard_normal((20, 8)), rng.standard_normal(8)
    of_keys = np.stack([problem.of_keys @ maps.key_map] * 2)
    of_queries = problem.of_queries @ maps.query_map
    result = nw_weights(
        Heads(of_queries, "softmax", problem.temperature**0.5, of_keys), query, keys
    )
    for h in range(2):
        scores = keys @ problem.of_keys @ product @ (query @ problem.of_queries[h])
        np.testing.assert_allclose(result[h], softmax(scores / problem.temperature), rtol=1e-4)

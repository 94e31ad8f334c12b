"""The experiment `kq_svd`: a replicate by loops, and compressed heads as heads."""

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


def test_errors_of_scores_and_outputs_by_plain_loops():
    """Query by query, on the tokens that follow the calibration sample; scores by their moments."""
    problem = drawn(heads=2, width=8, tokens=64, rank_share=0.25, key_mean=1, score_sd=1.0)
    result = simulate.replicate(np.random.default_rng(5), problem)
    rng = np.random.default_rng(5)
    product = best_product(*simulate.calibrated(rng, problem), 2)
    tokens = rng.standard_normal((64, 16))
    keys, values = tokens[:, :8] @ problem.of_keys + problem.mean, tokens @ problem.of_values
    score, output = 0, 0
    queries = rng.standard_normal((simulate.FRESH, 8))
    root = np.vstack([problem.of_keys, problem.mean])
    for head in problem.of_queries:
        score += ((root @ (product - np.eye(8)) @ head.T) ** 2).sum()
        for x in queries:
            old, new = (keys @ kept @ (x @ head) for kept in (np.eye(8), product))
            weights = [softmax(each / problem.temperature) for each in (old, new)]
            output += (((weights[1] - weights[0]) @ values) ** 2).sum()
    assert result["score"][0] == pytest.approx(score)
    assert result["output"][0] == pytest.approx(output)


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

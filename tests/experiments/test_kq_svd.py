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


def test_a_replicate_by_plain_loops():
    """Query by query, on the tokens that follow the calibration sample."""
    problem = drawn(heads=2, width=8, tokens=64, rank_share=0.25, key_mean=1, score_sd=1.0)
    result = simulate.replicate(np.random.default_rng(5), problem)

    rng = np.random.default_rng(5)
    keys, queries = simulate.calibrated(rng, problem)
    frames = [np.linalg.svd(rows)[2][:2] for rows in (keys, np.vstack([keys, queries]))]
    products = [best_product(keys, queries, 2), *(f.T @ f for f in frames)]
    products.append(best_product(keys[:-1], queries, 2))
    tokens, asked = rng.standard_normal((64, 16)), rng.standard_normal((simulate.FRESH, 8))
    new, values = tokens[:, :8] @ problem.of_keys + problem.mean, tokens @ problem.of_values
    target = lambda x: np.asarray(problem.target(x))  # noqa: E731

    def weights(query, product):
        return softmax(new @ product @ query / problem.temperature)

    every, heads = [np.eye(8), *products], problem.of_queries
    moments = problem.key_moment, sum(h.T @ h for h in heads)
    for place, product in enumerate(products):
        change = product - np.eye(8)
        score = np.trace(change.T @ moments[0] @ change @ moments[1])
        assert result["score"][place] == pytest.approx(score)
        moved = [
            (weights(x @ h, product) - weights(x @ h, every[0])) @ values
            for h in heads
            for x in asked
        ]
        assert result["output"][place] == pytest.approx(np.square(moved).sum())
    for place, product in enumerate(every[:2]):
        errors = []
        for x in problem.points:
            w = np.mean([weights(x @ h, product) for h in heads], axis=0)
            off = w @ target(tokens[:, :8]) - target(x[None])[0]
            errors.append(off**2 + problem.noise_sd**2 * (w @ w))
        assert result["mse"][place] == pytest.approx(np.mean(errors), rel=1e-5)
    ratios = []
    for h in heads:
        rows = [[weights(x @ h, p) for x in asked] for p in every[:2]]
        lost = (asked @ h) @ (products[0] - np.eye(8)).T @ new.T / problem.temperature
        size = np.linalg.norm(lost, 2) * np.linalg.norm(values, 2)
        ratios.append(np.linalg.norm((np.array(rows[1]) - rows[0]) @ values, 2) / size)
    assert result["bound"] == pytest.approx(max(ratios))


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

"""The experiment `lottery_tickets`: a batch by all subsets."""

from itertools import product
from math import ceil, log

import numpy as np
import pytest
from scipy.special import softmax

from experiments.lottery_tickets import problems, simulate
from sims.montecarlo.draws import Draw
from tests.experiments.drawing import fields_of

SOURCES = 3


@pytest.fixture
def problem():
    law = {"dimension": 2, "norm": 0.8, "blocks": 2, "heads": 2, "tokens": 3}
    return problems.make_problem(fields_of("lottery_tickets", **law, accuracy=0.3))


def nearest(pool, goal):
    """Entries by all subsets of the pool's items (…, n')."""
    masks = np.array(list(product((0, 1), repeat=pool.shape[-1])))
    sums = pool @ masks.T
    place = np.abs(sums - goal[..., None]).argmin(-1)
    return np.take_along_axis(sums, place[..., None], -1)[..., 0]


def head(tokens, score_matrix, value_matrix):
    """Attention of one input (T, d), query by query."""
    rows = [softmax(tokens @ score_matrix.T @ query) @ tokens for query in tokens]
    return np.array(rows) @ value_matrix


def series(tokens, matrices):
    for block in matrices:
        tokens = tokens + head(tokens, *block)
    return tokens


def test_a_batch_by_all_subsets(problem, monkeypatch):
    monkeypatch.setattr(simulate, "ITEMS", np.array([2, 3, 5]))
    monkeypatch.setattr(simulate, "INPUTS", 2)
    draw, goal = Draw.from_seed(1, (), SOURCES).draw(0), problem.target
    result = simulate.batch(draw, SOURCES, problem)
    rng = draw.rng()
    pool = simulate.products(rng, (SOURCES, 2, 2, 2, 2), 5)
    x = simulate.tokens(rng, (SOURCES, 2, 3, 2))
    np.testing.assert_allclose((x**2).sum(-1), 2)
    for place, items in enumerate((2, 3, 5)):
        sums = nearest(pool[..., :items], np.broadcast_to(goal[:2], pool.shape[:-1]))

        def largest(network, sums=sums):
            return [
                max(np.linalg.norm(network(a, s) - network(a, goal[:2]), axis=-1).max() for a in i)
                for i, s in zip(x, sums, strict=True)
            ]

        outputs = largest(lambda a, m: head(a, *m[0]))
        assert result["log_output"][place] == pytest.approx(np.log(outputs).mean())
        assert result["mean_output"][place] == pytest.approx(np.mean(outputs))
        error = np.abs(sums - goal[:2])
        assert result["log_entry"][place] == pytest.approx(np.log(error[:, 0]).mean())
        ratio = np.log(largest(series) / error.reshape(SOURCES, -1).max(1)).mean()
        assert result["log_ratio"][place] == pytest.approx(ratio)
    for place, factor in enumerate(problem.factors):
        scores = np.broadcast_to(goal[0, 0], (SOURCES, 2, 2))
        error = np.abs(nearest(factor * pool[:, 0, 0, ..., :3], scores) - scores)
        assert result["log_scaled"][place] == pytest.approx(np.log(error).mean())


def test_the_theorem_is_tried_at_its_printed_widths(problem, monkeypatch):
    """Items n_K/d of ``C log(8Hα³d^{3/2}/ε)`` and ``C log(2Hαd^{3/2}/ε)``, α = √d; all subsets."""
    monkeypatch.setattr(simulate, "INPUTS", 2)
    monkeypatch.setattr(simulate, "CONSTANT", 1.2)
    result = simulate.failure_share(np.random.default_rng(2), 40, problem)
    rng, sums = np.random.default_rng(2), np.empty((40, 2, 2, 2, 2))
    for part, size in enumerate((8 * 2 * 2**1.5 * 2**1.5, 2 * 2 * 2**0.5 * 2**1.5)):
        pool = simulate.products(rng, (40, 2, 2, 2), ceil(1.2 * log(size / 0.3)))
        sums[:, :, part] = nearest(pool, np.broadcast_to(problem.target[:2, part], (40, 2, 2, 2)))
    missed = []
    for inputs, pruned in zip(simulate.tokens(rng, (40, 2, 3, 2)), sums, strict=True):
        gaps = [
            sum(head(x, *pruned[h]) - head(x, *problem.target[h]) for h in range(2)) for x in inputs
        ]
        missed.append(np.linalg.norm(gaps, axis=-1).max() > 0.3)
    assert 0 < np.mean(missed) < 1
    assert result == np.mean(missed)
    monkeypatch.setattr(simulate, "CONSTANT", 12.0)
    assert simulate.failure_share(np.random.default_rng(2), 40, problem) == 0


def test_factors_are_those_of_the_stated_scales(problem):
    """s²/√n_K of n_K^¼ and of Xavier's scale."""
    width = 2 * problems.ITEMS[problems.FEW]
    scales = np.array([width**0.25, (6 / (2 + width)) ** 0.5])
    np.testing.assert_allclose(problem.factors, scales**2 / width**0.5)

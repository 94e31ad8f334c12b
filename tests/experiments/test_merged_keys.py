"""The experiment `merging`: tuned temperatures, errors by plain loops, gates and keys."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import softmax

from experiments.merging import heads, simulate, tuning
from experiments.merging.problems import Problem
from sims.montecarlo.draws import PILOT, Draw
from sims.study.study import Fields
from tests.by_hand import waves
from tests.experiments.drawing import fields_of

TUNED = (0.7, 1.9, 1.1)


def drawn(number=0, **changes):
    """A problem of few keys, at temperatures that nothing has chosen."""
    own = {"keys": 24, "query_count": 2} | changes
    return Problem(fields_of("merging", number, **own), tuned=TUNED)


def by_loops(problem, keys, gates, bandwidth, stride):
    """Estimates and noise (…, Q) of sequences (…, n, d), for slots of one gate a key."""
    values = waves(problem.target, keys)
    estimates, squares = [], []
    for x in problem.queries:
        weights = np.zeros(keys.shape[:-1])
        for frame in problem.frames:
            scores = []
            for first in range(0, keys.shape[-2], stride):
                inside = range(first, first + stride)
                k = sum(gates[..., i, None] * keys[..., i, :] for i in inside) @ frame
                q = x @ frame
                gap = ((q - k) ** 2).sum(-1)
                own = -gap / 2 if problem.drawn["kernel"] == "gaussian" else k @ q
                scores.append(own / bandwidth**2)
            share = softmax(np.stack(scores, -1), axis=-1)
            weights += np.repeat(share, stride, axis=-1) * gates / 2
        estimates.append((weights * values).sum(-1))
        squares.append((weights**2).sum(-1))
    return np.stack(estimates, -1), np.stack(squares, -1)


@pytest.mark.parametrize("kernel", ["softmax", "gaussian"])
@pytest.mark.parametrize("gates", ["fixed", "normalised"])
def test_errors_by_plain_loops_are_at_the_tuned_temperatures(kernel, gates):
    """A batch that chose its temperatures itself would have other errors."""
    problem = drawn(kernel=kernel, gates=gates, stride=3, noise_sd=0.7)
    draw = Draw.from_seed(1, (), 3).draw(2)
    result = simulate.errors(draw, 3, problem)
    random = heads.jax.random.split(draw.key, 3)
    sequences = np.asarray(heads.draw_sequences(problem.design, random, 24))
    truth = waves(problem.target, problem.queries)
    every_third = sequences[:, ::3]
    cases = [(1, TUNED[0]), (3, TUNED[1]), (3, TUNED[0]), (1, TUNED[2])]
    for place, (stride, bandwidth) in enumerate(cases):
        keys = every_third if place == 3 else sequences
        gates_of_keys = np.ones(keys.shape[:2])
        if stride > 1:
            chunks = sequences.reshape(3, -1, stride, 4)
            gates_of_keys = heads.draw_gates(problem, chunks).reshape(3, 24)
        centre, squares = by_loops(problem, keys, gates_of_keys, bandwidth, stride)
        expected = ((centre - truth) ** 2 + 0.49 * squares).mean()
        assert result["mse"][place] == pytest.approx(expected, rel=1e-9)


def test_temperatures_are_tuned_by_draws_that_do_not_judge():
    """The least error of the pilot's 48 sequences, at every bandwidth of the grid."""
    found = 0
    for number in range(6):
        fields = Fields(fields_of("merging", number, keys=24, stride=4), 3, number)
        problem = tuning.problem(fields)
        plain = Problem(fields)
        tried = plain.bandwidth * tuning.GRID
        draw = Draw.from_seed(fields["pilot"], (), 48)
        best = []
        for kind in range(3):
            over = [tried if place == kind else [] for place in range(3)]
            errors = heads.errors_of(plain, draw.draw(PILOT).key, 48, over)["mse"]
            best.append(tried[errors.argmin()])
        if problem is None:
            assert set(best[:2]) & {tried[0], tried[-1]}
            continue
        found += 1
        np.testing.assert_allclose(problem.tuned, best)
        judged = simulate.errors(draw.draw(0), 8, problem)
        other = replace(problem, drawn=fields | {"pilot": fields["pilot"] + 1})
        np.testing.assert_array_equal(simulate.errors(draw.draw(0), 8, other)["mse"], judged["mse"])
    assert found >= 2


def gates_by_hand(problem, keys, stride):
    drawn_gates, count = problem.drawn["gates"], keys.shape[1]
    if drawn_gates == "mean":
        return np.full(count, 1 / stride)
    logits = problem.drawn["spread"] * problem.raw_gates
    if drawn_gates == "fixed":
        raw = np.exp(np.tile(logits, count // stride))
    else:
        raw = 1 / (1 + np.exp(-keys @ logits))
    if drawn_gates == "printed":
        return raw * 2 / stride
    slots = raw.reshape(*raw.shape[:-1], -1, stride)
    return raw / np.repeat(slots.sum(-1), stride, axis=-1)


def test_gates_and_correlations_are_those_of_the_drawn_fields():
    """Of 40 problems, key by key; autoregressions of order 2 by Yule and Walker."""
    keys = np.random.default_rng(9).normal(size=(6, 24, 4))
    for number in range(40):
        problem = drawn(number, correlated=bool(number % 2))
        of_keys = gates_by_hand(problem, keys, problem.drawn["stride"])
        chunks = keys.reshape(6, -1, problem.drawn["stride"], 4)
        found = heads.draw_gates(problem, chunks).reshape(6, 24)
        np.testing.assert_allclose(found, np.broadcast_to(of_keys, found.shape), rtol=1e-12)
        root = problem.drawn["persistence"] if problem.drawn["correlated"] else 0.0
        second = root if problem.drawn["smooth"] else 0.0
        near = (root + second) / (1 + root * second)
        expected = [1.0, near, (root + second) * near - root * second]
        np.testing.assert_allclose(problem.design.autocorrelation(3), expected, rtol=1e-9)


@pytest.mark.parametrize(("kernel", "unit"), [("gaussian", 2.0), ("softmax", 1.0)])
def test_bandwidths_are_drawn_in_units_of_the_width_for_gaussian_heads(kernel, unit):
    problem = drawn(kernel=kernel, width=4)
    assert problem.bandwidth == pytest.approx(unit * problem.drawn["bandwidth"])

"""The experiment `merging`: errors by plain loops, and gates."""

import numpy as np
import pytest

from sims.montecarlo.draws import Draw
from sims.problem.law import Law
from sims.study.experiment import load_experiment

EXPERIMENT = load_experiment("merging")
problems, simulate, statistic = (
    EXPERIMENT.module(name) for name in ("problems", "simulate", "statistic")
)


def drawn(**changes):
    law = EXPERIMENT.spec.law | {"keys": 24, "query_count": 2} | changes
    return problems.Problem(Law(law).draw(3, 0))


def by_loops(problem, keys, place, stride):
    """Errors of one sequence at one bandwidth: the estimate and its noise, by query."""
    fields, result = problem.drawn, []
    b = problem.bandwidth * problems.GRID[place]
    gates = np.ones((1, len(keys))) if stride == 1 else simulate.gates_of(problem, keys[None])
    for x in problem.queries:
        weights = np.zeros(len(keys))
        for frame in problem.frames:
            scores = []
            for first in range(0, len(keys), stride):
                inside = range(first, first + stride)
                k, q = sum(gates[0, i] * keys[i] for i in inside) @ frame, x @ frame
                apart = q @ k if fields["kernel"] == "softmax" else -((q - k) ** 2).sum() / 2
                scores.append(apart / b**2)
            parts = np.exp(np.array(scores) - max(scores))
            weights += np.repeat(parts / parts.sum(), stride) * gates[0] / 2
        result.append((weights @ np.asarray(problem.target(keys)), (weights**2).sum()))
    return np.array(result).T


@pytest.mark.parametrize("kernel", ["softmax", "gaussian"])
@pytest.mark.parametrize("gates", ["fixed", "normalised"])
def test_errors_by_plain_loops(kernel, gates):
    problem = drawn(kernel=kernel, gates=gates, stride=3, noise_sd=0.7)
    draw = Draw.from_seed(1, (), 3).draw(2)
    result = simulate.errors(draw, 3, problem)
    keys = np.asarray(
        simulate.sequences(problem.design, simulate.jax.random.split(draw.key, 3), 24)
    )
    truth = np.asarray(problem.target(problem.queries))
    for over, stride in enumerate((1, 3)):
        for place in (0, 8, 14):
            parts = np.array([by_loops(problem, one, place, stride) for one in keys])
            centre, noise = parts[:, 0], 0.49 * parts[:, 1]
            expected = ((centre - truth) ** 2 + noise).mean()
            assert result["mse"][over, place] == pytest.approx(expected, rel=1e-9)
            spread = (centre.var(0, ddof=1) + noise.mean(0)).mean()
            assert result["variance"][over, place] == pytest.approx(spread, rel=1e-9)


def test_gates_are_what_their_names_say():
    """Normalised ones sum to 1 in every slot, printed ones on average; a larger projection has a
    larger gate."""
    keys = np.random.default_rng(0).normal(size=(400, 24, 4))
    sums = {
        kind: simulate.gates_of(drawn(gates=kind, stride=4), keys).reshape(400, 6, 4).sum(-1)
        for kind in ("mean", "fixed", "normalised", "printed")
    }
    for kind in ("mean", "fixed", "normalised"):
        np.testing.assert_allclose(sums[kind], 1, rtol=1e-12)
    assert sums["printed"].mean() == pytest.approx(1, abs=0.02)
    assert sums["printed"].std() > 0.01
    problem = drawn(gates="printed", stride=4)
    order = np.argsort(keys[0] @ problem.raw_gates)
    assert (np.diff(simulate.gates_of(problem, keys)[0][order]) > 0).all()

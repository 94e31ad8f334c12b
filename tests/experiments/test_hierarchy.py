"""The experiment `hierarchy`: simulators by plain loops, mixtures by theory."""

import numpy as np
import pytest

from experiments.hierarchy import predict, problems, simulate
from sims.attention import hierarchy
from tests.experiments.drawing import fields_of


def drawn(number=0, **changes):
    return problems.Problem(fields_of("hierarchy", number, **changes))


@pytest.mark.parametrize("target", ["geometric", "power law", "any order"])
def test_errors_of_scores_by_whole_matrices(target):
    """The same draws, all pairs of 16 tokens: a target of four levels, heads of two features."""
    problem = drawn(tokens=16, width=3, head_width=2, target=target)
    result = simulate.errors(np.random.default_rng(4), problem)
    rng, size = np.random.default_rng(4), problem.singular_values
    x = rng.normal(size=(16, 3))
    left, right = simulate.ortho_group.rvs(3, 8, rng).reshape(2, 4, 3, 3)
    full, narrow, signal = [], [], x
    for level in range(4):
        z = signal[np.arange(16) // 2**level]
        full.append(z @ (left[level] * size) @ right[level] @ z.T)
        narrow.append(z @ (left[level] * size * [1, 1, 0]) @ right[level] @ z.T)
        signal = hierarchy.strided_taps(signal, problem.taps)
    target_scores = sum(w * s for w, s in zip(problem.spectrum, full, strict=True))
    assert np.linalg.norm(problem.taps) == pytest.approx(1)
    for place in range(3):
        model = problem.spectrum[: place + 1] / problem.spectrum[: place + 1].sum()
        few, rough = (
            sum(w * s for w, s in zip(model, each, strict=False)) for each in (full, narrow)
        )
        gaps = target_scores - few, few - rough, target_scores - rough
        expected = [np.sum(gap**2) for gap in gaps]
        np.testing.assert_allclose(result[:, place], expected, rtol=1e-9)


def test_mixtures_of_scales_by_loops():
    """Weights of each arm key by key; the same generator gives keys and noise."""
    problem = drawn(n=5, views=2, scales=3)
    fields, h, share = problem.drawn, problem.bandwidths, problem.shares
    result = simulate.mixtures(np.random.default_rng(3), 3, problem)
    rng = np.random.default_rng(3)
    keys, noise = rng.normal(size=(3, 5, 2)), fields["noise_sd"] * rng.normal(size=(3, 5))
    errors = []
    for some, more in zip(keys, noise, strict=True):
        for query in problem.queries:
            gap = ((some - query) ** 2).sum(1)
            kernels = np.exp(-gap / (2 * h[:, None] ** 2))
            arms = (
                np.prod(kernels ** share[:, None], axis=0),
                share @ (kernels / kernels.sum(1, keepdims=True)),
                np.exp(-gap / (2 * share @ h**2)),
            )
            labels = np.cos(fields["frequency"] * some[:, 0] + fields["phase"]) + more
            truth = np.cos(fields["frequency"] * query[0] + fields["phase"])
            errors.append([(arm @ labels / arm.sum() - truth) ** 2 for arm in arms])
    np.testing.assert_allclose(result, np.mean(errors, axis=0), rtol=1e-9)


@pytest.mark.theory
def test_mixtures_are_those_of_theory():
    """Near and far scales of many keys, within a twentieth."""
    for step in (1.2, 2.5):
        problem = drawn(n=512, views=1, scales=3, finest=0.4, step=step, noise_sd=1.0, reach=0.2)
        expected, known = predict.mixtures(problem)
        assert known
        result = simulate.mixtures(np.random.default_rng(6), 1500, problem)
        np.testing.assert_allclose(result, expected, rtol=0.05)

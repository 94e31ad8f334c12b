"""The experiment `hierarchy`: simulators by whole matrices."""

import numpy as np
import pytest

from experiments.hierarchy import problems, simulate
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

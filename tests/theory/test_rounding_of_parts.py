"""At which heads and queries conditioning is looked at, and how sources of rounding add up."""

import numpy as np
import pytest

from sims.errors import InputError
from sims.problem import DESIGNS, TARGETS, Heads, Task
from sims.theory import rounding

pytestmark = pytest.mark.theory


def test_conditioning_is_looked_at_where_it_is_worst():
    """Of seven heads the four narrowest with their own frames, of five queries the two farthest."""
    bandwidth = np.array([0.9, 0.2, 1.4, 0.3, 0.1, 2.0, 0.4])
    frames = np.arange(14.0).reshape(7, 2, 1) + 1
    queries = np.array([[0.1, 0.2], [3.0, -3.0], [0.5, 0.5], [-4.0, 0.0], [1.0, -1.0]])
    seen = []

    def parts(task, heads, x):
        seen.append((np.asarray(heads.bandwidth), np.asarray(heads.frames), x))
        return np.ones((2, len(x), heads.count, heads.count))

    task = Task(DESIGNS["isotropic"](2), TARGETS["constant"](2), 1.0)
    heads = Heads(frames, "gaussian", bandwidth, 2 * frames)
    found = rounding.of_conditioning(parts, task, heads, queries)
    assert found == (0.0, 0.0)
    for narrow, own, far in seen:
        np.testing.assert_allclose(narrow, [0.1, 0.2, 0.3, 0.4], rtol=1e-12)
        np.testing.assert_allclose(own, frames[[4, 1, 3, 6]], rtol=1e-12)
        np.testing.assert_allclose(sorted(far.tolist()), [[-4, 0], [3, -3]], rtol=1e-12)


def test_sources_of_rounding_add_up():
    """Two that are below a limit of 0.01 by themselves are together above it."""
    one, other = rounding.Shares(1e-3, 2e-3), rounding.Shares(3e-3, 5e-3)
    assert rounding.said("first", one, other) == {"rounding": pytest.approx(7e-3)}
    said = rounding.said("first", one, other, other)
    assert said["rounding"] == pytest.approx(1.2e-2)
    assert "0.01 of them" in said["faults"][0]
    with pytest.raises(InputError, match=r"rounding by 0\.012 of the MSE"):
        rounding.said("first", *[other] * 4)

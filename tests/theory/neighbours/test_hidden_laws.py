"""The law of hidden scores by the recursion itself."""

import numpy as np
import pytest

from sims.theory.neighbours import hidden

pytestmark = pytest.mark.theory


@pytest.mark.parametrize("start", ["zero", "copy"])
def test_shares_by_running_the_recursion(start):
    """Unit vectors for scores: the hidden scores are the shares."""
    h = np.eye(6)[0] * (1.0 if start == "copy" else 0.4)
    for layer in range(1, 6):
        h = 0.6 * h + 0.4 * np.eye(6)[layer]
    np.testing.assert_allclose(hidden.shares(5, 0.6, start), h, rtol=1e-14)

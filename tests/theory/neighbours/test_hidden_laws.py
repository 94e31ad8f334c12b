"""Laws of hidden scores by ways of their own: the recursion itself, and layers of tokens."""

import numpy as np
import pytest

from sims.attention.hidden import split, split_layer
from sims.theory.neighbours import hidden
from sims.theory.neighbours.collapse import log_pull

pytestmark = pytest.mark.theory
STARTS = ("zero", "copy")


@pytest.mark.parametrize("start", STARTS)
def test_shares_by_running_the_recursion(start):
    """Unit vectors for scores: the hidden scores are the shares."""
    h = np.eye(6)[0] * (1.0 if start == "copy" else 0.4)
    for layer in range(1, 6):
        h = 0.6 * h + 0.4 * np.eye(6)[layer]
    np.testing.assert_allclose(hidden.shares(5, 0.6, start), h, rtol=1e-14)


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize(("value", "skip", "memory"), [(0.8, 0.1, 0.6), (1.0, 0.0, 0.0)])
def test_simplex_recursion_by_layers_of_tokens(start, value, skip, memory):
    """Layers that tests/attention/test_hidden.py holds to decimals, until log a is below −10⁴."""
    simplex = hidden.Simplex(3, 0.6, 1.3, value)
    stream, sizes = split(np.column_stack([0.6 * (np.eye(3) - 1 / 3), np.ones(3)])), []
    for layer in range(9):
        share = 1.0 if layer == 0 and start == "copy" else 1 - memory
        stream = split_layer(stream, 1.3 * np.eye(4), value * np.eye(4), memory, skip, share)
        sizes.append(stream.log_scale + np.log(np.ptp(stream.centred[:, 0])))
    found = hidden.simplex_log_sizes(simplex, 9, memory, start, skip)
    np.testing.assert_allclose(found[1:], sizes, rtol=1e-10)
    assert (found[-1] < -1e4) == (skip == 0)


def test_pull_of_large_scores():
    """log f(b) where f is 1 to all digits: ``−n e^{−b}``."""
    assert -float(log_pull(np.log(40.0), 3)) == pytest.approx(3 * np.exp(-40.0), rel=1e-12, abs=0)

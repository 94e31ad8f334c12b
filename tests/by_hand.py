"""What many tests compute by plain NumPy, and the refusal that they expect."""

from contextlib import contextmanager

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss

from sims.base.errors import InputError
from sims.problem import TrigonometricSeries


@contextmanager
def refused(words):
    """Wrong input ends in one line, and these words are in it."""
    with pytest.raises(InputError, match=words) as caught:
        yield
    assert "\n" not in str(caught.value)


def refusals(cases, of=lambda call: call()):
    """A test of cases ``(*given, words)``: ``of(*given)`` is refused with these words."""

    @pytest.mark.parametrize("case", cases)
    def test(case):
        *given, words = case
        with refused(words):
            of(*given)

    return test


def waves(series, points):
    """Values of a trigonometric series at points (…, d)."""
    amplitude, frequency, phase = map(
        np.asarray, (series.amplitude, series.frequency, series.phase)
    )
    return np.cos(points @ frequency.T + phase) @ amplitude


def with_wave(series, amplitude, frequency=0.0):
    """A series and one more wave, of that length along the first axis."""
    wave = np.eye(1, series.dimension) * frequency
    return TrigonometricSeries(
        np.append(series.amplitude, amplitude),
        np.vstack([series.frequency, wave]),
        np.append(series.phase, 0.0),
    )


def normal_rule(size, dimension):
    """Nodes (size^d, d) and weights of a product rule for the standard normal."""
    nodes, weights = hermegauss(size)
    axes = [nodes] * dimension, [weights / weights.sum()] * dimension
    grid, mass = (np.stack(np.meshgrid(*each, indexing="ij"), -1) for each in axes)
    return grid.reshape(-1, dimension), mass.prod(-1).ravel()

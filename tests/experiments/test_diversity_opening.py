"""Equiangular heads that open: the falls of their error, step by step, and their dot in the map."""

import numpy as np
import pytest
import xarray as xr

from experiments.diversity.effects import opening, opening_for_a_target
from experiments.diversity.quantities import falls
from sims.judgement.tests import Rule, decide
from sims.study.experiment import load_experiment
from tests.experiments.helpers import results_of

LABELS = ["equiangular 0.5", "two pairs", "equiangular 1.0", "equiangular 0.0"]
SQUARES = np.array([0.25, 0.6, 1.0, 0.0])
"""Squared cosines between two heads of each, out of their order."""
BATCHES = 64


def matrices(products: np.ndarray, alone: np.ndarray) -> np.ndarray:
    """Two heads: errors ``alone`` and their products, (…, configuration, head, head2)."""
    return np.stack([np.stack([alone, products], -1), np.stack([products, alone], -1)], -2)


def gram() -> np.ndarray:
    return matrices(SQUARES, np.ones(4))


def test_falls_by_hand() -> None:
    """Errors 4, 3, 2.4 and 3 along an order: a quarter, a fifth, and a rise by a quarter."""
    alone = np.array([2.4, 9.0, 3.0, 4.0, 3.0])
    data = {"error_matrix": matrices(alone, alone)}
    np.testing.assert_allclose(falls(np.array([3, 2, 0, 4]))(data), [0.25, 0.2, -0.25])


def test_steps_are_of_the_errors_themselves_in_the_order_of_the_angle() -> None:
    """Heads get worse alone as they open, (1, 1.1, 1.6): the error falls by 0.12, then it rises."""
    rng = np.random.default_rng(3)
    common = 1 + 0.3 * rng.standard_normal((BATCHES, 1))
    own = 1e-3 * rng.standard_normal((BATCHES, 4))
    alone = np.array([1.1, 7.0, 1.0, 1.6]) * common
    products = np.array([0.66, 5.0, 1.0, 0.48]) * common + own
    data = {"error_matrix": matrices(products, alone)}
    steps = opening("regime", LABELS, data, gram())
    assert [step.label for step in steps] == [
        "equiangular 1.0 to equiangular 0.5",
        "equiangular 0.5 to equiangular 0.0",
    ]
    assert {step.points for step in steps} == {("regime",)}
    assert [step.value for step in steps] == pytest.approx([0.12, 1 - 1.04 / 0.88], abs=2e-3)
    # What both ends of a step have in common does not blur it.
    assert all(0 < step.error < 1e-3 for step in steps)
    rule = Rule("ordering", 0.0, 0.95, sequential=True)
    assert decide(steps[:1], rule).verdict == "supported"
    assert decide(steps, rule).verdict == "refuted"


def test_least_fall_of_a_target_is_chosen_by_the_other_half_of_its_draws() -> None:
    """Two targets, two halves each, errors from aligned to orthogonal.

    The first falls least at its second step by either half (by −0.25 and by 0.1). The second by
    its first step in one half (0.1, judged at 0.5), by its second in the other (0, judged at 0.4).
    """
    errors = np.array(
        [
            [[1.0, 0.8, 1.0], [1.0, 0.8, 0.72]],
            [[1.0, 0.9, 0.54], [1.0, 0.5, 0.5]],
        ]
    )
    every = np.full((2, 2, 4), 9.0)
    every[..., [2, 0, 3]] = errors
    dims = ("batch", "half", "configuration", "head", "head2")
    data = xr.Dataset({"target_error_matrix": (dims, matrices(every, every))})
    results = results_of(load_experiment("diversity"), {"r, target by target": data}, {})
    effect = opening_for_a_target(results, "r", LABELS, gram())
    assert (effect.points, effect.unit) == (("r, target by target",), "targets")
    assert effect.values == pytest.approx([(-0.25 + 0.1) / 2, (0.5 + 0.4) / 2])

"""Where stated errors of exact theory come from: scrambles, radii of the nearest, weights."""

from types import SimpleNamespace

import numpy as np
import pytest

from sims.problem import DESIGNS, TARGETS, Heads, Task
from sims.problem.kernels import KERNELS
from sims.theory.exact import nearest, prediction
from sims.theory.exact.conditioning import GaussianLaw
from sims.theory.exact.items import HeadItem, PairItem
from sims.theory.exact.pairs import Pair
from sims.theory.exact.refinement import Refinement, compare
from sims.theory.exact.solution import untold
from sims.weights import FACTORIES

pytestmark = pytest.mark.theory
SCRAMBLES = Pair(
    np.array([1.0, 1.2, 0.7, 1.1]), np.array([0.5, 0.4, 0.6, 0.7]), np.array([0.0, 0.02, 0.0, 0.02])
)


def test_a_pair_is_known_to_three_standard_errors_of_its_scrambles():
    """Beside them stands what no scramble shows: two tails, and the mean defect of 0.01."""
    value, error = compare(SCRAMBLES, True, None, 1e-3)
    for name in ("signal", "noise"):
        each = getattr(SCRAMBLES, name)
        mean = sum(each) / 4
        standard = (sum((v - mean) ** 2 for v in each) / 3 / 4) ** 0.5
        assert getattr(value, name) == pytest.approx(mean)
        assert getattr(error, name) == pytest.approx(3 * standard + 0.012 * mean)


@pytest.mark.parametrize("grid", [0.01, 0.5])
def test_scrambles_take_over_from_a_grid_only_where_they_are_better_known(grid):
    """Of a signal and noise of 1 the grid knows a share; scrambles know about 0.3 of theirs."""
    law = GaussianLaw(DESIGNS["isotropic"](1), TARGETS["constant"](1))
    refinement = Refinement(KERNELS["gaussian"], 1, 0.0, 20, law, 8, set())
    of_head = SimpleNamespace(reach=1.0, signal=1.0, noise=1.0, defect=0.0, centre=0.0)
    heads = [HeadItem(None, None, 0.0, value=of_head) for _ in range(2)]
    before = Pair(*map(np.asarray, (1.0, 1.0, 0.0)))
    item = PairItem(*heads, None, before, Pair(*map(np.asarray, (grid, grid, 0.0))))
    refinement._update_pair(item, SCRAMBLES, True, 1e-9)
    taken = grid > 0.4
    assert item.value.noise == pytest.approx(0.55 if taken else 1.0)
    assert (item.error.noise == pytest.approx(grid)) != taken


def test_the_terms_of_a_nearest_head_are_as_uncertain_as_two_levels_and_the_defect_say(
    monkeypatch,
):
    """E S² − (E S)², E S = −2 known to 0.01 and E S² = 5 to 0.003, with a defect of 0.16.

    ``0.003 + 2·2·0.01 + 0.16·(5 − 4)`` of the signal, 0.01 + 0.16·1 of the mean, and
    ``0.02 + 0.16·0.5`` of the noise.
    """
    last = nearest.Found(1.16, -2.0, 5.0, 0.5, 1.0, 1.0)
    levels = dict.fromkeys(nearest.LEVELS, last._replace(mean=-2.01, square=5.003, noise=0.48))
    levels[nearest.LEVELS[-1]] = last
    monkeypatch.setattr(nearest, "averaged", lambda head, n, k, limit, level: levels[level])
    monkeypatch.setattr(nearest, "placed", lambda *_: (5, None, [[None]]))
    one = SimpleNamespace(limit=3.0, overlap=2.0, square=1.0)
    monkeypatch.setattr(nearest, "alone", lambda *_: one)
    task = Task(DESIGNS["isotropic"](1), TARGETS["constant"](1), 1.0)
    heads = Heads([[[1.0]]], FACTORIES["top_k"](5, scores="distance"), 1.0)
    found, _ = nearest.solve_nearest(
        task, heads, 20, np.zeros((1, 1)), np.zeros(1), 1e-9, untold
    )  # fmt: skip
    assert (found.mean.item(), found.signal.item()) == (1.0, 1.0)
    assert found.mean_error.item() == pytest.approx(0.01 + 0.16)
    assert found.signal_error.item() == pytest.approx(0.003 + 0.04 + 0.16)
    assert found.noise_error.item() == pytest.approx(0.02 + 0.16 * 0.5)
    assert not found.converged.any()


def test_forms_in_the_weights_are_off_by_at_most_each_weights_size():
    """``Σ_hg |α_h α_g| e_hg`` with one weight below zero, written out over pairs of heads."""
    alpha = np.array([1.7, -0.7])
    product = np.array([[0.3, 0.1], [0.1, 0.2]])
    signal, noise = np.array([[0.05, 0.02], [0.02, 0.04]]), np.array([[0.5, 0.25], [0.25, 0.75]])
    found = prediction._errors(
        np.array([[0.01, 0.02]]), product[None], signal[None], noise[None], alpha
    )
    size = np.abs(alpha)
    of_bias = sum(size[h] * size[g] * product[h, g] for h in (0, 1) for g in (0, 1))
    of_rest = sum(size[h] * size[g] * (signal + noise)[h, g] for h in (0, 1) for g in (0, 1))
    assert found["squared_bias_error"].item() == pytest.approx(of_bias)
    assert found["ensemble_variance_error"].item() == pytest.approx(of_rest)
    assert found["mse_error"].item() == pytest.approx(of_bias + of_rest)

"""Advice from theory: the best split by brute force, and costs of a kept temperature."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from sims.advise import advise_context, advise_split, read_context, rests_on
from sims.advise.context import SMOOTHNESS
from sims.advise.split import DECAYS, query_scale
from sims.theory import FEW_KEYS, view_terms


@pytest.mark.theory
@pytest.mark.parametrize(
    ("kernel", "smoothness", "n"), [("gaussian", 1.5, 4096), ("softmax", None, 512)]
)
def test_the_split_is_the_minimum_over_all_bandwidths(kernel, smoothness, n):
    """Of 125 bandwidths of every divisor, those with enough effective keys."""
    b = np.geomspace(0.1 if kernel == "gaussian" else 0.93, 4, 125)
    options = {"noise": 0.3, "query_scale": query_scale(kernel), "nu": smoothness, "kernel": kernel}
    for advice in advise_split(n, 24, 1.0, smoothness, kernel):
        decay = DECAYS[advice.decay]
        least = {}
        for width in (1, 2, 3, 4, 6, 8, 12, 24):
            terms = view_terms(width, b, relevance=decay / decay.sum(), **options)
            heads, keys = 24 // width, n / terms.noise_variance
            variance = terms.signal_variance + terms.noise_variance
            covariance = terms.signal_covariance + terms.noise_covariance
            bias = terms.limit_squared + 2 * terms.limit_ratio / n + terms.ratio_squared / n**2
            error = bias + (variance + (heads - 1) * covariance) / (heads * n)
            few = keys if kernel == "gaussian" else np.minimum(keys, keys**2 / n)
            least[width] = error[few >= FEW_KEYS].min()
        best = min(least, key=least.get)
        assert (advice.best.width, advice.best.heads) == (best, 24 // best)
        assert advice.best.error == pytest.approx(least[best], rel=5e-3)
        close = [width for width in least if least[width] <= 1.05 * least[best]]
        assert [one.width for one in advice.close] == close


@pytest.mark.theory
@pytest.mark.parametrize("beta", SMOOTHNESS)
@pytest.mark.parametrize("d", [1, 4, 16])
def test_the_cost_is_that_of_radii_tuned_numerically(d, beta):
    """``A h^{2β} + B/(n h^d)``, its least h at 1,024 keys kept, moved as each rule moves it."""

    def error(h, n):
        return 3 * h ** (2 * beta) + 7 / (n * h**d)

    def least(n):
        found = minimize_scalar(
            lambda t: np.log(error(np.exp(t), n)), bounds=(-12, 4), options={"xatol": 1e-10}
        )
        return np.exp(found.x)

    short, long = 1024, 32 * 1024
    log = np.log(short) / np.log(long)
    powers = np.array([1, 1.5, 2, 3])  # sparsemax, 5/3, 1.5, 4/3
    moves = np.r_[1.0, log**0.5, 32 ** (-1 / (2 * powers + d))]
    expected = error(least(short) * moves, long) / error(least(long), long)
    cost = advise_context(*read_context("1k:32k")).costs["cost"].sel(dimension=d, smoothness=beta)
    np.testing.assert_allclose(cost, expected, rtol=1e-5)


def test_a_longer_context_costs_softmax_more_than_entmax():
    """Of smooth targets in few dimensions; nothing where the context hardly grows."""
    assert float(abs(advise_context(4096, 4100).costs["cost"] - 1).max()) < 0.01
    advice = advise_context(*read_context("4k:128k"))
    cost = advice.costs["cost"].sel(smoothness=2.0, dimension=[1, 2])
    assert float(cost.sel(rule="softmax").min()) > 2
    assert float(cost.sel(rule="1.5-entmax").max()) < 1.15
    assert float(advice.costs["cost"].min()) > 1 - 1e-12
    assert advice.repair == "5/3-entmax"


def test_every_advice_names_questions_that_are_asked_and_what_is_published():
    for one in (*rests_on("data"), *rests_on("n")):
        assert one.question.endswith("?")
        assert one.answer

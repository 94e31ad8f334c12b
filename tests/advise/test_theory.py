"""Advice from theory: the best split by brute force, and costs of a kept temperature."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from sims.advise import advise_context, advise_split, read_context, rests_on
from sims.advise.context import NAMES, SMOOTHNESS, leading_order
from sims.advise.split import DECAYS, query_scale
from sims.theory import FEW_KEYS, view_terms


@pytest.mark.theory
@pytest.mark.parametrize(
    ("kernel", "smoothness", "n"), [("gaussian", 1.5, 4096), ("softmax", None, 512)]
)
def test_the_split_is_the_minimum_over_all_bandwidths(kernel, smoothness, n):
    """Of 200 bandwidths of every divisor, those with enough effective keys."""
    b, noise, budget = np.geomspace(0.01 if kernel == "gaussian" else 0.93, 4, 200), 1.0, 24
    for advice in advise_split(n, budget, noise, smoothness, kernel):
        least = {}
        for width in (k for k in range(1, budget + 1) if budget % k == 0):
            terms = view_terms(
                width,
                b,
                noise=0.3,
                relevance=DECAYS[advice.decay] / DECAYS[advice.decay].sum(),
                query_scale=query_scale(kernel),
                nu=smoothness,
                kernel=kernel,
            )
            heads, keys = budget // width, n / terms.noise_variance
            variance = terms.signal_variance / n + noise**2 * terms.noise_variance / n
            covariance = terms.signal_covariance / n + noise**2 * terms.noise_covariance / n
            bias = terms.limit_squared + 2 * terms.limit_ratio / n + terms.ratio_squared / n**2
            error = bias + variance / heads + (1 - 1 / heads) * covariance
            few = keys if kernel == "gaussian" else np.minimum(keys, keys**2 / n)
            least[width] = error[few >= FEW_KEYS].min()
        best = min(least, key=least.get)
        assert (advice.best.width, advice.best.heads) == (best, budget // best)
        assert advice.best.error == pytest.approx(least[best], rel=5e-3)
        assert [one.width for one in advice.close] == [
            k for k in sorted(least) if least[k] <= 1.05 * least[best]
        ]


@pytest.mark.theory
@pytest.mark.parametrize("beta", SMOOTHNESS)
@pytest.mark.parametrize("d", [1, 4, 16])
def test_the_leading_order_is_that_of_radii_tuned_numerically(d, beta):
    """``A h^{2β} + B/(n h^d)``, its least h at 1,000 keys kept, moved as each rule moves it."""

    def error(h, n):
        return 3 * h ** (2 * beta) + 7 / (n * h**d)

    def least(n):
        found = minimize_scalar(
            lambda t: np.log(error(np.exp(t), n)),
            bounds=(-12, 4),
            method="bounded",
            options={"xatol": 1e-10},
        )
        return np.exp(found.x)

    short, ratio = 1e3, 32.0
    log = np.log(short) / np.log(short * ratio)
    moves = {"softmax": 1.0, "softmax, log n": log**0.5}
    moves |= {
        name: ratio ** (-1 / (2 * nu + d))
        for name, nu in zip(NAMES[2:], (1, 1.5, 2, 3), strict=True)
    }
    expected = [
        error(least(short) * moves[name], short * ratio)
        / error(least(short * ratio), short * ratio)
        for name in NAMES
    ]
    np.testing.assert_allclose(leading_order(d, beta, ratio, log), expected, rtol=1e-5)


def test_a_longer_context_costs_what_theory_says():
    """Nothing where it hardly grows; for smooth targets softmax pays and entmax does not."""
    still = advise_context(4096, 4100).first_order["cost"]
    assert float(abs(still - 1).max()) < 0.01
    advice = advise_context(*read_context("4k:128k"))
    cost = advice.first_order["cost"].sel(smoothness=2.0)
    assert float(cost.sel(rule="softmax").min()) > 2
    assert float(cost.sel(rule="1.5-entmax").max()) < 1.15
    assert float(advice.first_order["cost"].min()) >= 1
    assert advice.repair == "1.5-entmax"


def test_every_advice_names_questions_that_are_asked_and_what_is_published():
    assert all(one.answer for kind in ("data", "n") for one in rests_on(kind))
    assert all(one.question.endswith("?") for kind in ("data", "n") for one in rests_on(kind))

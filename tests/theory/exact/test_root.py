"""Exact theory of adaptive radii, against leaving keys out, and against plain simulation.

Leaving out uses no Kac–Rice formula, no partitions and no frequencies: given a key (or two) the
root is below λ exactly if the sum of all others at λ exceeds what these leave of c, and the law of
that sum comes from repeated convolution on a lattice.
"""

import numpy as np
import pytest
from exact_problems import (
    AMPLITUDE,
    FRAMES,
    PHASE,
    QUERY,
    TASK,
    WAVES,
    adaptive_gaps,
    adaptive_values,
    simulated,
    target,
    two_frames,
)
from scipy.stats import norm

from sims.base.errors import InputError
from sims.problem import Heads
from sims.theory import predict
from sims.weights import FACTORIES


def heads_of(width, nu, temperature, count=1):
    rule = FACTORIES["entmax"](nu=nu, scores="distance")
    return Heads(two_frames(width)[:count], rule, temperature**0.5)


def rooted(square, nu, c):
    """λ with Σ (λ − D²)₊^ν = c, of rows of squared distances, by bisection."""
    low, high = square.min(1), square.min(1) + c ** (1 / nu)
    for _ in range(60):
        middle = (low + high) / 2
        above = (np.maximum(middle[:, None] - square, 0) ** nu).sum(1) > c
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return high


def left_out(n, nu, temperature, steps=1500, cells=2**13):
    """``E f̂``, ``n E w²`` and ``E N`` of one head with d_k = 1, by leaving one key out."""
    c = (2 * temperature * nu) ** nu
    q = float(FRAMES[:, 0] @ QUERY[0])
    theta = (np.arange(400) + 0.5) / 400 * np.pi - np.pi / 2
    # A key at coordinate t, seen on a fine grid about the query.
    t = q + 5.0 * np.sin(theta)
    mass = norm.pdf(t) * 5.0 * np.cos(theta) * np.pi / 400
    along = WAVES @ FRAMES[:, 0]
    rest = np.sum(WAVES**2, axis=1) - along**2
    mean = np.cos(np.outer(t, along) + PHASE) @ (AMPLITUDE * np.exp(-rest / 2))
    lam = np.linspace(1e-3, 8.0, steps)
    fine = norm.cdf(q + np.linspace(-5, 5, 40001))
    place = (np.linspace(-5, 5, 40001)[1:] - 5 / 40000) ** 2
    survival, tilt = np.zeros((len(lam), len(t))), np.exp(-18.0 * np.arange(cells) / (cells // 2))
    for row, level in enumerate(lam):
        # The law of K over a lattice up to c, linearly split between neighbours; and n − 1 of it.
        kernel = np.maximum(level - place, 0.0) ** nu
        at = kernel / c * (cells // 2)
        low = np.minimum(at.astype(int), cells - 2)
        share = np.clip(at - low, 0, 1)
        law = np.bincount(low, np.diff(fine) * (1 - share), cells)
        law += np.bincount(low + 1, np.diff(fine) * share, cells)
        law[0] += 1 - law.sum()
        # Tilted, so that sums beyond the lattice vanish instead of coming round again.
        both = np.fft.irfft(np.fft.rfft(law * tilt) ** (n - 1), cells) / tilt
        total = np.cumsum(both[: cells // 2 + 1])
        own = np.maximum(level - (t - q) ** 2, 0.0) ** nu
        # λ̂ > λ given this key: the others' sum stays below c less its own part.
        left = (1 - own / c) * (cells // 2) - 0.5
        value = np.interp(left, np.arange(cells // 2 + 1), total)
        survival[row] = np.where(own < c, value, 0.0)
    gap = np.maximum(lam[:, None] - (t - q) ** 2, 0.0)
    step = lam[1] - lam[0]

    def expected(power):
        """``E (λ̂ − D²)₊^a`` given the key, as ``∫ a(λ − D²)₊^{a−1} P(λ̂ > λ) dλ``."""
        return (power * gap ** (power - 1) * (gap > 0) * survival).sum(0) * step

    inside = np.array(
        [np.interp(min(s, 8.0), lam, survival[:, i]) for i, s in enumerate((t - q) ** 2)]
    )
    return (
        n * np.sum(mass * mean * expected(nu)) / c,
        n * np.sum(mass * expected(2 * nu)) / c**2,
        n * np.sum(mass * inside),
    )


@pytest.mark.theory
@pytest.mark.parametrize(("nu", "temperature", "n"), [(1.0, 14.0, 60), (2.0, 1.2, 60)])
def test_one_head_by_leaving_a_key_out(nu, temperature, n):
    """To 2e-3 of the standard deviation, of the noise and of a key: the lattice's own error."""
    exact = predict(TASK, heads_of(1, nu, temperature), n, QUERY, order="exact")
    mean, noise, attended = left_out(n, nu, temperature)
    spread = float(exact["signal_covariance"][0, 0, 0]) ** 0.5
    value = float(exact["bias"][0, 0]) + float(target(QUERY)[0])
    assert value == pytest.approx(mean, abs=2e-3 * spread)
    assert float(exact["noise_covariance"][0, 0, 0]) == pytest.approx(noise, rel=2e-3)
    assert float(exact["expected_attended"][0, 0]) == pytest.approx(attended, rel=2e-3)
    assert float(exact["defect"].max()) < 1e-5
    assert bool(exact["converged"].all())


@pytest.mark.theory
@pytest.mark.parametrize(
    ("width", "nu", "temperature", "n"), [(1, 1.0, 12.0, 50), (1, 3.0, 0.6, 60), (2, 2.0, 1.4, 90)]
)
def test_terms_by_simulation(width, nu, temperature, n):
    """Within 4.5 MCSE each: a false alarm in all below 2e-4."""
    heads, c = heads_of(width, nu, temperature, count=2), (2 * temperature * nu) ** nu
    exact = predict(TASK, heads, n, QUERY, order="exact", rtol=1e-2).isel(query=0)

    def weigh(square):
        at = rooted(square, nu, c)
        weights = np.maximum(at[:, None] - square, 0) ** nu / c
        return weights, at**0.5, (weights > 0).sum(1)

    found = simulated(np.asarray(heads.frames), n, weigh)
    for name, value in adaptive_values(exact).items():
        mean, error = found[name]
        assert abs(value - mean) < 4.5 * error, (name, value, mean, error)


@pytest.mark.theory
@pytest.mark.parametrize(("nu", "power"), [(1.0, 1.0), (2.0, 0.5), (3.0, 1 / 3)])
def test_first_order_is_its_limit(nu, power):
    """At one mean kernel the gap of every term falls like 1/n, that of attended keys, too."""
    gaps = []
    for n in (400, 800):
        rows, first, exact = adaptive_gaps(heads_of(1, nu, 0.6 * n**power), n)
        rows.append(float(exact["expected_attended"][0, 0] - first["expected_attended"][0, 0]))
        rows.append(float(exact["radius_sd"][0, 0] / first["radius_sd"][0, 0]) - 1)
        gaps.append(rows)
    np.testing.assert_allclose(np.array(gaps[0]) / gaps[1], 2.0, rtol=0.15)


def test_heads_may_change_places():
    """A pair is integrated over one head's radius inside the other's; its terms do not know it."""
    heads = heads_of(1, 1.0, 12.0, count=2)
    turned = Heads(
        np.asarray(heads.frames)[::-1], FACTORIES["entmax"](nu=1.0, scores="distance"), 12.0**0.5
    )
    one, other = (predict(TASK, h, 50, QUERY, order="exact", rtol=1e-2) for h in (heads, turned))
    for name in ("signal_covariance", "noise_covariance"):
        gap = one[name].values - other[name].values[..., ::-1, ::-1]
        error = one[f"{name}_error"].values + other[f"{name}_error"].values[..., ::-1, ::-1]
        assert (np.abs(gap) <= error).all(), name


def test_errors_are_bounds():
    """A loose answer's stated errors cover its distance from a tight one's."""
    heads = heads_of(1, 2.0, 1.2, count=2)
    loose, tight = (predict(TASK, heads, 60, QUERY, order="exact", rtol=r) for r in (1e-1, 1e-3))
    for name in ("bias", "signal_covariance", "noise_covariance", "mse"):
        distance = abs(loose[name] - tight[name])
        assert (distance <= loose[f"{name}_error"] + tight[f"{name}_error"]).all(), name


@pytest.mark.parametrize(
    ("heads", "n", "words"),
    [
        (heads_of(1, 1.0, 0.05), 60, r"keys expected within the radius.*at least 30"),
        (heads_of(1, 0.5, 9.0), 60, "heads.kernel.nu"),
        (
            Heads(FRAMES[None, :, :3], FACTORIES["sparsemax"]("distance"), 1.0),
            60,
            "heads.width",
        ),
        (Heads(FRAMES[None, :, :1], FACTORIES["sparsemax"]("dot"), 1.0), 60, "weight rule"),
    ],
)
def test_what_is_not_covered_is_one_line(heads, n, words):
    with pytest.raises(InputError, match=words) as caught:
        predict(TASK, heads, n, QUERY, order="exact")
    assert "\n" not in str(caught.value)

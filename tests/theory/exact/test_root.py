"""Exact theory of adaptive radii, against leaving keys out, and against plain simulation.

Leaving out uses no Kac–Rice formula, no partitions and no frequencies: given a key (or two) the
root is below λ exactly if the sum of all others at λ exceeds what these leave of c, and the law of
that sum comes from repeated convolution on a lattice.
"""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import norm

from sims.errors import InputError
from sims.problem import DESIGNS, Heads, Task, TrigonometricSeries
from sims.theory import predict
from sims.theory.exact import adaptive
from sims.theory.exact.root import Two
from sims.weights import FACTORIES

D = 4
FRAMES = np.linalg.qr(np.random.default_rng(4).normal(size=(D, D)))[0]
WAVES = np.array([[1.6, 0.4, 0.2, 0.1], [0.8, -1.1, 0.3, 0.2]]) @ FRAMES.T
AMPLITUDE, PHASE = np.array([1.0, 0.6]), np.array([0.4, 1.2])
QUERY = (FRAMES @ [0.7, 0.2, -0.3, 0.1])[None]
TASK = Task(DESIGNS["isotropic"](D), TrigonometricSeries(AMPLITUDE, WAVES, PHASE), 1.0)


def heads_of(width, nu, temperature, count=1, angle=0.6):
    turned = angle * FRAMES[:, :width] + (1 - angle**2) ** 0.5 * FRAMES[:, 2 : 2 + width]
    frames = np.stack([FRAMES[:, :width], turned])[:count]
    return Heads(frames, FACTORIES["entmax"](nu=nu, scores="distance"), temperature**0.5)


def target(x):
    return np.cos(x @ WAVES.T + PHASE) @ AMPLITUDE


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


CASES = [(1, 1.0, 12.0, 50), (1, 3.0, 0.6, 60), (2, 2.0, 1.4, 90), (1, 1.5, 3.0, 60)]
"""d_k, ν, temperature, n."""


def simulated(heads, nu, temperature, n, replicates=60_000, batch=4000):
    """Every term of two heads, each with its MCSE."""
    rng, c, rows = np.random.default_rng(3), (2 * temperature * nu) ** nu, []
    for _ in range(replicates // batch):
        keys = rng.normal(size=(batch, n, D))
        m = target(keys)
        weights, row = [], []
        for frame in np.asarray(heads.frames):
            square = (((keys - QUERY[0]) @ frame) ** 2).sum(2)
            at = rooted(square, nu, c)
            weights.append(np.maximum(at[:, None] - square, 0) ** nu / c)
            row += [(weights[-1] * m).sum(1), at**0.5, (weights[-1] > 0).sum(1)]
        row += [(weights[0] ** 2).sum(1), (weights[0] * weights[1]).sum(1)]
        rows.append(np.column_stack(row))
    f, radius, attended, g, _, _, own, product = np.concatenate(rows).T
    signal, cross = (f - f.mean()) ** 2, (f - f.mean()) * (g - g.mean())
    spread = (radius - radius.mean()) ** 2
    parts = {"mean": f, "signal": signal, "cross signal": cross, "noise": own}
    parts |= {"cross noise": product, "attended": attended, "spread": spread}
    return {k: (v.mean(), v.std() / len(v) ** 0.5) for k, v in parts.items()}


@pytest.mark.theory
@pytest.mark.parametrize(("width", "nu", "temperature", "n"), CASES)
def test_terms_by_simulation(width, nu, temperature, n):
    """Within 4.5 MCSE each: a false alarm in all below 2e-4."""
    heads = heads_of(width, nu, temperature, count=2)
    exact = predict(TASK, heads, n, QUERY, order="exact", rtol=1e-4).isel(query=0)
    found = simulated(heads, nu, temperature, n)
    values = {
        "mean": float(exact["bias"][0]) + float(target(QUERY)[0]),
        "signal": float(exact["signal_covariance"][0, 0]),
        "cross signal": float(exact["signal_covariance"][0, 1]),
        "noise": float(exact["noise_covariance"][0, 0]),
        "cross noise": float(exact["noise_covariance"][0, 1]),
        "attended": float(exact["expected_attended"][0]),
        "spread": float(exact["radius_sd"][0]) ** 2,
    }
    for name, value in values.items():
        mean, error = found[name]
        assert abs(value - mean) < 4.5 * error, (name, value, mean, error)


@pytest.mark.theory
@pytest.mark.parametrize(("nu", "power"), [(1.0, 1.0), (2.0, 0.5), (3.0, 1 / 3)])
def test_first_order_is_its_limit(nu, power):
    """At one mean kernel the gap of every term falls like 1/n, that of attended keys, too."""
    gaps = []
    for n in (400, 800):
        heads = heads_of(1, nu, 0.6 * n**power, count=1)
        first, exact = (
            predict(TASK, heads, n, QUERY, order=order, **options)
            for order, options in (("first", {}), ("exact", {"rtol": 1e-8}))
        )
        limit = float(first["limit"][0, 0]) - float(target(QUERY)[0])
        part = [float(data["bias"][0, 0]) - limit for data in (first, exact)]
        rows = [part[1] / part[0] - 1]
        for name in ("signal_variance", "noise_variance"):
            rows.append(float(exact[name] / first[name]) - 1)
        rows.append(float(exact["expected_attended"][0, 0] - first["expected_attended"][0, 0]))
        rows.append(float(exact["radius_sd"][0, 0] / first["radius_sd"][0, 0]) - 1)
        gaps.append(rows)
    np.testing.assert_allclose(np.array(gaps[0]) / gaps[1], 2.0, rtol=0.15)


def test_the_covariance_of_a_pair_is_less_the_product_of_means(monkeypatch):
    """Either way round; that product is of order 1/n², within what sampling resolves above."""
    found = {}
    monkeypatch.setattr(adaptive, "two_heads", lambda *_: Two(total=1.0, product=0.7, noise=0.2))
    solution = SimpleNamespace(
        signal=np.ones((1, 2, 2)), put_numbers=lambda at, numbers, *_: found.update({at: numbers})
    )
    adaptive._put_pair(solution, 0, (0, 1), (None, None), None, means=0.3, rtol=1e-3)
    assert found.keys() == {(0, 0, 1), (0, 1, 0)}
    for numbers in found.values():
        assert numbers == pytest.approx((0.4, 0.2, 0.0))


def test_heads_may_change_places():
    """A pair is integrated over one head's radius inside the other's; its terms do not know it."""
    heads = heads_of(1, 1.0, 12.0, count=2)
    turned = Heads(
        np.asarray(heads.frames)[::-1], FACTORIES["entmax"](nu=1.0, scores="distance"), 12.0**0.5
    )
    one, other = (predict(TASK, h, 50, QUERY, order="exact", rtol=1e-4) for h in (heads, turned))
    for name in ("signal_covariance", "noise_covariance"):
        gap = one[name].values - other[name].values[..., ::-1, ::-1]
        error = one[f"{name}_error"].values + other[f"{name}_error"].values[..., ::-1, ::-1]
        assert (np.abs(gap) <= error).all(), name


def test_errors_are_bounds():
    """A loose answer's stated errors cover its distance from a tight one's."""
    heads = heads_of(1, 2.0, 1.2, count=2)
    loose, tight = (predict(TASK, heads, 60, QUERY, order="exact", rtol=r) for r in (1e-2, 1e-6))
    for name in ("bias", "signal_covariance", "noise_covariance", "mse"):
        distance = abs(loose[name] - tight[name])
        assert (distance <= loose[f"{name}_error"] + tight[f"{name}_error"]).all(), name


@pytest.mark.parametrize(
    ("heads", "n", "options", "words"),
    [
        (heads_of(1, 1.0, 0.05), 60, {}, r"keys expected within the radius.*at least 30"),
        (heads_of(1, 1.0, 9.0), 20, {}, r"keys expected within the radius.*at least 30"),
        (heads_of(1, 1.0, 9.0), 60, {"exchangeable": True}, "exchangeable"),
        (heads_of(1, 0.5, 9.0), 60, {}, "heads.kernel.nu"),
        (
            Heads(FRAMES[None, :, :3], FACTORIES["sparsemax"]("distance"), 1.0),
            60,
            {},
            "heads.width",
        ),
        (Heads(FRAMES[None, :, :1], FACTORIES["sparsemax"]("dot"), 1.0), 60, {}, "weight rule"),
    ],
)
def test_what_is_not_covered_is_one_line(heads, n, options, words):
    with pytest.raises(InputError, match=words) as caught:
        predict(TASK, heads, n, QUERY, order="exact", **options)
    assert "\n" not in str(caught.value)

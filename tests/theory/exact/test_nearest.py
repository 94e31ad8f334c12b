"""Top-k by its radius's law, against plain simulation, SciPy's quadrature and scikit-learn."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta, norm
from sklearn.neighbors import KNeighborsRegressor

from sims.errors import InputError
from sims.problem import DESIGNS, Heads, Task, TrigonometricSeries
from sims.theory import predict
from sims.weights import FACTORIES

D = 4
FRAMES = np.linalg.qr(np.random.default_rng(4).normal(size=(D, D)))[0]
WAVES = np.array([[1.6, 0.4, 0.2, 0.1], [0.8, -1.1, 0.3, 0.2]]) @ FRAMES.T
AMPLITUDE, PHASE = np.array([1.0, 0.6]), np.array([0.4, 1.2])
QUERY = (FRAMES @ [0.7, 0.2, -0.3, 0.1])[None]
TASK = Task(DESIGNS["isotropic"](D), TrigonometricSeries(AMPLITUDE, WAVES, PHASE), 1.0)
CASES = [(1, 15, None, 50), (1, 15, 0.1, 50), (2, 12, 0.3, 60), (2, 20, None, 60), (1, 1, 0.2, 12)]
"""d_k, k, temperature (None: uniform weights), n."""


def heads_of(width, k, temperature, count=1):
    turned = 0.6 * FRAMES[:, :width] + 0.8 * FRAMES[:, 2 : 2 + width]
    name = "top_k" if temperature is None else "top_k_softmax"
    frames = np.stack([FRAMES[:, :width], turned])[:count]
    return Heads(frames, FACTORIES[name](k, scores="distance"), (temperature or 1.0) ** 0.5)


def target(x):
    return np.cos(x @ WAVES.T + PHASE) @ AMPLITUDE


def simulated(heads, k, temperature, n, replicates=60_000, batch=4000):
    """Terms of all heads, each with its MCSE."""
    rng, rows = np.random.default_rng(8), []
    for _ in range(replicates // batch):
        keys = rng.normal(size=(batch, n, D))
        m = target(keys)
        parts, weights = [], []
        for frame in np.asarray(heads.frames):
            square = (((keys - QUERY[0]) @ frame) ** 2).sum(2)
            edge = np.sort(square, axis=1)[:, k - 1 : k + 1]
            e = (square <= edge[:, :1]) * 1.0
            if temperature is not None:
                e *= np.exp(-(square - square.min(1, keepdims=True)) / (2 * temperature))
            weights.append(e / e.sum(1, keepdims=True))
            parts.append((weights[-1] * m).sum(1))
        row = [parts[0], parts[-1], (weights[0] ** 2).sum(1), (weights[0] * weights[-1]).sum(1)]
        rows.append(np.column_stack([*row, edge[:, 1] ** 0.5]))
    f, g, own, product, radius = np.concatenate(rows).T
    cross = (f - f.mean()) * (g - g.mean())
    found = {"mean": f, "signal": (f - f.mean()) ** 2, "noise": own}
    found |= {"cross signal": cross, "cross noise": product}
    found |= {"spread": (radius - radius.mean()) ** 2}
    return {name: (v.mean(), v.std() / len(v) ** 0.5 + 1e-12) for name, v in found.items()}


@pytest.mark.theory
@pytest.mark.parametrize(("width", "k", "temperature", "n"), CASES)
def test_exact_terms_by_simulation(width, k, temperature, n):
    """Within 4.5 MCSE each: a false alarm in all below 2e-4."""
    heads = heads_of(width, k, temperature)
    exact = predict(TASK, heads, n, QUERY, order="exact").isel(query=0)
    found = simulated(heads, k, temperature, n)
    values = {
        "mean": float(exact["bias"][0]) + float(target(QUERY)[0]),
        "signal": float(exact["signal_covariance"][0, 0]),
        "noise": float(exact["noise_covariance"][0, 0]),
        "spread": float(exact["radius_sd"][0]) ** 2,
    }
    for name, value in values.items():
        mean, error = found[name]
        assert abs(value - mean) < 4.5 * error + 1e-6, (name, value, mean, error)
    assert bool(exact["converged"].all())


@pytest.mark.theory
def test_uniform_weights_by_quadrature_over_the_beta_law():
    """d_k = 1: mean and variance in the ball by the normal law's own integrals, to 1e-7."""
    n, k = 40, 9
    exact = predict(TASK, heads_of(1, k, None), n, QUERY, order="exact", rtol=1e-9)
    q = float(FRAMES[:, 0] @ QUERY[0])
    along = WAVES @ FRAMES[:, 0]
    rest = WAVES @ WAVES.T - np.outer(along, along)

    def mean(t):
        return np.cos(t * along + PHASE) @ (AMPLITUDE * np.exp(-np.diag(rest) / 2))

    def square(t):
        angle, total = t * along + PHASE, 0.0
        for i in range(2):
            for j in range(2):
                for sign in (1, -1):
                    spread = rest[i, i] + rest[j, j] + 2 * sign * rest[i, j]
                    wave = np.cos(angle[i] + sign * angle[j]) * np.exp(-spread / 2)
                    total += 0.5 * AMPLITUDE[i] * AMPLITUDE[j] * wave
        return total

    def inside(function, h):
        return quad(lambda t: function(t) * norm.pdf(t), q - h, q + h)[0]

    def averaged(of_ball):
        def integrand(h):
            mass = norm.cdf(q + h) - norm.cdf(q - h)
            density = norm.pdf(q + h) + norm.pdf(q - h)
            return beta.pdf(mass, k + 1, n - k) * density * of_ball(h, mass)

        return quad(integrand, 1e-4, 6.0, points=[0.2, 0.5, 1.0], limit=200)[0]

    first = averaged(lambda h, p: inside(mean, h) / p)
    both = averaged(
        lambda h, p: inside(square, h) / p / k + (1 - 1 / k) * (inside(mean, h) / p) ** 2
    )
    assert float(exact["bias"][0, 0] + target(QUERY)[0]) == pytest.approx(first, abs=1e-7)
    signal = float(exact["signal_covariance"][0, 0, 0])
    assert signal == pytest.approx(both - first**2, abs=1e-7)
    assert float(exact["noise_covariance"][0, 0, 0]) == pytest.approx(1 / k, rel=1e-12)


@pytest.mark.theory
@pytest.mark.parametrize(("width", "temperature"), [(1, None), (1, 0.1), (2, 0.3)])
def test_first_order_is_its_limit(width, temperature):
    """At k/n = 1/4 the gaps of first-order to exact terms fall like 1/n."""
    gaps = []
    for n in (400, 800):
        heads = heads_of(width, n // 4, temperature)
        first, exact = (
            predict(TASK, heads, n, QUERY, order=order, **options)
            for order, options in (("first", {}), ("exact", {"rtol": 1e-9}))
        )
        limit = float(first["limit"][0, 0]) - float(target(QUERY)[0])
        part = [float(data["bias"][0, 0]) - limit for data in (first, exact)]
        rows = [
            part[1] / part[0] - 1,
            float(exact["signal_variance"] / first["signal_variance"]) - 1,
        ]
        if temperature is not None:
            rows.append(float(exact["noise_variance"] / first["noise_variance"]) - 1)
        gaps.append(rows)
    np.testing.assert_allclose(np.array(gaps[0]) / gaps[1], 2.0, rtol=0.15)


@pytest.mark.theory
@pytest.mark.parametrize(
    ("width", "k", "temperature"), [(1, 60, None), (1, 60, 0.15), (2, 80, 0.4)]
)
def test_pairs_to_first_order_by_simulation(width, k, temperature):
    """Within 4.5 MCSE (false alarm below 1e-4 in all) and a remainder of 2/n_eff."""
    heads, n = heads_of(width, k, temperature, count=2), 240
    theory = predict(TASK, heads, n, QUERY).isel(query=0)
    found = simulated(heads, k, temperature, n, replicates=16_000, batch=2000)
    rest = 2 / float(theory["n_eff"].min())
    for name, words in (("signal_covariance", "cross signal"), ("noise_covariance", "cross noise")):
        value, scale = float(theory[name][0, 1]), float(theory[name][0, 0])
        mean, error = found[words]
        assert abs(value - mean) < 4.5 * error + rest * scale, (name, value, mean, error)


def test_weights_are_those_of_nearest_neighbours():
    """What the tests above simulate is scikit-learn's k-nearest regression."""
    rng = np.random.default_rng(2)
    keys, response = rng.normal(size=(30, 1)), rng.normal(size=30)
    theirs = KNeighborsRegressor(5).fit(keys, response).predict([[0.3]])[0]
    nearest = np.argsort(abs(keys[:, 0] - 0.3))[:5]
    assert response[nearest].mean() == pytest.approx(theirs, rel=1e-12)


@pytest.mark.parametrize(
    ("heads", "n", "order", "words"),
    [
        (heads_of(1, 5, None, count=2), 40, "exact", "heads.count: got 2"),
        (heads_of(1, 40, None), 40, "exact", "heads.kernel.k: got 40; allowed: below n = 40"),
        (heads_of(1, 40, None), 40, "first", "heads.kernel.k: got 40; allowed: below n = 40"),
        (heads_of(1, 50, None), 40, "first", "50"),
    ],
)
def test_what_is_not_covered_is_one_line(heads, n, order, words):
    with pytest.raises(InputError, match=words) as caught:
        predict(TASK, heads, n, QUERY, order=order)
    assert "\n" not in str(caught.value)

"""What simulators of `hierarchy` return, by plain loops over the same draws."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

from sims.study.experiment import load_experiment

simulate = load_experiment("hierarchy").module("simulate")


@pytest.mark.parametrize("keys_are", ["gaussian", "uniform"])
def test_mixtures_have_the_bias_the_variance_and_the_correlations_of_loops(keys_are):
    """Of R draws at every query: ``(mean − m)² − s²/R``, s² over R − 1, and the mean square error.

    Of noise alone levels a and b have the covariance ``C_ab = σ² mean Σ_j a_j b_j``, and the
    correlation ``C_ab/√(C_aa C_bb)``. Keys that are not normal are uniform on ±√3.
    """
    queries, n, count, noise = [[0.2], [-0.6]], 6, 6, 0.5
    own = {
        "n": n,
        "draws": 3,
        "noise_sd": noise,
        "width": 1,
        "keys": keys_are,
        "frequency": 2.0,
        "queries": queries,
        "bandwidths": [0.2, 0.6, 1.8],
        "weights": [0.5, 0.3, 0.2],
    }
    draw = SimpleNamespace(rng=lambda: np.random.default_rng(3))
    found = simulate.mixtures(own, draw, 2, None)

    rng, size = np.random.default_rng(3), (count, n, 1)
    keys = rng.normal(size=size) if keys_are == "gaussian" else 12**0.5 * (rng.random(size) - 0.5)
    labels = np.cos(2 * keys[:, :, 0]) + noise * rng.normal(size=(count, n))
    single = np.sqrt(0.5 * 0.2**2 + 0.3 * 0.6**2 + 0.2 * 1.8**2)
    covariance, estimates = np.zeros((3, 3)), np.zeros((3, count, 2))
    for r, (place, (query,)) in product(range(count), enumerate(queries)):
        gaps = [(query - key) ** 2 for (key,) in keys[r]]
        levels = []
        for h in (0.2, 0.6, 1.8):
            kernel = np.exp([-gap / (2 * h**2) for gap in gaps])
            levels.append(kernel / sum(kernel))
        scores = levels[0] ** 0.5 * levels[1] ** 0.3 * levels[2] ** 0.2
        outputs = 0.5 * levels[0] + 0.3 * levels[1] + 0.2 * levels[2]
        one = np.exp([-gap / (2 * single**2) for gap in gaps])
        for arm, weights in enumerate((scores / sum(scores), outputs, one / sum(one))):
            estimates[arm, r, place] = sum(w * y for w, y in zip(weights, labels[r], strict=True))
        covariance += [[sum(a * b) for b in levels] for a in levels]
    for arm, own_estimates in enumerate(estimates):
        biases, variances, errors = [], [], []
        for place, (query,) in enumerate(queries):
            truth, values = np.cos(2 * query), own_estimates[:, place]
            mean = sum(values) / count
            variances.append(sum((v - mean) ** 2 for v in values) / (count - 1))
            biases.append((mean - truth) ** 2 - variances[-1] / count)
            errors += [(v - truth) ** 2 for v in values]
        assert found["squared_bias"][arm] == pytest.approx(np.mean(biases))
        assert found["variance"][arm] == pytest.approx(np.mean(variances))
        assert found["mse"][arm] == pytest.approx(np.mean(errors))
    sds = np.sqrt(np.diag(covariance))
    correlations = [covariance[i, j] / (sds[i] * sds[j]) for i, j in ((0, 1), (1, 2), (0, 2))]
    np.testing.assert_allclose(found["correlation"], correlations)


def test_keys_have_the_variance_1_whatever_their_law():
    """Of 20,000 numbers, within 4.4 standard errors ``√((kurtosis − 1)/20,000)``."""
    for law, kurtosis in (("gaussian", 3.0), ("uniform", 1.8)):
        own = {"n": 100, "width": 2, "keys": law}
        keys = simulate.keys_of(own, np.random.default_rng(4), 100).ravel()
        assert abs(np.mean(keys**2) - 1) < 4.4 * np.sqrt((kurtosis - 1) / 20000)

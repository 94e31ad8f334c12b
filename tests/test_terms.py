"""The scalar terms of the decomposition, written out head by head."""

import numpy as np
import pytest
import xarray as xr

from sims.base import terms
from tests.by_hand import refused


@pytest.mark.theory
@pytest.mark.parametrize("weights", [None, (0.7, 0.6, -0.3)])
def test_terms_by_plain_loops(weights):
    """Three heads at two queries, all numbers different."""
    rng = np.random.default_rng(0)
    bias = rng.normal(size=(2, 3))
    signal, noise = (r @ r.mT for r in rng.normal(size=(2, 2, 3, 4)))
    data = terms.assemble(bias, bias[:, :, None] * bias[:, None, :], signal, noise, weights=weights)
    alpha = (1 / 3, 1 / 3, 1 / 3) if weights is None else weights
    found = dict.fromkeys(terms.SCALARS, 0.0)
    for b, s, e in zip(bias, signal, noise, strict=True):
        found["squared_bias"] += sum(a * x for a, x in zip(alpha, b, strict=True)) ** 2 / 2
        for h in range(3):
            found["signal_variance"] += s[h, h] / 3 / 2
            found["noise_variance"] += e[h, h] / 3 / 2
            found["mean_head_mse"] += (b[h] ** 2 + s[h, h] + e[h, h]) / 3 / 2
            for g in range(3):
                found["ensemble_variance"] += alpha[h] * alpha[g] * (s[h, g] + e[h, g]) / 2
                if h < g:  # three pairs
                    found["cross_signal_covariance"] += s[h, g] / 3 / 2
                    found["cross_noise_covariance"] += e[h, g] / 3 / 2
    found["variance"] = found["signal_variance"] + found["noise_variance"]
    found["covariance"] = found["cross_signal_covariance"] + found["cross_noise_covariance"]
    found["mse"] = found["squared_bias"] + found["ensemble_variance"]
    for name, value in found.items():
        assert float(data[name]) == pytest.approx(value), name


@pytest.mark.parametrize("weights", [[1.0], [0.25] * 4, [0.5, 0.5001]])
def test_weights_that_are_not_one_a_head_or_do_not_sum_to_one_are_refused(weights):
    with refused("^weights: .* 2 numbers that sum to 1"):
        terms.ensemble_weights(weights, 2)


def test_errors_are_those_over_batches_wherever_they_lie():
    values = np.random.default_rng(1).normal(size=(3, 5, 2))
    found = terms.mcse(xr.DataArray(values, dims=("head", "batch", "query")))
    assert found.dims == ("head", "query")
    np.testing.assert_allclose(found, values.std(1, ddof=1) / 5**0.5)

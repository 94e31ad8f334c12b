"""Theory as the experiment file asks for it: one order, or both beside each other."""

import numpy as np
import pytest
import xarray as xr

from sims.study.roads import predict_terms
from sims.study.schema import TheorySpec
from sims.study.specification import ProblemSpec
from sims.terms import SCALARS
from sims.theory import predict


def problem(width: int):
    return ProblemSpec(
        dimension=2,
        design={"kind": "isotropic"},
        target={"kind": "rbf", "lengthscale": 2.0, "features": 4, "seed": 1},
        noise_sd=0.5,
        heads={
            "count": 2,
            "width": width,
            "kernel": "gaussian",
            "bandwidth": 0.8,
            "frames": {"kind": "haar", "seed": 1},
        },
        n=16,
        queries={"kind": "gaussian", "count": 2, "scale": 0.5, "seed": 1},
    ).build()


@pytest.mark.theory
def test_both_orders_beside_each_other():
    narrow = problem(1)
    both = predict_terms(narrow, TheorySpec(order="both", rtol=1e-3, exact_width=1))
    first, exact = predict(*narrow), predict(*narrow, order="exact", rtol=1e-3)
    for name, values in first.data_vars.items():
        xr.testing.assert_allclose(both[name].sel(order="first", drop=True), values)
    averages = [*SCALARS, "integrated_signal_covariance", "integrated_bias_product"]
    for name in [k for average in averages for k in (average, f"{average}_error")]:
        xr.testing.assert_allclose(both[name].sel(order="exact", drop=True), exact[name])
        if name.endswith("_error"):
            assert np.isnan(both[name].sel(order="first")).all()
    assert "bias_error" not in both  # per query: more than a claim needs, and large
    assert np.isnan(both["bias"].sel(order="exact")).all()


def test_heads_too_wide_for_exact_theory_have_first_order_alone():
    wide = predict_terms(problem(2), TheorySpec(order="both", exact_width=1))
    assert list(wide["order"].values) == ["first"]
    xr.testing.assert_allclose(wide.isel(order=0, drop=True), predict(*problem(2)))


@pytest.mark.parametrize("order", ["first", "both"])
def test_every_variable_begins_with_the_order(order):
    """However many orders there are, and whatever else a variable runs along."""
    terms = predict_terms(problem(2), TheorySpec(order=order, exact_width=1))
    assert terms["bias"].dims[1:] == predict(*problem(2))["bias"].dims
    assert {values.dims[0] for values in terms.data_vars.values()} == {"order"}

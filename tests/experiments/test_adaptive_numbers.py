"""Numbers of `adaptive_terms`, made by hand."""

import numpy as np
import pytest
import xarray as xr
from tests.experiments.by_hand import families

from sims.study.experiment import load_experiment

adaptive = load_experiment("adaptive_terms")
BATCHES = 8


def test_the_bias_that_theories_have_in_common_is_a_projection():
    """By least squares, ``min_c ‖own − c·exact‖``: a query where the exact part is 0 has no say."""
    limit = np.array([[0.3, -0.2], [0.1, 0.5]])
    exact = np.array([[0.02, -0.01], [0.03, 1e-9]])
    own = {
        "first": np.array([[0.021, -0.008], [0.028, 1e-4]]),
        "fixed": np.array([[0.009, -0.006], [0.011, -2e-4]]),
    }
    order = ["first", "exact", "fixed"]
    parts = np.stack([own["first"], exact, own["fixed"]])
    names = adaptive.module("predict").TERMS
    law = xr.Dataset(
        {name: ("order", [1.0, 1.0, 1.0]) for name in names}
        | {"bias": (("order", "query", "head"), limit + parts), "n_eff": 9.0, "attended": 9.0}
        | {"limit": (("query", "head"), limit)},
        coords={"order": order},
    )
    data = xr.Dataset({name: ("batch", np.ones(BATCHES)) for name in names})
    at = {"n": 200, "heads.kernel": "ν = 2"}
    found = families("adaptive_terms", {"a": data}, {"a": law}, {"a": at})
    for words, name in (("first order", "first"), ("fixed radius", "fixed")):
        share = np.linalg.lstsq(exact.reshape(-1, 1), own[name].ravel(), rcond=None)[0][0]
        (effect,) = found[f"bias, {words}"]
        assert effect.value == pytest.approx(share - 1, abs=1e-9)
        assert abs(effect.value) < 0.7

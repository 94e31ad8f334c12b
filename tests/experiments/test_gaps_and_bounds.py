"""By what experiments select points, and how far their theory may be off, by numbers made up.

A claim on exact theory is about points that first order misses, to either side, by so much of the
effect's own scale; its bound is the stated error in the unit of the effect.
"""

import numpy as np
import pytest
import xarray as xr

from sims.study.experiment import load_experiment
from sims.study.results import Results
from sims.terms import SCALARS
from tests.experiments.by_hand import is_mean_of

BATCHES = 12
BOTH = {"order": ["first", "exact"]}


def batches(seed, *sizes):
    """Batches (B,) about each size, 5 % of it apart."""
    return [
        s * np.random.default_rng([seed, i]).normal(1, 0.05, BATCHES) for i, s in enumerate(sizes)
    ]


def predicted(terms, error):
    """Terms by (first, exact) order, their errors, and the same in each of B problems."""
    data = {k: ("order", list(v)) for k, v in terms.items()}
    data |= {f"{k}_error": ("order", [np.nan, error]) for k in terms}
    each = {
        f"each_{k}": (("order", "problem"), np.tile(v, (BATCHES, 1)).T) for k, v in terms.items()
    }
    return xr.Dataset(data | each, BOTH)


def one_point(name, estimates, prediction, at):
    """The experiment's effects module, and results at a single point `p`."""
    results = Results(
        name,
        "smoke",
        {"p": xr.Dataset({k: ("batch", v) for k, v in estimates.items()})},
        {"p": prediction},
        {},
        {"p": at},
        {},
        {},
    )
    return load_experiment(name).module("effects"), results


@pytest.mark.parametrize(
    ("term", "scale"), [("cross_signal_covariance", 4.0), ("noise_variance", 0.5)]
)
@pytest.mark.parametrize("first", [0.6, 0.4])
def test_decompositions_gap_of_first_order_is_on_the_scale_of_the_effect(term, scale, first):
    """A signal term's over a head's variance of 4, others' over the term itself, 0.5."""
    terms = dict.fromkeys(SCALARS, (3.0, 3.0)) | {"variance": (4.0, 4.0), term: (first, 0.5)}
    theory = predicted(terms, 0.01)
    theory["n_eff"] = ("order", "query", "head"), np.full((2, 1, 1), 9.0)
    (values,) = batches(1, 0.5)
    module, results = one_point("decomposition", {term: values}, theory, {})
    effect = module.over_problems(results, term, "p", "exact")
    assert effect.at["first_order_gap"] == pytest.approx(0.1 / scale)
    assert effect.bound == pytest.approx(0.01 / scale)
    assert effect.value == pytest.approx((values.mean() - 0.5) / scale)


@pytest.mark.parametrize("first", [0.24, 0.16])
def test_angles_gap_of_first_order_has_no_sign(first):
    """Correlations of 0.24 or 0.16 by first order, 0.2 by exact theory: 20 % off either way."""
    parts = ("cross_noise_covariance", "noise_variance")
    theory = predicted({parts[0]: (2 * first, 0.8), parts[1]: (2.0, 4.0)}, 0.02)
    estimates = dict(zip(parts, batches(2, 0.8, 4.0), strict=True))
    at = {"heads.kernel": "softmax", "heads.width": 2}
    module, results = one_point("angles", estimates, theory, at)
    effect = module.gap_to_exact(results, "p")
    assert effect.at["first_order_gap"] == pytest.approx(0.2)
    assert effect.bound == pytest.approx(0.02 / 0.8 + 0.02 / 4)


@pytest.mark.parametrize("first", [0.6, 0.4])
def test_head_counts_gap_of_first_order_has_no_sign(first):
    """Ratios of 0.6 or 0.4 by first order, 0.5 by exact theory."""
    parts = ("ensemble_variance", "variance")
    theory = predicted({parts[0]: (3 * first, 1.0), parts[1]: (3.0, 2.0)}, 0.01)
    estimates = dict(zip(parts, batches(3, 1.0, 2.0), strict=True))
    module, results = one_point("head_count", estimates, theory, {"heads.kernel": "gaussian"})
    effect = module.gap(results, "p")
    assert effect.at["first_order_gap"] == pytest.approx(0.2)
    assert effect.bound == pytest.approx(0.01 / 1.0 + 0.01 / 2.0)


@pytest.mark.parametrize("exact", [2.0, -2.0])
def test_finite_samples_term_below_zero_has_a_bound_of_its_size(exact):
    """An error of 0.01 is half a per cent of a covariance of either sign."""
    theory = predicted({"cross_signal_covariance": (1.1 * exact, exact)}, 0.01)
    theory["n_eff"] = ("order", "query", "head"), np.full((2, 1, 1), 9.0)
    (values,) = batches(4, exact)
    module, results = one_point(
        "finite_sample", {"cross_signal_covariance": values}, theory, {"heads.kernel": "softmax"}
    )
    effect = module.simulated(results, "p", "cross_signal_covariance")
    is_mean_of(effect, values / exact - 1, bound=0.005)
    assert effect.at["first_order_gap"] == pytest.approx(0.1)


def test_compact_angles_series_is_as_uncertain_as_it_says_relative_to_itself():
    """A law of 0.2 at 45°, known to 0.004, and of 0.05 at 90°, known to 0.003."""
    pair, own = batches(5, 0.2, 0.5)
    curve = np.stack([own, pair, 0.3 * pair], axis=1)
    estimates = {
        "p": xr.Dataset(
            {"pair": (("batch", "angle"), curve), "own": ("batch", own)},
            {"angle": [0.0, 45.0, 90.0]},
        )
    }
    law = xr.Dataset(
        {"law": ("angle", [1.0, 0.2, 0.05]), "law_error": ("angle", [0.0, 0.004, 0.003])}
    )
    at = {"rule": "biweight", "group": "mild", "width": 1, "n": 100}
    results = Results("compact_angles", "smoke", estimates, {"p": law}, {}, {"p": at}, {}, {})
    found = load_experiment("compact_angles").module("effects").gaps(results, "p")
    assert [effect.at["angle"] for effect in found] == [45.0, 90.0]
    assert [effect.bound for effect in found] == pytest.approx([0.02, 0.06])

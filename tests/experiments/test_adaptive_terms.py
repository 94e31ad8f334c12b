"""Effects of ``adaptive_terms`` on results made by hand."""

import numpy as np
import pytest
import xarray as xr

from sims.study.experiment import load_experiment
from tests.experiments.by_hand import families, is_mean_of

TERMS = ("signal_variance", "cross_signal_covariance", "noise_variance", "cross_noise_covariance")


def theory(scale):
    """Three theories of a point whose first-order and fixed terms are off by known shares."""
    order = ["first", "exact", "fixed"]
    data = {name: ("order", scale * np.array([1.1, 1.0, 1.5])) for name in TERMS}
    data |= {f"{name}_error": ("order", [np.nan, 0.01 * scale, np.nan]) for name in TERMS}
    limit = np.array([[0.3, -0.2]])
    part = np.array([[0.02, -0.01]])
    bias = limit + np.array([0.9, 1.0, 0.4])[:, None, None] * part
    curve = ("road", "size"), [[1.02, 1.01], [1.0, 1.0]]
    return xr.Dataset(
        data
        | {"bias": (("order", "query", "head"), bias), "limit": (("query", "head"), limit)}
        | {"n_eff": 120.0, "attended": 150.0}
        | {f"curve_{name}": curve for name in ("signal_variance", "noise_variance")},
        coords={"order": order, "road": ["first", "exact"], "size": [100, 200]},
    )


def test_gaps_are_to_the_theory_they_name():
    rng = np.random.default_rng(0)
    values = {name: 2.0 * (1 + 0.01 * rng.standard_normal(64)) for name in TERMS}
    estimate = xr.Dataset({name: ("batch", v) for name, v in values.items()})
    at = {"n": 200, "heads.kernel": "ν = 2"}
    found = families("adaptive_terms", {"a": estimate}, {"a": theory(2.0)}, {"a": at})
    first, noise = (found[name] for name in ("first order", "fixed radius, noise"))
    assert [len(part) for part in (first, noise)] == [4, 2]
    is_mean_of(first[0], values["signal_variance"] / 2.2 - 1)
    is_mean_of(noise[0], values["noise_variance"] / 3.0 - 1)
    assert first[0].at == {"n": 200, "n_eff": 120.0, "attended": 150.0}
    assert found["bias, first order"][0].value == pytest.approx(-0.1)
    assert found["bias, fixed radius"][0].value == pytest.approx(-0.6)
    gaps = found["remainder, signal variance"]
    assert [effect.value for effect in gaps] == pytest.approx([0.02, 0.01])
    assert [effect.x for effect in gaps] == [100, 200]
    assert gaps[0].at == {"kernel": "ν = 2"}


def test_signal_of_drawn_problems_is_compared_over_all_and_one_by_one():
    """Sizes 1 and 3, with the radius held 2 and 3: means 2 and 2.5, keys 100 and 300."""
    rows = np.array([[1.0, 3.0], [np.nan, np.nan], [2.0, 3.0]])
    data = {f"each_{name}": (("order", "problem"), rows) for name in TERMS}
    law = theory(2.0).assign(data | {"each_n_eff": ("problem", [100.0, 300.0])})
    estimate = xr.Dataset({name: ("batch", np.ones(64)) for name in TERMS})
    at = {point: {"n": 1000, "heads.kernel": "ν = 1"} for point in "ab"}
    both = {"a": law, "b": theory(2.0)}
    found = families("adaptive_terms", dict.fromkeys("ab", estimate), both, at)
    signal, each = (found[f"fixed radius{k}, signal"] for k in ("", " over adaptive"))
    assert [effect.value for effect in signal] == pytest.approx([-0.2, -0.2])
    assert [effect.value for effect in each] == pytest.approx([1.0, 0.0] * 2)
    assert all(effect.at == {"n_eff": pytest.approx(150)} for effect in (*signal, *each))


@pytest.fixture(scope="module")
def predict():
    return load_experiment("adaptive_terms", "smoke").module("predict")


@pytest.fixture(scope="module")
def problem():
    return load_experiment("adaptive_terms", "smoke").points[1].spec.build()


def test_the_line_of_sizes_is_at_one_radius(predict, problem):
    """Noise variance of first order then falls like 1/n, to rounding."""
    lines = predict.curve(problem, [200, 400])["curve_noise_variance"].sel(road="first")
    assert float(lines[0] / lines[1]) == pytest.approx(2, rel=1e-6)


def test_exact_theory_along_the_line_is_far_closer_than_first_order(predict, problem, monkeypatch):
    """Theory that is off by all it may be: a gap of 1 in 1000 is still right to a hundredth."""

    def off(task, heads, n, queries, order="first", rtol=None):
        return xr.Dataset(dict.fromkeys(TERMS, 1 + rtol if order == "exact" else 1.001))

    monkeypatch.setattr(predict, "theory", off)
    lines = predict.curve(problem, [200, 400])
    for name in ("signal_variance", "noise_variance"):
        data = lines[f"curve_{name}"]
        gap = data.sel(road="first") / data.sel(road="exact") - 1
        np.testing.assert_allclose(gap, 1e-3, rtol=1e-2)


def test_three_theories_are_three(predict, problem):
    """The bias's part in 1/n: first order has it within a twentieth, a radius held has not."""
    data = predict.three(problem, 1e-2, 30, 200)
    part = data["bias"] - data["limit"]
    exact = part.sel(order="exact")
    first, fixed = (
        float((part.sel(order=o) * exact).sum() / (exact**2).sum()) for o in ("first", "fixed")
    )
    assert first == pytest.approx(1, abs=0.05)
    assert abs(fixed - 1) > 0.2


def test_exact_theory_is_asked_where_it_speaks(predict, problem):
    """Neither with fewer attended keys than asked for nor with more keys in all."""
    for least, most in ((10**4, 200), (30, 199)):
        data = predict.three(problem, 1e-2, least, most)
        assert np.isnan(data["signal_variance"].sel(order="exact"))
        assert np.isfinite(data["signal_variance"].sel(order=["first", "fixed"])).all()


def test_theory_of_drawn_problems_is_that_of_each(predict):
    spec = load_experiment("adaptive_terms", "smoke").points[2].spec
    problems = [predict.again(spec, seed).build() for seed in (7, 8)]
    for part in (lambda p: p.queries, lambda p: p.heads.frames):
        assert not np.isclose(*map(part, problems)).any()
    data = predict.drawn(problems)
    for k, problem in enumerate(problems):
        alone = predict.three(problem, None, 10**9, 0)
        for name in ("signal_variance", "cross_signal_covariance"):
            for order in ("first", "fixed"):
                own = data[f"each_{name}"].sel(order=order)
                assert float(own[k]) == pytest.approx(float(alone[name].sel(order=order)))
        assert float(data["each_n_eff"][k]) == pytest.approx(float(alone["n_eff"]))

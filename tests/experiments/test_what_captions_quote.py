"""What captions quote, against a few lines of NumPy on the same results, made by hand.

Where a number is of effects, these are made by hand as well: other tests are of them.
"""

from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr

from sims.effects import Effect
from sims.study.experiment import load_experiment
from sims.study.results import Results
from tests.experiments.by_hand import mean_error, pseudovalues
from tests.experiments.helpers import results_of
from tests.experiments.test_adding_heads import COUNT, KIND, WIDTH, made

RNG = np.random.default_rng(6)


def figure_of(name, monkeypatch, **replaced):
    """The figure's module of an experiment, with some functions that hand out what is given."""
    module = load_experiment(name).module("figure")
    for function, given in replaced.items():
        monkeypatch.setattr(module, function, given)
    return module


def test_temporal_merging_quotes_the_last_stride_that_costs_more(monkeypatch):
    """And gaps by their ends: the largest of passes, the least and the largest inside chunks."""
    families = {
        "parallel and step by step": [Effect("", values=np.array(v)) for v in ([1, 7.5], [3, 2])],
        "whole chunks first, inside": [Effect("", v) for v in (0.41, 0.125, 0.377)],
        "products of a step over those of MHA": [
            Effect("", value, at={"stride": stride})
            for stride, value in ((1, 0.9), (2, 0.4), (3, 0.02), (4, -0.1), (6, -0.3))
        ],
    }
    found = np.array([[[2, 3], [4, 2], [3, 2], [5, 3]], [[2, 3], [4, 3], [3, 2], [5, 3]]])
    results = SimpleNamespace(
        estimates={
            "search": xr.Dataset({"first": (("batch", "reading", "of"), found)}),
            "drawn": xr.Dataset(attrs={"replicates": 77}),
        },
        problems={"drawn": {}},
    )
    figure = figure_of("temporal_merging", monkeypatch, effects=lambda results: families)
    assert figure.numbers(results) == {
        "opening": "T = 2, s = 3",
        "latent": "T = 4, s = 2 or T = 4, s = 3",
        "whole": "T = 3, s = 2",
        "half": "T = 5, s = 3",
        "parallel_gap": 7.5,
        "drawn": 77,
        "inside_least": "0.12",
        "inside_most": "0.41",
        "dearer_until": 3,
    }


def test_adding_heads_quotes_what_each_doubling_gains():
    """The closed form ``b² + c + (v − c)/H`` of diverse heads of width 4, up to noise of 1e-4.

    Of the fixed budget of 16 the best split is that of the least such error.
    """
    experiment = load_experiment("adding_heads")

    def parts(width, kind):
        variance = 0.01 * width**1.2
        return 0.3 * width**-0.3, variance, variance * (0.3 + 0.7 * kind)

    def error(heads, width):
        bias, variance, covariance = parts(width, 0.0)
        return bias**2 + covariance + (variance - covariance) / heads

    data = [{}, {}]
    for point in experiment.points:
        heads, width, kind = (point.coordinates[k] for k in (COUNT, WIDTH, KIND))
        for each, simulated in zip(data, (True, False), strict=True):
            each[point.name] = made(heads, *parts(width, kind), simulated)
    found = experiment.module("figure").numbers(results_of(experiment, *data))
    of_growing = [error(2**k, 4) for k in range(5)]
    assert found["most"] == 16
    assert found["gained"] == pytest.approx(1 - of_growing[4] / of_growing[0], rel=2e-3)
    assert found["first"] == pytest.approx(1 - of_growing[1] / of_growing[0], rel=2e-3)
    assert found["last"] == pytest.approx(1 - of_growing[4] / of_growing[3], rel=2e-2)
    best = min((error(heads, 16 // heads), heads) for heads in (1, 2, 4, 8, 16))[1]
    assert (found["best_heads"], found["best_width"]) == (best, 16 // best)
    assert found["least_n_eff"] == 99


def test_angles_quotes_the_largest_relative_error_of_any_correlation():
    estimates, predictions, errors = {}, {}, []
    for place, spread in enumerate((0.02, 0.3, 0.1)):
        cross = 0.5 + spread * RNG.normal(size=64)
        variance = 1 + spread * RNG.normal(size=64)
        estimates[f"p{place}"] = xr.Dataset(
            {"cross_noise_covariance": ("batch", cross), "noise_variance": ("batch", variance)}
        )
        mean, error = mean_error(pseudovalues(lambda c, v: c / v, cross, variance))
        errors.append(error / mean)
        noise = RNG.uniform(0.5, 1.5, (20, 1, 1)) * [[1.0, 0.4], [0.4, 1.0]]
        predictions[f"p{place}"] = xr.Dataset(
            {
                "law": 0.2 * (place + 1),
                "n_eff": (("query", "head"), np.full((20, 2), 50.0 - place)),
                "noise_covariance": (("query", "head", "head2"), noise),
            }
        )
    estimates["drawn"] = xr.Dataset({"cross_noise_covariance": ("batch", np.ones(9))})
    predictions["drawn"] = xr.Dataset({"each_law": ("problem", np.ones(9))})
    results = Results(
        "angles", "smoke", estimates, predictions, {}, {}, {"p0": {"queries": {"count": 20}}}, {}
    )
    module = load_experiment("angles").module("figure")
    of_queries = [
        module.query_error(predictions[f"p{place}"]) / (0.2 * (place + 1)) for place in range(3)
    ]
    found = module.numbers(results)
    assert found["mcse"] == pytest.approx(max(errors), rel=1e-9)
    assert max(errors) > 3 * min(errors)
    assert found["query_error"] == pytest.approx(max(of_queries))
    assert (found["problems"], found["queries"], found["least_keys"]) == (9, 20, 48)


def test_angle_units_quotes_how_much_more_the_diagonals_of_a_cube_decorrelate(monkeypatch):
    """Over its coordinates, the narrower bandwidth apart; effects are the other way round."""
    decorrelated = {0.5: (0.4, 0.3), 0.2: (0.9, 0.45)}
    other = [
        Effect("", 0.7, at={"kernel": kernel, "bandwidth": bandwidth, "keys": keys})
        for bandwidth in decorrelated
        for kernel, keys in (("softmax", "cube"), ("gaussian", "correlation 0.9"))
    ]
    cubes = [
        Effect("", along / diagonal - 1, at={"kernel": "gaussian", "bandwidth": b, "keys": "cube"})
        for b, (diagonal, along) in decorrelated.items()
    ]
    families = {
        "decorrelation at one principal angle": cubes + other,
        "total correlation": [
            Effect("", value, at={"kernel": kernel})
            for value, kernel in ((-0.3, "gaussian"), (0.2, "gaussian"), (0.9, "softmax"))
        ],
    }
    results = SimpleNamespace(
        problems={"p": {"queries": {"count": 12}}}, batches={"q": 30, "r": 20}.get
    )
    figure = figure_of(
        "angle_units", monkeypatch, effects=lambda results: families,
        place=lambda *_: "p", heads_of=lambda results, point, pair: pair,
        simulated=lambda results, point, pair: np.array(pair), by_law=lambda results: ["q", "r"],
    )  # fmt: skip
    found = figure.numbers(results)
    assert found["cube"] == pytest.approx(0.4 / 0.3 - 1)
    assert found["narrow"] == pytest.approx(0.9 / 0.45 - 1)
    assert (found["total"], found["queries"], found["problems"]) == (0.3, 12, 20)
    assert (found["along_gaussian"], found["between_softmax"]) == (90.0, 45.0)


def test_decomposition_quotes_variances_of_batches_with_controls_over_those_without():
    """So many times fewer replicates, so of squares; keys are harmonic means over queries."""
    estimates, predictions, gains = {}, {}, []
    for place, share in enumerate((0.5, 0.25, 0.8)):
        raw, own = RNG.normal(size=40), share * RNG.normal(size=40)
        gains.append(sum((raw - raw.mean()) ** 2) / sum((own - own.mean()) ** 2))
        estimates[f"p{place}"] = xr.Dataset(
            {"raw_ensemble_variance": ("batch", raw), "ensemble_variance": ("batch", own)}
        )
    estimates["drawn"] = xr.Dataset({"mse": ("batch", np.ones(9))})
    predictions = {
        name: xr.Dataset(
            {"n_eff": (("order", "query"), [[10.0 * k, 40.0]])}, coords={"order": ["exact"]}
        )
        for k, name in enumerate(estimates, 1)
    }
    at = {name: {"population": "all" if name == "drawn" else None} for name in estimates}
    results = Results("decomposition", "smoke", estimates, predictions, {}, at, {}, {})
    predicted = predictions.__getitem__
    object.__setattr__(results, "prediction", lambda p, order="first": predicted(p).isel(order=0))
    found = load_experiment("decomposition").module("figure").numbers(results)
    assert found["gain_low"] == pytest.approx(min(gains))
    assert found["gain_high"] == pytest.approx(max(gains))
    keys = [2 / (1 / (10 * k) + 1 / 40) for k in (1, 2, 3, 4)]
    assert (found["fewest_keys"], found["most_keys"]) == pytest.approx((keys[0], keys[2]))
    assert (found["least_few"], found["most_few"]) == pytest.approx((keys[3], keys[3]))
    assert (found["fixed"], found["populations"], found["problems"]) == (3, 1, 9)
    assert found["fewest_keys_at_a_query"] == 10


def test_finite_sample_quotes_the_worst_gap_of_either_sign(monkeypatch):
    """Where first order is off by 5 % or more and fewer than 50 keys count, but for the MSE."""
    gaps = {
        ("p", "squared_bias"): (0.02, 0.001, 0.2, 20.0),
        ("p", "noise_variance"): (-0.07, 0.004, 0.05, 50.0),
        ("p", "mse"): (0.5, 0.5, 0.5, 10.0),
        ("q", "squared_bias"): (0.9, 0.5, 0.04, 20.0),
        ("q", "noise_variance"): (-0.9, 0.5, 0.2, 51.0),
    }

    def simulated(results, point, term):
        value, error, off, keys = gaps.get((point, term), (0.0, 0.0, 0.0, 1.0))
        return Effect("", value, error, at={"first_order_gap": off, "n_eff": keys})

    figure = figure_of("finite_sample", monkeypatch, simulated=simulated)
    assert figure.numbers(SimpleNamespace(points=["p", "q"])) == {
        "worst_gap": 0.07, "worst_error": 0.004, "comparisons": 2, "fewest_keys": 20,
        "most_keys": 50,
    }  # fmt: skip


def test_rates_quotes_how_much_steeper_the_error_of_many_heads_falls():
    """Powers −0.4 of one head and −0.55 of many, by hand."""
    n = np.array([100.0, 300.0, 1000.0])
    errors = np.array([3 * n**-0.4, 2 * n**-0.55])
    joint = xr.Dataset({"mse_of_heads": (("heads", "size"), errors), "size": n})
    found = load_experiment("rates").module("figure").numbers(
        SimpleNamespace(prediction=lambda point: joint)
    )  # fmt: skip
    assert found == {"predicted_gain": pytest.approx(0.15)}


def test_remainder_quotes_the_square_of_the_ratio_of_errors(monkeypatch):
    """Replicates are as the square of an error: of each size, then the least and the most."""
    plain = RNG.normal(size=(2, 30, 3))
    less = plain * [0.5, 0.1, 0.3] + 0.01 * RNG.normal(size=(2, 30, 3))
    estimates = {
        f"p{k}": xr.Dataset({"noise_variance": (("batch", "size", "control"), one[..., None])})
        for k, one in enumerate(plain)
    }
    rests = dict(zip(map(id, estimates.values()), less, strict=True))
    figure = figure_of("remainder", monkeypatch, controlled=lambda d, name, count: rests[id(d)])
    found = figure.numbers(SimpleNamespace(estimates=estimates))
    gains = plain.var(1, ddof=1) / less.var(1, ddof=1)
    assert found == {
        "gain_low": pytest.approx(gains.min()), "gain_high": pytest.approx(gains.max())
    }  # fmt: skip
    assert gains.min() > 3


def test_temperature_transfer_quotes_every_rule_at_one_length(monkeypatch):
    """Of theory the last but one, which is the last that is tuned, and of simulation its last."""
    sizes = np.array([256.0, 1024.0, 65536.0, 1e9])
    losses = {
        "softmax": [0, 1, 40, 99],
        "sparsemax": [0, 0.01, 0.04, 7],
        "1.5-entmax": [0, 1, 2, 3],
    }

    def road(factor):
        return SimpleNamespace(
            sizes=sizes,
            values=lambda case: np.ones((3, 4)),
            kept=lambda case: (
                lambda mean: SimpleNamespace(loss=factor * mean * np.array(losses[case.rule]))
            ),
        )

    figure = figure_of(
        "temperature_transfer", monkeypatch, theory_of=lambda results: road(1.0),
        simulation_of=lambda results: road(2.0),
    )  # fmt: skip
    assert figure.numbers(None) == {
        "softmax": 41, "sparsemax": 0.04, "biweight": 2, "softmax_simulated": 199, "last": 65536,
    }  # fmt: skip


def test_weighting_quotes_where_the_best_weights_begin_to_pay():
    """The law's cost ``(σ² + R*)(H − 1)/(m − H)`` is the gain at m = 6 + 1.2·5/0.1 = 66."""
    rules, pairs = ["uniform", "optimal", "non_negative"], [6, 12, 48]
    error = np.array([[0.3] * 3, [0.9, 0.6, 0.25], [0.5, 0.33, 0.2]])
    cost = xr.Dataset(
        {
            "error": (("rule", "pairs"), error),
            "oracle": ("rule", [0.3, 0.2, 0.22]),
        },
        coords={"rule": rules, "pairs": pairs},
    )
    law = xr.Dataset(attrs={"heads": 6, "noise_variance": 1.0})
    results = Results("weighting", "smoke", {"cost": cost}, {"cost": law}, {}, {"cost": {}}, {}, {})
    found = load_experiment("weighting").module("figure").numbers(results)
    assert found == {
        "possible": pytest.approx(1 / 3), "break_even": 66, "worse": pytest.approx(2.0),
        "insured": pytest.approx(1.1),
    }  # fmt: skip


def test_head_recovery_quotes_the_largest_change_of_the_error_along_the_orbit(monkeypatch):
    error = np.array([[2.0, 2.02, 1.9], [4.0, 4.04, 4.08]])
    index = np.array([[0.2, 0.5, 0.9], [0.4, 0.5, 0.7]])
    results = SimpleNamespace(
        estimates={
            "orbit": xr.Dataset({"error": (("batch", "factor"), error)}),
            "recovery, full row rank": xr.Dataset({"recovered": ("batch", [0.1, 7.0, 3.0])}),
        }
    )
    figure = figure_of(
        "head_recovery", monkeypatch, indices=lambda results: {("mean", "total"): index}
    )
    assert figure.numbers(results) == {
        "least": pytest.approx(0.3), "most": pytest.approx(0.8), "kept": pytest.approx(0.05),
        "condition": 7.0,
    }  # fmt: skip


def test_query_maps_quotes_the_widest_heads_at_right_angles(monkeypatch):
    places = {
        f"{width} {maps} {angle:g}": (width, maps, angle)
        for width in (1, 2)
        for maps, angle in (("of the keys", 0.0), ("of the keys", 90.0), ("opposite", 0.0))
    }
    drawn = {name: RNG.normal(size=5 + k) for k, name in enumerate(places)}
    results = SimpleNamespace(points=list(places), batches=lambda name: len(drawn[name]))
    figure = figure_of(
        "query_maps", monkeypatch, place=lambda results, name: places[name],
        values=lambda results, name: drawn[name],
    )  # fmt: skip
    assert figure.numbers(results) == {
        "width": 2, "problems": 5, "opposite": pytest.approx(drawn["2 opposite 0"].mean()),
        "apart": pytest.approx(drawn["2 of the keys 90"].mean()),
    }  # fmt: skip

"""What effects rest on: which target, which states, which share, which sign, by hand."""

import numpy as np
import pytest
import xarray as xr
from scipy.stats import skew

from sims.estimates import jackknife, mcse
from sims.study.experiment import load_experiment
from sims.study.results import Results
from sims.terms import PAIRS, SCALARS
from tests.experiments.by_hand import (
    families,
    is_mean_of,
    is_ratio_of,
    mean_error,
    pseudovalues,
)

BATCHES = 64


def results(name, estimates, predictions=None, at=None):
    data = {k: d.assign_attrs(replicates=9) for k, d in estimates.items()}
    return Results(name, "smoke", data, predictions or {}, {}, at or {}, {}, {})


def test_decompositions_share_of_variance_is_the_ensembles():
    law = dict.fromkeys(SCALARS, 1.0) | {"ensemble_variance": 0.3, "variance": 0.8}
    law |= {f"{k}_error": np.nan for k in SCALARS}
    data = {k: ("order", [v]) for k, v in law.items()}
    data["n_eff"] = ("order", "query", "head"), np.array([[[100.0]]])
    names = (*SCALARS, "raw_mse")
    drawn = np.random.default_rng(0).normal(1, 0.05, (len(names), BATCHES))
    estimates = {"p": xr.Dataset({k: ("batch", v) for k, v in zip(names, drawn, strict=True)})}
    predictions = {"p": xr.Dataset(data, {"order": ["first"]})}
    found = families("decomposition", estimates, predictions)["first order, noise variance"]
    assert [effect.at["variance_share"] for effect in found] == [pytest.approx(0.3)]


def test_specializations_errors_by_both_roads_are_of_both_states():
    rng, roads = np.random.default_rng(0), []
    parts = ("squared_bias", "own", "cross", "heads_error", "mse")
    for dim in ("batch", "seed"):
        names = [f"{part}_{state}" for part in parts for state in ("before", "after")]
        size = {name: 3.0 if name.endswith("before") else 2.0 for name in names}
        data = {k: (dim, rng.uniform(v, v + 0.3, 20)) for k, v in size.items()}
        roads.append({f"{s}, {v}": xr.Dataset(data) for s, v in WAYS})
    for data in roads[0].values():
        data["hdi"] = ("batch", "step"), rng.uniform(0, 0.5, (20, 3))
        data["hdi_after"] = "batch", rng.uniform(0.5, 1, 20)
    found = families("specialization", *roads, settings={"variants": {}})["error by both roads"]
    for state in ("before", "after"):
        assert sum(state in effect.label for effect in found) == len(WAYS)


WAYS = [("single", "plain"), ("single", "penalty"), ("additive", "plain")]
WAYS += [("additive", "penalty"), ("additive", "weights")]


def test_adding_heads_gaps_are_of_every_split():
    """Those with a correlation between aligned and diverse, too."""
    experiment = load_experiment("adding_heads")
    estimates, predictions, at = {}, {}, {}
    rng = np.random.default_rng(0)
    for point in experiment.points:
        heads = int(point.coordinates["heads.count"])
        own = {f"integrated_{p}": (0.4 * np.eye(heads) + 0.6) for p in PAIRS}
        wobble = rng.normal(1, 0.01, (BATCHES, 1, 1))
        dims = ("head", "head2")
        data = {k: (("batch", *dims), wobble * v) for k, v in own.items()}
        law = {k: (("order", *dims), v[None]) for k, v in own.items()}
        scalars = dict.fromkeys(SCALARS, 1.0)
        estimates[point.name] = xr.Dataset(
            data | {k: ("batch", wobble[:, 0, 0] * v) for k, v in scalars.items()}
        )
        law |= {k: ("order", [v]) for k, v in scalars.items()}
        predictions[point.name] = xr.Dataset(law, {"order": ["first"]})
        at[point.name] = dict(point.coordinates)
    made = results("adding_heads", estimates, predictions, at)
    found = list(experiment.module("effects").effects(made)["gap to first order"])
    middle = [e for e in found if not ("aligned" in e.label or "diverse" in e.label)]
    assert middle, [e.label for e in found]


def test_angles_skewness_subtracts_the_laws():
    """Third cumulants: of the simulation less that of the law's average over queries."""
    effects = load_experiment("angles").module("effects")
    rng = np.random.default_rng(3)
    over, under = rng.exponential(size=(2, BATCHES)) + 5
    point = {
        "cross_noise_covariance": ("batch", over),
        "noise_variance": ("batch", under),
        "variance": ("batch", under),
        "ensemble_variance": ("batch", under),
    }
    noise = np.eye(2) + 0.1 * (1 + rng.exponential(size=(9, 1, 1)) ** 2) * (1 - np.eye(2))
    law = xr.Dataset({"noise_covariance": (("query", "head", "head2"), noise), "law": 0.5})
    at = {"p": {"heads.frames.angle": 60.0, "heads.kernel": "gaussian"}}
    made = results("angles", {"p": xr.Dataset(point)}, {"p": law}, at)
    found = effects.gap_to_law(made, "p")
    simulated = pseudovalues(lambda a, b: a / b, over, under) / 0.5
    queries = effects.by_query(law) / 0.5
    errors = [mean_error(v)[1] for v in (simulated, queries)]
    kappas = [skew(v) / np.sqrt(len(v)) for v in (simulated, queries)]
    third = kappas[0] * errors[0] ** 3 - kappas[1] * errors[1] ** 3
    assert kappas[1] > 0.1
    assert found.skewness == pytest.approx(third / np.hypot(*errors) ** 3, rel=0.05)


def test_diversitys_worst_pair_is_held_against_the_listed_one_that_is_worst_on_average():
    """Set by set the largest would be larger, since it follows the noise of every set."""
    from tests.experiments.test_diversity_trial import GRAM, LIST, list_of, synthetic

    effects = load_experiment("diversity").module("effects")
    law = list_of(synthetic(0.3, 0.5, 0.4), LIST)
    noise = np.exp(0.02 * np.random.default_rng(4).normal(size=(8, len(LIST), 1, 1)))
    law = {k: np.concatenate([v] * 4)[:8] * noise for k, v in law.items()}
    theory = xr.Dataset(
        {
            "worst_index": ("searched", ["mean, noise"]),
            "worst_rise": (("searched", "set"), np.full((1, 8), 0.5)),
        }
    )
    even = np.array([label.startswith("equiangular") for label in LIST])
    gaps = jackknife(law, effects.over_equiangular(("mean", "noise"), GRAM, even))
    listed = np.where(gaps > 0, gaps, -gaps / (1 + gaps))
    assert len(set(listed.argmax(1))) > 1
    (found,) = effects.worse_pairs("x", theory, list(LIST), law, GRAM)
    by_hand = 0.5 - listed[:, listed.mean(0).argmax()]
    assert found.value == pytest.approx(by_hand.mean(), rel=1e-12)
    assert found.bound == pytest.approx(4 * mcse(by_hand) + effects.INTERPOLATION, rel=1e-9)


def test_specialization():
    """Diversity from the first step on; shares of the gain, by both roads; what a penalty does."""
    rng = np.random.default_rng(11)
    points = ("single, plain", "single, penalty")
    points += ("additive, plain", "additive, penalty", "additive, weights")
    parts = ("squared_bias", "own", "cross", "heads_error", "mse")
    roads = []
    for dim in ("batch", "seed"):
        names = [f"{part}_{state}" for part in parts for state in ("before", "after")]
        size = {name: 3.0 if name.endswith("before") else 2.0 for name in names}
        roads.append(
            {
                p: xr.Dataset({k: (dim, rng.uniform(v, v + 0.3, 20)) for k, v in size.items()})
                for p in points
            }
        )
    estimates, predictions = roads
    for data in estimates.values():
        data["hdi"] = ("batch", "step"), rng.uniform(0, 0.5, (20, 3))
        data["hdi_after"] = "batch", rng.uniform(0.5, 1, 20)
    found = families("specialization", estimates, predictions, settings={"variants": {}})
    data = estimates["single, plain"]
    is_mean_of(found["diversity rises"][0], data["hdi_after"].values - data["hdi"].values[:, 0])
    # Of weights learned and not, in one and the same stream.
    learned, plain = (estimates[f"additive, {variant}"] for variant in ("weights", "plain"))
    higher = (learned["hdi_after"] - plain["hdi_after"]).values
    lower = (learned["hdi"] - plain["hdi"]).values[:, 0]
    is_mean_of(found["learned weights rise further"][0], higher - lower)

    def fell(data, *names):
        whole = (sum(data[f"{n}_{state}"].values for n in names) for state in ("before", "after"))
        return np.subtract(*whole)

    is_ratio_of(found["share of covariance"][0], fell(data, "cross"), fell(data, "mse"))
    ambiguity = fell(data, "mse") - fell(data, "heads_error")
    is_ratio_of(found["share of ambiguity"][0], ambiguity, fell(data, "mse"))
    gap = next(e for e in found["share by both roads"] if e.label == "single, covariance")
    law, parts = predictions["single, plain"], ("squared_bias", "own", "cross")
    theory = fell(law, "cross").mean() / fell(law, *parts).mean()
    share = fell(data, "cross").mean() / fell(data, "mse").mean()
    assert gap.value == pytest.approx(share - theory)
    without, with_ = (estimates[p]["mse_after"].values for p in points[:2])
    is_mean_of(found["penalty lowers the error"][0], (without - with_) / without.mean())


def test_four_standard_errors_of_theorys_own_sets_are_a_bound():
    """Configurations held against a law that is known by its drawn sets alone."""
    effects, rng = load_experiment("diversity").module("effects"), np.random.default_rng(5)
    law = 0.4 + 0.02 * rng.normal(size=(32, 3))
    values = 0.5 + 0.01 * rng.normal(size=(BATCHES, 3))
    values[:, 2] = 1.0  # aligned heads are one head, in every batch
    found = effects.varying("regime", ["a", "b", "aligned"], values, law)
    assert [effect.label for effect in found] == ["regime, a", "regime, b"]
    for effect, own, known in zip(found, values.T, law.T, strict=False):
        is_mean_of(effect, own - known.mean(), bound=4 * mean_error(known)[1])
    assert all(effect.bound == 0 for effect in effects.varying("regime", ["a"], values[:, :1]))

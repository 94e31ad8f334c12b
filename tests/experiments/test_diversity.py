"""The experiment `diversity`: regimes, orders, and verdicts that can go both ways."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from sims.problem import GaussianDesign, Heads, Task, TrigonometricSeries
from sims.study.experiment import load_experiment
from sims.theory import predict as theory
from tests.experiments.helpers import results_of, verdicts

BATCHES = 64
SEARCHES = {
    "mean, geometric": ("lines 0, 43.3, 86.6", "lines 0, 0, 90"),
    "one wave": ("lines 0, 0", "lines 85.8, 94.2"),
    "mean, noise": (),
}
"""Of the made-up points only pairs whose index rises may stand."""
EQUAL = [
    f"{regime}, {kernel}"
    for regime in ("pure noise", "exchangeable")
    for kernel in ("gaussian", "softmax")
]


@pytest.fixture(scope="module")
def experiment():
    return load_experiment("diversity")


@pytest.fixture(scope="module")
def effects(experiment):
    return experiment.module("effects")


@pytest.fixture(scope="module")
def regimes(experiment):
    return experiment.module("regimes").regimes(experiment)


@pytest.fixture(scope="module")
def shapes(experiment, regimes):
    """Regime to theory's dataset with few draws: labels, Gram matrices, and whether one angle."""
    averaged = experiment.module("predict").averaged
    return {name: averaged(regime, 2, 2, 1) for name, regime in regimes.items()}


def made(
    experiment, shapes, product, searched=1.1, shown=1.1, head=lambda _: 1.0, theory=1.0, noise=0.0
):
    """Error matrices ``product`` of the squared cosine, noise the whole of it; times ``head``.

    Counterexamples: errors 1 and ``shown``, and the ratio that the search came to. Theory's
    matrices are ``theory`` times the simulation's, and its sets are ``noise`` apart.
    """
    rng = np.random.default_rng(5)
    estimates, predictions, at = {}, {}, {}
    pair = ("head", "head2")
    for point in experiment.points:
        angles = np.deg2rad(point.spec.heads.frames.angles)
        r = np.cos(angles[:, None] - angles) ** 2
        at[point.coordinates["heads.frames"]] = point.name
        law = {
            "integrated_signal_covariance": (pair, 0.2 * r),
            "integrated_noise_covariance": (pair, 0.8 * r),
            "mse": 1.0,
        }
        both = xr.Dataset(law).expand_dims({"order": ["first", "exact"]})
        predictions[point.name] = both.assign(mse_error=1e-6, gram=(pair, r))
        mse = 1 + 1e-4 * rng.standard_normal(BATCHES)
        estimates[point.name] = xr.Dataset({"mse": ("batch", mse)}, attrs={"replicates": 512})
    for name, shape in shapes.items():
        dims = ("configuration", *pair)
        # Redundant views have one subspace; their Gram matrix is made up.
        gram = shape["grams"].values
        if len(gram) == 6:
            c = np.array([1.0, 0.9, 0.75, 0.5, 0.25, 0.0])[:, None, None] ** 2
            gram = (1 - c) * np.eye(4) + c
        sizes = np.array([head(float(g.mean())) for g in gram])[:, None, None]
        law = product(gram) * sizes
        # What varies from batch to batch does so alike at all points, but for a little.
        wobble = 1 + 1e-2 * rng.standard_normal((BATCHES, 1, 1, 1))
        own = 1e-4 * rng.standard_normal((BATCHES, len(gram), 1, 1)) * (1 - gram)
        own += 1e-4 * rng.standard_normal((BATCHES, len(gram), 1, 1)) * np.eye(4)
        values = law * wobble + own * sizes
        if experiment.settings["regimes"][name].get("each"):
            apart = law * (1 + 1e-3 * rng.standard_normal((BATCHES, 2, len(gram), 1, 1)))
            each = {"target_error_matrix": (("batch", "half", *dims), apart)}
            estimates[f"{name}, target by target"] = xr.Dataset(each)
        if experiment.settings["regimes"][name].get("drawn_frames"):
            error = law.mean((-2, -1)) * (1 + 1e-3 * rng.standard_normal((BATCHES, 2, len(gram))))
            own = (("batch", "drawn", *pair), np.tile(gram, (BATCHES, 1, 1, 1)))
            both = {"frames_error": (("batch", "half", "drawn"), error), "frames_gram": own}
            estimates[f"{name}, frames drawn"] = xr.Dataset(both)
        names = ("error_matrix", "bias_matrix", "noise_matrix")
        arrays = zip(names, (values, 0 * values, values), strict=True)
        estimates[name] = xr.Dataset(
            {k: (("batch", *dims), v) for k, v in arrays}, attrs={"replicates": 512}
        )
        parts = {"bias_matrix": 0 * law, "signal_matrix": 0 * law, "noise_matrix": theory * law}
        # Sets of draws that differ by so much say how far theory's own average may be off.
        sets = {
            k: (("set", *dims), np.stack([v * (1 - noise), v * (1 + noise)]))
            for k, v in parts.items()
        }
        predictions[name] = shape.assign(sets).assign(grams=(dims, gram))
        if named := experiment.settings["regimes"][name].get("any_configuration"):
            rises = {"worst_rise": (("searched", "set"), np.zeros((len(named), 2)))}
            rises["worst_index"] = ("searched", named)
            predictions[name] = predictions[name].assign(rises)
    for name in experiment.settings["drawn_frames_alone"]:
        estimates[f"{name}, frames drawn"] = estimates["one fixed target, frames drawn"]
    pairs = {name: tuple(at[label] for label in labels) for name, labels in SEARCHES.items()}
    for less, more in filter(None, pairs.values()):
        predictions[more]["mse"] = shown * predictions[less]["mse"]
        estimates[more]["mse"] = shown * estimates[more]["mse"]
    first = pairs["mean, geometric"][0]
    columns = {
        "less": [pair[0] if pair else "" for pair in pairs.values()],
        "more": [pair[1] if pair else "" for pair in pairs.values()],
        "searched_ratio": [searched if pair else 0.99 for pair in pairs.values()],
        "tried": [10] * len(pairs),
    }
    predictions[first] = predictions[first].assign(
        {k: ("search", v) for k, v in columns.items()} | {"search": list(pairs)}
    )
    return results_of(experiment, estimates, predictions)


def linear(gram):
    return 0.5 + 0.5 * gram


def convex(gram):
    return 0.5 + 0.5 * gram**4


def test_the_index_of_subspaces_is_right_where_products_are_linear_in_it(experiment, shapes):
    verdict = verdicts(experiment, made(experiment, shapes, linear))
    assert set(verdict) == {(c.id, c.regime) for c in experiment.claims}
    assert verdict["hdi", "indices by both roads"] == "supported"
    assert verdict["first-order-range", "errors by both roads, gaussian"] == "supported"
    assert verdict["hdi-conditions", "algebra of the error matrix"] == "supported"
    for regime in EQUAL:
        assert verdict["hdi-monotone", f"{regime}, mean, geometric"] == "supported"
        # The effective rank orders uneven heads otherwise, so the same data refute it.
        assert verdict["hdi-monotone", f"{regime}, entropy, geometric"] == "refuted"
        assert verdict["hdi-conditions", f"{regime}, equal heads"] == "supported"
        assert verdict["hdi-monotone", f"{regime}, equiangular heads"] == "supported"
        assert verdict["hdi-conditions", f"{regime}, majorized"] == "supported"
    assert verdict["hdi-monotone", "redundant views, top, total"] == "supported"
    assert verdict["hdi-monotone", "exchangeable, softmax, random frames drawn"] == "supported"


def test_where_products_are_convex_only_the_partial_order_is_right(experiment, shapes):
    verdict = verdicts(experiment, made(experiment, shapes, convex))
    for regime in EQUAL:
        assert verdict["hdi-monotone", f"{regime}, mean, geometric"] == "refuted"
        assert verdict["hdi-conditions", f"{regime}, majorized"] == "supported"


def test_concave_products_break_the_partial_order(experiment, shapes):
    verdict = verdicts(experiment, made(experiment, shapes, lambda gram: 0.5 + 0.5 * gram**0.25))
    assert verdict["hdi-conditions", "pure noise, gaussian, majorized"] == "refuted"


def test_roads_that_differ_are_told_apart_unless_theorys_own_draws_do(experiment, shapes):
    row = ("first-order-range", "errors by both roads, gaussian")
    off = verdicts(experiment, made(experiment, shapes, linear, theory=1.2))
    assert off[row] == "refuted"
    unsure = verdicts(experiment, made(experiment, shapes, linear, theory=1.2, noise=0.1))
    assert unsure[row] == "inconclusive"


def test_a_pair_whose_order_is_not_known_is_open(effects):
    """It supports a bound that all of its change is within, and no other."""
    rng = np.random.default_rng(1)
    rises = 0.1 + 1e-3 * rng.standard_normal((BATCHES, 2, 2))
    index = np.zeros((BATCHES, 2))
    index[:, 1] = 1e-3 + 1e-2 * rng.standard_normal(BATCHES)
    (effect,) = effects.Rises("regime", ["a", "b"], rises).along(index)
    assert effect.value == 0
    assert effect.bound == pytest.approx(0.1, abs=1e-3)
    (effect,) = effects.Rises("regime", ["a", "b"], rises).along(index + np.array([0.0, 0.1]))
    assert (effect.label, effect.bound) == ("a to b", 0)
    (effect,) = effects.Rises("regime", ["a", "b"], rises).along(index - np.array([0.0, 0.1]))
    assert effect.label == "b to a"
    # One number is no order.
    assert not list(effects.Rises("regime", ["a", "b"], rises).along(np.ones((BATCHES, 2))))


def test_weak_majorization(effects):
    def gram(*pairs):
        out = np.eye(3)
        out[np.triu_indices(3, 1)] = pairs
        return out

    assert effects.majorizes(gram(0.9, 0, 0), gram(0.3, 0.3, 0.3))
    assert effects.majorizes(gram(0.9, 0.1, 0), gram(0.1, 0.5, 0.2))
    assert not effects.majorizes(gram(0.3, 0.3, 0.3), gram(0.9, 0, 0))
    assert not effects.majorizes(gram(0.8, 0, 0), gram(0.3, 0.3, 0.3))
    assert not effects.majorizes(gram(0.5, 0.2, 0.1), gram(0.1, 0.5, 0.2))


def test_the_algebra_is_that_of_the_matrix(effects):
    root = np.random.default_rng(2).normal(size=(5, 3, 4, 6))
    data = {"error_matrix": root @ np.swapaxes(root, -1, -2)}
    assert effects.algebra(data).max() < 256


def test_a_pair_that_the_index_ties_is_no_counterexample(experiment, effects, shapes):
    """Whatever the error does counts against it, be it a rise or a fall."""
    results = made(experiment, shapes, linear)
    name = "mean, geometric"
    less, more = effects.counterexamples(results)[name]
    (apart,) = effects.error_rises(results, name, less, more)
    assert apart.value > 0.09
    (falls,) = effects.error_rises(results, name, more, less)
    assert falls.value < -0.09
    tied = replace(results, settings=results.settings | {"resolution": 2.0})
    (rises,) = effects.error_rises(tied, name, less, more)
    assert rises.value == -apart.value


def effective_rank(r, _):
    p = np.maximum(np.linalg.eigvalsh(r), 1e-300) / 3
    return (np.exp(-np.sum(p * np.log(p), axis=1)) - 1) / 2


def one_less_mean(_, gram):
    return 1 - (gram.sum((1, 2)) - 3) / 6


@pytest.mark.parametrize(
    ("name", "index"), [("entropy, noise", effective_rank), ("mean, geometric", one_less_mean)]
)
def test_the_search_comes_to_what_brute_force_does(experiment, name, index):
    """Three lines under noise alone: against a grid of angles."""
    settings = experiment.settings
    pair = settings["counterexamples"][name]
    labels = [p.coordinates["heads.frames"] for p in experiment.points]
    spec = experiment.points[labels.index(pair["frames"][0])].spec
    search = experiment.module("predict").search
    ratio, rise, tried = search(spec.build(), pair, settings["resolution"], **settings["search"])
    assert rise >= settings["resolution"]
    assert tried > 1000
    # One query at the origin: the angle law, ρ(c) = (1 − c²/t²)^(−1/2), t = 1 + b².
    t = 1 + spec.heads.bandwidth**2
    step = np.deg2rad(np.arange(0, 180, 4.5))
    second, third = (a.ravel() for a in np.meshgrid(step, step))
    turned = np.stack([np.zeros_like(second), second, third], axis=1)
    cosine = np.cos(turned[:, :, None] - turned[:, None, :])
    r = np.sqrt((1 - 1 / t**2) / (1 - cosine**2 / t**2))
    error, rank = r.mean((1, 2)), index(r, cosine**2)
    allowed = rank[None, :] - rank[:, None] >= settings["resolution"]
    grid = np.where(allowed, error[None, :] / error[:, None], 0).max()
    assert 0.99 * grid <= ratio < 1.05 * grid
    assert grid > 1.02
    # Where the mean of noise correlations rises as well, which is the error itself, it falls.
    both = {"indices": [name, "mean, noise"]}
    ratio, rise, _ = search(spec.build(), both, settings["resolution"], **settings["search"])
    assert ratio < 1
    assert rise >= settings["resolution"]


@pytest.mark.theory
def test_theory_averages_over_queries_of_the_regimes_scale(experiment, regimes):
    """A constant target: noise at 512 normal queries of the library, 4 standard errors and 1 %."""
    regime = regimes["pure noise, gaussian"]
    terms = experiment.module("predict").averaged(regime, 2, 256, 7)["noise_matrix"].mean("set")
    queries = (
        regime.scale * regime.seen * np.random.default_rng(8).normal(size=(512, regime.seen.size))
    )
    heads = Heads(regime.frames[2], regime.kernel, regime.bandwidth)
    task = Task(GaussianDesign(regime.covariance[2]), regime.target, regime.noise_sd)
    noise = theory(task, heads, regime.n, queries)["noise_covariance"].values
    error = noise.std(0, ddof=1) / np.sqrt(512)
    assert (np.abs(terms.values[2] - noise.mean(0)) < 4 * error + 0.01 * noise.mean(0)).all()


def test_errors_of_a_draw_are_those_of_plain_loops(experiment, regimes):
    """One replicate of drawn targets and of redundant views against NumPy, at the same draws."""
    simulate = experiment.module("simulate")
    n, queries, waves = 5, 3, 4
    key = jax.random.key(3)
    for name, drawn in (("exchangeable, softmax", True), ("redundant views", False)):
        regime = regimes[name]
        shared = simulate.shared(regime)
        got = simulate.replicate(
            key,
            shared,
            None,
            kernel=regime.kernel,
            n=n,
            queries=queries,
            features=waves if drawn else 0,
        )
        for_target, for_queries, for_keys = jax.random.split(key, 3)
        d, heads = len(regime.seen), 4
        target = regime.target
        if drawn:
            first, second = jax.random.split(for_target)
            frequency = np.asarray(jax.random.normal(first, (waves, d))) / regime.lengthscale
            phase = np.asarray(jax.random.uniform(second, (waves,), maxval=2 * np.pi))
            target = TrigonometricSeries(np.full(waves, np.sqrt(2 / waves)), frequency, phase)
        x = regime.scale * regime.seen * np.asarray(jax.random.normal(for_queries, (queries, d)))
        z = np.asarray(jax.random.normal(for_keys, (2, n, d)))
        for c in (0, 3):
            errors, noise = np.zeros((2, queries, heads)), np.zeros((heads, heads))
            covariance = np.asarray(regime.covariance[c])
            values, vectors = np.linalg.eigh(covariance)
            root = vectors @ np.diag(np.sqrt(np.maximum(values, 0))) @ vectors.T
            b = float(regime.bandwidth[0])
            for s in range(2):
                keys = z[s] @ root
                for q in range(queries):
                    weights = []
                    for frame in np.asarray(regime.frames[c]):
                        at, own = frame.T @ x[q], keys @ frame
                        scores = own @ at / b**2 if drawn else -((own - at) ** 2).sum(1) / 2 / b**2
                        w = np.exp(scores - scores.max())
                        weights.append(w / w.sum())
                    w = np.array(weights)
                    errors[s, q] = w @ np.asarray(target(keys)) - float(target(jnp.asarray(x[q])))
                    noise += regime.noise_sd**2 * w @ w.T / (2 * queries)
            own = np.einsum("sqh,sqg->hg", errors, errors) / (2 * queries)
            cross = errors[0].T @ errors[1] / queries
            np.testing.assert_allclose(got["noise_matrix"][c], noise, rtol=1e-5)
            np.testing.assert_allclose(got["error_matrix"][c], own + noise, rtol=1e-4, atol=1e-6)
            np.testing.assert_allclose(
                got["bias_matrix"][c], (cross + cross.T) / 2, rtol=1e-4, atol=1e-6
            )


@pytest.mark.theory
def test_theory_over_draws_is_that_of_each_draw(experiment, regimes):
    """Drawn waves, both phases, against the library one problem at a time."""
    predict = experiment.module("predict")
    regime = regimes["exchangeable, gaussian"]
    rng = np.random.default_rng(4)
    frequency, x = rng.normal(size=(2, 1, 8)) / 3, rng.normal(size=(2, 8)) / 2
    parts = predict.over_draws(regime, jnp.asarray(frequency), jnp.asarray(x))
    heads = Heads(regime.frames[3], regime.kernel, regime.bandwidth)
    total = np.zeros((3, 4, 4))
    for wave, query in zip(frequency, x, strict=True):
        for phase in (0.0, np.pi / 2):
            target = TrigonometricSeries([np.sqrt(2)], wave, [phase])
            task = Task(GaussianDesign(regime.covariance[3]), target, regime.noise_sd)
            terms = theory(task, heads, regime.n, query[None])
            names = ("bias_product", "signal_covariance", "noise_covariance")
            total += np.stack([terms[f"integrated_{name}"].values for name in names]) / 4
    for got, expected in zip(parts, total, strict=True):
        np.testing.assert_allclose(got[3], expected, rtol=1e-8, atol=1e-14)


@pytest.mark.theory
def test_two_phases_of_one_wave_have_the_moments_of_the_law(experiment):
    """E m(x)m(y) over waves and phases is the squared-exponential kernel."""
    rng = np.random.default_rng(6)
    x, y = rng.normal(size=(2, 3))
    frequency = rng.normal(size=(200_000, 3)) / 2.0
    values = [2 * np.cos(frequency @ x + c) * np.cos(frequency @ y + c) for c in (0.0, np.pi / 2)]
    mean = np.mean(values, axis=0)
    gap = mean.mean() - np.exp(-np.sum((x - y) ** 2) / 2 / 2.0**2)
    assert abs(gap) < 5 * mean.std() / np.sqrt(len(mean))

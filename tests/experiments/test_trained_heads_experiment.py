"""The experiment `trained_heads`: its training from a seed, and its effects."""

from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import jax
import numpy as np
import pytest
import xarray as xr

from sims.study.experiment import load_experiment
from sims.study.judging import effects_of
from tests.experiments.by_hand import pseudovalues
from tests.experiments.helpers import results_of, verdicts
from tests.experiments.runs import both_roads

BATCHES, SEEDS = 64, 128
effects, simulate, layer_module = (
    load_experiment("trained_heads").module(name) for name in ("effects", "simulate", "layer")
)
random_layer = layer_module.random_layer


@pytest.fixture(scope="module")
def experiment():
    return load_experiment("trained_heads")


@pytest.fixture(scope="module")
def small():
    """The smoke experiment at a size that takes seconds, by both roads."""
    whole = load_experiment("trained_heads", "smoke")
    settings = dict(whole.settings) | {
        "streams": ["additive"],
        "sizes": [[3, 2]],
        "separate": [[3, 2]],
        "training": {"steps": 40, "tasks": 2, "queries": 16, "rate": 0.05},
        "path": [0, 1, 40],
        "held_out": {"tasks": 4, "queries": 8, "designs": 2},
    }
    smoke = whole.spec.at("smoke").model_copy(update={"settings": settings})
    fidelities = whole.spec.fidelities | {"smoke": smoke}
    return replace(whole, spec=whole.spec.model_copy(update={"fidelities": fidelities}))


@pytest.fixture(scope="module")
def results(small):
    return both_roads(small)


def test_training_from_a_seed(results):
    """Error falls; identical heads start as the first random one, and learn as it does alone.

    One of them is looked at for all, so it is held against a head that is trained by itself.
    """
    alone = results.estimates["additive, 3 of 2, separate"].sel(values="pool", start="random")
    for values in ("pool", "free"):
        layers = results.estimates["additive, 3 of 2"].sel(values=values)
        apart, same = (layers.sel(start=start) for start in ("random", "identical"))
        for data in (apart, same):
            errors = data["errors"].mean(("head", "head2")).values
            assert errors[..., -1].mean() < 0.95 * errors[..., 0].mean()
            np.testing.assert_allclose(data["subspaces"].values[..., 0, 0], 1, rtol=1e-12)
            # Adam's first step has the size of the rate.
            change = np.log(data["temperature"][:, :, 1] / data["temperature"][:, :, 0])
            np.testing.assert_allclose(np.abs(change), 0.05, rtol=1e-3)
        np.testing.assert_allclose(same["subspaces"], 1, rtol=1e-6)
        assert float(np.ptp(same["errors"].values, axis=(-2, -1)).max()) == 0
        assert (apart["subspaces"].values[..., 0, 1] < 0.9).all()
        # The pool of identical heads is the first one.
        if values == "pool":
            np.testing.assert_allclose(
                same["errors"][..., 0, 0, 0], apart["errors"][..., 0, 0, 0], rtol=1e-9
            )
            np.testing.assert_allclose(
                same["errors"][..., 1, 1], alone["errors"][..., 0, 0], rtol=1e-6
            )
    pool, free = (
        results.estimates["additive, 3 of 2"]["subspaces"]
        .sel(values=values, start="random")
        .values[..., 0, 0, 1]
        for values in ("pool", "free")
    )
    np.testing.assert_allclose(pool, free, rtol=1e-12)
    assert len(set(pool.ravel())) == 6
    start = results.predictions["additive, 3 of 2"]["subspaces_start"]
    assert float(start) == pytest.approx(10 / 12)


def test_seeds_are_reproduced(small, results):
    again = both_roads(small).estimates
    moved = both_roads(replace(small, seed_offset=1)).estimates
    for name, data in results.estimates.items():
        np.testing.assert_array_equal(again[name]["errors"], data["errors"])
        assert (np.abs(moved[name]["errors"] - data["errors"]) > 1e-6).all()


def uniform(diagonal, off, heads):
    """Matrices (…, H, H) with these entries."""
    eye = np.eye(heads)
    return np.asarray(diagonal)[..., None, None] * eye + np.asarray(off)[..., None, None] * (
        1 - eye
    )


def made(experiment, own=(1.0, 1.0), rho=(0.9, 0.3), overlap=0.3, covariance=(0.5, 0.01)):
    """Heads of error v̄ and correlation ρ that move from start to end, with noise between.

    Their subspaces' overlap ends at ``overlap`` times that of random ones. Seeds with a smaller
    overlap have less error. Identical heads have the error v̄ throughout.
    """
    steps, shape = np.linspace(0, 1, 7), (BATCHES, SEEDS // BATCHES, 7)
    rng = np.random.default_rng(0)
    shift = 0.02 * rng.normal(size=(*shape[:2], 1)) * steps
    wobble = rng.normal(size=shape) * np.array([1e-3, *[0.05] * 5, 1e-3])

    def line(ends):
        return ends[0] + (ends[1] - ends[0]) * steps

    estimates, predictions = {}, {}
    axes = ("batch", "replicate", "step", "head", "head2")
    settings = experiment.settings
    for (heads, width), stream in product(settings["sizes"], settings["streams"]):
        starts = []
        v, r = line(own) + wobble, line(rho) + shift
        c = width / 12 * line((1.0, overlap)) + shift + 0.1 * wobble
        common = line(covariance) + 0.1 * wobble + shift - shift.mean((0, 1))
        same = v * (1 + 0.01 * rng.normal(size=shape))
        for *errors, outputs in (v, v * r, common), (same, same, np.full(shape, 0.6)):
            matrices = {
                "errors": uniform(*errors, heads),
                "covariance": uniform(np.full(shape, 0.6), outputs, heads),
                "subspaces": uniform(np.ones(shape), c, heads),
                "maps": uniform(np.ones(shape), 2 * c, heads),
            }
            starts.append(xr.Dataset({key: (axes, matrix) for key, matrix in matrices.items()}))
        name = f"{stream}, {heads} of {width}"
        estimates[name] = (
            xr.concat(starts, xr.Variable("start", settings["starts"]))
            .expand_dims(values=settings["values"])
            .assign_attrs(replicates=SEEDS)
        )
        predictions[name] = xr.Dataset({"subspaces_start": 1 - width / 12})
        if [heads, width] in settings["separate"]:
            # Heads on their own errors end as they started.
            stay = estimates[name].isel(step=[0, 0], values=[0], start=[0])
            estimates[f"{name}, separate"] = stay.assign_attrs(replicates=SEEDS)
            predictions[f"{name}, separate"] = predictions[name]
    return results_of(experiment, estimates, predictions)


def test_subspaces_are_those_of_the_keys_projections(small):
    """Of W_K, by NumPy, before any step of training; W_Q is as random."""
    unit = simulate.units(small)["additive, 3 of 2"]
    key = jax.random.key(5)
    found = jax.jit(unit.sampler.replicate)(key, unit.sampler.constants, None)["subspaces"]
    for_start = jax.random.split(key, 4)[1]
    settings = small.settings
    drawn = random_layer(for_start, 3, 2, settings["dimension"], settings["outputs"])
    frames = np.linalg.qr(np.asarray(drawn.key, float))[0]
    gram = np.einsum("hdi,gdj->hgij", frames, frames)
    start = settings["starts"].index("random")
    np.testing.assert_allclose(found[0, start, 0], (gram**2).sum((2, 3)) / 2, rtol=1e-5, atol=1e-7)


def test_indices_are_of_their_own_matrices(experiment):
    """Rows of maps take maps, those of subspaces subspaces, joint and separate."""
    results = made(experiment)
    layer = next(one for one in effects.layers(results) if one.heads == 4)
    data, control = (results.estimates[name] for name in (layer.point, layer.control))
    pairs = xr.DataArray(0.125 * (1 - np.eye(4)), dims=("head", "head2"))
    estimates = {**results.estimates, layer.point: data.assign(maps=data["maps"] - pairs)}
    moved = replace(results, estimates=estimates)
    of_maps, of_subspaces = (
        effects.INDICES[name](moved, layer) - effects.INDICES[name](results, layer)
        for name in ("maps", "subspaces")
    )
    np.testing.assert_allclose(of_maps, 0.125, rtol=1e-9)
    np.testing.assert_array_equal(of_subspaces, 0)
    ends = [
        effects_of(experiment, r)["joint training parts maps further"] for r in (moved, results)
    ]
    assert ends[0][0].value - ends[1][0].value == pytest.approx(0.125, rel=1e-9)
    own = [d["maps"].sel(values="pool", start="random").isel(step=-1) for d in (data, control)]
    first = [float(m.isel(head=0, head2=1).mean()) for m in own]
    assert ends[1][0].value == pytest.approx(first[1] - first[0], rel=1e-9)


def test_across_seeds_errors_are_over_those_of_identical_heads_that_are_trained(experiment):
    """Pseudo-values of minus a correlation; how identical heads start tells nothing."""
    results = made(experiment)
    layer = next(effects.layers(results))
    data = results.estimates[layer.point]
    factor = np.exp(np.random.default_rng(2).normal(size=(BATCHES, SEEDS // BATCHES)))
    at_start = (data["start"] == "identical") & (xr.DataArray(np.arange(7), dims="step") == 0)
    factors = xr.DataArray(factor, dims=("batch", "replicate"))
    moved = data.assign(errors=data["errors"] * xr.where(at_start, factors, 1.0))
    estimates = {**results.estimates, layer.point: moved}
    found = effects.across_seeds(replace(results, estimates=estimates), layer, "errors")
    of = data.sel(values=layer.values, step=6)["errors"].transpose("start", "batch", ...)
    random, same = (of.sel(start=k).values for k in ("random", "identical"))
    y = random.mean((-2, -1)) / same.mean((-2, -1))
    # Heads are uniform: of errors v on the diagonal and c beside it λ_max/trace is (v + (H−1)c)/Hv.
    v, c = random[..., 0, 0], random[..., 0, 1]
    h = layer.heads
    x = (1 - (v + (h - 1) * c) / (h * v)) * h / (h - 1)
    columns = [m.mean(1) for m in (x, y, x * x, y * y, x * y)]
    by_hand = pseudovalues(
        lambda x, y, xx, yy, xy: -(xy - x * y) / np.sqrt((xx - x**2) * (yy - y**2)), *columns
    )
    np.testing.assert_allclose(found, by_hand, rtol=1e-6, atol=1e-8)


def regimes(experiment, results):
    return {regime: verdict for (_, regime), verdict in verdicts(experiment, results).items()}


def chosen(found, word):
    """Verdicts of all regimes that have a word."""
    return {verdict for regime, verdict in found.items() if word in regime}


def test_shares_of_a_known_gain(experiment):
    """Errors of v̄ = 1 → 0.9 and ρ = 0.9 → 0.3: every share in closed form, by hand for H = 4."""
    results = made(experiment, own=(1.0, 0.9))
    families = effects_of(experiment, results)
    for heads in (2, 4):
        d0, d1 = 0.9 + 0.1 / heads, 0.3 + 0.7 / heads
        gain = d0 - 0.9 * d1
        expected = {
            "share of covariance": 0.49 * (1 - 1 / heads) / gain,
            "share of ambiguity": 1 - 0.1 / gain,
            "share of index of errors": (d0 - d1) * 0.95 / gain,
            "share beyond identical heads": (0.9 - 0.9 * d1) / gain,
            "better than identical heads": 1 - d1,
        }
        for family, value in expected.items():
            own = [e for e in families[family] if e.at["heads"] == heads]
            assert {(e.batches, e.replicates) for e in own} == {(BATCHES, SEEDS)}
            assert [e.value for e in own] == pytest.approx([value] * len(own), abs=0.01), family
    rise = families["rise of errors"][0]
    # The top eigenvalue of equicorrelated heads is 1 + (H − 1)ρ.
    assert rise.value == pytest.approx(0.6, abs=0.02)
    assert families["rise of outputs"][0].value == pytest.approx(0.49 / 0.6, abs=2e-3)
    across = families["falls with errors across seeds"][0]
    assert across.points == ("additive, 2 of 2",)


def test_the_ambiguitys_share_is_that_of_products_of_errors_on_another_scale(experiment):
    """Of uneven heads: 1 − H(1 − p), p the share of the products of pairs, one by one."""
    results = made(experiment, own=(1.0, 0.9))
    layer = next(one for one in effects.layers(results) if one.heads == 4)
    data = results.estimates[layer.point]
    factor = np.random.default_rng(3).uniform(0.8, 1.2, (BATCHES, SEEDS // BATCHES, 4, 4))
    uneven = (("batch", "replicate", "head", "head2"), factor + factor.swapaxes(-1, -2))
    moved = data.assign(errors=data["errors"] * xr.Variable(*uneven))
    estimates = {**results.estimates, layer.point: moved}
    found = effects.of_ambiguity(replace(results, estimates=estimates), layer)
    matrix = moved["errors"].sel(values=layer.values, start="random")
    matrix = matrix.transpose("step", "head", "head2", ...).values
    fell = (matrix[0] - matrix[-1]).mean((-2, -1))
    pairs = sum(fell[h, g] for h in range(4) for g in range(4) if h != g) / 16
    share = pairs / (pairs + np.trace(fell) / 16)
    assert found.mean() == pytest.approx(1 - 4 * (1 - share), rel=1e-9)
    assert abs(found.mean() - share) > 0.01


def test_along_the_path_ranks_are_correlated():
    """Minus 1 − 6 Σd²/(n³ − n) of five steps, whatever the sizes; the mean over seeds."""
    ranks = np.array([[[1, 2, 3, 4, 5], [1, 3, 2, 4, 5]], [[5, 1, 2, 3, 4], [5, 4, 3, 2, 1]]])
    index = np.broadcast_to([0.1, 0.2, 0.3, 0.4, 0.9], ranks.shape)
    axes = ("batch", "replicate", "step", "head", "head2")
    data = {
        "errors": (axes, uniform(np.exp(2.0 * ranks), np.zeros(ranks.shape), 2)),
        "subspaces": (axes, uniform(np.ones(ranks.shape), 1 - index, 2)),
    }
    layer = effects.Layer("additive", "pool", 2, 2)
    arms = xr.Dataset(data).expand_dims(values=["pool"], start=["random"])
    results = SimpleNamespace(estimates={layer.point: arms})
    found = effects.along_the_path(results, layer, "subspaces")
    spearman = 1 - 6 * ((ranks - np.arange(1, 6)) ** 2).sum(-1) / (5**3 - 5)
    np.testing.assert_allclose(spearman, [[1, 0.9], [0, -1]], atol=1e-12)
    np.testing.assert_allclose(found, [-0.95, 0.5], atol=1e-12)


def test_error_and_index_across_seeds(experiment):
    """Seeds that end with a larger index and a larger error refute; the path is another matter."""
    results = made(experiment)
    data = {
        name: d.assign(subspaces=-d["subspaces"] + 2 * d["subspaces"].mean(("batch", "replicate")))
        for name, d in results.estimates.items()
    }
    found = regimes(experiment, replace(results, estimates=data))
    assert chosen(found, "subspaces across seeds") == {"refuted"}
    assert chosen(found, "errors across seeds") == {"supported"}
    assert chosen(found, "along the path") == {"supported"}


def test_joint_less_separate_training_by_hand(experiment):
    """Of layers with uneven errors; their own mean and that of pairs, number by number."""
    results = made(experiment, own=(1.0, 0.9))
    layer = next(one for one in effects.layers(results) if one.heads == 4)
    joint, apart = results.estimates[layer.point], results.estimates[layer.control]
    factor = np.random.default_rng(3).uniform(0.8, 1.2, (BATCHES, SEEDS // BATCHES, 4, 4))
    uneven = (("batch", "replicate", "head", "head2"), factor + factor.swapaxes(-1, -2))
    joint = joint.assign(errors=joint["errors"] * xr.Variable(*uneven))
    moved = replace(results, estimates={**results.estimates, layer.point: joint})
    of_joint = joint.sel(values="pool", start="random", step=6)
    of_joint = of_joint.transpose("batch", "replicate", "head", "head2")
    of_apart = apart.isel(values=0, start=0, step=-1).transpose(*of_joint.dims)
    index, rho, mse = [], [], []
    for data in (of_joint, of_apart):
        shared, products = data["subspaces"].values, data["errors"].values
        pairs = [(h, g) for h in range(4) for g in range(4) if h != g]
        index.append(1 - sum(shared[..., h, g].mean(1) for h, g in pairs) / 12)
        own = sum(products[..., h, h].mean(1) for h in range(4)) / 4
        common = sum(products[..., h, g].mean(1) for h, g in pairs) / 12
        rho.append(common.mean() / own.mean())
        mse.append(own.mean() / 4 + common.mean() * 3 / 4)
    np.testing.assert_allclose(effects.parts_further(moved, layer), index[0] - index[1], rtol=1e-9)
    found = effects.decorrelates_further(moved, layer)
    assert found.mean() == pytest.approx(rho[1] - rho[0], rel=1e-9)
    lower = effects.lowers_error(moved, layer)
    assert lower.mean() == pytest.approx(1 - mse[0] / mse[1], rel=1e-9)
    family = effects_of(experiment, moved)["joint training lowers the error further"]
    assert [e.points for e in family] == [
        (f"{stream}, 4 of 2", f"{stream}, 4 of 2, separate") for stream in ("additive", "isotropic")
    ]


def test_joint_training_has_to_do_more_than_separate_training(experiment):
    """Its rows are refuted, and no others, where both end alike in one stream."""
    results = made(experiment)
    name = "additive, 4 of 2"
    same = results.estimates[name].isel(step=[0, -1])
    found = regimes(
        experiment, replace(results, estimates={**results.estimates, f"{name}, separate": same})
    )
    rows = {regime for regime in found if "joint training" in regime}
    assert len(rows) == 4
    assert {regime for regime, verdict in found.items() if verdict == "refuted"} == rows


def test_separate_training_from_a_seed(small, results):
    """From the joint layers' start, on their tasks: another end, and more alike errors."""
    joint = results.estimates["additive, 3 of 2"].sel(values="pool", start="random")
    apart = results.estimates["additive, 3 of 2, separate"].sel(values="pool", start="random")
    # Of one file: points whose looks differ could not be written into it.
    assert apart["step"].values.tolist() == joint["step"].values.tolist()
    for name in ("errors", "subspaces"):
        first, second = (d[name].sel(step=0).values for d in (joint, apart))
        np.testing.assert_allclose(first, second, rtol=1e-6)
        assert (
            np.abs(joint[name].sel(step=40).values - apart[name].sel(step=40).values).max() > 1e-3
        )

"""Numbers of `collapse` and of `head_recovery` by loops over a few draws, or made by hand."""

from types import SimpleNamespace

import jax
import numpy as np
import pytest
import xarray as xr

from sims.montecarlo import Draw
from sims.problem import DESIGNS, FRAMES, TARGETS, Task
from sims.simulation import draw as training_set
from sims.study.experiment import load_experiment
from tests.experiments.by_hand import is_mean_of

collapse, recovery = (load_experiment(name) for name in ("collapse", "head_recovery"))
cases, depth, effects, ranking, symmetry = (
    collapse.module(name) for name in ("cases", "depth", "effects", "ranking", "symmetry")
)
counting, of_orbit, of_heads = (recovery.module(n) for n in ("counting", "orbit", "effects"))
BATCHES = 10


@pytest.fixture
def rng():
    return np.random.default_rng(4)


def one_draw():
    return Draw.of(9, (3,), 1).draw(2)


@pytest.mark.parametrize("size", [0.3, 0.03, 0.001])
def test_tokens_near_collapse_have_the_residual_that_they_are_named_by(size):
    """ρ: what tokens differ by, as a share of all of them, in the Frobenius norm."""
    for batch in range(3):
        own = cases.near_collapse(size, 8, 16, 1, batch)
        tokens = own.mean + own.centred
        np.testing.assert_allclose(tokens.mean(0), own.mean, atol=1e-12)
        apart = np.linalg.norm(tokens - tokens.mean(0))
        assert apart / np.linalg.norm(tokens) == pytest.approx(size, rel=1e-9)


def test_positions_in_the_input_are_a_table_of_sines_and_cosines():
    """Tokens of the regime as the file has it, before its first layer."""
    n, d, own = 6, 4, collapse.settings["depths"]["positions"]
    sampler = depth.layers(own | {"depth": 0}, {"n": n, "d": d, "width": 2})
    found = sampler.batch(one_draw(), 3, None)
    assert found["log_residual"].shape == (1,)
    tokens = one_draw().rng().normal(size=(3, n, d))
    logs = []
    for each in tokens:
        for place in range(n):
            for k in range(d):
                angle = place * 100 ** (-k / d)
                each[place, k] += np.cos(angle) if k % 2 else np.sin(angle)
        apart = np.linalg.norm(each - each.mean(0))
        logs.append(np.log(apart / np.linalg.norm(each)))
    assert found["log_residual"][0] == pytest.approx(np.mean(logs), rel=1e-12)


def test_rows_of_normed_queries_and_keys_lose_the_entropy_of_scores_over_root_d_k():
    """Row by row: queries and keys of mean square 1, their products over √d_k."""
    p = {"n": 12, "d": 8, "heads": 2, "width": 4, "scale": [1, 3]}
    found = symmetry.entropies(p).batch(one_draw(), 1, None)["deficit"]
    tokens, matrices = symmetry._drawn(one_draw().rng(), p)
    for column, scale in enumerate(p["scale"]):
        plain, normed = [], []
        for query, key in zip(matrices.query, matrices.key, strict=True):
            for token in tokens:
                q, keys = scale * token @ query, tokens @ key
                for out, units in ((plain, (1.0, np.ones(len(keys)))), (normed, None)):
                    sizes = units or (np.sqrt(np.mean(q**2)), np.sqrt(np.mean(keys**2, axis=1)))
                    scores = keys @ q / sizes[0] / sizes[1] / 2
                    weights = np.exp(scores - scores.max())
                    weights /= weights.sum()
                    out.append(np.log(12) + np.sum(weights * np.log(weights)))
        assert found[0, column] == pytest.approx(np.mean(plain), rel=1e-5)
        assert found[1, column] == pytest.approx(np.mean(normed), rel=1e-5)


def layered(rng, layers):
    """log ρ, log-odds and shares collapsed, before the first layer and after each."""
    draws = {
        "log_residual": -rng.uniform(1, 9, (BATCHES, layers + 1)),
        "log_odds": rng.uniform(1, 9, (BATCHES, layers + 1)),
        "collapsed": rng.uniform(0.1, 0.9, (BATCHES, layers + 1)),
    }
    return xr.Dataset({name: (("batch", "layer"), v) for name, v in draws.items()})


def test_soon_is_after_six_layers(rng):
    """Shares not collapsed, and log₁₀ ρ over −6, of the state that six layers have made."""
    scales = {"plain a": 0.5, "plain b": 4.0}
    estimates = {name: layered(rng, 8) for name in (*scales, "positions", "causal", "bias")}
    estimates["one layer"] = xr.Dataset(
        {"after": (("b", "r", "t", "f"), np.ones((BATCHES, 1, 2, 2)))}
    )
    laws = {name: xr.Dataset({"rate": -0.5}) for name in ("causal", "bias")}
    laws["one layer"] = 2 * estimates["one layer"]
    settings = {
        "depths": {name: {"scale": scale, "depth": 8} for name, scale in scales.items()},
        "one_layer": {"residual": [0.1]},
        "simplex": {"values": {}},
    }
    results = SimpleNamespace(estimates=estimates, prediction=laws.__getitem__, settings=settings)
    found = effects.depths(results)
    for effect in found["not collapsed"]:
        share = estimates[effect.label]["collapsed"].values[:, 6]
        np.testing.assert_allclose(effect.values, 1 - share)
        assert effect.at["scale"] == scales[effect.label]
    for effect in found["log₁₀ ρ over −6"]:
        log = estimates[effect.label]["log_residual"].values[:, 6]
        is_mean_of(effect, np.log10(np.exp(log)) + 6)
    assert [len(found[name]) for name in ("not collapsed", "log₁₀ ρ over −6")] == [2, 2]


def test_log_odds_that_grow_by_the_law_in_every_layer_leave_no_gap(rng, monkeypatch):
    """Under uniform attention, where each of 8 and of 12 layers adds the same."""
    monkeypatch.setattr(effects, "spans", lambda _results: {})
    law, rates, layers = 0.4, {"a": 0.4, "b": 0.5}, {"a": 8, "b": 12}
    estimates = {"kept": xr.Dataset({"loss": (("b", "r", "c"), np.zeros((BATCHES, 2, 2)))})}
    for name, count in layers.items():
        start = rng.normal(size=(BATCHES, 1))
        odds = start + rates[name] * np.arange(count + 1)
        estimates[name] = xr.Dataset({"log_odds": (("batch", "layer"), odds)})
    results = SimpleNamespace(
        estimates=estimates,
        points=list(estimates),
        prediction=lambda _name: xr.Dataset({"growth": law}),
        settings={
            "depths": {
                name: {"skip": 1, "uniform": True, "depth": count} for name, count in layers.items()
            }
        },
    )
    gaps = {effect.label: effect.value for effect in effects.streams(results)["growth"]}
    assert gaps == pytest.approx({"a": 0.0, "b": 0.25}, abs=1e-12)


def test_errors_of_recovery_are_in_units_of_rounding_times_the_condition():
    """The relative error is kept beside: it is so many times machine epsilon times cond(W_O)."""
    p = recovery.settings["recovery"]
    for batch in range(4):
        draw = Draw.of(9, (3,), 1).draw(batch)
        found = counting.recovery(p, "generic").batch(draw, 1, None)
        output = counting.output_matrix(draw.rng(), "generic", p)
        condition = np.linalg.cond(output.reshape(p["heads"] * p["width"], p["d"]))
        unit = 2.0**-52 * condition
        assert 0 < found["moved"] < 1e-9
        assert found["recovered"] == pytest.approx(found["moved"] / unit, rel=1e-6)


def orbit_of(settings, key):
    """One replicate of the gauge orbit, and its heads' estimates by plain loops."""
    p = recovery.settings["orbit"] | settings
    own = of_orbit.orbit(p)
    found = own.replicate(key, own.constants, None)
    d = p["d"]
    target = TARGETS["matern"](d, seed=p["seed"], nu=1.5)
    task = Task(DESIGNS["isotropic"](d), target, p["noise_sd"])
    x, unit = (np.asarray(part) for part in training_set(task, key, p["n"]))
    frames = np.asarray(FRAMES["haar"](d, p["heads"], p["width"], seed=p["seed"]))
    queries = p["scale"] * np.random.default_rng(p["seed"]).normal(size=(p["queries"], d))
    labels = np.asarray(target(x)) + p["noise_sd"] * unit
    estimates = np.zeros((p["queries"], p["heads"]))
    for q, h in np.ndindex(estimates.shape):
        gaps = ((x - queries[q]) @ frames[h]) ** 2
        weights = np.exp(-gaps.sum(1) / (2 * p["bandwidth"] ** 2))
        estimates[q, h] = weights @ labels / weights.sum()
    return found, estimates, np.asarray(target(queries))


def test_heads_along_the_orbit_see_labels_of_the_noise_that_is_stated():
    settings = {"n": 20, "queries": 3, "noise_sd": 0.5, "factors": [0.5, 1, 2]}
    found, estimates, truth = orbit_of(settings, jax.random.key(2))
    mean = estimates.mean(1, keepdims=True)
    for place, factor in enumerate(settings["factors"]):
        moved = mean + factor * (estimates - mean)
        np.testing.assert_allclose(found["first"][place], moved, rtol=1e-4, atol=1e-5)
        error = np.mean((moved.mean(1) - truth) ** 2)
        assert float(found["error"][place]) == pytest.approx(error, rel=1e-4)


def test_an_index_that_rises_along_the_orbit_has_the_jackknifes_error(rng):
    """Over batches left out one by one: √((B − 1)/B Σ(rise₋ᵦ − mean)²) of every index."""
    heads, queries, factors = 3, 4, np.array([0.5, 1.0, 2.0])
    common, own = rng.normal(size=(2, BATCHES, 1, queries, heads))
    first = common.mean(-1, keepdims=True) + factors[:, None, None] * (0.8 * own + 0.3 * common)
    products = np.einsum("bsqh,bsqg->bshg", first, first) / queries
    data = xr.Dataset(
        {
            "first": (("batch", "factor", "query", "head"), first),
            "second": (("batch", "factor", "head", "head2"), products),
            "products": (("batch", "factor", "head", "head2"), products + np.eye(heads)),
            "error": (("batch", "factor"), rng.uniform(1, 2, (BATCHES, 3))),
        }
    )
    families = of_heads.orbit(SimpleNamespace(estimates={"orbit": data}))
    found = {effect.label: effect for effect in families["index along the orbit"]}
    assert len(found) == len(of_heads.DEFINITIONS) * len(of_heads.VERSIONS)
    rises = {label: [] for label in found}
    for left_out in range(BATCHES):
        rest = data.drop_isel(batch=left_out)
        mean = rest["first"].mean("batch").values
        total = rest["second"].mean("batch").values
        total = total - np.einsum("sqh,sqg->shg", mean, mean) / queries
        parts = {"total": total, "errors": rest["products"].mean("batch").values}
        for definition, index in of_heads.DEFINITIONS.items():
            for version, matrix in of_heads.VERSIONS.items():
                values = index(matrix(parts[version]))
                rises[f"{definition}, {version}"].append(values[-1] - values[0])
    for label, effect in found.items():
        own = np.array(rises[label])
        error = np.sqrt((BATCHES - 1) / BATCHES * np.sum((own - own.mean()) ** 2))
        assert effect.value == pytest.approx(own.mean(), rel=1e-9)
        assert effect.error == pytest.approx(error, rel=1e-9)


def test_steps_of_cubic_collapse_are_three_times_the_step_before(rng):
    """log ρ falls by 4, 12.4 and 40 from layer to layer: 0.1 and 0.226 over three times."""
    path = np.cumsum([np.log(0.02), -4.0, -12.4, -40.0])
    scatter = np.ones((BATCHES, 1)) + 1e-6 * rng.normal(size=(BATCHES, 1))
    data = xr.Dataset({"log_residual": (("batch", "layer"), path * scatter)})
    found = effects.steps(SimpleNamespace(estimates={"p": data}), "p")
    assert [effect.value for effect in found] == pytest.approx([0.1, 40 / 12.4 - 3], abs=1e-4)


def test_the_exponent_of_a_tail_is_that_between_its_two_sizes(rng):
    """Shares t²: the exponent 2, of which the law has 1.5."""
    below = np.array([0.05, 0.15])
    shares = np.tile(below**2, (BATCHES, 1)) * (1 + 1e-6 * rng.normal(size=(BATCHES, 1)))
    data = xr.Dataset({"share": (("batch", "below"), shares)}, {"below": below})
    results = SimpleNamespace(
        estimates={"p": data}, prediction=lambda _: xr.Dataset({"exponent": 1.5})
    )
    assert effects.tail(results, "p").value == pytest.approx(0.5, abs=1e-4)


def test_an_open_rank_leaves_the_loss_of_its_batch_open(monkeypatch):
    """Six tokens in R^3 lose two ranks by a value matrix of rank 1, without the residual alone.

    Where the first rank after a layer is open, the losses of later draws do not stand for it.
    """
    sampler = ranking.kept_ranks({"n": 6, "d": 3, "width": 1})
    np.testing.assert_array_equal(sampler.batch(one_draw(), 3, None)["loss"], [[0, 0], [0, 2]])
    real, asked = ranking.affine_rank, []

    def first_is_open(tokens):
        asked.append(tokens)
        return np.nan if len(asked) == 2 else real(tokens)

    monkeypatch.setattr(ranking, "affine_rank", first_is_open)
    found = sampler.batch(one_draw(), 3, None)["loss"]
    np.testing.assert_array_equal(found, [[np.nan, 0], [0, 2]])


def test_smallest_sets_that_lose_and_gain_rank():
    """Among all sets of entries −1, 0 and 1, by loops and NumPy's ranks; larger are open."""
    predict = collapse.module("predict")
    found = predict.smallest({"sizes": [[2, 2], [3, 2], [3, 3], [4, 4]]})
    lost, gained = found["lost"].values, found["gained"].values
    for place, (n, d) in enumerate([(2, 2), (3, 2), (3, 3)]):
        loss = gain = False
        own = [t for t in np.ndindex(*[3] * d) if len(set(t)) > 1]
        for chosen in np.ndindex(*[len(own)] * n):
            if list(chosen) != sorted(chosen):
                continue
            tokens = np.array([own[i] for i in chosen], float) - 1
            after = (tokens - tokens.mean(1, keepdims=True)) / tokens.std(1, keepdims=True)
            change = affine_rank(after) - affine_rank(tokens)
            loss, gain = loss or change < 0, gain or change > 0
        assert (lost[place], gained[place]) == (loss, gain)
    assert np.isnan([lost[3], gained[3]]).all()


def affine_rank(points):
    """The dimension of the affine hull of rows."""
    return np.linalg.matrix_rank(points - points[0], tol=1e-9)

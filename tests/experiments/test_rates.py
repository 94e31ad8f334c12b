"""The experiment `rates`: closed forms, what is simulated, slopes, verdicts that can fail."""

from dataclasses import replace
from types import SimpleNamespace

import equinox as eqx
import jax
import numpy as np
import pytest
import xarray as xr

from sims.montecarlo.draws import Draw
from sims.problem import DESIGNS, TARGETS, Heads, Task, TrigonometricSeries, gaussian_queries
from sims.simulation import draw
from sims.study.experiment import load_experiment
from sims.theory import predict as library
from tests.experiments.helpers import check_figure, results_of
from tests.experiments.helpers import verdicts as of_claims
from tests.experiments.runs import both_roads, small

simulate, predict, effects = (
    load_experiment("rates").module(name) for name in ("simulate", "predict", "effects")
)
BETAS = (0.5, 1.0, 1.5, 2.0, 3.0)


@pytest.fixture(scope="module")
def experiment():
    return load_experiment("rates")


def stacked(count, width, levels):
    series = [TARGETS["holder"](width, seed=seed, levels=levels) for seed in range(count)]
    return jax.tree.map(lambda *leaves: np.stack(leaves), *series)


def moments(series, beta, queries, bandwidths, width, noise_sd=1.0):
    amplitude = np.asarray(
        TARGETS["holder"](1, beta=beta, levels=series.phase.shape[1] - 1).amplitude
    )
    found = predict.moments(series, amplitude[None], queries, bandwidths, width, noise_sd)
    return dict(zip(predict.PARTS, (np.asarray(part)[..., 0] for part in found), strict=True))


@pytest.mark.theory
def test_best_error_of_rates():
    """The least of ``(l + r/n)² + v/n`` over bandwidths, at an n where r counts, by brute force."""
    bandwidth = np.geomspace(0.02, 2, 161)

    def parts(b):
        return b**2, 40 * b**0.5, 1 / b

    limit, ratio, variance = parts(bandwidth)
    own = ("group", "beta", "bandwidth")
    columns = {
        "limit_bias": limit**2,
        "cross_bias": 2 * limit * ratio,
        "ratio_bias": ratio**2,
        "variance": variance,
        "overlap": variance,
        "nuisance": np.full_like(bandwidth, 3.0),
    }
    data = xr.Dataset(
        {k: (own, v[None, None]) for k, v in columns.items()}, {"bandwidth": bandwidth}
    )
    fine = np.geomspace(0.02, 2, 200_001)
    limit, ratio, variance = parts(fine)
    for heads, extra, factor in ((1, 0, 1.0), (4, 1, 3.0)):
        spread = (factor / heads + 1 - 1 / heads) * variance
        # The nuisance multiplies the variance of one head and its bias from the denominator.
        expected = [((limit + factor * ratio / n) ** 2 + spread / n).min() for n in (400, 1e5)]
        found = effects.best(data, [400, 1e5], heads, extra)[0]
        np.testing.assert_allclose(np.ravel(found), expected, rtol=1e-4)


@pytest.mark.theory
@pytest.mark.parametrize("width", [1, 3])
def test_moments_are_those_of_first_order_theory(width):
    """Against the library's matrices, where these are accurate."""
    queries, n = gaussian_queries(width, 5, 0.4, seed=2), 300
    series = stacked(3, width, 8)
    for bandwidth in (0.2, 0.6):
        parts = moments(series, 0.8, queries, [bandwidth], width, 0.7)
        found = predict.error(parts, n, 1, 1.0)[0]
        for index in range(3):
            task = Task(
                DESIGNS["isotropic"](width),
                TARGETS["holder"](width, seed=index, beta=0.8, levels=8),
                0.7,
            )
            expected = library(task, Heads(np.eye(width)[None], "gaussian", bandwidth), n, queries)
            assert found[index] == pytest.approx(float(expected["mse"]), rel=1e-9)
            own = predict.variance(parts, n, 1, 1.0)[0]
            assert own[index] == pytest.approx(float(expected["ensemble_variance"]), rel=1e-9)
            overlap = float((n / expected["n_eff"]).mean())
            assert parts["overlap"][0, index] == pytest.approx(overlap, rel=1e-9)


@pytest.mark.theory
@pytest.mark.parametrize(("relevant", "width"), [(1, 2), (2, 4)])
def test_averaged_heads_against_the_library(relevant, width):
    """Four heads with nuisance coordinates of their own, in the whole space."""
    heads, n, bandwidth, beta = 4, 2000, 0.4, 1.2
    series = stacked(1, relevant, 6)
    queries = np.asarray(gaussian_queries(relevant, 4, 0.3, seed=1))
    parts = moments(series, beta, queries, [bandwidth], relevant)
    own = predict.nuisance(bandwidth) ** (width - relevant)
    frames = simulate.nuisance_frames(relevant, width, heads)
    ambient = frames.shape[1]
    small = TARGETS["holder"](relevant, seed=0, beta=beta, levels=6)
    frequency = np.pad(small.frequency, ((0, 0), (0, ambient - relevant)))
    task = Task(
        DESIGNS["isotropic"](ambient),
        TrigonometricSeries(small.amplitude, frequency, small.phase),
        1.0,
    )
    wide = np.pad(queries, ((0, 0), (0, ambient - relevant)))
    expected = library(task, Heads(frames, "gaussian", bandwidth), n, wide)
    found = predict.error(parts, n, heads, own)[0, 0]
    assert found == pytest.approx(float(expected["mse"]), rel=1e-9)


@pytest.mark.theory
def test_nuisance_overlap_by_quadrature():
    node, weight = np.polynomial.hermite_e.hermegauss(120)
    weight = weight / weight.sum()
    for b in (0.5, 1.3):
        kernel = np.exp(-(node**2) / (2 * b**2))
        expected = weight @ kernel**2 / (weight @ kernel) ** 2
        assert predict.nuisance(b) == pytest.approx(expected, rel=1e-8)


@pytest.mark.theory
@pytest.mark.parametrize("bandwidth", [1e-8, 1e-5, 1e-2, 0.5])
def test_squared_bias_averaged_over_phases(bandwidth):
    """The formula of docs/theory.md, far below where a difference of matrices loses all digits.

    256 target draws; 4.5 standard errors, false alarm 7·10⁻⁶ a case.
    """
    levels, beta = 34, 0.7
    series = stacked(256, 2, levels)
    queries = np.asarray(gaussian_queries(2, 1, 0.25, seed=3))
    found = moments(series, beta, queries, [bandwidth], 2)["limit_bias"][0]
    shrink = bandwidth**2 / (1 + bandwidth**2)
    level = 4.0 ** np.arange(levels + 1)
    # cos(2^l C u·x) with its own directions; 1 − cos through sin², to keep its digits.
    half = shrink * (series.frequency @ queries[0]) / 2
    damping = np.exp(-level * shrink / 2)
    terms = np.expm1(-level * shrink / 2) ** 2 + 4 * damping * np.sin(half) ** 2
    expected = (0.5 * level**-beta * terms).sum(1)
    gap = found - expected
    assert abs(gap.mean()) < 4.5 * gap.std(ddof=1) / np.sqrt(len(gap))
    # The comparison is sharp enough to tell β.
    assert gap.std(ddof=1) / np.sqrt(len(gap)) < 0.1 * expected.mean()


def test_simulated_error_by_plain_numpy():
    """A replicate with the second of two targets, two sizes, a head and a pair of heads."""
    sizes, noise, turn = (20, 50), 0.6, 1
    series = stacked(2, 1, 4)
    frequency = np.pad(series.frequency, ((0, 0), (0, 0), (0, 2)))
    stack = eqx.tree_at(lambda one: one.frequency, series, frequency)
    frames = np.concatenate(
        [simulate.nuisance_frames(1, 2, 2)[:1], simulate.nuisance_frames(1, 2, 2)]
    )
    bandwidths = np.array([[0.5, 0.4], [0.7, 0.6], [0.7, 0.6]])
    pool = np.array([[1, 0, 0], [0, 0.5, 0.5]])
    amplitudes = np.array([1.0, 0.5, 0.25, 0.125, 0.1]) * np.array([[1.0], [2.0]])
    queries = np.pad(np.array([[0.1], [-0.3], [0.2]]), ((0, 0), (0, 2)))
    shared = simulate.Estimators(stack, amplitudes, frames, bandwidths, pool, queries, noise)
    key = Draw.of(3, (), 2).draw(0, 1).key
    mse = simulate.errors(key, shared, turn, name="mse", sizes=sizes, precision="float64")["mse"]
    expected = np.zeros((2, 2))
    task = Task(DESIGNS["isotropic"](3), TARGETS["constant"](3), 1.0)
    x = np.asarray(draw(task, key, 50)[0])
    waves = np.cos(x @ frequency[turn].T + series.phase[turn])
    at = np.cos(queries @ frequency[turn].T + series.phase[turn])
    for j, n in enumerate(sizes):
        for q, query in enumerate(queries):
            weights = []
            for frame, b in zip(frames, bandwidths[:, j], strict=True):
                k = np.exp(-(((x[:n] - query) @ frame) ** 2).sum(1) / (2 * b**2))
                weights.append(k / k.sum())
            for m, w in enumerate(pool @ np.array(weights)):
                gap = w @ waves[:n] @ amplitudes[m] - at[q] @ amplitudes[m]
                expected[m, j] += (gap**2 + noise**2 * w @ w) / 3
    np.testing.assert_allclose(mse, expected, rtol=1e-9)


@pytest.mark.theory
def test_the_simulated_problems_have_the_first_targets_and_their_nuisances(experiment):
    """Two of eight targets; a nuisance coordinate halves what a head sees by its own overlap.

    Of the variance of one of eight heads, its own overlap's part is cut to an eighth.
    """
    own = experiment.settings
    few = own["simulated"] | {"targets": 2}
    settings = own | {"widths": [1], "levels": 6, "targets": 8, "groups": 4, "simulated": few}
    settings |= {"bandwidths": own["bandwidths"] | {"count": 3}}
    found = predict.predict(SimpleNamespace(settings=settings))
    queries, ensemble = gaussian_queries(1, **own["queries"]), few["ensemble"]
    for name, series, beta, size, bandwidth in (
        ("width 1", stacked(2, 1, 6), 1.5, 1024, few["bandwidths"][1][2][1]),
        ("ensemble", stacked(2, 1, 6), ensemble["beta"], 4096, ensemble["bandwidths"][1][2]),
    ):
        parts = {k: v.mean() for k, v in moments(series, beta, queries, [bandwidth], 1).items()}
        data = found[name].sel(size=size)
        if name == "ensemble":
            extra, eight = predict.nuisance(bandwidth), data.sel(heads=8)
            assert float(eight["n_eff_of_heads"]) == pytest.approx(size / parts["overlap"] / extra)
            mse, expected = eight["mse_of_heads"], predict.error(parts, size, 8, extra)
            spread = (extra / 8 + 7 / 8) * parts["variance"] / size
            share = float(eight["variance_share_of_heads"])
            assert share == pytest.approx(float(spread / expected), rel=1e-9)
        else:
            mse, expected = data.sel(beta=beta)["mse"], predict.error(parts, size, 1, 1.0)
        assert float(mse) == pytest.approx(float(expected), rel=1e-9)


def test_targets_take_turns(experiment):
    turns = simulate.turns(Draw.of(1, (), 7).draw(4), 3)
    assert turns.tolist() == [0, 1, 2, 0, 1, 2, 0]


def made(experiment, *, smoothness=lambda beta: min(beta, 2.0), off=0.0, floor=1.0):
    """Results of power laws: squared bias b^(2·smoothness), overlap b^(−d_k), exact simulation."""
    rng = np.random.default_rng(4)
    settings = experiment.settings
    b, betas, sizes = np.geomspace(1e-9, 2, 160), settings["betas"], settings["sizes"]
    law, simulated = {}, {}
    for width in settings["widths"]:
        scale = np.exp(0.01 * rng.standard_normal((64, len(betas))))
        power = np.array([2 * smoothness(beta) for beta in betas])
        bias = b[:, None, None] ** power * scale
        mass = np.broadcast_to(b[:, None, None] ** -width, bias.shape)
        zero = np.zeros(bias.shape)
        law[f"width {width}"] = xr.Dataset(
            {
                name: (("bandwidth", "group", "beta"), value)
                for name, value in zip(predict.PARTS, (bias, zero, zero, mass, mass), strict=True)
            }
            | {
                "nuisance": ("bandwidth", np.maximum(floor, 1 / b)),
                "mse": (("beta", "size"), np.full((5, 3), 0.01)),
                "n_eff": (("beta", "size"), np.full((5, 3), 80.0)),
                "variance_share": (("beta", "size"), np.full((5, 3), 0.6)),
            },
            coords={"bandwidth": b, "beta": betas, "size": sizes},
            attrs={"shared_groups": 4, "targets": 256},
        )
    law["ensemble"] = xr.Dataset(
        {
            "mse_of_heads": (("heads", "size"), [[0.03, 0.02, 0.01]] * 2),
            "n_eff_of_heads": (("heads", "size"), np.full((2, 3), 80.0)),
            "variance_share_of_heads": (("heads", "size"), np.full((2, 3), 0.6)),
        },
        coords={"heads": [1, 8], "size": sizes},
    )
    for name, data in law.items():
        mse = "mse_of_heads" if name == "ensemble" else "mse"
        value = data[mse].values * (1 + off)
        batches = value * (1 + 0.01 * rng.standard_normal((64, *value.shape)))
        simulated[name] = xr.Dataset(
            {mse: (("batch", *data[mse].dims), batches)},
            coords={"size": sizes},
            attrs={"replicates": 100},
        )
    return results_of(experiment, simulated, law)


def verdicts(results, experiment):
    judged = of_claims(experiment, results)
    return {regime: verdict for (_, regime), verdict in judged.items()}


def test_slope_of_a_power_law_is_its_exponent(experiment):
    data = made(experiment).predictions["width 2"]
    expected = [effects.exponent(min(beta, 2.0), 2) for beta in BETAS]
    np.testing.assert_allclose(effects.slopes(data, effects.FAR).mean(0), expected, atol=2e-3)
    # b^4 + 1/(n b²): the best bandwidth in closed form
    mse, where = effects.best(data.isel(beta=[3]).mean("group"), [1e9])
    level = float(data["limit_bias"].isel(beta=3).mean("group")[0] / 1e-9**4)
    b = (1 / (2 * level * 1e9)) ** (1 / 6)
    assert where[0, 0] == pytest.approx(b, rel=5e-3)
    assert mse[0, 0] == pytest.approx(level * b**4 + 1 / (1e9 * b**2), rel=1e-4)


def test_many_heads_have_the_rate_of_shared_coordinates_while_they_see_keys(experiment):
    """−2β/(2β+d_0), but no better than −2β/d_k, where a head would run out of keys."""
    data = made(experiment).predictions["width 2"]
    fitted = effects.slopes(data, effects.FAR, np.inf, 2).mean(0)
    for beta, slope in zip(BETAS, fitted, strict=True):
        smooth = min(beta, 2.0)
        assert slope == pytest.approx(max(effects.exponent(smooth, 2), -smooth / 2), abs=5e-3)


def test_nuisances_that_do_not_count_give_no_gain(experiment):
    """An overlap of 1 by nuisance coordinates: averaging changes nothing, at any size."""
    results = made(experiment)
    same = {
        name: data.assign(nuisance=xr.ones_like(data["nuisance"])) if "nuisance" in data else data
        for name, data in results.predictions.items()
    }
    judged = verdicts(replace(results, predictions=same), experiment)
    assert judged["averaging, constant"] == "refuted"
    assert judged["averaging, size of the constant"] == "refuted"
    # The same number twice, whatever the target: what does not vary supports nothing.
    assert judged["averaging, exponent of many heads"] == "inconclusive"


def test_roads_meet_at_the_best_bandwidths():
    """A small run of both: same points, figure, caption; listed bandwidths are near the best."""
    experiment = small("rates", replicates_per_batch=2, batches=2)
    results = both_roads(experiment)
    check_figure(experiment, results)
    for name in ("width 1", "width 2"):
        data = results.prediction(name)
        least = effects.best(data.mean("group"), data["size"].values)[0]
        assert (data["mse"].values < 1.1 * least).all()
        assert (data["mse"].values > 0.999 * least).all()

"""Regimes of `allocation`: both roads ask of one problem, and planted growths are told apart."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
import yaml

from experiments.allocation import grids, predict, problems, simulate, statistic
from experiments.allocation.study import Allocation
from sims.problem import DESIGNS, Heads, Task, TrigonometricSeries
from sims.study import load_experiment
from sims.study.schema import SimulationSpec
from sims.theory import FEW_KEYS, first_order_arrays, view_terms
from sims.theory import predict as theory
from tests.cli.small import run

LAW, SEED = load_experiment("allocation").spec.law, 3


def study(**fixed):
    spec = SimpleNamespace(law={**LAW, "budget": 24, "keys": 2048, **fixed})
    simulation = SimulationSpec(seed=SEED)
    return Allocation(SimpleNamespace(spec=spec, settings={}, simulation=simulation))


def regime(**fixed):
    return study(**fixed).draw(0)


def narrow(drawn, width):
    """The heads that are simulated, without columns that none sees."""
    bandwidth = problems.curve(drawn, drawn["keys"], drawn["budget"]).bandwidth[0, width - 1]
    frames = simulate.heads(drawn, width, bandwidth).frames
    return Heads(frames[:, : grids.LATENT + 2 * width, :width], drawn["kernel"], bandwidth)


def sampled(drawn, dimension, seed):
    """A target and queries that are simulated, of keys in as many dimensions."""
    target, queries = problems.sampled(drawn, [SEED, 0, seed])
    rest = dimension - target.dimension
    return target.padded(rest), np.pad(queries, ((0, 0), (0, rest)))


@pytest.mark.theory
@pytest.mark.parametrize(
    ("decay", "kernel"),
    [("exponential", "softmax"), ("even", "gaussian")],
)
def test_closed_forms_are_means_over_the_targets_that_are_simulated(decay, kernel):
    """First-order theory of two heads, wave by wave in both phases, against the closed form."""
    fixed = {"decay": decay, "kernel": kernel, "bandwidth": 1.2, "softmax_bandwidth": 1.2}
    fixed |= {"temperature": "Transformer's", "smoothness": "matern", "roughness": 1.5}
    drawn = regime(**fixed, relevance=2.0, budget=6, waves=1)
    heads = narrow(drawn, 3)
    assert heads.bandwidth[0] == pytest.approx(1.2 * 3**0.25)
    design = DESIGNS["isotropic"](heads.dimension)

    @jax.jit
    def error(item):
        wave, points = item
        values = []
        for shift in (0, jnp.pi / 2):
            target = TrigonometricSeries(wave.amplitude, wave.frequency, wave.phase + shift)
            task = Task(design, target, drawn["noise_sd"])
            result = first_order_arrays(task, heads, float(drawn["keys"]), points)
            covariance = (result.signal_covariance + result.noise_covariance).mean((1, 2))
            values.append(jnp.mean(result.bias.mean(1) ** 2 + covariance))
        return jnp.mean(jnp.stack(values))

    waves, queries = zip(*(sampled(drawn, heads.dimension, k) for k in range(1000)), strict=True)
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *waves)
    errors = np.asarray(jax.lax.map(error, (stacked, jnp.stack(queries))))
    spread = errors.std(ddof=1) / len(errors) ** 0.5
    expected = problems.curve(drawn, drawn["keys"], 6).error[0, 2]
    assert abs(errors.mean() - expected) < 4 * spread
    assert spread < 0.03 * expected


def test_softmax_is_known_where_the_third_moment_leaves_enough_keys():
    drawn = regime(decay="polynomial", kernel="softmax", temperature="fixed", reach=0.7)
    options = {"noise": drawn["view_noise"], "relevance": problems.relevance(drawn)}
    options |= {"query_scale": drawn["query_scale"], "kernel": "softmax"}
    ratio = view_terms(np.arange(1, 65), drawn["bandwidth"], **options).noise_variance
    known = problems.curve(drawn, 256, 64).known[0]
    np.testing.assert_array_equal(known, 256 / ratio**2 >= FEW_KEYS)
    assert (known != (256 / ratio >= FEW_KEYS)).any()


def test_least_place_of_a_curve_and_its_censoring():
    x = np.arange(1.0, 11)
    curves = np.stack([np.cosh((x - place) / 3) for place in (4.3, 6.72, 1.2, 4.3)])
    curves[0, 6:] = np.inf
    known = np.ones(curves.shape, bool)
    known[3, 4] = False
    place, low = problems.least(x, curves, known)
    np.testing.assert_allclose(place[:2], [4.3, 6.72], atol=0.02)
    np.testing.assert_allclose(low[:2], 1.0, rtol=1e-3)
    assert np.isnan(place[2:]).all()


def test_the_best_split_is_inside_or_at_an_end():
    """And known where theory is at it and beside it, wherever else it is not."""
    widths = np.array([1, 2, 4, 8])
    error = np.full((5, 8), np.inf)
    error[:, widths - 1] = [
        [3, 2, 4, 5],
        [2, 3, 2.5, 5],
        [5, 4, 3, 2.5],
        [4, 3, 2, 3],
        [3, 2, 4, 5],
    ]
    known = np.ones(error.shape, bool)
    known[[1, 3, 4], 7] = False
    share, sure, inner, end = predict.compared(problems.Curve(error, known, error), widths)
    np.testing.assert_allclose(share, [0.5, -0.2, -1 / 6, 0.5, 0.5])
    assert sure.tolist() == [True, True, True, False, True]
    assert inner.tolist() == [1, 2, 2, 2, 1]
    assert end.tolist() == [0, 0, 3, 3, 0]


PLAIN = {"kernel": "gaussian", "temperature": "fixed", "smoothness": "squared-exponential"}


@pytest.mark.theory
def test_growth_at_a_fixed_temperature_is_a_logarithm_of_known_slope():
    """d_k* gains 1/(α + log ρ) for every e in n, ρ of r_hh for few heads and of r_hg for many."""
    fixed = {"decay": "exponential", "alpha": 0.8, "bandwidth": 0.7, "view_noise": 0.4}
    drawn = regime(**PLAIN, **fixed, relevance=0.45, noise_sd=2.0, reach=0.85)
    options = {"noise": 0.4, "relevance": np.zeros(2), "query_scale": drawn["query_scale"]}
    two = view_terms(np.array([1, 2]), 0.7, **options)
    for budget, ratio in ((24, two.noise_variance), (512, two.noise_covariance)):
        first, last = predict.best(problems.curve(drawn, [1e4, 1e8], budget))
        expected = 1 / (0.8 + np.log(ratio[1] / ratio[0]))
        assert (last - first) / np.log(1e4) == pytest.approx(expected, rel=0.03)


@pytest.mark.theory
def test_exponent_of_heads_that_see_one_given_target():
    """``1 − 1/(1 + d_k* log ρ)`` of docs/theory.md, ρ the cost in variance of a coordinate."""
    drawn = regime(**PLAIN, decay="even", bandwidth=0.7, relevance=2.0, noise_sd=4.0, reach=0.85)
    widths = predict.best(problems.curve(drawn, 1e4, [64, 128, 256, 512], grids.GIVEN[2]))
    clear = {"noise": 0.0, "relevance": np.zeros(2), "query_scale": drawn["query_scale"]}
    one, two = view_terms(np.array([1, 2]), 0.7, **clear).noise_variance
    slope = 1 - np.diff(np.log(widths)) / np.log(2)
    between = np.sqrt(widths[1:] * widths[:-1])
    np.testing.assert_allclose(slope, 1 - 1 / (1 + between * np.log(two / one)), atol=0.03)


def test_growths_are_told_apart():
    log = np.log(grids.SIZES)
    planted = [2 + 0.8 * log, 1 + 3 * log**0.5, 0.7 * grids.SIZES**0.2, 3 + 0.05 * log]
    planted += [np.where(log < np.log(3000), 2 + 0.8 * log, np.nan), 9 - 0.2 * log]
    result = statistic.growth(np.array(planted))
    log_n, root, power, none, censored = statistic.FORMS
    assert result["form"].tolist() == [log_n, root, power, none, censored, none]
    assert (result["better"] > 0).tolist() == [True] + 5 * [False]
    assert result["rate"][0] == pytest.approx(0.8 * np.log(10))


def test_a_regime_is_a_file_that_runs(tmp_path, monkeypatch):
    """Its first-order errors are those made of the pairs that are simulated, at every split."""
    fixed = {"decay": "exponential", "budget": 2, "keys": 512}
    file = study(**fixed).file_of(0)
    file["simulation"] = {"batches": 2, "replicates_per_batch": 2}
    monkeypatch.chdir(tmp_path)
    (tmp_path / "found.yaml").write_text(yaml.safe_dump(file))
    assert run("sweep", "found.yaml") == 0
    drawn, pairs = regime(**fixed), []
    for width in (1, 2):
        heads = narrow(drawn, width)
        target, queries = sampled(drawn, heads.dimension, 0)
        task = Task(DESIGNS["isotropic"](heads.dimension), target, drawn["noise_sd"])
        terms = theory(task, heads, drawn["keys"], queries)
        pairs.append(terms[[k for k in terms if "integrated" in k]].expand_dims("batch"))
    terms = xr.concat(pairs, "problem").transpose("batch", "problem", ...)
    with xr.open_dataset("results/sweeps/found.nc") as data:
        errors = statistic.split_errors(terms, 2)[:, 0]
        np.testing.assert_allclose(data["mse_theory"], errors, rtol=1e-9)

"""Regimes of `allocation`: both methods use one problem, and planted growths are distinguished."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
import yaml
from scipy.special import softmax

from experiments.allocation import comparison, exact, grids, predict, problems, simulate, statistic
from experiments.allocation.study import Allocation
from sims.montecarlo import Draw
from sims.problem import DESIGNS, Heads, Task, TrigonometricSeries
from sims.problem.normals import normal
from sims.study.running import Run
from sims.study.schema import SimulationSpec
from sims.theory import FEW_KEYS, first_order_arrays, view_terms
from sims.theory import predict as theory
from tests.by_hand import waves
from tests.cli.small import run

DECLARED = Run.load("allocation").study.declared
LAW, SEED = DECLARED.content["law"], 3


def study(**fixed):
    law = {**LAW, "budget": 24, "keys": 2048, **fixed}
    simulation = SimulationSpec(seed=SEED)
    return Allocation(law, DECLARED.content["questions"]).opened({}, simulation)


def regime(**fixed):
    return study(**fixed).draw(0)


def two_heads(drawn, width):
    """Two heads of a split, and noise of their own in the last columns."""
    bandwidth = problems.curve(drawn, drawn["keys"], drawn["budget"]).bandwidth[0, width - 1]
    frames, place = np.zeros((2, grids.LATENT + 2 * width, width)), np.arange(width)
    for head, frame in enumerate(frames):
        apart = head * width * (width < drawn["budget"])
        frame[place + apart * (drawn["decay"] == "even"), place] = 1
        frame[grids.LATENT + apart + place, place] = drawn["view_noise"]
    return Heads(frames, drawn["kernel"], bandwidth)


def task_of(drawn, dimension, seed):
    """A target and queries of the law, of keys in as many dimensions."""
    target, queries = problems.draw_task(drawn, np.random.default_rng(seed))
    rest = dimension - target.dimension
    return target.padded(rest), np.pad(queries, ((0, 0), (0, rest)))


@pytest.mark.theory
@pytest.mark.parametrize(
    ("decay", "kernel"),
    [("exponential", "softmax"), ("even", "gaussian")],
)
def test_closed_forms_are_means_over_the_targets_of_the_law(decay, kernel):
    """First-order theory of two heads, wave by wave in both phases, against the closed form."""
    fixed = {"decay": decay, "kernel": kernel, "bandwidth": 1.2, "softmax_bandwidth": 1.2}
    fixed |= {"temperature": "Transformer's", "smoothness": "matern", "roughness": 1.5}
    drawn = regime(**fixed, relevance=2.0, budget=6, waves=1)
    heads = two_heads(drawn, 3)
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

    waves, queries = zip(*(task_of(drawn, heads.dimension, k) for k in range(1000)), strict=True)
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
    assert (place[2], low[2]) == (1, curves[2, 0])
    assert np.isnan(place[3])


def test_the_best_split_is_inside_or_at_an_end():
    """And known where theory is at the end, at the better of both and around it."""
    known = np.ones(4, bool)
    out = np.array([True, True, True, False])
    for error, sure, expected in (
        ([3, 2, 4, 5], known, (1 / 3, True, 1, 0)),
        ([2, 3, 2.5, 5], out, (-0.25, True, 2, 0)),
        ([5, 4, 3, 2.5], known, (-0.2, True, 2, 3)),
        ([4, 3, 2, 3], out, (1 / 3, False, 2, 3)),
        ([3, 2, 4, 5], out, (1 / 3, True, 1, 0)),
        ([3, 4, 2, 5], out, (1 / 3, False, 2, 0)),
    ):
        result = comparison.compare_splits(np.array(error), sure)
        assert tuple(result.values()) == pytest.approx(expected)


def test_choice_on_one_half_is_judged_on_the_other():
    """Of equal splits the margin is 0 in the mean, however many inner ones there are."""
    rng = np.random.default_rng(0)
    margins = [statistic.margin_of_halves(1 + 0.1 * rng.normal(size=(16, 9))) for _ in range(400)]
    mean = np.mean(margins, axis=1)
    # Both best inner split and better end are chosen by chance: 4 standard errors.
    assert abs(mean.mean()) < 4 * mean.std(ddof=1) / 20


@pytest.mark.parametrize(("decay", "kernel"), [("exponential", "softmax"), ("even", "gaussian")])
def test_simulated_errors_by_hand(decay, kernel):
    """Of one head and of two, at every whole split, by loops over queries on the same keys."""
    fixed = {"decay": decay, "kernel": kernel, "temperature": "Transformer's", "bandwidth": 1.5}
    drawn = regime(**fixed, budget=16, query_count=3)
    draw = Draw.from_seed(5, (0,), 2)
    tasks = simulate.draw_tasks(drawn, draw)
    target, queries = jax.tree.map(lambda leaf: leaf[1], tasks)
    arrays = simulate.arrays_of(drawn)
    of_keys, of_views = jax.random.split(draw.key)
    found = jax.jit(partial(simulate.replicate, keys=40))(draw.key, arrays, (target, queries))
    latent = np.array(normal(of_keys, (40, grids.LATENT), jnp.float32), float)
    noise = np.array(normal(of_views, (2, 40, grids.LATENT), jnp.float32), float)
    truth = waves(target, latent)
    for place, width in enumerate([1, 2, 4, 8, 16]):
        bandwidth = 1.5 * width**0.25 if kernel == "gaussian" else drawn["bandwidth"] * width**0.25
        products = np.zeros((2, 2))
        for query in queries:
            value = waves(target, query)
            rows = []
            for head in (0, 1):
                first = head * width * (decay == "even" and width < 16)
                seen = slice(first, first + width)
                keys = (latent + drawn["view_noise"] * noise[head])[:, seen]
                score = keys @ query[seen] / bandwidth**2
                if kernel == "gaussian":
                    score = -((keys - query[seen]) ** 2).sum(1) / (2 * bandwidth**2)
                rows.append(softmax(score))
            off = np.array([row @ truth - value for row in rows])
            products += (
                np.outer(off, off) + drawn["noise_sd"] ** 2 * np.array(rows) @ np.array(rows).T
            )
        products /= len(queries)
        assert float(found["single"][place]) == pytest.approx(np.trace(products) / 2, rel=1e-3)
        assert float(found["pair"][place]) == pytest.approx(products[0, 1], rel=1e-3)


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
    """``1 − 1/(1 + d_k* log ρ)`` of docs/theory/budget.md, ρ a coordinate's cost in variance."""
    drawn = regime(**PLAIN, decay="even", bandwidth=0.7, relevance=2.0, noise_sd=4.0, reach=0.85)
    widths = predict.best(problems.curve(drawn, 1e4, [64, 128, 256, 512], grids.GIVEN[2]))
    clear = {"noise": 0.0, "relevance": np.zeros(2), "query_scale": drawn["query_scale"]}
    one, two = view_terms(np.array([1, 2]), 0.7, **clear).noise_variance
    slope = 1 - np.diff(np.log(widths)) / np.log(2)
    between = np.sqrt(widths[1:] * widths[:-1])
    np.testing.assert_allclose(slope, 1 - 1 / (1 + between * np.log(two / one)), atol=0.03)


def test_growths_are_told_apart():
    """And the slope of the second half over the first; curves are read where no end stops them."""
    log = np.log(grids.SIZES)
    planted = [2 + 0.8 * log, 1 + 3 * log**0.5, 0.7 * grids.SIZES**0.2, 3 + 0.05 * log]
    planted += [np.where(log < np.log(3000), 2 + 0.8 * log, np.nan), 9 - 0.2 * log]
    planted += [np.full(log.shape, 64.0), np.clip(4 * log - 30, 1, 64)]
    none_wider = np.zeros(len(planted), bool)
    result = statistic.growth(np.array(planted), np.full(len(planted), 64), none_wider)
    log_n, root, power, none, censored = statistic.FORMS
    forms = [log_n, root, power, none, censored, none, none, log_n]
    assert result["form"].tolist() == forms
    assert (result["better"] > 0).tolist() == [form == log_n for form in forms]
    assert result["rate"][[0, 7]].tolist() == pytest.approx([0.8 * np.log(10), 4 * np.log(10)])
    early, late = (np.polyfit(log[half], log[half] ** 0.5, 1)[0] for half in (np.s_[:6], np.s_[5:]))
    assert result["bend"][[0, 1, 3, 6, 7]].tolist() == pytest.approx([1, late / early, 0, 0, 1])
    assert np.isnan(result["bend"][4])
    soon = np.where(log < np.log(1000), 3.0, 24.0)
    for limited, form in ((True, none), (False, censored)):  # by the budget, or by us
        found = statistic.growth(soon[None], np.array([24]), np.array([limited]))
        assert found["form"][0] == form


def test_an_end_is_the_best_width_where_theory_knows_it_and_its_neighbour():
    width = grids.WIDTHS
    rising, falling = 1 + 0.01 * width, 2 - 0.01 * width
    falling[16:] = np.inf
    known = np.isfinite([rising, falling, rising])
    known[2, 1] = False
    curves = problems.Curve(np.array([rising, falling, rising]), known, np.ones((3, 64)))
    np.testing.assert_array_equal(predict.best(curves), [1, 16, np.nan])


EXACT = {
    "gaussian": {"smoothness": "matern", "roughness": 0.7, "bandwidth": 0.6},
    "softmax": {"smoothness": "squared-exponential", "softmax_bandwidth": 0.96},
}


@pytest.mark.theory
@pytest.mark.parametrize("decay", ["exponential", "even"])
@pytest.mark.parametrize("kernel", EXACT)
def test_exact_errors_are_those_of_brute_force(kernel, decay):
    """Of few attended keys, one head and two, over targets and queries of the law."""
    fixed = {"decay": decay, "alpha": 0.4, "temperature": "fixed", "reach": 0.75}
    drawn = regime(kernel=kernel, **EXACT[kernel], **fixed, budget=8, relevance=2.0, view_noise=0.4)
    drawn["keys"], count = 8, 2000
    size = np.array([8.0])
    heads_of = exact.heads_of(drawn, size, 8, grids.GIVEN[0])
    expected = np.array([heads_of(width)[:, 0, 0] for width in grids.splits(8)]).T
    if decay == "even":
        expected[1, -1] = expected[0, -1]  # one head alone
    draw = Draw.from_seed(4, (0,), count)
    tasks = simulate.draw_tasks(drawn, draw)
    arrays = simulate.arrays_of(drawn)
    one = partial(simulate.replicate, regime=arrays, keys=8)
    keys = jax.random.split(draw.key, count)
    found = jax.jit(partial(jax.lax.map, lambda item: one(item[0], task=item[1])))((keys, tasks))
    single, pair = (np.asarray(found[name]) for name in ("single", "pair"))
    curve = exact.exact_curve(drawn, 8, 8, grids.splits(8), np.inf).error[0, grids.splits(8) - 1]
    share = grids.splits(8) / 8
    np.testing.assert_allclose(curve, share * expected[0] + (1 - share) * expected[1], rtol=1e-9)
    for theory_says, draws in zip(expected, (single, pair), strict=True):
        spread = draws.std(0, ddof=1) / count**0.5
        assert (spread < 0.05 * theory_says).all()
        assert (abs(draws.mean(0) - theory_says) < 4 * spread).all()


@pytest.mark.theory
@pytest.mark.parametrize("decay", ["polynomial", "even"])
@pytest.mark.parametrize("kernel", EXACT)
def test_exact_errors_of_many_keys_are_of_first_order(kernel, decay):
    """At every width, computed or between, at its best bandwidth."""
    fixed = {"decay": decay, "temperature": "tuned", "view_noise": 0.5, "budget": 24}
    drawn = regime(kernel=kernel, **EXACT[kernel], **fixed, power=2.0, noise_sd=16.0)
    widths = exact.DENSE[[0, 1, 2, 4, 5, 7, 9, 11, 13]]
    curves = exact.exact_curve(drawn, 2.0**40, 24, widths)
    first = problems.curve(drawn, 2.0**40, 24)
    assert first.known[0, :10].all()
    np.testing.assert_allclose(curves.error[0, :10], first.error[0, :10], rtol=5e-3)


def test_splits_are_exact_only_where_first_order_leaves_them_open():
    fixed = {"decay": "exponential", "alpha": 0.8, "view_noise": 0.4, "budget": 16}
    drawn = regime(**PLAIN, **fixed, relevance=0.45, noise_sd=2.0, reach=0.3)
    for bandwidth, expected in ((1.5, False), (0.3, True)):
        drawn["bandwidth"] = bandwidth
        curves, is_exact = comparison.drawn_curve(drawn)
        first = problems.curve(drawn, drawn["keys"], 16)
        assert is_exact == expected
        assert (curves.error == first.error).all() != expected
        assert predict.theory(drawn)["exact_splits"] == expected


def test_a_regime_is_a_file_that_runs(tmp_path, monkeypatch):
    """Its first-order errors are those made of the pairs that are simulated, at every split."""
    fixed = {"decay": "exponential", "budget": 2, "keys": 512}
    file = study(**fixed).file_of(0)
    file["simulation"] = {"batches": 2, "replicates_per_batch": 2}
    monkeypatch.chdir(tmp_path)
    (tmp_path / "found.yaml").write_text(yaml.safe_dump(file))
    assert run("sweep", "found.yaml") == 0
    drawn, rows = regime(**fixed), []
    for width in (1, 2):
        heads = two_heads(drawn, width)
        target, queries = task_of(drawn, heads.dimension, [SEED, 0])
        task = Task(DESIGNS["isotropic"](heads.dimension), target, drawn["noise_sd"])
        terms = theory(task, heads, drawn["keys"], queries)
        names = ("bias_product", "signal_covariance", "noise_covariance")
        product = sum(terms[f"integrated_{name}"].values for name in names)
        rows.append([np.trace(product) / 2, product[0, 1]])
    single, pair = np.transpose(rows)[:, None]
    data = xr.Dataset({"single": (("batch", "split"), single), "pair": (("batch", "split"), pair)})
    errors = statistic.split_errors(data, 2)[0]
    with xr.open_dataset("results/sweeps/found.nc") as sweep:
        np.testing.assert_allclose(sweep["mse_theory"], errors, rtol=1e-9)

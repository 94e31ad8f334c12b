"""The experiment `kq_svd`: its verdicts, what turns them, and what it draws."""

from dataclasses import replace

import numpy as np
import pytest

from sims import estimate
from sims.montecarlo.draws import Draw
from sims.study.experiment import load_experiment
from tests.experiments.helpers import verdicts
from tests.experiments.runs import both_roads


@pytest.fixture(scope="module")
def experiment():
    """At smaller sizes, with batches enough for verdicts."""
    whole = load_experiment("kq_svd", "smoke")
    smoke = whole.spec.at("smoke")
    caches = whole.spec.settings["caches"] | {
        "decays": [0.5],
        "angles": [0, 60, "random"],
        "ranks": [1, 2],
        "steps": 100,
        "neff": {"angles": ["random"], "length": 16, "tokens": 1500, "cooling": 4, "replicates": 2},
    }
    changed = smoke.settings | {"caches": caches}
    smoke = smoke.model_copy(
        update={"settings": changed, "simulation": {"batches": 64, "replicates_per_batch": 2}}
    )
    fidelities = whole.spec.fidelities | {"smoke": smoke}
    return replace(whole, spec=whole.spec.model_copy(update={"fidelities": fidelities}))


WITHOUT_THEORY = (
    "coordinates",
    "balance",
    "groups",
    "random heads",
    "random spectral",
    "rows",
    "masked",
    "drawn heads",
)


@pytest.fixture(scope="module")
def results(experiment):
    return both_roads(experiment, lambda point: not point.startswith(WITHOUT_THEORY))


def changed(results, point, **values):
    """Results with some variables of a point changed by functions."""
    data = results.estimates[point]
    data = data.assign({name: change(data[name]) for name, change in values.items()})
    return replace(results, estimates=results.estimates | {point: data})


def test_excess_is_held_to_its_law(results, experiment):
    law = {p: results.prediction(p) for p in results.points if p.startswith("calibration")}
    exact = results
    rng = np.random.default_rng(0)
    for point, theory in law.items():
        noise = 1 + 1e-3 * rng.standard_normal(64)
        excess = float(theory["excess"]) * noise
        exact = changed(
            exact,
            point,
            risk=lambda v, own=excess, t=theory: 0 * v + float(t["least"]) + own,
            loss=lambda v, own=excess, t=theory: 0 * v + float(t["least"]) - own,
        )
    claims = ("excess risk", "exponent, random axes", "test less calibration")
    found = verdicts(experiment, exact)
    assert {found["kq-calibration", regime] for regime in claims} == {"supported"}
    point = "calibration random n=800 ratio=1"
    least = float(law[point]["least"])
    half = changed(exact, point, risk=lambda v: least + (v - least) / 2)
    found = verdicts(experiment, half)
    assert {found["kq-calibration", regime] for regime in (claims[0], claims[2])} == {"refuted"}


def test_caches_have_the_moments_they_are_given(experiment):
    simulate = experiment.module("simulate")
    law = experiment.module("problems").moments(6, 0.5, 30, 0)
    rows = simulate.with_moment(np.random.default_rng(1), 40, law.queries)
    np.testing.assert_allclose(rows.T @ rows / 40, law.queries, atol=1e-12)
    turned = experiment.module("problems").moments(6, 0.5, 90, 0)
    np.testing.assert_allclose(
        np.diag(turned.queries),
        np.diag(law.queries * 0 + np.diag(np.arange(1.0, 7)[::-1] ** -2.0)),
        atol=1e-12,
    )


def test_triangles_stand_for_samples(experiment):
    """First and second moments of the Gram matrices; 5 standard errors (false alarms 6e-7 each)."""
    simulate, draws, n = experiment.module("simulate"), 20000, 12
    r = simulate.gaussian_triangle(np.random.default_rng(3), draws, n, 3)
    gram = r.swapaxes(1, 2) @ r
    variance = n * (np.ones((3, 3)) + np.eye(3))
    error = np.sqrt(variance / draws)
    assert np.all(abs(gram.mean(0) - n * np.eye(3)) < 5 * error)
    spread = abs(gram.var(0) / variance - 1)
    assert spread.max() < 0.1


def test_the_search_starts_anywhere_and_ends_at_the_sink(experiment):
    bounds = experiment.module("bounds")
    found = [float(bounds.spectral_search(np.random.default_rng(s), 11)["ratio"]) for s in range(6)]
    root = 11**0.5
    assert max(found) == pytest.approx((9 + root) * root / 40, rel=1e-3)


@pytest.mark.parametrize("fidelity", ["smoke", "standard", "paper"])
def test_ensembles_have_a_whole_head_to_compare_with(fidelity):
    own = load_experiment("kq_svd", fidelity).settings["ensemble"]
    assert max(own["ranks"]) == own["d"]
    assert set(own["regimes"]) == {"quiet", "between", "noisy"}


def test_errors_of_drawn_problems_are_those_of_the_engine(experiment):
    """Of the problem that a batch draws, with keys and sums of its own; four joint errors."""
    own = experiment.settings["ensemble"] | {"queries": 2, "ranks": [8, 1]}
    regime, problems = {"n": 64, "noise_sd": 2.0, "lengthscale": 2.0}, experiment.module("problems")
    draws = Draw.of(3, (), 400)
    found = [experiment.module("drawn").drawn_heads(draws.draw(0), 400, (own, regime))]
    seed = int(draws.draw(0).rng().integers(2**31))
    for place, (task, heads, n, queries) in enumerate(
        problems.compressed_heads(own, regime, seed).values()
    ):
        engine = estimate(task, heads, n, queries, 5, batches=16, replicates_per_batch=100)
        for name, term in (("head", "mean_head_mse"), ("pool", "mse")):
            values = engine[term].values
            joint = values.std(ddof=1) / 4 * (1 + 1600 / 400) ** 0.5
            assert found[0][name][place] == pytest.approx(values.mean(), abs=4 * joint)


def test_predicted_excess_counts_keys_and_queries(experiment):
    """Two coordinates by hand: 2 · 1/(2 − 1) times 1/n_K + 1/n_Q."""
    predict, problems = experiment.module("predict"), experiment.module("problems")
    law = problems.Moments(np.diag([2.0, 1.0]), np.eye(2))
    found = predict.excess(law, 1, 100, 25)
    assert float(found["excess"]) == pytest.approx(2 * (1 / 100 + 1 / 25))
    assert float(found["least"]) == pytest.approx(1)

"""The experiment `sparse_identity`: its verdicts that can fail, its law, and what it draws."""

from dataclasses import replace

import jax
import numpy as np
import pytest
import xarray as xr

from sims.study.experiment import load_experiment
from sims.study.results import Results
from tests.experiments.helpers import verdicts
from tests.experiments.runs import both_roads

SPARSE = load_experiment("sparse_identity", "standard")
BATCHES = 8


@pytest.fixture(scope="module")
def experiment():
    """At smaller sizes."""
    whole = load_experiment("sparse_identity", "smoke")
    run = {"batches": 64, "replicates_per_batch": 2}
    settings = {
        "width": [2],
        "power": [1, 2],
        "empty": {"n": 8, "rows": 512, "radius_squared": [0.4]},
        "softmax": {"n": 16, "width": 2, "power": [100, 1000, 10000]},
    }
    smoke = whole.spec.at("smoke").model_copy(update={"settings": settings, "simulation": run})
    fidelities = whole.spec.fidelities | {"smoke": smoke}
    return replace(whole, spec=whole.spec.model_copy(update={"fidelities": fidelities}))


@pytest.fixture(scope="module")
def results(experiment):
    return both_roads(experiment, lambda point: point.startswith("empty"))


def test_empty_rows_are_held_to_their_law(experiment):
    """A share of a half where the law says 0.4 is a tenth too much."""
    rows = xr.DataArray(np.tile([0.0, 1.0], (64, 1)), dims=("batch", "replicate"))
    data = xr.Dataset({"empty": rows}).assign_attrs(replicates=99)
    made = Results(
        "sparse_identity",
        "smoke",
        {"p": data},
        {"p": xr.Dataset({"empty": 0.4})},
        {},
        {"p": {"part": "empty"}},
        {},
        {},
    )
    families = experiment.module("effects").effects(made)
    assert [effect.value for effect in families["empty rows"]] == pytest.approx([0.1])


def test_rows_of_a_kernel_are_those_of_its_power(experiment):
    """ν = 1 is sparsemax's, every larger ν entmax's; distances and equal norms apart."""
    values = iter(np.arange(12.0))
    estimates, at = {}, {}
    for where in ("distance", "equal"):
        for power in (1, 2, 3):
            name = f"{where} {power}"
            gaps = {k: ("batch", [next(values)]) for k in ("weights", "denominator")}
            estimates[name], at[name] = xr.Dataset(gaps), {"part": where, "power": power}
    made = Results("sparse_identity", "smoke", estimates, {}, {}, at, {}, {})
    families = experiment.module("effects").effects(made)
    found = {name: [float(e.values[0]) for e in own] for name, own in families.items() if own}
    assert found == {
        "sparsemax, distance": [0, 1],
        "entmax, distance": [2, 3, 4, 5],
        "sparsemax, equal norms": [6, 7],
        "entmax, equal norms": [8, 9, 10, 11],
    }


@pytest.mark.theory
def test_probability_of_an_empty_row_by_the_area_of_a_cap(experiment):
    """A cap of angle θ about the query has the share (1 − cos θ)/2, by quadrature of sin θ."""
    predicted = experiment.module("predict").predict(experiment)["empty h²=0.4"]["empty"]
    angle = 2 * np.arcsin(np.sqrt(0.4) / 2)
    grid = np.linspace(0, angle, 20001)
    share = np.trapezoid(np.sin(grid) / 2, grid)
    assert float(predicted) == pytest.approx((1 - share) ** 8, rel=1e-8)


def test_rows_that_pass_over_a_nearer_key_by_plain_loops(experiment):
    simulate = experiment.module("simulate")
    key, seen = jax.random.key(5), set()
    for draw in range(12):
        own = jax.random.fold_in(key, draw)
        query, keys, s = (np.asarray(part) for part in simulate.drawn(20, 2, own, equal=False))
        scores, squares = keys @ query / s, ((keys - query) ** 2).sum(1)
        order = np.sort(scores)[::-1]
        sums = np.cumsum(order)
        k = max(i for i in range(1, 21) if 1 + i * order[i - 1] > sums[i - 1])
        inside = scores > (sums[k - 1] - 1) / k
        expected = any(
            squares[i] > squares[j] for i in np.flatnonzero(inside) for j in np.flatnonzero(~inside)
        )
        assert float(simulate.literal_row(20, 2, own, None, None)["sparsemax"]) == expected
        seen.add(expected)
    assert seen == {True, False}


def test_a_wrong_radius_is_seen(experiment, monkeypatch):
    """Twice ReLU's offset in the squared radius, or a kernel of another power."""
    simulate = experiment.module("simulate")
    key, right = jax.random.key(2), simulate.compact

    def largest():
        rows = (
            simulate.relu_row(20, 2, key, None, None),
            simulate.gap_row(20, 2, key, None, None),
            simulate.entmax_row(20, 2, 1, "equal", key, None, None),
        )
        return [float(row["weights"]) for row in rows]

    assert max(largest()) < 16
    monkeypatch.setattr(
        simulate, "compact", lambda nu, square, *row: right(nu, square * (1 + 1e-10), *row)
    )
    assert min(largest()) > 16


def test_the_gap_to_softmax_is_that_of_the_key_where_it_is_largest(experiment, monkeypatch):
    """Of four keys: 0.4 at the first one, less at the others."""
    simulate = experiment.module("simulate")
    rows = {True: np.array([0.5, 0.5, 0.0, 0.0]), False: np.array([0.1, 0.4, 0.3, 0.2])}
    monkeypatch.setattr(simulate, "attended", lambda rule, *_: rows[rule != "softmax"])
    found = simulate.gap_to_softmax(4, 2, 10.0, jax.random.key(0), None, None)
    assert float(found["gap"]) == pytest.approx(0.4)


POINTS = {
    "sparsemax, distance": ("distance", 1),
    "sparsemax, equal norms": ("equal", 1),
    "entmax, distance": ("distance", 2),
    "entmax, equal norms": ("equal", 3),
}
ROWS = {
    "sparsemax, distance": ("sparsemax-epanechnikov", "scores −distance²/2s"),
    "sparsemax, equal norms": ("sparsemax-epanechnikov", "dot products, equal key norms"),
    "entmax, distance": ("entmax-family", "scores −distance²/2s"),
    "entmax, equal norms": ("entmax-family", "dot products, equal key norms"),
}
"""Family to its claim and regime."""


def sparse(wrong=None):
    """Results of small gaps, of weights and of the kernel's sum; one of them as large as 100."""
    rng, estimates, at = np.random.default_rng(6), {}, {}
    for family, (part, nu) in POINTS.items():
        gaps = {k: rng.uniform(0, 2, (BATCHES, 3)) for k in ("weights", "denominator")}
        if wrong and wrong[0] == family:
            gaps[wrong[1]][2, 1] = 100
        estimates[family] = xr.Dataset({k: (("batch", "replicate"), v) for k, v in gaps.items()})
        at[family] = {"part": part, "power": nu}
    return Results("sparse_identity", "standard", estimates, {}, {}, at, {}, {})


def test_weights_and_the_sum_of_the_kernel_are_held_to_rounding_each():
    whole = sparse()
    found = SPARSE.module("effects").effects(whole)
    for family in POINTS:
        gaps = [own.values for own in whole.estimates[family].values()]
        np.testing.assert_array_equal([effect.values for effect in found[family]], gaps)
    for family, row in ROWS.items():
        assert verdicts(SPARSE, whole)[row] == "supported"
        for variable in ("weights", "denominator"):
            verdict = verdicts(SPARSE, sparse((family, variable)))
            assert {own for own in ROWS.values() if verdict[own] == "refuted"} == {row}

"""Numbers of `identity`, `sparse_identity` and `finite_sample`: units, norms, and which terms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from sims.study.experiment import load_experiment
from sims.study.results import Results
from sims.terms import SCALARS
from tests.experiments.by_hand import families, is_mean_of
from tests.experiments.helpers import verdicts

IDENTITY, SPARSE = (load_experiment(name, "standard") for name in ("identity", "sparse_identity"))
BATCHES = 8


def test_norms_spread_about_a_root_mean_square_that_stays(monkeypatch):
    """It is √d_k, as in the law of what moves; five standard errors, false alarms below 1e-4 each.

    (24 draws for what moves: Student's t of 23 degrees of freedom; 20,000 for norms.)
    """
    simulate, n, width, count, seen = IDENTITY.module("simulate"), 20_000, 6, 24, []
    right = simulate.nw_weights

    def watched(heads, query, keys):
        seen.append((query, keys))
        return right(heads, query, keys)

    @jax.jit
    def tilt(key, spread):
        found = simulate.key_tilt(n, width, key, spread, None)
        return found["total_variation"], *seen.pop()

    monkeypatch.setattr(simulate, "nw_weights", watched)
    moved_attention = IDENTITY.module("predict").moved_attention
    for spread in (0.2, 0.5):
        moved = []
        for seed in range(count):
            share, query, keys = map(np.asarray, tilt(jax.random.key(seed), jnp.asarray(spread)))
            moved.append(share)
            assert np.linalg.norm(query) == pytest.approx(width**0.5)
            norms = np.linalg.norm(keys, axis=1)
            mean_square, error = np.mean(norms**2), np.std(norms**2) / n**0.5
            assert mean_square == pytest.approx(width, abs=5 * error)
            # The standard error of a uniform law's relative spread is smaller than this.
            assert norms.std() / norms.mean() == pytest.approx(spread, abs=5 * spread / n**0.5)
        error = np.std(moved, ddof=1) / count**0.5
        # Besides the draws' error there is one of order 1/n.
        law = moved_attention(spread, width)
        assert np.mean(moved) == pytest.approx(law, abs=5 * error + 5 / n)


def test_the_unit_of_a_layers_gap_is_the_rounding_of_its_largest_logit(monkeypatch):
    """A layer that returns nothing is wrong by all of it: that in units by plain loops.

    To a logit add, in squares, what rounding does to the terms of its projections of query and key.
    """
    simulate = IDENTITY.module("simulate")
    heads, width, n, queries, size = 3, 2, 5, 2, 6
    monkeypatch.setattr(
        simulate, "attention", lambda heads, matrices: lambda x, *rest: jnp.zeros_like(x)
    )
    key = jax.random.key(4)
    found = simulate.whole_layer(heads, width, n, queries, key, None, None)

    rows = np.asarray(jax.random.normal(key, (4 * size + queries + 2 * n, size), jnp.float32))
    matrices = (rows[: 4 * size] / np.float32(size**0.5)).astype(float).reshape(4, size, size)
    x, keys, values = np.split(rows[4 * size :].astype(float), [queries, queries + n])
    # Queries of all heads at once, as points of key space.
    points = np.linalg.solve(matrices[1], matrices[0] @ x.T).T
    outputs, theirs, ours = np.zeros((queries, size)), [], []
    for h in range(heads):
        of_query, of_key, of_value = (matrices[i][2 * h : 2 * h + 2] for i in range(3))
        for i in range(queries):
            logits = [(of_query @ x[i]) @ (of_key @ k) / width**0.5 for k in keys]
            weights = np.exp(logits) / np.exp(logits).sum()
            outputs[i] += matrices[3][:, 2 * h : 2 * h + 2] @ of_value @ (weights @ values)
            for k in keys:
                terms_of_key = of_key**2 @ k**2
                for unit, frame, point in ((theirs, of_query, x[i]), (ours, of_key, points[i])):
                    own = (frame**2 @ point**2) @ (of_key @ k) ** 2
                    own += (of_query @ x[i]) ** 2 @ terms_of_key
                    unit.append((own / width) ** 0.5)
    whole = abs(outputs).max() / (outputs**2).mean() ** 0.5
    for name, epsilon in (("float64", 2.0**-52), ("float32", 2.0**-23)):
        unit = epsilon * (1 + np.log(n) + max(theirs)) + 2.0**-52 * (1 + np.log(n) + max(ours))
        assert float(found[name]) == pytest.approx(whole / unit, rel=1e-9)


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


def test_parts_of_the_error_are_held_to_exact_theory_each_and_rates_to_the_variance():
    """Exact values and gaps of first order that differ from term to term, and in sign."""
    rng, sizes = np.random.default_rng(8), np.array([4.0, 16.0, 64.0])
    parts = (
        "squared_bias",
        "signal_variance",
        "noise_variance",
        "cross_signal_covariance",
        "cross_noise_covariance",
    )
    exact = dict(zip(SCALARS, np.arange(1.0, 11.0), strict=True))
    exact["variance"] = exact["signal_variance"] + exact["noise_variance"]
    slope = dict(zip(SCALARS, np.linspace(0.1, 1, 10), strict=True)) | {"signal_variance": -0.9}
    lines = {
        k: np.stack([exact[k] * (1 + slope[k] / sizes), exact[k] + 0 * sizes]) for k in SCALARS
    }
    lines["variance"] = lines["signal_variance"] + lines["noise_variance"]
    law = {f"curve_{k}": (("order", "curve_n"), line) for k, line in lines.items()}
    law |= {"curve_n_eff": ("curve_n", sizes / 2)}
    law |= {k: ("order", line[:, 0]) for k, line in lines.items()}
    law |= {f"{k}_error": ("order", [np.nan, 0.01 * slope[k] ** 2]) for k in SCALARS}
    law |= {"n_eff": (("order", "query", "head"), np.full((2, 1, 1), 2.0))}
    theory = xr.Dataset(law, {"order": ["first", "exact"], "curve_n": sizes})
    raw = {k: exact[k] * rng.uniform(0.9, 1.1, BATCHES) for k in SCALARS}
    estimates = {"p": xr.Dataset({k: ("batch", v) for k, v in raw.items()})}
    found = families("finite_sample", estimates, {"p": theory}, {"p": {"n": 4}})

    simulated = {effect.label: effect for effect in found["simulation"]}
    assert simulated.keys() == {f"{term}, p" for term in parts}
    for term in parts:
        effect = simulated[f"{term}, p"]
        is_mean_of(effect, raw[term] / exact[term] - 1, bound=0.01 * slope[term] ** 2 / exact[term])
        assert effect.at["first_order_gap"] == pytest.approx(abs(slope[term]) / 4)
    for term in (*parts, "mse"):
        own = [effect for effect in found["first order"] if f" {term}," in effect.label]
        assert [effect.value for effect in own] == pytest.approx(slope[term] / sizes)
    of_variance = sum(slope[k] * exact[k] for k in ("signal_variance", "noise_variance"))
    size = found["first order, size of the gap in the variance"]
    expected = abs(of_variance) / exact["variance"] / sizes
    assert [effect.value for effect in size] == pytest.approx(expected)
    assert [effect.x for effect in size] == pytest.approx(sizes / 2)


def test_attention_that_moves_is_held_to_its_law():
    """As a share of it less one, where key norms differ at all."""
    rng, estimates, law = np.random.default_rng(9), {}, {}
    for name, size in (("even", 0.0), ("uneven", 0.3)):
        own = {"total_variation": size * rng.uniform(0.9, 1.1, (BATCHES, 3))}
        own |= {k: rng.uniform(0, 2, (BATCHES, 3)) for k in ("plain", "tilted")}
        estimates[name] = xr.Dataset({k: (("batch", "replicate"), v) for k, v in own.items()})
        law[name] = xr.Dataset({"total_variation": size * 1.25})
    at = {name: {"part": "tilt", "spread": size} for name, size in (("even", 0), ("uneven", 0.5))}
    found = families("identity", estimates, law, at)
    moved = estimates["uneven"]["total_variation"].values.mean(1)
    assert [len(found[k]) for k in ("attention moved", "attention moved, over the law")] == [1, 1]
    is_mean_of(found["attention moved"][0], moved)
    is_mean_of(found["attention moved, over the law"][0], moved / (0.3 * 1.25) - 1)

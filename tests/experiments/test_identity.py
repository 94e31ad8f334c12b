"""The experiment `identity`: its law, its verdicts that can fail, and how its parts fit."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sims.problem import Heads
from sims.study.experiment import load_experiment
from sims.study.units import units_of


@pytest.fixture(scope="module")
def experiment():
    """At smaller sizes, but for the tilt's spreads: two programs a part."""
    whole = load_experiment("identity", "smoke")
    settings = {
        "single": {"n": [12, 20], "width": [2], "temperature": [0.5, 1.0]},
        "layer": {"shapes": [[3, 2]], "n": 10, "queries": 2},
        "tilt": {"n": 300, "width": 6, "spread": [0, 0.2, 0.5]},
    }
    run = {"batches": 64, "replicates_per_batch": 2}
    smoke = whole.spec.at("smoke").model_copy(update={"settings": settings, "simulation": run})
    fidelities = whole.spec.fidelities | {"smoke": smoke}
    return replace(whole, spec=whole.spec.model_copy(update={"fidelities": fidelities}))


@pytest.fixture(scope="module")
def simulate(experiment):
    return experiment.module("simulate")


def test_a_wrong_temperature_is_seen(simulate, monkeypatch):
    """A temperature off by 1e-13 leaves the margin of float64, one off by 1e-4 those of float32."""
    right = simulate.nw_weights

    def gaps(error):
        def wrong(heads, query, keys):
            return right(
                Heads(heads.frames, heads.kernel, heads.bandwidth * (1 + error)), query, keys
            )

        monkeypatch.setattr(simulate, "nw_weights", wrong)
        return simulate.drawn_head(20, 4, (24, 6), jax.random.key(1), 2.0, None)

    assert max(float(g) for g in gaps(0.0).values()) < 8
    assert gaps(1e-13)["float64"] > 8
    assert min(gaps(1e-4)[precision] for precision in ("float32", "mixed")) > 8


def test_smaller_heads_are_the_first_rows_and_columns_of_the_largest_draw(simulate, monkeypatch):
    monkeypatch.setattr(simulate, "single_head", lambda query, keys, temperature: (query, keys))
    draw = [
        simulate.drawn_head(n, width, (20, 4), jax.random.key(1), 2.0, None)
        for n, width in ((20, 4), (12, 3))
    ]
    (query, keys), (part_of_query, part_of_keys) = draw
    np.testing.assert_array_equal(part_of_query, query[:3])
    np.testing.assert_array_equal(part_of_keys, keys[:12, :3])


def test_layer_by_plain_loops(simulate):
    """The layer's oracle is multi-head attention: written out head by head in numpy."""
    rng = np.random.default_rng(0)
    matrices = rng.normal(size=(4, 6, 6))
    x, keys, values = rng.normal(size=(2, 6)), rng.normal(size=(5, 6)), rng.normal(size=(5, 6))
    expected = np.zeros((2, 6))
    for h in range(3):
        rows = slice(2 * h, 2 * h + 2)
        logits = (x @ matrices[0][rows].T) @ (keys @ matrices[1][rows].T).T / np.sqrt(2)
        weights = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
        expected += weights @ values @ matrices[2][rows].T @ matrices[3][:, rows].T
    layer = simulate.attention(3, jnp.asarray(matrices))
    np.testing.assert_allclose(layer(*map(jnp.asarray, (x, keys, values))), expected, rtol=1e-12)


def test_gaps_to_softmax_are_differences(simulate):
    """None but rounding at equal norms; at unequal ones none with the tilt, and many without."""
    equal, unequal = (
        simulate.key_tilt(20, 4, jax.random.key(2), spread, None) for spread in (0.0, 0.5)
    )
    assert max(float(equal["plain"]), float(equal["tilted"]), float(unequal["tilted"])) < 8
    assert float(unequal["plain"]) > 1e6


@pytest.mark.theory
@pytest.mark.parametrize(("spread", "width"), [(0.1, 2), (0.3, 8), (0.5, 16)])
def test_moved_attention_against_brute_force(experiment, spread, width):
    """Plain numpy with 20 × 50,000 keys; 5 standard errors."""
    moved_attention = experiment.module("predict").moved_attention
    rng = np.random.default_rng(3)
    moved = []
    for _ in range(20):
        keys = rng.normal(size=(50_000, width))
        norm = np.sqrt(width / (1 + spread**2)) * (1 + spread * rng.uniform(-1, 1, 50_000) * 3**0.5)
        keys *= (norm / np.linalg.norm(keys, axis=1))[:, None]
        query = np.full(width, 1.0)
        softmax = np.exp(keys @ query / width**0.5)
        plain = np.exp(-((keys - query) ** 2).sum(1) / (2 * width**0.5))
        moved.append(np.abs(softmax / softmax.sum() - plain / plain.sum()).sum() / 2)
    error = np.std(moved, ddof=1) / np.sqrt(20)
    assert abs(np.mean(moved) - moved_attention(spread, width)) < 5 * error + 2e-4


@pytest.mark.theory
def test_moved_attention_for_small_spreads(experiment):
    """TV → ½ (d_k/s) E|u| · spread = (√3/4) √d_k · spread, and 0 at equal norms."""
    moved_attention = experiment.module("predict").moved_attention
    assert moved_attention(0.0, 16) < 1e-12
    slope = moved_attention(1e-4, 16) / 1e-4
    assert slope == pytest.approx(np.sqrt(3) / 4 * 4, rel=1e-3)


@pytest.mark.parametrize("fidelity", ["smoke", "standard", "paper"])
def test_points_of_unequal_norms_are_predicted_at_every_fidelity(fidelity):
    """Under the names of the units."""
    whole = load_experiment("identity", fidelity)
    tilts = [n for n, unit in units_of(whole).items() if unit.coordinates["part"] == "tilt"]
    assert tilts == list(whole.module("predict").predict(whole))


def test_the_unit_of_a_tilted_gap_is_the_rounding_of_its_largest_exponent(simulate, monkeypatch):
    """Keys of one norm, √d_k = 2, along the query, against it and across: exponents by hand.

    At temperature 2 half squared distances are 0, 4 and 2, and twice the tilt is 2.
    """
    unit, seen = np.eye(4), []
    given = {1: unit[:1], 3: np.stack([unit[0], -unit[0], unit[1]])}
    monkeypatch.setattr(simulate, "directions", lambda key, count, width: given[count])
    monkeypatch.setattr(
        simulate, "rounding", lambda magnitude, n, epsilon: seen.append(float(magnitude)) or 1.0
    )
    found = simulate.key_tilt(3, 4, jax.random.key(0), 0.0, None)
    assert seen == [pytest.approx(6.0)]
    assert float(found["tilted_total_variation"]) < 1e-15

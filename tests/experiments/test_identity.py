"""The experiment `identity`: its law, its verdicts that can fail, and how its parts fit."""

from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from matplotlib.figure import Figure
from sims.experiment import load_experiment
from sims.results import Results

from sims.cli.steps import _module
from sims.problem import Heads
from sims.report import render_caption

FOLDER = Path(__file__).parents[2] / "experiments" / "identity"
REFUTED = "Gaussian kernel, unequal key norms, without the tilt"
simulate, predict, analysis = (
    _module(FOLDER / f"{n}.py") for n in ("simulate", "predict", "analysis")
)


def small(experiment):
    settings = {
        "single": {"n": [12, 20], "width": [2], "temperature": [0.5, 1.0]},
        "layer": {"shapes": [[3, 2]], "n": 10, "queries": 2},
        "tilt": {"n": 300, "width": 6, "spread": [0, 0.2, 0.5]},
    }
    run = experiment.simulation.model_copy(update={"batches": 6, "replicates_per_batch": 2})
    return experiment.model_copy(update={"settings": settings, "simulation": run})


@pytest.fixture(scope="module")
def experiment():
    return small(load_experiment(FOLDER))


@pytest.fixture(scope="module")
def results(experiment):
    simulated = simulate.simulate(experiment, "standard")
    predicted = predict.predict(experiment, "standard")
    assert list(simulated) == list(predicted)
    return Results("identity", "standard", {k: {} for k in simulated}, simulated, predicted, {})


def verdicts(results, experiment):
    return {(v.claim, v.regime): v.verdict for v in analysis.judge(results, experiment)}


def test_every_claim_is_judged(results, experiment):
    """At this small size too: all hold but the literal reading; the law needs a larger n."""
    found = verdicts(results, experiment)
    assert set(found) == {(c.id, c.regime) for c in experiment.claims}
    assert found.pop(("identity", REFUTED)) == "refuted"
    found.pop(("identity", "Gaussian kernel, size of the difference"))
    assert set(found.values()) == {"supported"}


@pytest.mark.parametrize(("_", "regime", "part", "variable"), analysis.GAPS)
def test_each_identity_can_fail(results, experiment, _, regime, part, variable):
    """One gap of a hundred units, or a missing one, and the claim is not supported."""
    name = next(iter(analysis._part(results, part)))
    for wrong, expected in ((100.0, "refuted"), (np.nan, "inconclusive")):
        data = results.simulation[name].copy(deep=True)
        data[variable][1, 0] = wrong
        broken = replace(results, simulation=results.simulation | {name: data})
        found = [v for v in analysis.judge(broken, experiment) if v.regime == regime]
        assert expected in [v.verdict for v in found]


def test_literal_reading_would_be_supported_if_it_held(results, experiment):
    data = {
        k: d.assign(total_variation=d["total_variation"] * 1e-3) if "total_variation" in d else d
        for k, d in results.simulation.items()
    }
    found = verdicts(replace(results, simulation=data), experiment)
    assert found["identity", REFUTED] == "supported"


def test_a_wrong_temperature_is_seen(monkeypatch):
    """A temperature off by 1e-13 leaves the margin of float64, one off by 1e-4 that of float32."""
    key = jax.random.key(1)
    draws = simulate._cut(simulate._draw(key, 20, 4), 20, 4)
    right = simulate.nw_weights

    def gaps(error):
        def wrong(heads, query, keys):
            return right(
                Heads(heads.frames, heads.kernel, heads.bandwidth * (1 + error)), query, keys
            )

        monkeypatch.setattr(simulate, "nw_weights", wrong)
        return simulate.single_head(*draws, 2.0)

    assert max(float(g) for g in gaps(0.0).values()) < 8
    assert gaps(1e-13)["float64"] > 8
    assert gaps(1e-4)["float32"] > 8


def test_layer_by_plain_loops():
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
    layer = simulate._layer(3, [jnp.asarray(m) for m in matrices])
    np.testing.assert_allclose(layer(*map(jnp.asarray, (x, keys, values))), expected, rtol=1e-12)


@pytest.mark.theory
@pytest.mark.parametrize(("spread", "width"), [(0.1, 2), (0.3, 8), (0.5, 16)])
def test_moved_attention_against_brute_force(spread, width):
    """Plain numpy with 20 × 50,000 keys; 5 standard errors."""
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
    assert abs(np.mean(moved) - predict.moved_attention(spread, width)) < 5 * error + 2e-4


@pytest.mark.theory
def test_moved_attention_for_small_spreads():
    """TV → ½ (d_k/s) E|u| · spread = (√3/4) √d_k · spread, and 0 at equal norms."""
    assert predict.moved_attention(0.0, 16) < 1e-12
    slope = predict.moved_attention(1e-4, 16) / 1e-4
    assert slope == pytest.approx(np.sqrt(3) / 4 * 4, rel=1e-3)


def test_figure_and_caption(results, experiment):
    assert isinstance(analysis.figure(results), Figure)
    numbers = analysis.numbers(results)
    text = render_caption(
        FOLDER / "caption.md", experiment, results, analysis.judge(results, experiment), numbers
    )
    assert "refuted" in text
    assert "{{" not in text
    # A spread of 0.29 is that of normal keys at d_k = 6, and moves about a third of the attention.
    assert numbers["normal_spread"] == pytest.approx(0.289, abs=1e-3)
    assert 0.2 < numbers["moved_at_normal"] < 0.4


@pytest.mark.parametrize("fidelity", ["smoke", "standard", "paper"])
def test_points_are_predicted_at_every_fidelity(fidelity, monkeypatch):
    """Names by the simulation, without computing anything, are those of the prediction."""
    monkeypatch.setattr(simulate, "_mapped", lambda function: lambda inputs, value: {})
    monkeypatch.setattr(simulate, "_draw", lambda key, n, width: key)
    whole = load_experiment(FOLDER)
    assert list(simulate.simulate(whole, fidelity)) == list(predict.predict(whole, fidelity))

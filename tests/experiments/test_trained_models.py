"""Heads of trained models: planted rank correlations, and one head taken out by hand."""

from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr
from scipy.special import softmax
from scipy.stats import rankdata, spearmanr

from sims.base.errors import InputError
from sims.inspect.patterns import Rule, projections, weights
from sims.study.experiment import choose, load_experiment

EXPERIMENT = load_experiment("trained_models")
problems, simulate, statistic = (
    EXPERIMENT.module(name) for name in ("problems", "simulate", "statistic")
)
LAW = EXPERIMENT.spec.law


def planted(sign):
    """Costs that rise (1) or fall (−1) with one minus the overlap of patterns, in two passes."""
    rng = np.random.default_rng(0)
    noise = rng.uniform(size=(2, 8, 8))
    noise += noise.swapaxes(1, 2)
    noise /= 2
    noise[:, range(8), range(8)] = 1
    others = (1 - np.eye(8)) * noise
    head = -sign * others.mean(-1)
    batches = {
        "patterns": noise,
        "outputs": rng.uniform(size=(2, 8)),
        "merging": 2 - sign * noise,
        "pruning": 1 + 1e-6 * head,
        "predictions": head,
    }
    weights = {
        "subspaces": noise[::-1],
        "matrices": rng.uniform(size=(2, 8)),
        "random": rng.uniform(size=(2, 8, 8)),
    }
    dims = ("layer", "head", "head2")
    own = {k: (("batch", *dims[: v.ndim]), np.stack([v] * 4)) for k, v in batches.items()}
    fixed = {k: (dims[: v.ndim], v) for k, v in weights.items()}
    return SimpleNamespace(
        estimates={"one": xr.Dataset(own)},
        predictions={"one": xr.Dataset(fixed | {"module": ("layer", ["a", "b"])})},
    )


@pytest.mark.parametrize("sign", [1, -1])
def test_planted_orders_are_found(sign):
    found = statistic.effects(planted(sign))
    for cost in ("merging", "unexplained", "predictions"):
        for name in ("patterns", f"patterns{statistic.GIVEN}"):
            np.testing.assert_allclose(found[f"{cost}, {name}"].value, sign)
        assert (abs(found[f"{cost}, random"].value) < 0.95).all()


def test_rank_correlation_is_scipys_and_partial_by_residuals():
    rng = np.random.default_rng(1)
    a, b, c = rng.normal(size=(3, 28))
    b += a + c
    assert statistic.rank_correlation(a, b) == pytest.approx(spearmanr(a, b).statistic)
    ranks = [rankdata(each) for each in (a, b, c)]
    left = [r - np.polyval(np.polyfit(ranks[2], r, 1), ranks[2]) for r in ranks[:2]]
    assert statistic.rank_correlation(a, b, c) == pytest.approx(np.corrcoef(left)[0, 1])


def test_a_head_taken_out_by_hand():
    """Of the layer's output, and of predictions, by sims.inspect's own attention in float64."""
    try:
        model = problems.trained(LAW, "heavy chains")
    except InputError as error:
        pytest.skip(str(error))
    rng, place, head = np.random.default_rng(0), 2, 5
    sequences = [problems.sequence(LAW, "heavy chains", model, rng) for _ in range(2)]
    outputs, *_ = simulate.observed(model, sequences[:1])
    held_out, *_ = simulate.observed(model, sequences[1:])
    tokens, places = sequences[1]
    x, scores = model.passed(problems.hidden(model, tokens, places))
    layer = model.layers[place]
    query, key, value = projections(layer, x[place].astype(float), Rule(False))
    by_hand = weights(layer, query, key, Rule(False)) @ value
    np.testing.assert_allclose(held_out[place].swapaxes(0, 1), by_hand, atol=1e-4)

    mean = outputs[place].mean(0)
    written = by_hand @ layer.matrices.output
    gone = (by_hand[head] - mean[head]) @ layer.matrices.output[head]
    whole = written.sum(0) - (mean[:, None] @ layer.matrices.output).sum(0)
    costs = simulate.removal(outputs[place], held_out[place], model.heads[place])
    assert costs[2][head] == pytest.approx((gone**2).sum() / (whole**2).sum(), rel=1e-3)
    # Another head's outputs stand in by ridge regression on the first sequence.
    seen = outputs[place].astype(float) - mean
    ridge = np.sqrt((seen[:, 1] ** 2).sum() / len(seen)) * np.eye(seen.shape[2])
    known = np.vstack([seen[:, head], 0 * ridge])
    maps = np.linalg.lstsq(np.vstack([seen[:, 1], ridge]), known, rcond=None)[0]
    left = by_hand[head] - mean[head] - (by_hand[1] - mean[1]) @ maps
    lost = ((left @ layer.matrices.output[head]) ** 2).sum() / (whole**2).sum()
    assert costs[1][head, 1] == pytest.approx(lost, rel=1e-3)

    after = model.after(place, x[place], (written.sum(0) - gone).astype(np.float32))
    for later in range(place + 1, 4):
        attended = (model.attention(later, after)[1] @ model.heads[later][2]).sum(0)
        after = model.after(later, after, attended)

    whole, pruned = (
        softmax(s[places].astype(float), axis=1) for s in (scores, model.scores(after))
    )
    moved = simulate.divergences(model, tokens, places, outputs.mean(1))
    expected = (whole * np.log(whole / pruned)).sum(1).mean()
    assert moved[place, head] == pytest.approx(expected, rel=0.01)


def test_without_models_a_run_leaves_the_experiment_out(monkeypatch, capsys):
    monkeypatch.setenv("SIMS_MODELS", "/none")
    assert "trained_models" not in choose({})[1]
    assert "without trained_models: /none/rxnmapper" in capsys.readouterr().err
    with pytest.raises(InputError, match="make models"):
        choose({"experiment": "trained_models"})

"""Heads of trained models: planted rank correlations, and one head taken out by hand."""

import numpy as np
import pytest
import xarray as xr
from scipy.optimize import brentq
from scipy.special import softmax

from experiments.trained_models import (
    figure,
    lawlike,
    predict,
    problems,
    simulate,
    statistic,
    table,
)
from experiments.trained_models.decoder import Decoder
from experiments.trained_models.encoders import MASK, RESIDUES
from sims.base.errors import InputError
from sims.inspect.patterns import Rule, projections, rotated, weights
from sims.study.choosing import choose
from sims.study.running import Run
from tests.by_hand import refused
from tests.experiments.planted.trained_models import plant
from tests.inspect.models import LAYOUTS, WIDTH, D, H, drawn, matrices, write

EXPERIMENT = Run.load("trained_models")
LAW = EXPERIMENT.spec.law


def test_planted_orders_and_gaps_from_the_angle_law_are_found():
    results, expected = plant(None)
    found = statistic.effects(results)
    for name, values in expected.items():
        np.testing.assert_allclose(found[name].value, values, atol=1e-7, err_msg=name)


def test_heads_of_the_law_have_the_index_and_effective_keys_of_a_layer():
    rng = np.random.default_rng(3)
    frames = lawlike.mix_frames(rng, 6, 24, 4, 0.4)
    np.testing.assert_allclose(frames.swapaxes(1, 2) @ frames, 6 * [np.eye(4)], atol=1e-9)
    squares = [(frames[h].T @ frames[g]) ** 2 for h in range(6) for g in range(h)]
    assert np.sum(squares) / 4 / len(squares) == pytest.approx(0.4, abs=0.01)
    haar = lawlike.overlap_of(lawlike.mix_frames(rng, 6, 24, 4, 0.0))
    assert haar == pytest.approx(4 / 24, abs=0.05)
    assert lawlike.overlap_of(np.stack(3 * [frames[0]])) == pytest.approx(1)
    for selectivity in (0.1, 0.6):
        shared = lawlike.shared_weights(rng, frames, 400, selectivity)
        # n_eff/n is a mean of 1/(nΣw²), which is at least 1 over the mean of nΣw².
        assert 1 / (400 * np.diag(shared)).mean() < selectivity
        equal = lawlike.shared_weights(rng, np.stack(3 * [frames[0]]), 400, selectivity)
        np.testing.assert_allclose(statistic.noise_correlation(equal), 1)
        aligned, mixed = (statistic.variance_kept(each) for each in (equal, shared))
        assert mixed < aligned


def test_frames_of_the_law_are_mixed_as_stated():
    """√(1 − s) A + √s A_h has no part outside head h's frame, at one s."""
    frames = lawlike.mix_frames(np.random.default_rng(3), 6, 24, 4, 0.4)
    shared, *own = np.random.default_rng(3).normal(size=(7, 24, 4))
    outside = np.eye(24) - frames @ frames.swapaxes(1, 2)
    mixing = -(outside @ shared) / (outside @ np.stack(own))
    assert mixing[0, 0, 0] > 0
    np.testing.assert_allclose(mixing, mixing[0, 0, 0])


def test_keys_that_heads_of_the_law_share_are_those_of_gaussian_scores():
    """Of many keys ``n Σ w_h w_g`` is the mean of exp Cov(s_h, s_g) over the queries."""
    frames = lawlike.mix_frames(np.random.default_rng(3), 3, 24, 4, 0.4)
    found = 30_000 * lawlike.shared_weights(np.random.default_rng(4), frames, 30_000, 0.6)
    seen = np.random.default_rng(4).normal(size=(lawlike.QUERIES, 24)) @ frames
    cosines = np.einsum("hdk,gdl->hgkl", frames, frames)
    covariance = np.einsum("hqk,hgkl,gql->hgq", seen, cosines, seen)

    def excess(inverse):
        return np.exp(-inverse * (seen**2).sum(2)).mean() - 0.6

    expected = np.exp(brentq(excess, 0, 1) * covariance).mean(2)
    np.testing.assert_allclose(found, expected, rtol=0.03)


class Letters:
    """Tokens are letters; a masked one is surely a W."""

    predicts = True
    causal = False
    ends = 1
    letters = ("<", ">", MASK, *RESIDUES)

    def __init__(self):
        self.vocabulary = dict(zip(self.letters, range(23), strict=True))

    def numbers(self, text):
        return np.array([*map(self.letters.index, f"<{text}>")])

    def passed(self, tokens):
        return [tokens]

    def scores(self, last):
        is_masked = last == self.letters.index(MASK)
        return 100 * np.outer(is_masked, np.array(self.letters) == "W")


def test_a_text_is_cut_into_sequences_between_special_tokens(monkeypatch):
    monkeypatch.setattr(problems, "read_text", {"text": RESIDUES}.get)
    model = Letters()
    cut = [model.numbers(RESIDUES[:8]), model.numbers(RESIDUES[8:16])]
    np.testing.assert_array_equal(problems.windows(model, "text", 10), cut)


def test_residues_are_drawn_anew_and_masked_between_special_tokens():
    model = Letters()
    antibodies = {"heavy chains": ["A" * 20], "rounds": 1, "share": 0.5}
    law = {"checkpoints": {"letters": {"text": "heavy chains"}}, "antibodies": antibodies}
    law["masked"] = 1.0
    rng = np.random.default_rng(0)
    for tokens, places in problems.draw_sequences(law, "letters", model, rng, 9):
        assert sorted(places) == [*range(1, 21)]
        assert tokens[[0, -1]].tolist() == [0, 1]
        assert (tokens == model.letters.index("W")).sum() == 10


def test_averages_of_outputs_keep_what_correlated_values_leave():
    """Four equally sharp heads, on values that are drawn many times."""
    rng = np.random.default_rng(0)
    weights = np.array([np.roll([0.4, 0.3, 0.2, 0.1, 0.0], h) for h in range(4)])
    kept = statistic.variance_kept(weights @ weights.T)
    correlation = statistic.mean_of_pairs(statistic.noise_correlation(weights @ weights.T))
    shared, single = rng.normal(size=(2, 4, 5, 200_000))
    for alike in (0, 0.5, 1):
        values = alike**0.5 * shared[:1] + (1 - alike) ** 0.5 * single
        outputs = np.einsum("hi,hit->ht", weights, values)
        expected = figure.kept_of_outputs(kept, correlation, alike)
        assert outputs.mean(0).var() / outputs.var(1).mean() == pytest.approx(expected, rel=0.02)


def test_a_head_taken_out_by_hand():
    """Of the layer's output, and of predictions, by sims.inspect's own attention in float64."""
    try:
        model = problems.read_model(LAW, "heavy chains")
    except InputError as error:
        pytest.skip(str(error))
    rng, place, head = np.random.default_rng(0), 2, 5
    sequences = problems.draw_sequences(LAW, "heavy chains", model, rng, 2)
    outputs = simulate.observe(model, sequences[:1]).outputs
    seen = simulate.observe(model, sequences[1:])
    held_out = seen.outputs
    tokens, places = sequences[1]
    x = model.passed(problems.mask(model, tokens, places))
    scores = model.scores(x[-1])
    layer = model.layers[place]
    query, key, value = projections(layer, x[place].astype(float), Rule(False))
    maps = weights(layer, query, key, Rule(False))
    plain = np.setdiff1d(np.arange(1, len(tokens) - 1), places)
    left = maps[:, plain][:, :, plain]
    for kind, each in enumerate((maps, left / left.sum(2, keepdims=True))):
        shared = np.einsum("hqi,gqi->hg", each, each) / each.shape[1]
        np.testing.assert_allclose(seen.patterns[kind, place], shared, rtol=1e-3)
        share = (1 / (each**2).sum(2)).mean(1) / each.shape[2]
        np.testing.assert_allclose(seen.selectivity[kind, place], share, rtol=1e-3)
    assert seen.keys.tolist() == [len(tokens), len(plain)]
    by_hand = maps @ value
    np.testing.assert_allclose(held_out[place].swapaxes(0, 1), by_hand, atol=1e-4)

    mean = outputs[place].mean(0)
    written = by_hand @ layer.matrices.output
    gone = (by_hand[head] - mean[head]) @ layer.matrices.output[head]
    whole = written.sum(0) - (mean[:, None] @ layer.matrices.output).sum(0)
    costs = simulate.removal(outputs[place], held_out[place], layer.matrices.output)
    centred = written - written.mean(1, keepdims=True)
    both = (centred[head] * centred[1]).sum(1).mean()
    assert costs[1][head, 1] == pytest.approx(both, rel=1e-3)
    maps_of = np.einsum("hdv,hve->hde", layer.matrices.value, layer.matrices.output)
    size = np.linalg.norm(maps_of, axis=(1, 2))
    aligned = (maps_of[head] * maps_of[1]).sum() / size[head] / size[1]
    weights_alone = predict.overlaps_of(LAW, "heavy chains").isel(layer=place)
    assert float(weights_alone["alignment"][head, 1]) == pytest.approx(aligned)
    np.testing.assert_allclose(weights_alone["matrices"], size)
    assert costs[3][head] == pytest.approx((gone**2).sum() / (whole**2).sum(), rel=1e-3)
    # Another head's outputs stand in by ridge regression on the first sequence.
    seen = outputs[place].astype(float) - mean
    ridge = np.sqrt((seen[:, 1] ** 2).sum() / len(seen)) * np.eye(seen.shape[2])
    known = np.vstack([seen[:, head], 0 * ridge])
    maps = np.linalg.lstsq(np.vstack([seen[:, 1], ridge]), known, rcond=None)[0]
    left = by_hand[head] - mean[head] - (by_hand[1] - mean[1]) @ maps
    lost = ((left @ layer.matrices.output[head]) ** 2).sum() / (whole**2).sum()
    assert costs[2][head, 1] == pytest.approx(lost, rel=1e-3)

    after = model.after(place, x[place], (written.sum(0) - gone).astype(np.float32))
    for later in range(place + 1, 4):
        after = model.forward(later, after)

    whole, pruned = (
        softmax(s[places].astype(float), axis=1) for s in (scores, model.scores(after))
    )
    moved = simulate.removals(model, tokens, places, outputs.mean(1))[1]
    expected = (whole * np.log(whole / pruned)).sum(1).mean()
    assert moved[place, head] == pytest.approx(expected, rel=0.01)


def test_a_decoder_is_its_definition(tmp_path):
    """One layer; then what a head's mean in place of its output does to the loss."""
    tokens, none = np.array([3, 1, 4, 1, 5, 9, 2, 6]), np.array([], int)
    shapes = {"token_embd": (10, D), "output_norm": (D,), "model.layers.0.input_layernorm": (D,)}
    sizes = {"norm": (D,), "gate": (20, D), "up": (20, D), "down": (D, 20)}
    shapes |= {f"model.layers.0.ffn_{name}": shape for name, shape in sizes.items()}
    tensors = drawn({f"{name}.weight": shape for name, shape in shapes.items()})
    embedding, last, first, norm, gate, up, down = (
        tensor.astype(float) for tensor in tensors.values()
    )
    parts = matrices(2)
    config = {"model_type": "llama", "num_attention_heads": H, "num_key_value_heads": 2}
    config |= {"rms_norm_eps": 0.01, "rope_theta": 30.0}
    folder = write(tmp_path, LAYOUTS["llama"](*parts) | tensors, config)
    model = Decoder(folder / "model.safetensors", np.float64)
    model.first = 3

    def normed(x, gain):
        return x / np.sqrt((x**2).mean(1) + 0.01)[:, None] * gain

    def losses(outputs):
        x = embedding[tokens] + sum(
            o @ w.T for o, w in zip(outputs, np.split(parts[3], H, 1), strict=True)
        )
        opened = normed(x, norm) @ gate.T
        x = x + (opened / (1 + np.exp(-opened)) * (normed(x, norm) @ up.T)) @ down.T
        chances = softmax(normed(x, last) @ embedding.T, axis=1)
        return -np.log(chances[np.arange(7), tokens[1:]])

    given = normed(embedding[tokens], first)
    query, key, value = (given @ r[..., :D].swapaxes(1, 2) + r[:, None, :, D] for r in parts[:3])
    query, key = rotated(query, 30.0), rotated(key, 30.0)
    maps = np.zeros((H, 8, 8))
    for head, t in np.ndindex(H, 8):
        scores = key[head // 2, : t + 1] @ query[head, t]
        maps[head, t, : t + 1] = softmax(scores / WIDTH**0.5)
    outputs = maps @ value[[0, 0, 1, 1]]
    found = model.attention(0, embedding[tokens])
    np.testing.assert_allclose(found[0], maps, atol=1e-9)
    np.testing.assert_allclose(found[1], outputs, atol=1e-9)
    seen = simulate.observe_sequence(model, tokens, none)
    assert seen.keys.tolist() == [6, 5]
    for kind, start in enumerate((0, 1)):
        left = maps[:, 3:, start:] / maps[:, 3:, start:].sum(2, keepdims=True)
        alike = np.einsum("hqi,gqi->hg", left, left) / 5
        np.testing.assert_allclose(seen.patterns[kind, 0], alike)
        share = 1 / (left**2).sum(2) / (np.arange(4, 9) - start)
        np.testing.assert_allclose(seen.selectivity[kind, 0], share.mean(1))
    loss, changes = simulate.removals(model, tokens, none, seen.outputs.mean(1))
    assert loss == pytest.approx(losses(outputs)[3:].mean())
    outputs[1] = outputs[1, 3:].mean(0)
    assert changes[0, 1] == pytest.approx(losses(outputs)[3:].mean() - loss)


def test_a_table_is_what_was_measured_to_three_digits(tmp_path, monkeypatch):
    monkeypatch.setattr(table, "path_of", tmp_path.joinpath)
    data = xr.Dataset()
    for name, dims in simulate.DIMS.items():
        dims = ("batch", *dims)
        data[name] = dims, np.random.default_rng(0).normal(size=[3] * len(dims))
    theory = xr.Dataset({"module": ("layer", ["first", "second", "third"])})
    table.keep("one", "one.nc.xz", data, theory)
    kept = table.load("one", "one.nc.xz")
    assert kept["module"].values.tolist() == theory["module"].values.tolist()
    for name, values in data.items():
        np.testing.assert_allclose(kept[name], values, rtol=2e-3)


def test_without_models_a_run_leaves_the_experiment_out(monkeypatch, capsys):
    monkeypatch.setenv("SIMS_MODELS", "/none")
    assert "trained_models" not in choose({})[1]
    assert "without trained_models: /none/rxnmapper" in capsys.readouterr().err
    with refused("make models"):
        choose({"experiment": "trained_models"})

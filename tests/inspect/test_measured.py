"""What is measured, against brute force on the same inputs."""

import numpy as np
import pytest
import xarray as xr

from sims.attention.low_rank import k_svd, kq_svd, stacked
from sims.inspect import Model, inspect, layers, measured
from sims.inspect.ablation import Calibration, Removal
from sims.inspect.patterns import Rule, projections, rule_of, slopes, weights
from sims.theory.neighbours.spectra import keys_only_error, optimum, squares
from tests.inspect.models import LAYOUTS, WIDTH, D, H, inputs, matrices, write

CONFIG = {"num_attention_heads": H}


@pytest.fixture
def made(tmp_path):
    """Write a LLaMA of some matrices; its layer and the row of its report."""

    def make(given, kind="full", x=None, mask=None, **options):
        folder = write(tmp_path / "model", LAYOUTS["llama"](*given), CONFIG)
        (layer,) = layers(Model(folder))
        given = {"0": inputs() if x is None else x}
        given |= {} if mask is None else {"attention_mask": mask}
        return layer, inspect(folder, activations=given, attention=kind, **options).isel(layer=0)

    return make


def contributions(layer, x, causal=False):
    """o_hW_O,h token by token, (S, H, T, d), by loops."""
    m, (bq, bk, bv) = layer.matrices, layer.biases
    out = np.zeros((len(x), H, x.shape[1], D))
    for s, tokens in enumerate(x):
        for h, g in enumerate(layer.key_head):
            k, v = tokens @ m.key[g] + bk[g], tokens @ m.value[g] + bv[g]
            for t, token in enumerate(tokens):
                end = t + 1 if causal else len(tokens)
                w = np.exp((token @ m.query[h] + bq[h]) @ k[:end].T / np.sqrt(WIDTH))
                out[s, h, t] = w @ v[:end] / w.sum() @ m.output[h]
    return out


@pytest.mark.parametrize(("kind", "keys"), [("full", H), ("causal", 2)])
def test_contributions_and_pruning_are_those_of_the_ablated_layer(made, kind, keys, monkeypatch):
    """Of causal heads in blocks of three queries at a time."""
    if kind == "causal":
        monkeypatch.setattr(measured, "WEIGHTS", 3 * H * 20)
    layer, row = made(matrices(keys), kind)
    x = inputs()
    each = contributions(layer, x, kind == "causal")
    flat = each.swapaxes(0, 1).reshape(H, -1, D)
    centred = flat - flat.mean(1, keepdims=True)
    covariance = np.einsum("htd,gtd->hg", centred, centred) / flat.shape[1]
    scale = np.sqrt(np.diag(covariance))
    # The jackknife takes a bias of order 1/S off.
    found = row.contribution_correlation
    assert abs(found - covariance / scale[:, None] / scale).max() < 0.02
    kept = covariance.sum() / (H * np.trace(covariance))
    assert row.contribution_kept == pytest.approx(kept, rel=0.02)
    second = int(row.alike[1])
    mean = each[::2].mean((0, 2))
    held = each[1::2] - mean[:, None]
    share = (held[:, second] ** 2).sum() / (held.sum(1) ** 2).sum()
    assert row.prune_error == pytest.approx(share, rel=0.01)
    assert 0 < row.prune_error_mcse < row.prune_error


def test_a_head_that_another_copies_is_redundant(made):
    """Merging costs nothing, pruning something; the sentence counts it, the advice names it."""
    q, k, v, o = matrices()
    for part in (q, k, v):
        part[2] = part[0]
    _, row = made((q, k, v, o), x=inputs(40, 30))
    assert row.redundant_heads == 1
    assert row.removal_order[0] in (0, 2)
    assert row.removal_error[0] < 1e-3  # of the ridge
    assert row.projection_kernel[0, 2] == pytest.approx(1)
    assert row.noise_correlation[0, 2] == pytest.approx(1)
    assert row.attrs["sentence"] == "Redundant at 1 % output error: 1 of 4 heads, in layer 0."
    head = row.removal_order[0].item()
    kept = 100 * row.noise_kept.item(), 100 * row.contribution_kept.item()
    shares = "an average keeps {:.0f} % of the variance of patterns and {:.0f} % of that of outputs"
    shares = f"; {shares} (25 % if uncorrelated).".format(*kept)
    assert row.attrs["advice"].startswith(f"Layer 0: head {head:.0f} can be removed at +")
    assert row.attrs["advice"].endswith(f" % output error{shares}")
    _, loose = made((q, k, v, o), x=inputs(40, 30), tolerance=0.9)
    count = int(loose.redundant_heads.item())
    assert count > 1
    assert f"at +{100 * loose.removal_error[count - 1].item():.2g} ± " in loose.attrs["advice"]
    _, none = made(matrices(), x=inputs(40, 30))
    assert none.attrs["advice"].startswith("No head can be removed within 1 % output error; an av")


def test_heads_that_average_all_tokens_have_all_of_them_as_effective_keys(made):
    q, *rest = matrices()
    for kind, median in (("full", 20), ("causal", 10.5)):
        _, row = made((0 * q, *rest), kind)
        assert row.effective_keys.sel(quantile=0.5).values == pytest.approx(median)
        assert row.typical_effective_keys.item() == pytest.approx(median)
        assert row.effective_share.values == pytest.approx(1)
        assert row.noise_kept.item() == pytest.approx(1)
        assert row.noise_index_mean.item() == pytest.approx(0, abs=1e-12)
        later = row.effective_keys_without_first.sel(quantile=0.5)
        assert later.values == pytest.approx(19 if kind == "full" else 10)


@pytest.mark.parametrize("keys", [2, H])
def test_cache_profiles_are_those_of_caches_of_every_rank(made, keys):
    """Against errors of the caches themselves, and theory's formulas, before the jackknife."""
    layer, _ = made(matrices(keys))
    x = inputs(1, 60)[0]
    found = measured.measured(layer, [x] * 4, Rule(False), 0.01)
    query, key, _ = projections(layer, x, Rule(False))
    queries = stacked(query.reshape(keys, -1, *query.shape[1:]))
    moments = key.swapaxes(1, 2) @ key, queries.swapaxes(1, 2) @ queries
    for rank in range(1, WIDTH):
        whole = key @ queries.swapaxes(1, 2)
        total = (whole**2).sum((1, 2))
        for name, cache, theory in (
            ("kq_svd_error", kq_svd(key, queries, rank), optimum(squares(*moments), rank)),
            ("k_svd_error", k_svd(key, rank), keys_only_error(*moments, rank)),
        ):
            lost = ((cache.scores(key, queries) - whole) ** 2).sum((1, 2)) / total
            error = found[name][1][:, rank]
            np.testing.assert_allclose(error, lost, rtol=1e-8)
            np.testing.assert_allclose(error, theory / total, rtol=1e-8)


def test_projection_kernel_has_transformerlens_normalisation_and_moments(made):
    """‖U_hᵀU_g‖²/√(r_h r_g), also of unequal ranks; of random subspaces rank²/d over rank."""
    q, k, v, o = matrices()
    k[1, 4:] = k[1, :2]
    layer, data = made((q, k, v, o))
    first, second = (np.linalg.svd(layer.matrices.key[h])[0][:, :r] for h, r in ((0, 6), (1, 4)))
    trace = np.trace(first @ first.T @ second @ second.T)
    assert data.projection_kernel[0, 1] == pytest.approx(trace / np.sqrt(6 * 4))
    draws = np.random.default_rng(0).normal(size=(4000, 2, D, WIDTH))
    u, w = np.linalg.qr(draws).Q.swapaxes(0, 1)
    kernel = ((u.swapaxes(1, 2) @ w) ** 2).sum((1, 2)) / WIDTH
    error = kernel.std() / np.sqrt(4000)
    assert data.overlap_baseline.item() == pytest.approx(kernel.mean(), abs=5 * error)


def test_standard_errors_cover_the_spread_of_repeated_samples(made):
    names = ["noise_kept", "contribution_kept", "typical_effective_keys"]
    estimates, errors = [], []
    for seed in range(30):
        _, row = made(matrices(), x=inputs(10, 12, seed=seed + 100))
        estimates.append([row[name] for name in names])
        errors.append([row[f"{name}_mcse"] for name in names])
    ratio = np.std(estimates, axis=0, ddof=1) / np.sqrt(np.mean(np.square(errors), axis=0))
    assert (ratio > 0.7).all()
    assert (ratio < 1.4).all()


def test_slopes_are_those_that_the_paper_on_alibi_lists():
    np.testing.assert_allclose(slopes(8), 2.0 ** -np.arange(1, 9))
    np.testing.assert_allclose(slopes(6), 2.0 ** -np.array([2, 4, 6, 8, 1, 3]))


@pytest.mark.parametrize(
    ("config", "rule"),
    [
        ({"model_type": "bloom"}, Rule(True, linear=True)),
        ({"model_type": "gpt_neox", "rotary_emb_base": 500}, Rule(True, 500.0, 0.25)),
        ({"model_type": "llama", "rope_parameters": {"rope_theta": 7.0}}, Rule(True, 7.0)),
        ({"model_type": "mistral", "sliding_window": 9}, Rule(True, 1e4, window=9)),
        *(
            ({"model_type": kind, "sliding_window": 9} | settings, Rule(True, 1e4, window=window))
            for kind, settings, window in (
                ("qwen2", {}, np.inf),
                ("qwen3", {"use_sliding_window": True}, np.inf),
                ("qwen3", {"use_sliding_window": True, "max_window_layers": 2}, np.inf),
                ("qwen2", {"use_sliding_window": True, "max_window_layers": 1}, 9),
                ("mistral", {"layer_types": [*2 * ["full_attention"]]}, np.inf),
                ("mistral", {"layer_types": ["full_attention", "sliding_attention"]}, 9),
            )
        ),
    ],
)
def test_a_config_says_how_scores_become_weights(config, rule):
    assert rule_of(config, layer=1) == rule


def test_output_errors_of_caches_are_those_of_attention_with_compressed_keys(made):
    """Of caches from even sequences on odd ones; a rank of d_k costs nothing."""
    layer, data = made(matrices(), "causal", tolerance=0.3)
    rule = Rule(True)
    parts = [projections(layer, tokens, rule) for tokens in inputs()]
    queries, keys, _ = (np.concatenate(part, 1) for part in zip(*parts[::2], strict=True))

    def attend(query, key, value):
        return (weights(layer, query, key, rule) @ value @ layer.matrices.output).sum(0)

    mean = np.concatenate([attend(*part) for part in parts[::2]]).mean(0)
    for name, cache, given in (("kq_svd", kq_svd, (keys, queries)), ("k_svd", k_svd, (keys,))):
        rank = int(data[f"{name}_rank"].item())
        assert 0 < rank < WIDTH
        product = cache(*given, rank).product
        exact = np.array([attend(*part) for part in parts[1::2]])
        changed = np.array([attend(query, k @ product, value) for query, k, value in parts[1::2]])
        share = ((changed - exact) ** 2).sum() / ((exact - mean) ** 2).sum()
        assert data[f"{name}_output_error"].item() == pytest.approx(share, rel=0.03)  # jackknife
    assert made(matrices())[1].kq_svd_output_error.item() == 0


def test_copies_of_sequences_are_counted_and_left_out(made):
    """Rounded and shortened ones too; prompts that share a beginning are not copies."""
    x = inputs(6)
    x[1, :15] = x[0, :15]
    _, once = made(matrices(), x=x)
    given = np.concatenate([x, x.astype(np.float16), x])
    mask = np.ones((18, 20))
    mask[12:, 12:] = 0
    _, data = made(matrices(), x=given, mask=mask)
    assert data.attrs["notes"] == "Layer 0: 12 sequences are copies of others, left out."
    xr.testing.assert_equal(data.drop_vars("copies"), once.drop_vars("copies"))


def test_a_head_is_predicted_where_outputs_have_fewer_directions_than_a_head():
    """By ridge regression on the other heads, of outputs of rank 4 where d_v is 6."""
    draw = np.random.default_rng(0)
    mix = draw.normal(size=(4, H * WIDTH))
    outputs, held = draw.normal(size=(2, 300, 4)) @ mix
    calibration = Calibration(draw.normal(size=(H, WIDTH, D)))
    calibration.finish(outputs.sum(0), outputs.T @ outputs, 300)
    moments = calibration.covariance + calibration.ridge
    others = np.linalg.solve(moments[WIDTH:, WIDTH:], calibration.covariance[WIDTH:, :WIDTH])
    residual = held[:, :WIDTH] - held[:, WIDTH:] @ others
    expected = ((residual @ calibration.output[0]) ** 2).sum()
    (found,) = Removal(calibration, range(H), 1).squares(held)
    assert found == pytest.approx(expected, rel=1e-4)

"""What weights and a covariance say, against samples of Gaussian tokens and forms of d × d."""

import numpy as np
import pytest
from scipy.linalg import sqrtm

from sims.inspect import Model, inspect, layers
from tests.inspect.models import LAYOUTS, WIDTH, D, H, inputs, matrices, write

CONFIG = {"num_attention_heads": H}


def read(folder, **options):
    """The row of a report on one layer, and the queries and keys of each head there."""
    (layer,) = layers(Model(folder))
    row = inspect(folder, **options).isel(layer=0)
    return (
        row,
        layer,
        list(zip(layer.matrices.query, layer.matrices.key[layer.key_head], strict=True)),
    )


def correlations(forms):
    flat = forms.reshape(H, -1) / np.linalg.norm(forms, axis=(1, 2))[:, None]
    return flat @ flat.T


def gaussian(sequences, tokens, mean):
    """Tokens (sequence, token, d), the first coordinates of most variance."""
    return mean + inputs(sequences, tokens, seed=7) * np.linspace(1.5, 0.2, D)


@pytest.fixture
def model(tmp_path):
    q, k, v, o = matrices(2)
    q[..., D] *= 5
    return write(tmp_path / "model", LAYOUTS["llama"](0.5 * q, 0.5 * k, v, o), CONFIG)


def test_predicted_noise_correlation_is_that_of_softmax_on_gaussian_keys(model):
    """Grouped keys, biases and a mean count; by softmax over sampled keys, by hand."""
    mean = np.linspace(-0.3, 0.3, D)
    x = gaussian(4, 2000, mean)
    row, layer, pairs = read(model, activations={"0": x}, attention="full")
    queries, keys = gaussian(1, 400, mean)[0], gaussian(1, 20000, mean)[0]
    bias = layer.biases[0][:, None]
    scores = np.stack(
        [(queries @ q + b) @ (keys @ k).T for (q, k), b in zip(pairs, bias, strict=True)]
    )
    weights = np.exp(scores / np.sqrt(WIDTH))
    weights /= np.sqrt((weights**2).sum(-1, keepdims=True))
    r = np.einsum("htk,gtk->thg", weights, weights)
    assert 0.1 < r.mean(0).min() < 0.9
    np.testing.assert_allclose(row.predicted_noise_correlation, r.mean(0), atol=0.03)
    np.testing.assert_allclose(row.token_noise_correlation, r.mean(0), atol=0.06)  # of 2000
    many = gaussian(1, 50_000, mean)[0]
    (q, k), _, (other_q, other_k), _ = pairs
    difference = (many @ q + bias[0]) @ k.T - (many @ other_q + bias[2]) @ other_k.T
    spread = difference**2 / WIDTH @ np.linspace(1.5, 0.2, D) ** 2
    assert row.predicted_noise_correlation[0, 2] == pytest.approx(
        np.exp(-spread / 2).mean(), abs=0.01
    )


def test_angles_and_forms_are_those_of_the_covariance(model):
    """Angles are canonical correlations of keys; forms are Σ^{1/2} M Σ^{1/2}."""
    x = gaussian(1, 300, 0)[0]
    x -= x.mean(0)
    covariance = x.T @ x / len(x)
    row, layer, pairs = read(model, activations={"0": covariance}, attention="full")
    first, second = (np.linalg.qr(x @ layer.matrices.key[g]).Q for g in (0, 1))
    cosines = np.linalg.svd(first.T @ second, compute_uv=False)
    np.testing.assert_allclose(np.cos(row.input_principal_angle[0, 1]), cosines, rtol=1e-6)
    assert row.input_projection_kernel[0, 1] == pytest.approx((cosines**2).sum() / WIDTH)
    root = sqrtm(covariance).real
    forms = np.stack([root @ q @ k.T @ root / np.sqrt(WIDTH) for q, k in pairs])
    singular = np.linalg.svd(forms, compute_uv=False)[:, :WIDTH]
    np.testing.assert_allclose(row.input_qk_singular_value, singular, rtol=1e-6)
    np.testing.assert_allclose(row.input_score_correlation, correlations(forms), atol=1e-8)
    maps = layer.matrices.value[layer.key_head] @ layer.matrices.output
    np.testing.assert_allclose(row.value_correlation, correlations(maps), atol=1e-8)
    written = x @ maps  # by heads that attend to the token alone
    kept = (written.mean(0) ** 2).sum() / (written**2).sum(2).mean(0).sum()
    assert row.input_value_kept.item() == pytest.approx(kept, rel=1e-6)
    assert row.kq_svd_rank <= row.k_svd_rank


def test_rotary_forms_are_those_of_keys_at_a_distance(tmp_path):
    """A query at place t and a key at place t − Δ, each turned by a matrix of its own place."""
    config = {**CONFIG, "model_type": "llama", "rope_theta": 50.0, "partial_rotary_factor": 0.7}
    folder = write(tmp_path / "rotary", LAYOUTS["llama"](*matrices(2)), config)
    row, _, pairs = read(folder)

    def turn(place):
        matrix = np.eye(WIDTH)
        for i in range(2):  # 0.7 of 6 coordinates are 4, in pairs (0, 2) and (1, 3)
            angle = place / 50.0 ** (i / 2)
            block = [[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]]
            matrix[np.ix_([i, i + 2], [i, i + 2])] = block
        return matrix

    for distance in (0, 4, 256):
        forms = np.stack([q @ turn(distance + 3) @ (k @ turn(3)).T for q, k in pairs])
        at = row.sel(distance=distance)
        measured = at.score_correlation_by_distance
        np.testing.assert_allclose(measured, correlations(forms), atol=1e-10)
        p = np.linalg.svd(forms, compute_uv=False)[:, :WIDTH]
        p /= p.sum(1, keepdims=True)
        ranks = np.exp(-(p * np.log(p)).sum(1))
        np.testing.assert_allclose(at.qk_effective_rank_by_distance, ranks, rtol=1e-10)
    np.testing.assert_array_equal(
        row.score_correlation_by_distance.sel(distance=0), row.score_correlation
    )


def test_padding_changes_nothing(tmp_path):
    """Padding on either side, of any content, is neither key nor query; positions are relative."""
    config = {**CONFIG, "model_type": "llama"}
    folder = write(tmp_path / "padded", LAYOUTS["llama"](*matrices(2)), config)
    x = inputs(6, 20)
    padded, mask = np.full((6, 29, D), np.nan), np.zeros((6, 29), int)
    for sequence, start in enumerate((0, 9, 4, 1, 8, 5)):
        padded[sequence, start : start + 20] = x[sequence]
        mask[sequence, start : start + 20] = 1
    expected = inspect(folder, activations={"0": x})
    data = inspect(folder, activations={"0": padded, "attention_mask": mask})
    assert data.identical(expected)

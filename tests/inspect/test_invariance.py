"""Changes of a model that leave attention as it is, and so every number of its report."""

import numpy as np
import pytest

from sims.inspect import inspect
from tests.inspect.models import LAYOUTS, WIDTH, D, H, inputs, matrices, write

CONFIG = {"num_attention_heads": H, "model_type": "jamba"}
GAIN = "model.layers.0.input_layernorm.weight"
KEYS = 2
DRAW = np.random.default_rng(3)
MAPS = DRAW.normal(size=(KEYS, WIDTH, WIDTH)) + 2 * np.eye(WIDTH)
INVERSES = np.linalg.inv(MAPS).swapaxes(1, 2)
GROUP = np.repeat(np.arange(KEYS), H // KEYS)
SCALE = np.linspace(0.1, 30, D)


def keys_shifted(q, k, v, o):
    k[..., D] += 100 * np.sign(k[..., D])


def scores_mapped(q, k, v, o):
    q[:] = MAPS[GROUP] @ q
    k[:] = INVERSES @ k


def scores_scaled(q, k, v, o):
    k[1] *= 1e-12
    q[2:] *= 1e12


def values_mapped(q, k, v, o):
    by_head = o.reshape(D, H, WIDTH).swapaxes(0, 1)
    o[:] = (by_head @ INVERSES[GROUP].swapaxes(1, 2)).swapaxes(0, 1).reshape(D, -1)
    v[:] = MAPS @ v


def values_scaled(q, k, v, o):
    v[0] *= 1e-7
    o[:, : 2 * WIDTH] *= 1e7


def values_shifted(q, k, v, o):
    v[..., D] += 50


def gain_moved(q, k, v, o):
    for part in (q, k, v):
        part[..., :D] /= SCALE


CHANGES = {
    change.__name__: change
    for change in (
        keys_shifted,
        scores_mapped,
        scores_scaled,
        values_mapped,
        values_scaled,
        values_shifted,
        gain_moved,
    )
}


def report(folder, change=None):
    """Numbers on sequences, and on a covariance, of a model with a change."""
    parts = matrices(KEYS)
    x = inputs(12, 20)
    gain = np.linspace(0.5, 2, D)
    if change is not None:
        change(*parts)
    if change is gain_moved:
        gain = gain * SCALE
        x = x * SCALE
    write(folder, LAYOUTS["llama"](*parts) | {GAIN: gain}, CONFIG)
    covariance = np.einsum("std,ste->de", x, x) / 240
    return [inspect(folder, activations={"0": array}) for array in (x, covariance)]


@pytest.mark.parametrize("name", CHANGES)
def test_what_leaves_attention_as_it_is_leaves_the_report(tmp_path, name):
    """K-SVD alone depends on the basis of stored keys, as that cache does."""
    changed = report(tmp_path / "changed", CHANGES[name])
    for before, after in zip(report(tmp_path / "plain"), changed, strict=True):
        assert after.attrs["sentence"] == before.attrs["sentence"]
        for number, values in before.data_vars.items():
            of_basis = name == "scores_mapped" and number.startswith("k_svd")
            if values.dtype.kind == "f" and not of_basis:
                np.testing.assert_allclose(after[number], values, 1e-5, 1e-7, err_msg=number)

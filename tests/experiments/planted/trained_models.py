"""Costs that rise with one minus the overlap of patterns, or fall; the angle law, or half of it.

Outputs correlate by the product law, or by its negative.
"""

from types import SimpleNamespace

import numpy as np
import xarray as xr

from sims.theory import noise_correlation_law

HEADS, KEYS, BANDWIDTH = 8, 40.0, 1.5
SIGNS = np.array([1, -1])
DIMS = ("layer", "head", "head2", "angle")
SUBSPACES = {
    "merging, subspaces": [0.42692939, -0.42692939],
    "merging, subspaces given sizes": [0.45300068, -0.31019397],
    "predictions, subspaces": [0.35714286, -0.35714286],
    "predictions, subspaces given sizes": [0.09414584, 0.59128235],
}
"""Correlations of ranks, or of what least squares on the ranks of both sizes leave, by SciPy."""


def named(arrays):
    """A dataset of arrays by layer, head, second head and angle."""
    return xr.Dataset({name: (DIMS[: values.ndim], values) for name, values in arrays.items()})


def plant(_):
    """Two layers of one model, the same in each of four batches; no run is needed."""
    rng, eye = np.random.default_rng(2), np.eye(HEADS)
    cosines = rng.uniform(size=(2, HEADS, HEADS, 3))
    cosines = (cosines + cosines.swapaxes(1, 2)) / 2
    cosines[:, range(HEADS), range(HEADS)] = 1
    overlap = noise_correlation_law(cosines, BANDWIDTH, 1.0, "softmax")
    pairs = overlap[1][eye == 0].mean()
    overlap[1] = (eye + overlap[1]) / 2
    patterns = (1 - 2 / BANDWIDTH**4) ** -1.5 / KEYS * overlap
    sizes = rng.uniform(size=(2, 2, HEADS))
    others = (overlap * (1 - eye)).mean(2)
    maps = {"patterns": patterns, "law_patterns": np.ones(patterns.shape), "keys": np.array(KEYS)}
    aligned = 0.2 * overlap + rng.uniform(-0.1, 0.1, size=(2, HEADS, HEADS))
    aligned = (aligned + aligned.swapaxes(1, 2)) / 2
    written = eye + SIGNS[:, None, None] * aligned * overlap * (1 - eye)
    costs = {
        "written": 3 * written,
        "merging": 2 - SIGNS[:, None, None] * overlap,
        "pruning": 1 - others,
        "predictions": -SIGNS[:, None] * others,
    }
    data = named(maps).expand_dims(tokens=2).merge(named(costs | {"outputs": sizes[0]}))
    weights = named({"cosines": cosines, "subspaces": overlap[::-1], "matrices": sizes[1]})
    weights["alignment"] = (DIMS[:3], aligned)
    results = SimpleNamespace(
        estimates={"one": data.expand_dims(batch=4)},
        predictions={"one": weights.assign(module=("layer", ["a", "b"]))},
    )
    expected = dict(SUBSPACES)
    for cost in ("merging", "predictions"):
        expected |= {f"{cost}, patterns": SIGNS, f"{cost}, patterns given sizes": SIGNS}
    for tokens in ("all tokens", "no special tokens"):
        expected[f"angles, {tokens}"] = [0, (1 - pairs / 2) / (1 - pairs) - 1]
        expected[f"kept, {tokens}"] = overlap.mean((1, 2)) - 1
    truth = written[:, eye == 0]
    expected |= {"alike, product": SIGNS, "off, zero": np.sqrt((truth**2).mean(1))}
    expected["off, product"] = [0, 2 * expected["off, zero"][1]]
    expected["kept less, outputs"] = overlap.mean((1, 2)) - written.mean((1, 2))
    return results, expected

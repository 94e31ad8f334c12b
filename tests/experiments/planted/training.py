"""The error falls by 0.2, of which covariance is ¾ and bias ¼; or all terms rise."""

from dataclasses import replace

import numpy as np
import xarray as xr


def plant(results):
    """The error falls by 0.2, of which covariance is ¾ and bias ¼; or all terms rise."""
    one = next(iter(results.estimates.values()))
    rng = np.random.default_rng(0)
    terms = {
        "mse": (1, [0.8, 1.2]),
        "alone": (1, [1.1, 0.9]),
        "variance": (0.5, [0.35, 0.6]),
        "covariance": (0.4, [0.25, 0.55]),
        "subspaces": (0.2, [0.9, 0.1]),
        "outputs": (0.2, [0.3, 0.1]),
        "selectivity": (0.5, [0.4, 0.3]),
    }
    data = {}
    for name, (others, joint) in terms.items():
        values = others + 1e-5 * rng.normal(size=(2, 8, 4))
        values[..., 1] += np.array(joint)[:, None] - others
        data[name] = one[name].dims, values
    falls = {
        "covariance against bias": [[0.15 - 0.05], [-0.15 + 0.1]],
        "gain": [[0.2], [-0.2]],
        "variance": [[0.15], [-0.1]],
        "alone": [[0.1], [-0.1]],
    }
    expected = {"subspaces": [0.7, -0.1], "outputs": [0.1, -0.1]}
    for control in ("identical", "separate", "start"):
        expected |= {f"{name}, {control}": values for name, values in falls.items()}
    made = {"2 of 2": xr.Dataset(data, {"layer": one["layer"]})}
    return replace(results, estimates=made), expected

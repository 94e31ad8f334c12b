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
        "zero": (1.25, [1.25, 1.25]),
    }
    common = {"mse": [0.85, 1], "variance": [0.3, 0.45], "covariance": [0.2, 0.5]}
    data = {}
    for name, (others, joint) in terms.items():
        values = others + 1e-5 * rng.normal(size=(2, 8, 6))
        values[..., 0] += np.c_[joint] - others
        if name in common:
            values[..., 3] += np.c_[common[name]] - others
        data[name] = one[name].dims, values
    falls = {
        "shares of ceilings": [0.3 - 0.1, 0.2 - 1 / 3],
        "covariance against bias": [0.1, -0.05],
        "gain": [0.2, -0.2],
        "variance": [0.15, -0.1],
        "alone": [0.1, -0.1],
    }
    expected = {"subspaces": [0.7, -0.1], "outputs": [0.1, -0.1]}
    for control in ("identical", "separate"):
        expected |= {f"{name}, {control}": np.c_[values] for name, values in falls.items()}
        # of what is saved (0.2, 0.05), spent (0.05, 0.15) and returned (0.1, −0.05) the least
        expected[f"re-invested, {control}"] = [[0.05], [-0.05]]
    expected["covariance against bias, identical, common"] = [[0.25], [-0.05]]
    made = {"2 of 2": xr.Dataset(data, {"layer": one["layer"]})}
    return replace(results, estimates=made), expected

"""Attention alone twice, then a residual stream twice."""

import numpy as np

NAN = np.nan
HALVING = -np.arange(13) * np.log(2)


LAW = {
    "block": ["attention alone"] * 2 + ["residual stream"] * 2,
    "rate": [-1, -np.log(2), NAN, NAN],
    "depth": [6] * 4,
    "lost": [[0.5, 0.1], [0.01, 0.3], [0.5, 0.6], [0.2, 0.2]],
}
SIMULATED = {
    "path": [-(3.0 ** np.arange(13)), HALVING, HALVING, HALVING],
    "ends": np.log([[1e-3, 1e-6], [1e-3, 1e-3 / 2**6], [0.5, 0.5], [0.5, 0.25]]),
    "lost": np.array([[0.5, 0.1, 0.4], [0.01, 0.3, 0.02], [0.5, 0.6, 0.25], [0.2, 0.3, 0.2]]),
}
EXPECTED = {
    "order": [0, -2 / 3, -2 / 3, -2 / 3],
    "soon": -6 + np.array([3**6 / np.log(10)] + 3 * [6 * np.log10(2)]),
    "depth": [0.1 - 3 / np.log10(2), -5.9, 0.1, -0.9],
    "lost": [0.45, -0.04, 0.45, 0.15],
    "lost, 1%": [0.49, 0, 0.49, 0.19],
    "gates": [[0.8], [-29], [-0.2], [-0.5]],
    "gates at equal noise": [[0.2], [-1], [0.5], [0]],
    "rate": [np.log(1000) / 6 - 1, 0, NAN, NAN],
    "recovered": [0, 0, 0, 0.5],
}

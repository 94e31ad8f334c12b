"""Planted results of `kq_svd`."""

import numpy as np

LAW = {
    "least": [0.8, 1.6],
    "keys_only": [1.6, 2],
    "cost": [0.25, 1.5],
}
SIMULATED = {
    "score": np.array([[1, 2, 9, 1, 4, 0], [2, 1, 9, 3, 2, 0]]),
    "output": np.array([[3, 6, 4, 1, 2, 5], [5, 4, 6, 6, 8, 5]]),
    "bound": [0.5, 1.5],
}
EXPECTED = {
    "scores": [[0.5], [-1]],
    "outputs": [[0.5, 0.25], [-0.25, 1 / 6]],
    "scores, centred": [[0.75], [-0.5]],
    "outputs, centred": [[0.5, 0.8], [0.25, -0.2]],
    "centring": [[2 / 3], [-0.2]],
    "bound": [0.5, -0.5],
    "saved": [0.5, 0.2],
    "calibration": [0, -0.5],
}

"""Planted results of `angles`."""

import numpy as np

LAW = {"correlation": [0.4, 0.5], "gaussian": [0.4, 0.52], "product": [0.005, 0.3]}
LAW |= {"pair_gap": [0.01, 0.4], "pair_error": [1e-3, 1e-3]}
SIMULATED = {"pair": np.array([[0.04, 0.08], [0.04, 0.03]]), "own": [0.1] * 2}
EXPECTED = {
    "rise": [0.4, -0.1],
    "one curve": [0, 0.25],
    "product": [0.005 / 1.5, 0.3],
    "series": [0, 0.2],
    "reach": [0.01, 0.4],
}

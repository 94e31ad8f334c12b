"""Random heads err a tenth less at every point, or a tenth more; so does label noise."""

from itertools import product

import numpy as np

ERRORS = np.ones((2, 2, 5, 2))
ERRORS[0, 1] = 0.9
ERRORS[1, 1] = 1.1
LAW = {"heads": [2, 2]}
SIMULATED = {
    "bias": 0.5 * ERRORS,
    "variance": 0.5 * ERRORS,
    "head_error": np.ones_like(ERRORS),
    "noise": np.array([0.1, 0.2])[:, None, None, None] * np.ones_like(ERRORS),
    "simulated_noise": np.array([0.1, 0.3])[:, None, None, None] * np.ones_like(ERRORS),
}
POINTS = ("shared, 1", "outputs, 0.5", "outputs, 0", "values, 0.5", "values, 0")
NAMES = [f"{name}, {which}'s best" for name, which in product(POINTS, ("random", "aligned"))]
EXPECTED = {name: [[0.1], [-0.1]] for name in NAMES}
EXPECTED |= {name: [0, 0.5] for name in ("noise, outputs, 0.5", "noise, values, 0.5")}

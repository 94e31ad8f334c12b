"""Planted results of `hierarchy`."""

import numpy as np

LEVEL = np.arange(6)
DECAY = np.stack([4.0**-LEVEL, 1 - 0.9 * (LEVEL == 5)])[:, None]
DECAY = DECAY * np.array([[1, 0.5, 1.5], [1, 0.5, 2]])[..., None]
MIXED = {"mse": np.array([[3, 2, 1], [1, 2, 3]])}


LAW = {"error": DECAY, "levels": [8, 12], "definite": [0, 0.5]} | MIXED
SIMULATED = {"error": DECAY, "remainder": np.array([[9, 4, 3, 1], [9, 4, 5, 8]])} | MIXED
EXPECTED = {
    "decay": [0.1, 0.1 - (4 / 7) ** 0.5],
    "decay, strict": [0.05, 0.05 - (4 / 7) ** 0.5],
    "decay, loose": [0.2, 0.2 - (4 / 7) ** 0.5],
    "parts": [0, 1 / 3],
    "roads": [0, 0],
    "correction": [[0.75], [-1]],
    "third cumulant": [[0.25], [-0.25]],
    "definite": [0, 0.5],
    "one bandwidth": [1, -1 / 3],
    "ensemble": [0.5, -0.5],
}

"""Planted results of `hierarchy`."""

import numpy as np

LEVEL = np.arange(6)
DECAY = np.stack([4.0**-LEVEL, 1 - 0.9 * (LEVEL == 5)])[:, None]
DECAY = DECAY * np.array([[1, 0.5, 1.5], [1, 0.5, 2]])[..., None]

LAW = {"error": DECAY, "levels": [8, 12]}
SIMULATED = {"error": DECAY, "remainder": np.array([[9, 4, 3, 1], [9, 4, 5, 8]])}
EXPECTED = {
    "decay": [0.1, 0.1 - (4 / 7) ** 0.5],
    "decay, strict": [0.05, 0.05 - (4 / 7) ** 0.5],
    "decay, loose": [0.2, 0.2 - (4 / 7) ** 0.5],
    "parts": [0, 1 / 3],
    "roads": [0, 0],
    "correction": [[0.75], [-1]],
}

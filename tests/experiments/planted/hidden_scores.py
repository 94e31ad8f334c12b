"""At 24 layers memory leaves a smaller residual, more likeness and fewer keys."""

import numpy as np

LAW = {"depth": [6, 12], "deep": [12, 24]}
SIMULATED = {
    "log_residual": np.array([[-9, -8], [-9, -9.5]]),
    "cosine": np.array([[0.8, 0.5], [0.6, 0.7]]),
    "keys": np.array([[0.5, 0.6], [0.5, 0.4]]),
}
EXPECTED = {
    "residual": [[1], [-0.5]],
    "cosine": [[0.3], [-0.1]],
    "keys": [[0.2], [-0.2]],
}

"""At 24 layers memory leaves a smaller residual, more likeness, fewer keys and a larger error."""

import numpy as np

ERROR = np.full((2, 2, 9), 9.0)
ERROR[:, :, 4] = [[2, 1], [2, 8]]
ERROR[:, 0, 3] = 1, 1
ERROR[:, 1, 5] = 0.5, 3

LAW = {"depth": [6, 12], "deep": [12, 24], "mse": [[2, 1], [1, 4]]}
SIMULATED = {
    "log_residual": np.array([[-9, -8], [-9, -9.5]]),
    "cosine": np.array([[0.8, 0.5], [0.6, 0.7]]),
    "keys": np.array([[0.5, 0.6], [0.5, 0.4]]),
    "mse": ERROR,
}
EXPECTED = {
    "residual": [[1], [-0.5]],
    "cosine": [[0.3], [-0.1]],
    "keys": [[0.2], [-0.2]],
    "error": [[0.5], [-3]],
    "error, tuned": [[0.5], [-2]],
    "roads": [0, 1],
}

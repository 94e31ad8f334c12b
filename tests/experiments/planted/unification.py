"""From correlation 0.8 to 0.2: the first pool gains, the second pays more; and back."""

import numpy as np

NAN = np.nan
VARIANCE, OFFSET = np.array([[1, 1], [1, 8], [1, 1]]), np.array([[0], [0.5], [0]])
ALIKE = np.array([[0.8, 0.2], [0.8, 0.2], [0.2, 0.8]])
POOLED = VARIANCE * (ALIKE + (1 - ALIKE) / np.array([[4], [16], [4]]))


LAW = {"agents": [4, 16, 4]}
SIMULATED = {
    "mse": POOLED + OFFSET,
    "mean_head_mse": VARIANCE + OFFSET,
    "ensemble_variance": POOLED,
    "variance": VARIANCE,
}
EXPECTED = {
    "decorrelation": [0.6, 0.6, -0.6],
    "fall": [[1 - 0.4 / 0.85], [1 - 2.5 / 1.3125], [NAN]],
    "fall of many": [[0.75], [-0.8 / 1.3], [NAN]],
}

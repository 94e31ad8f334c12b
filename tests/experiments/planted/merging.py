"""At its best temperature merging saves 2 % or costs 30; at that of all keys it costs 1 or 50 %.

Heads over every s-th key err less than merged ones, or twice as much.
"""

import numpy as np

ERRORS = np.array([[2, 1.96, 2.02, 1.4], [2, 2.6, 3, 5.2]])


LAW = {"stride": [2, 2]}
SIMULATED = {"mse": ERRORS}
EXPECTED = {
    "competitive": [0.07, -0.25],
    "dearer": [[-2 / 98], [3 / 13]],
    "competitive, 20%": [0.22, -0.1],
    "at equal cache": [[-0.4], [0.5]],
    "competitive at the same temperature": [0.04, -0.45],
}

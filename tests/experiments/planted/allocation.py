"""The best inner split errs half as much as an end, or more; d_k* grows like a log, H* like D."""

import numpy as np

LEVEL = np.arange(6)
KEYS = np.log(2.0 ** np.arange(7, 28, 2))
SPLIT = np.array([[2, 1, 1.5, 1.8, 2.5], [1, 2, 2.5, 3, 1.5]])
SHARE = 2.0 ** np.arange(-4, 1)


LAW = {
    "margin": [0.5, -0.6],
    "known": [1, 1],
    "exact_splits": [0, 1],
    "inner": [1, 1],
    "end": [0, 0],
    "by_keys": [1.5 + 0.7 * KEYS, 1 + 3 * KEYS**0.5],
    "by_budget": [np.full((3, 5), 4), 2.0 ** np.multiply.outer([0.3, 0.2, 0.3], LEVEL[:5])],
    "slower": [0.7, 1.4],
    "rougher": [-0.2, 0.4],
}
SIMULATED = {"single": SPLIT * (2 - SHARE), "pair": SPLIT * np.where(SHARE < 1, 1 - SHARE, 3)}
EXPECTED = {
    "allocation": [0.49, -0.61],
    "simulated": [0.49, -1.01],
    "roads": [0, 0.25],
    "linear, total relevance": [0.1, -0.2],
    "linear, a coordinate's relevance": [0.1, -0.1],
    "linear, one target": [0.1, -0.2],
    "steady": [0.1, -0.1713],
    "exponent, total relevance": [1, 0.7],
    "exponent, a coordinate's relevance": [1, 0.8],
    "exponent, one target": [1, 0.7],
    "dk-log": [27.474, -26.610],  # by polyfit; no squares left count as 1e-12
    "rate": [0.7 * np.log(10), 3 * np.log(10) * np.diff(KEYS[[0, -1]] ** 0.5)[0] / np.ptp(KEYS)],
    "slower": LAW["slower"],
    "rougher": LAW["rougher"],
}

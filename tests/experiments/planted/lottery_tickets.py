"""Planted results of `lottery_tickets`."""

import numpy as np

TWO = np.array([1, 2])
LEVEL = np.arange(6)
ITEMS, RATES = np.array([6, 10, 14, 18]), np.log(2) * np.array([[1], [0.5]])
FALLS = np.array([1, 0.5])[:, None, None]
BY_ORDER = {"log_scaled": np.array([[-5, -4], [-5, -6]])}


def subset_sum_law(items):
    """Minus the log of √n′ 2^−n′."""
    return np.array(items) * np.log(2) - np.log(items) / 2


LAW = {
    "log_largest": -FALLS * subset_sum_law([12, 20, 28, 36])[:, None] * np.ones(6),
    "needed": np.array([1, 1.3])[:, None, None, None]
    * (LEVEL + 3 + np.arange(12, 25, 3)[:, None])
    * np.ones((4, 1, 1)),
    "log_entry": -RATES * ITEMS[-2:],
    "accuracy": [0.1, 0.1],
    "dimension": [2, 2],
} | BY_ORDER
SIMULATED = {
    "log_output": -FALLS[..., 0] * subset_sum_law(ITEMS),
    "mean_output": np.exp(-0.12 * TWO[:, None] * ITEMS),
    "log_entry": -RATES * ITEMS + [[0], [0.1]],
    "log_ratio": 0.2 * np.log(2) * ITEMS * [[0], [1]],
    "failed": [0.05, 0.2],
} | BY_ORDER
EXPECTED = {
    "rate": [0.1, -0.4],
    "entries": [0.1, -0.2],
    "accuracies": [0.1, -0.2],
    "accuracies, strict": [0.05, -0.25],
    "larger": [1, -1],
    "blocks": [0.1, -0.1],
    "fit": [1, 2],
    "width": [0.05, -0.1],
    "law": [0, 0.1],
}

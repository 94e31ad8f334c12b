"""Predictions of heads for held-out rows, by every weight rule, in NumPy.

A head projects standardised rows with an orthonormal frame; its keys are all rows outside the
query's group. Rules: ``gaussian``, the kernel of bandwidth √s; ``softmax`` of dot products over
s, and ``softmax, log n``, its temperature √d_k/log n; ``sparsemax`` and ``1.5-entmax`` of scores
``−D²/2s``.
"""

from collections.abc import Mapping

import numpy as np

POWERS = {"sparsemax": 1, "1.5-entmax": 2}
"""Power ν of the α-entmax rules, α = 1 + 1/ν."""
RULES = ("gaussian", "softmax", "softmax, log n", *POWERS)
"""Weight rules."""
SPREADS = np.geomspace(0.005, 2, 9)
"""Temperatures of the Gaussian kernel over d_k."""
FACTORS = 2.0 ** np.arange(2, -5, -1)
"""Temperatures of softmax over √d_k; 1 is the Transformer's."""
ATTENDED = 8
"""Numbers of entmax temperatures: at a typical query they attend to 4 keys to half of all."""


def diverse_frames(dimension: int, count: int, width: int, seed: int) -> np.ndarray:
    """Orthonormal frames (H, d, d_k), mutually orthogonal as far as d allows.

    They are column blocks of Haar-random orthogonal matrices.
    """
    rng = np.random.default_rng(seed)
    blocks = list[np.ndarray]()
    fitting = dimension // width
    while len(blocks) < count:
        columns = rng.normal(size=(dimension, fitting * width))
        needed = min(fitting, count - len(blocks))  # further columns do not change the first
        q, r = np.linalg.qr(columns[:, : needed * width])
        blocks += np.split(q * np.sign(np.diag(r)), needed, axis=1)
    return np.stack(blocks)


def predict_heads(
    queries: np.ndarray,
    keys: np.ndarray,
    outputs: np.ndarray,
    barred: np.ndarray,
    frames: np.ndarray,
    temperatures: Mapping[str, np.ndarray],
) -> dict[str, np.ndarray]:
    """Predictions of every head by every rule and temperature, (S, H, Q, o).

    Args:
        queries: features of the queries, (Q, d).
        keys: features of the keys, (n, d).
        outputs: outputs of the keys, (n, o).
        barred: whether a query may not see a key, (Q, n); every query sees at least one.
        frames: (H, d, d_k).
        temperatures: rule to its temperatures (S,).
    """
    made = []
    for frame in frames:
        projected = queries @ frame, keys @ frame
        made.append(head_predictions(*projected, outputs, barred, temperatures))
    return {rule: np.stack([head[rule] for head in made], axis=1) for rule in temperatures}


def head_predictions(
    queries: np.ndarray,
    keys: np.ndarray,
    outputs: np.ndarray,
    barred: np.ndarray,
    temperatures: Mapping[str, np.ndarray],
) -> dict[str, np.ndarray]:
    """Predictions of one head by every rule and temperature, (S, Q, o).

    Args:
        queries: projected queries, (Q, d_k).
        keys: projected keys, (n, d_k).
        outputs: outputs of the keys, (n, o).
        barred: whether a query may not see a key, (Q, n); every query sees at least one.
        temperatures: rule to its temperatures (S,).
    """
    dot = queries @ keys.T
    squared = -2 * dot + np.sum(keys**2, axis=1)
    squared[barred] = np.inf
    squared -= squared.min(axis=1, keepdims=True)
    dot[barred] = -np.inf
    dot -= dot.max(axis=1, keepdims=True)
    predictions = {}
    order = None
    for rule, grid in temperatures.items():
        rows = []
        if rule in POWERS and order is None:
            order = Sorted(squared)
        for s in grid:
            if rule in POWERS:
                assert order is not None
                gap = np.maximum(order.squared_radius(float(s), POWERS[rule])[:, None] - squared, 0)
                weights = gap ** POWERS[rule]
            else:
                weights = np.exp(-squared / (2 * s) if rule == "gaussian" else dot / s)
            rows.append(weights @ outputs / weights.sum(axis=1, keepdims=True))
        predictions[rule] = np.stack(rows)
    return predictions


class Sorted:
    """Sorted squared distances of every query with their sums, for thresholds in closed form.

    α-entmax weighs by ``(λ − D²)₊^ν`` with ``Σ_i (λ − D_i²)₊^ν = c = (2sν)^ν``. At ``λ = D_(k)²``
    that sum grows with k, so that the support is the last k at which it is below c.
    """

    def __init__(self, squared: np.ndarray) -> None:
        self.ordered = np.sort(squared, axis=1)
        finite = np.where(np.isfinite(self.ordered), self.ordered, 0.0)
        self.sums = finite.cumsum(1)
        self.squares = (finite**2).cumsum(1)
        count = np.arange(1, squared.shape[1] + 1)
        with np.errstate(invalid="ignore"):  # barred keys are at infinity: never in the support
            linear = count * self.ordered - self.sums
            square = count * self.ordered**2 - 2 * self.ordered * self.sums + self.squares
        self.totals = {1: linear, 2: square}
        for total in self.totals.values():
            total[~np.isfinite(self.ordered)] = np.inf

    def squared_radius(self, temperature: float, nu: int) -> np.ndarray:
        """Squared radius λ of every query, (Q,)."""
        c = (2 * temperature * nu) ** nu
        support = np.maximum((self.totals[nu] < c).sum(axis=1), 1)
        last = support[:, None] - 1
        first = np.take_along_axis(self.sums, last, 1)[:, 0]
        if nu == 1:
            return np.asarray((c + first) / support)
        mean = first / support
        excess = (np.take_along_axis(self.squares, last, 1)[:, 0] - c) / support
        return np.asarray(mean + np.sqrt(np.maximum(mean**2 - excess, 0)))

    def temperatures(self, nu: int) -> np.ndarray:
        """Temperatures at which the median query attends to 4 keys to half of them."""
        most = int(np.isfinite(self.ordered).sum(axis=1).min())
        places = np.unique(np.geomspace(min(4, most), max(most // 2, 1), ATTENDED).astype(int)) - 1
        totals = np.median(self.totals[nu][:, places], axis=0)
        totals = np.unique(totals[totals > 0])
        return np.asarray(totals ** (1 / nu) / (2 * nu) if len(totals) else [1.0])


def temperature_grid(
    queries: np.ndarray, keys: np.ndarray, barred: np.ndarray
) -> dict[str, np.ndarray]:
    """Temperatures of every rule to try for heads of a given width."""
    n, width = keys.shape
    squared = -2 * queries @ keys.T + np.sum(keys**2, axis=1)
    squared[barred] = np.inf
    ordered = Sorted(squared - squared.min(axis=1, keepdims=True))
    return {
        "gaussian": SPREADS * width,
        "softmax": FACTORS * width**0.5,
        "softmax, log n": np.array([width**0.5 / np.log(n)]),
        **{rule: ordered.temperatures(nu) for rule, nu in POWERS.items()},
    }

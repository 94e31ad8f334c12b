"""Predictions of heads for held-out rows, by every weight rule, in NumPy.

A head projects standardised rows with an orthonormal frame; its keys are all rows outside the
query's group. Rules: ``gaussian``, the kernel of bandwidth √s; ``softmax`` of dot products over
s, and ``softmax, log n``, its temperature √d_k/log n; ``sparsemax`` and ``1.5-entmax`` of scores
``−D²/2s``.
"""

from collections.abc import Mapping
from functools import cached_property

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
    barred: np.ndarray | bool,
    frames: np.ndarray,
    temperatures: Mapping[str, np.ndarray],
) -> dict[str, np.ndarray]:
    """Predictions of every head by every rule and temperature, (S, H, Q, o).

    Args:
        queries: features of the queries, (Q, d).
        keys: features of the keys, (n, d).
        outputs: outputs of the keys, (n, o).
        barred: whether a query may not see a key, (Q, n), or False; every query sees at least one.
        frames: (H, d, d_k).
        temperatures: rule to its temperatures (S,).
    """
    made = {rule: list[list[np.ndarray]]() for rule in temperatures}
    for frame in frames:
        scores = Scores(queries @ frame, keys @ frame, barred)
        for rule, grid in temperatures.items():
            made[rule].append([scores.average(outputs, rule, s) for s in grid.tolist()])
    return {rule: np.stack(heads, axis=1) for rule, heads in made.items()}


class Scores:
    """Scores of the keys for every query, and sums of sorted distances for α-entmax.

    α-entmax weighs by ``(λ − D²)₊^ν`` with ``Σ_i (λ − D_i²)₊^ν = c = (2sν)^ν``. At ``λ = D_(k)²``
    that sum grows with k, so that the support is the last k at which it is below c.

    Args:
        queries: projected queries, (Q, d_k).
        keys: projected keys, (n, d_k).
        barred: as in :func:`predict_heads`.
    """

    def __init__(self, queries: np.ndarray, keys: np.ndarray, barred: np.ndarray | bool) -> None:
        self.dot = queries @ keys.T
        self.squared = -2 * self.dot + np.sum(keys**2, axis=1)
        self.squared[barred] = np.inf
        self.squared -= self.squared.min(axis=1, keepdims=True)
        self.dot[barred] = -np.inf
        self.dot -= self.dot.max(axis=1, keepdims=True)

    def average(self, outputs: np.ndarray, rule: str, temperature: float) -> np.ndarray:
        """Weighted means of the outputs, (Q, o)."""
        if rule in POWERS:
            radius = self.squared_radius(temperature, POWERS[rule])
            weights = np.maximum(radius[:, None] - self.squared, 0) ** POWERS[rule]
        elif rule == "gaussian":
            weights = np.exp(-self.squared / (2 * temperature))
        else:
            weights = np.exp(self.dot / temperature)
        return np.asarray(weights @ outputs / weights.sum(axis=1, keepdims=True))

    @cached_property
    def ordered(self) -> np.ndarray:
        """Sorted squared distances, (Q, n); barred keys are last, at infinity."""
        return np.sort(self.squared, axis=1)

    @cached_property
    def sums(self) -> np.ndarray:
        """Sums of the k least squared distances and of their squares, (2, Q, n)."""
        finite = np.nan_to_num(self.ordered, posinf=0.0)
        return np.stack([finite, finite**2]).cumsum(2)

    @cached_property
    def totals(self) -> list[np.ndarray]:
        """Sums of all weights at ``λ = D_(k)²``, (Q, n), for ν = 1 and 2; NaN or ∞ if barred."""
        ordered = self.ordered
        first, second = self.sums
        count = np.arange(1, len(ordered[0]) + 1)
        with np.errstate(invalid="ignore"):
            square = count * ordered**2 - 2 * ordered * first + second
        return [count * ordered - first, square]

    def squared_radius(self, temperature: float, nu: int) -> np.ndarray:
        """Squared radius λ of every query, (Q,)."""
        c = (2 * temperature * nu) ** nu
        support = np.maximum((self.totals[nu - 1] < c).sum(axis=1), 1)
        first, second = self.sums[:, np.arange(len(support)), support - 1]
        if nu == 1:
            return np.asarray((c + first) / support)
        mean = first / support
        return mean + np.sqrt(np.maximum(mean**2 - (second - c) / support, 0))

    def temperatures(self, nu: int) -> np.ndarray:
        """Temperatures at which the median query attends to 4 keys to half of them."""
        most = int(np.isfinite(self.ordered).sum(axis=1).min())
        places = np.unique(np.geomspace(min(4, most), max(most // 2, 1), ATTENDED).astype(int)) - 1
        totals = np.unique(np.median(self.totals[nu - 1][:, places], axis=0))
        totals = totals[totals > 0]
        return np.asarray(totals ** (1 / nu) / (2 * nu) if len(totals) else [1.0])


def temperature_grid(
    queries: np.ndarray, keys: np.ndarray, barred: np.ndarray
) -> dict[str, np.ndarray]:
    """Temperatures of every rule to try for heads of a given width."""
    n, width = keys.shape
    scores = Scores(queries, keys, barred)
    return {
        "gaussian": SPREADS * width,
        "softmax": FACTORS * width**0.5,
        "softmax, log n": np.array([width**0.5 / np.log(n)]),
        **{rule: scores.temperatures(nu) for rule, nu in POWERS.items()},
    }

"""The solution: arrays of all terms and their errors, which refinement fills."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Float

from sims.theory.exact.items import HeadItem, PairItem
from sims.theory.exact.laplace import Single
from sims.theory.exact.pairs import Pair, Terms

ERROR_FLOOR = 1e-13
"""Rounding, relative to the target's scale: no refinement gets below it."""
Progress = Callable[[int, int], None]
"""Told how many parts are done, and of how many: heads and pairs of heads at queries."""
Facts = dict[str, Float[np.ndarray, "Q H"]]
"""What else is known of every head at every query, by the name it has in the result."""


def untold(done: int, total: int) -> None:
    """The progress that nobody is told of."""


@dataclass
class Solution:
    """Terms for σ² = 1, and how good they are.

    Attributes:
        mean, mean_error: of E f̂_h, with their errors as in all that follow.
        effective_keys: n (E K)²/E K².
        empty: P(K_h = 0)^n.
        signal, signal_error: Cov(Σ_i w_hi m(X_i), Σ_i w_gi m(X_i)).
        noise, noise_error: E Σ_i w_hi w_gi.
        defect: distance of Σ_i w_hi Σ_j w_gj from 1.
        converged: whether the accuracy is reached.
        methods: names of the rules used.
    """

    mean: Float[np.ndarray, "Q H"]
    mean_error: Float[np.ndarray, "Q H"]
    effective_keys: Float[np.ndarray, "Q H"]
    empty: Float[np.ndarray, "Q H"]
    signal: Float[np.ndarray, "Q H H"]
    signal_error: Float[np.ndarray, "Q H H"]
    noise: Float[np.ndarray, "Q H H"]
    noise_error: Float[np.ndarray, "Q H H"]
    defect: Float[np.ndarray, "Q H H"]
    converged: Bool[np.ndarray, "Q H H"]
    methods: set[str] = field(default_factory=set, kw_only=True)

    @classmethod
    def blank(cls, queries: int, heads: int) -> "Solution":
        """All zero, and converged."""
        single, double = (queries, heads), (queries, heads, heads)
        zeros = [np.zeros(shape) for shape in [single] * 4 + [double] * 5]
        return cls(*[*zeros, np.ones(double, bool)])

    def put_head(self, q: int, h: int, item: HeadItem) -> None:
        """Enter a head at a query."""
        self.effective_keys[q, h] = item.extent.effective_keys
        self.mean[q, h], self.mean_error[q, h] = item.mean, item.mean_error
        self.empty[q, h] = np.nan if item.value is None else 1 - item.value.reach
        self.put_item(q, h, h, item)

    def put_item(self, q: int, h: int, g: int, item: HeadItem | PairItem) -> None:
        """Enter a pair of heads, or a head with itself, at a query."""
        if item.value is None or item.error is None:
            # Its grid in log s is out of reach (tiny bandwidth, few keys): no number.
            self._put(q, h, g, Pair(*np.full(3, np.nan)), Pair(*np.full(3, np.inf)))
        else:
            self._put(q, h, g, item.value, item.error)
        self.converged[q, h, g] = item.done

    def put_values(
        self, q: int, h: int, g: int, value: Terms, error: Terms, rtol: float, scale: float
    ) -> None:
        """Enter a value with its error, converged where that is below rtol (signal: of scale)."""
        self._put(q, h, g, value, error)
        self.converged[q, h, g] = bool(
            error.signal <= rtol * scale + ERROR_FLOOR and error.noise <= rtol * value.noise
        )

    def put_numbers(
        self,
        place: tuple[int, int, int],
        value: tuple[float, float, float],
        error: tuple[float, float],
        rtol: float,
        scale: float,
    ) -> None:
        """Enter signal, noise and defect at (query, head, head2), as :meth:`put_values` does."""
        signal, noise, defect = map(np.asarray, value)
        errors = Pair(np.asarray(error[0]), np.asarray(error[1]), np.zeros(()))
        self.put_values(*place, Pair(signal, noise, defect), errors, rtol, scale)

    def put_unknown(self, q: int) -> None:
        """Enter that this query has no value: its range of log s is out of reach."""
        for values in (self.mean, self.empty, self.signal, self.noise, self.defect):
            values[q] = np.nan
        for errors in (self.mean_error, self.signal_error, self.noise_error):
            errors[q] = np.inf

    def _put(self, q: int, h: int, g: int, value: Single | Pair, error: Single | Pair) -> None:
        self.signal[q, h, g], self.signal_error[q, h, g] = value.signal, error.signal
        self.noise[q, h, g], self.noise_error[q, h, g] = value.noise, error.noise
        self.defect[q, h, g] = value.defect

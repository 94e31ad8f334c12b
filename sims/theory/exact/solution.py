"""The solution: arrays of all terms and their errors, which refinement fills."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from sims.theory.exact.laplace import Single
from sims.theory.exact.pairs import Pair

ERROR_FLOOR = 1e-13
"""Rounding, relative to the target's scale: no refinement gets below it."""
TINY = float(np.finfo(float).tiny)
"""Lower bound of a denominator."""
Progress = Callable[[int, int], None]
"""Function of the numbers of finished and of all parts: heads and pairs of heads at queries."""
Place = tuple[int, int, int]
"""A query and two heads, which may be one."""
Facts = dict[str, Float[np.ndarray, "Q H"]]
"""Further quantities of every head at every query, by their names in the result."""


def no_progress(done: int, total: int) -> None:
    """Ignore the progress."""


def close(
    value: Single | Pair,
    error: Single | Pair,
    rtol: float,
    scale: float,
    floor: float = ERROR_FLOOR,
) -> bool:
    """True if the noise is accurate to rtol, and the signal to that share of its scale."""
    signal = error.signal <= rtol * scale + floor
    noise = error.noise <= rtol * value.noise
    return bool(signal and noise)


class Solution:
    """Terms for σ² = 1, and how good they are: at first unknown, and not converged.

    Attributes:
        mean, mean_error: of E f̂_h, with their errors as in all that follow, (Q, H).
        empty: P(K_h = 0)^n, (Q, H).
        signal, signal_error: Cov(Σ_i w_hi m(X_i), Σ_i w_gi m(X_i)), (Q, H, H).
        noise, noise_error: E Σ_i w_hi w_gi, (Q, H, H).
        defect: distance of Σ_i w_hi Σ_j w_gj from 1, (Q, H, H).
        converged: whether the accuracy is reached, (Q, H, H).
        methods: names of the rules used.
    """

    def __init__(self, queries: int, heads: int) -> None:
        """Arrays for so many queries and heads."""
        single = (queries, heads)
        pair = (queries, heads, heads)
        self.mean = np.full(single, np.nan)
        self.mean_error = np.full(single, np.inf)
        self.empty = np.full(single, np.nan)
        self.signal = np.full(pair, np.nan)
        self.signal_error = np.full(pair, np.inf)
        self.noise = np.full(pair, np.nan)
        self.noise_error = np.full(pair, np.inf)
        self.defect = np.full(pair, np.nan)
        self.converged = np.zeros(pair, bool)
        self.methods: set[str] = set()

    def put(
        self,
        place: Place,
        value: Single | Pair,
        error: Single | Pair,
        converged: bool,
    ) -> None:
        """Enter heads h and g at query q, whichever comes first, or a head with itself."""
        q, h, g = place
        index = q, [h, g], [g, h]
        self.signal[index], self.signal_error[index] = value.signal, error.signal
        self.noise[index], self.noise_error[index] = value.noise, error.noise
        self.defect[index] = value.defect
        self.converged[index] = converged

"""The solution: arrays of all terms and their errors, which refinement fills."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Float

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
    def unknown(cls, queries: int, heads: int) -> "Solution":
        """A solution without numbers and errors, not converged."""
        single = (queries, heads)
        pair = (queries, heads, heads)
        return cls(
            mean=np.full(single, np.nan),
            mean_error=np.full(single, np.inf),
            effective_keys=np.zeros(single),
            empty=np.full(single, np.nan),
            signal=np.full(pair, np.nan),
            signal_error=np.full(pair, np.inf),
            noise=np.full(pair, np.nan),
            noise_error=np.full(pair, np.inf),
            defect=np.full(pair, np.nan),
            converged=np.zeros(pair, bool),
        )

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

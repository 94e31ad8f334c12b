"""Advice from theory: the split of a budget D = H·d_k, to first order in 1/n.

Heads see the target's first d_k coordinates through independent noise, as in the experiment
``allocation``; the target is a Gaussian process of unit variance and smoothness β (Matérn). The
decay of the coordinates' relevance is unknown, so there is an answer for each of several decays.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq

from sims.base.checks import check_non_negative, check_within
from sims.base.errors import InputError, one_of
from sims.theory import FEW_KEYS, view_terms

LATENT = 64
"""Number of coordinates of the target, and the largest head dimension."""
MOST = 4096
"""Largest budget."""
DECAYS = {
    "slow, j⁻¹": np.arange(1.0, LATENT + 1) ** -1,
    "medium, j⁻²": np.arange(1.0, LATENT + 1) ** -2,
    "fast, e^(−j)": np.exp(-np.arange(1.0, LATENT + 1)),
}
"""Relevance λ of coordinate j, of sum 1 up to a factor: the target's covariance is
``exp(−½ Σ_j λ_j (z_j − z'_j)²)`` or the Matérn mixture of these."""
BANDWIDTHS = {"gaussian": (0.01, 4.0), "softmax": (0.93, 4.0)}
"""Range of the bandwidth."""
POINTS = 120
REACH = 0.5
"""Scale of the queries, as a share of the largest at which averages over them are finite."""
VIEW_NOISE = 0.3
"""Standard deviation of a head's separate noise in every coordinate, of variance 1."""
CLOSE = 0.05
"""Splits whose error exceeds the least by at most this share count as equally good."""


@dataclass(frozen=True)
class Split:
    """A split of the budget.

    Attributes:
        heads: H.
        width: d_k.
        bandwidth: b of least error; softmax has the temperature b².
        error: mean squared, of a target of variance 1.
        n_eff: effective keys of a head.
        in_range: whether b has the least error; otherwise a smaller b, outside theory's range
            (n_eff, for softmax n_third, below :data:`sims.theory.FEW_KEYS`), may have it.
    """

    heads: int
    width: int
    bandwidth: float
    error: float
    n_eff: float
    in_range: bool


@dataclass(frozen=True)
class SplitAdvice:
    """Best split under one decay of relevance.

    Attributes:
        decay: name of the decay.
        best: the split of least error.
        close: splits within 5 % of it, including itself, by d_k.
        splits: all splits that theory covers at some bandwidth, by d_k.
    """

    decay: str
    best: Split
    close: list[Split]
    splits: list[Split]


def advise_split(
    n: int,
    budget: int,
    noise: float,
    smoothness: float | None = None,
    rule: str = "gaussian",
) -> list[SplitAdvice]:
    """Best splits under every decay of relevance, with tuned bandwidths.

    Args:
        n: number of keys.
        budget: D; splits are its divisors d_k ≤ 64, H = D/d_k.
        noise: σ of the labels, for a target of variance 1.
        smoothness: β, Matérn; None is the squared exponential.
        rule: ``gaussian`` or ``softmax``.

    Raises:
        InputError: a number is outside its range.
    """
    check_within("--n", n, 2, 2.0**53)
    check_within("--budget", budget, 2, MOST)
    check_non_negative("--noise", noise)
    if smoothness is not None:
        check_within("--smoothness", smoothness, 0.1, 100)
    if rule not in BANDWIDTHS:
        raise InputError("--rule", rule, one_of(BANDWIDTHS, rule))
    options: dict[str, Any] = {
        "noise": VIEW_NOISE,
        "query_scale": query_scale(rule),
        "nu": smoothness,
    }
    advice = []
    for decay, shares in DECAYS.items():
        options |= {"relevance": shares / shares.sum(), "kernel": rule}
        advice.append(_advise_under(decay, n, budget, noise, options))
    return advice


def query_scale(rule: str) -> float:
    """Scale κ of the queries: half of the largest at which averages over them are finite."""
    if rule == "gaussian":
        return float(REACH * 0.5**0.5)
    return float(REACH * BANDWIDTHS[rule][0] ** 2 / (2 * (1 + VIEW_NOISE**2) ** 0.5))


def _advise_under(
    decay: str, n: int, budget: int, noise: float, options: dict[str, Any]
) -> SplitAdvice:
    """Best split under one decay of relevance."""
    lowest, high = BANDWIDTHS[options["kernel"]]

    def room(b: float, width: int) -> float:
        """Effective keys grow with b: theory's range is where this is positive."""
        n_eff = n / view_terms(width, b, **options).noise_variance
        # n_third, which governs the remainder of softmax, is near n_eff²/n.
        fewest = n_eff if options["kernel"] == "gaussian" else np.minimum(n_eff, n_eff**2 / n)
        return float(np.log(fewest / FEW_KEYS))

    splits = []
    for width in range(1, min(budget, LATENT) + 1):
        if budget % width or room(high, width) <= 0:
            continue
        low = brentq(room, lowest, high, (width,)) if room(lowest, width) < 0 else lowest
        grid = np.geomspace(low, high, POINTS)
        terms = view_terms(width, grid, **options)
        errors = terms.error(n, budget // width, noise)
        k = int(np.nan_to_num(errors, nan=np.inf).argmin())
        split = Split(
            heads=budget // width,
            width=width,
            bandwidth=float(grid[k]),
            error=float(errors[k]),
            n_eff=float(n / terms.noise_variance[k]),
            in_range=0 < k < POINTS - 1,
        )
        splits.append(split)
    if not splits:
        allowed = f"more keys: no split has {FEW_KEYS} effective keys at any bandwidth"
        raise InputError("--n", n, allowed)
    best = min(splits, key=lambda one: one.error)
    close = [one for one in splits if one.error <= (1 + CLOSE) * best.error]
    return SplitAdvice(decay, best, close, splits)

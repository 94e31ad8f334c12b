"""Effects of a question by problem, and the call of each problem. No JAX."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from sims.base.estimates import mcse
from sims.judgement import conventions
from sims.judgement.intervals import fixed_p
from sims.judgement.outcomes import outcome_calls


@dataclass(frozen=True, eq=False)
class Effects:
    """Effects of one question: one number per problem, or one per pair of each problem.

    Attributes:
        value: (N,) simulated effects: positive where the claim holds ("share"), relative gaps of
            the two methods ("gap") or any number ("estimate"); (N, P) relative falls over pairs
            ("outcome"). NaN where the question has no meaning.
        error: their Monte Carlo standard errors.
        kind: kind of summary.
        predicted: (M,) theory's effects of M ≥ N problems, the simulated ones first; None without
            theory.
        valid: (M,) true where theory is in its range and its error leaves the sign certain; None
            is everywhere.
        draws: draws of each problem, (B,) or (B, P): their means are the values, their spread
            gives the errors; independent given the problem. None for theory alone, which states
            its error.
        looks: number of looks at which a problem may have stopped, for outcomes.
        size: (N,) relative change; None if no size is reported.
        size_error: (N,) its Monte Carlo standard errors.
        components: name to the terms (N,) of a size that are reported with it.
    """

    value: np.ndarray
    error: np.ndarray
    kind: Literal["share", "gap", "estimate", "outcome"] = "share"
    predicted: np.ndarray | None = None
    valid: np.ndarray | None = None
    draws: Sequence[np.ndarray] | np.ndarray | None = None
    looks: int = 1
    size: np.ndarray | None = None
    size_error: np.ndarray | None = None
    components: Mapping[str, np.ndarray] = field(default_factory=dict)

    @property
    def freedom(self) -> np.ndarray:
        """Degrees of freedom of the errors, (N,); infinite for theory."""
        if self.draws is None:
            return np.full(len(self.value), np.inf)
        return np.array([len(draws) - 1 for draws in self.draws], float)

    def half(self, number: int) -> "Effects":
        """Effects from every second draw, starting at the first (0) or the second (1)."""
        if self.draws is None:
            return self
        if isinstance(self.draws, np.ndarray):
            draws = self.draws[:, number::2]
            return replace(self, value=draws.mean(1), error=mcse(draws.T), draws=draws)
        halves = [draws[number::2] for draws in self.draws]
        value = np.stack([draws.mean(0) for draws in halves])
        error = np.stack([mcse(draws) for draws in halves])
        return replace(self, value=value, error=error, draws=halves)


def margins(effects: Effects, tolerance: float | None) -> np.ndarray:
    """Margins (N,) by which simulated problems hold, negative if they fail; NaN without meaning."""
    if effects.kind == "share":
        return effects.value
    if effects.kind == "outcome":
        return effects.value + (tolerance or 0.0)
    off = tolerance if tolerance is not None and effects.kind == "gap" else np.nan
    return off - np.abs(effects.value)


def calls(effects: Effects, tolerance: float | None = None) -> np.ndarray:
    """Calls (N,): 1 if a problem holds by three standard errors, −1 if it fails, else 0 or NaN.

    Outcomes can also be level, 2: :func:`sims.judgement.outcomes.outcome_calls`.
    """
    if effects.kind == "outcome":
        return outcome_calls(
            effects.value, effects.error, effects.freedom, effects.looks, tolerance or 0.0
        )
    margin, far = margins(effects, tolerance), conventions.CALLED * effects.error
    return np.select([np.isnan(margin), margin > far, margin <= -far], [np.nan, 1.0, -1.0])


def confirmed_failure(
    effects: Effects, selected: np.ndarray, tolerance: float | None = None
) -> tuple[int | None, float]:
    """Problem that fails most certainly in half of its draws, and its p-value in the other half.

    The other half does not enter the choice, so the p-value needs no correction for the number of
    problems. Theory has no draws: it fails if a failure exceeds its stated error. None if no
    problem fails.

    Args:
        effects: effects of N problems.
        selected: mask of the problems, (M,), M ≥ N.
        tolerance: tolerance of gaps.
    """
    first, fresh = (effects.half(number) for number in (0, 1))
    margin = margins(first, tolerance)
    margin = np.where(selected[: len(margin)].reshape(-1, *[1] * (margin.ndim - 1)), margin, np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.nan_to_num(margin / first.error, nan=np.inf, posinf=np.inf, neginf=-np.inf)
    if not (ratio < 0).any():
        return None, 1.0
    place = np.unravel_index(ratio.argmin(), ratio.shape)
    worst = int(place[0])
    margin = margins(fresh, tolerance)[place]
    p = float(fixed_p(-margin, fresh.error[place], fresh.freedom[worst])) * effects.looks
    return worst, min(p, 1.0) if np.isfinite(p) else 1.0  # too few draws confirm nothing


def foreseen(effects: Effects) -> np.ndarray:
    """Calls by theory, (M,), 0 outside its range; empty without theory."""
    if effects.predicted is None or effects.kind != "share":
        return np.empty(0)
    theory = effects.predicted
    outside = np.zeros(len(theory), bool) if effects.valid is None else ~effects.valid
    return np.select([np.isnan(theory), outside, theory > 0], [np.nan, 0.0, 1.0], -1.0)

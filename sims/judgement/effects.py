"""Effects of a question by problem: what they are, how they are made, and what each says. No JAX.

:func:`share`, :func:`gap`, :func:`mean` and :func:`outcome` make the four kinds from batches.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from sims.base.errors import InputError, one_of
from sims.base.estimates import mcse, skewness
from sims.judgement import conventions
from sims.judgement.intervals import fixed_p, skewed_distance
from sims.judgement.outcomes import outcome_calls

Kind = Literal["share", "gap", "mean", "outcome"]
"""What a question asks: how often a claim holds, how far simulation is from theory, how large a
number is on average, or how often a quantity falls."""


class Moments(NamedTuple):
    """Mean of a part of the batches, with its standard error and its skewness, by problem.

    The skewness is None in tables of questions that do not say always.
    """

    value: np.ndarray
    error: np.ndarray
    skewness: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Effects:
    """Effects of one question: one number per problem, or one per pair of each problem.

    Attributes:
        value: (N,) simulated effects: positive where the claim holds ("share"), relative gaps of
            the two methods ("gap") or any number ("mean"); (N, P) relative falls over pairs
            ("outcome"). NaN where the question has no meaning.
        error: their Monte Carlo standard errors.
        kind: kind of summary, which the question's ``asks`` must name.
        predicted: (M,) theory's effects of M ≥ N problems, the simulated ones first; None without
            theory.
        valid: (M,) true where theory is in its range and its error leaves the sign certain; None
            is everywhere.
        batches: (N,) number of batches; None for theory alone, which states its error.
        halves: what every second batch says, from the first and from the second one on.
        looks: number of looks at which a problem may have stopped, for outcomes.
        size: (N,) relative change; None if no size is reported.
        size_error: (N,) its Monte Carlo standard errors.
        components: name to the terms (N,) of a size that are reported with it.
        tolerance: tolerance of gaps and outcomes, which the question sets.
        level_holds: whether level problems hold, which the question sets.

    Raises:
        InputError: the kind is unknown, or the arrays do not have these shapes.
    """

    value: np.ndarray
    error: np.ndarray
    kind: Kind
    predicted: np.ndarray | None = None
    valid: np.ndarray | None = None
    batches: np.ndarray | None = None
    halves: tuple[Moments, Moments] | None = None
    looks: int = 1
    size: np.ndarray | None = None
    size_error: np.ndarray | None = None
    components: Mapping[str, np.ndarray] = field(default_factory=dict)
    tolerance: float | None = None
    level_holds: bool = False

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise InputError("kind of effects", self.kind, one_of(get_args(Kind), str(self.kind)))
        dimensions = 2 if self.kind == "outcome" else 1
        shapes = np.shape(self.value), np.shape(self.error)
        if len(shapes[0]) != dimensions or shapes[0] != shapes[1]:
            allowed = "(problem, pair) for outcomes, else (problem,), the same for both"
            raise InputError("value and error of effects", shapes, allowed)

    @property
    def freedom(self) -> np.ndarray:
        """Degrees of freedom of the errors, (N,); infinite for theory."""
        return np.full(len(self.value), np.inf) if self.batches is None else self.batches - 1.0

    def within(self, tolerance: float | None, level_holds: bool = False) -> "Effects":
        """The effects under a question's tolerance, and what level problems count as."""
        return replace(self, tolerance=tolerance, level_holds=level_holds)

    def half(self, number: int) -> "Effects":
        """Effects from every second batch, starting at the first (0) or the second (1)."""
        if self.halves is None or self.batches is None:
            return self
        value, error, _ = self.halves[number]
        batches = (self.batches + 1 - number) // 2
        return replace(self, value=value, error=error, batches=batches, halves=None)

    @cached_property
    def margin(self) -> np.ndarray:
        """Margins by which simulated problems hold, of the shape of ``value``.

        They are negative where a problem fails, and NaN where the question has no meaning.
        """
        if self.kind == "share":
            return self.value
        if self.kind == "outcome":
            return self.value + (self.tolerance or 0.0)
        tolerance = self.tolerance if self.kind == "gap" else None
        return (np.nan if tolerance is None else tolerance) - np.abs(self.value)

    @cached_property
    def call(self) -> np.ndarray:
        """Calls (N,): 1 if a problem holds by three standard errors, −1 if it fails, else 0 or NaN.

        Outcomes can also be level, 2: :func:`sims.judgement.outcomes.outcome_calls`.
        """
        if self.kind == "outcome":
            tolerance = self.tolerance or 0.0
            return outcome_calls(self.value, self.error, self.freedom, self.looks, tolerance)
        far = conventions.CALLED * self.error
        cases = [np.isnan(self.margin), self.margin > far, self.margin <= -far]
        return np.select(cases, [np.nan, 1.0, -1.0])

    @cached_property
    def predicted_call(self) -> np.ndarray:
        """Calls by theory, (M,), 0 outside its range; empty without theory."""
        if self.predicted is None or self.kind != "share":
            return np.empty(0)
        outside = np.zeros(len(self.predicted), bool) if self.valid is None else ~self.valid
        cases = [np.isnan(self.predicted), outside, self.predicted > 0]
        return np.select(cases, [np.nan, 0.0, 1.0], -1.0)

    def confirmed_failure(self, selected: np.ndarray) -> tuple[int | None, float]:
        """Problem that fails most certainly in one half, and its p-value in the other half.

        The other half does not enter the choice, so the p-value needs no correction for the number
        of problems. Theory has no batches: it fails if a failure exceeds its stated error. None if
        no problem fails.

        Args:
            selected: mask of the problems, (M,), M ≥ N.
        """
        first = self.half(0)
        fresh = self.half(1)
        mask = selected[: len(first.value)].reshape(-1, *[1] * (first.value.ndim - 1))
        margin = np.where(mask, first.margin, np.nan)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.nan_to_num(margin / first.error, nan=np.inf, posinf=np.inf, neginf=-np.inf)
        if not (ratio < 0).any():
            return None, 1.0
        # Where theory states no error all failures are certain: the largest one is told.
        place = np.unravel_index(np.lexsort((margin.ravel(), ratio.ravel()))[0], ratio.shape)
        worst = int(place[0])
        distance = -fresh.margin[place]
        if self.halves is not None and self.halves[1].skewness is not None:
            skew = self.halves[1].skewness[place]
            distance = skewed_distance(distance, fresh.error[place], skew)
        p = float(fixed_p(distance, fresh.error[place], fresh.freedom[worst]))
        p *= self.looks
        return worst, min(p, 1.0) if np.isfinite(p) else 1.0  # too few batches confirm nothing


def share(draws: np.ndarray | None, **fields: Any) -> Effects:
    """Effects that are positive where a claim holds.

    Args:
        draws: (N, B) iid batches; None if theory alone answers.
        **fields: ``predicted``, ``valid``, ``size`` and others of :class:`Effects`.
    """
    return _of_batches("share", draws, **fields)


def mean(draws: np.ndarray | None, **fields: Any) -> Effects:
    """Effects whose mean over problems is reported; arguments as for :func:`share`."""
    return _of_batches("mean", draws, **fields)


def gap(
    values: np.ndarray,
    predicted: np.ndarray,
    valid: np.ndarray | None = None,
    scale: np.ndarray | None = None,
    stated: np.ndarray | None = None,
) -> Effects:
    """Relative gaps of simulation and theory, (simulated − predicted)/scale.

    Both methods look at the same queries: what the batches differ in is then Monte Carlo error.

    Args:
        values: (N, B) simulated batches.
        predicted: (M,) by theory, M ≥ N.
        valid: (M,) mask of the problems that count; None is all.
        scale: (M,) to which gaps are relative; None is theory's number.
        stated: (M,) standard error that theory states of its number, which adds to the Monte Carlo
            error; None is none.
    """
    count = len(values)
    unit = (predicted if scale is None else scale)[:count]
    inside = np.isfinite(unit) & (unit != 0)
    inside &= True if valid is None else valid[:count]
    unit = np.where(inside, unit, np.nan)
    made = _of_batches("gap", (values - predicted[:count, None]) / unit[:, None])
    if stated is None or made.halves is None:
        return made
    add = stated[:count] / np.abs(unit)
    halves = [half._replace(error=np.hypot(half.error, add)) for half in made.halves]
    return replace(made, error=np.hypot(made.error, add), halves=(halves[0], halves[1]))


def outcome(falls: np.ndarray, size: np.ndarray | None = None) -> Effects:
    """Outcomes of problems with one pair each: whether a quantity falls, rises or is level.

    Args:
        falls: (N, B) relative falls as iid batches; NaN for a problem without a pair.
        size: (N,) relative change; None if no size is reported.
    """
    made = outcome_over_pairs(falls[..., None], size=size)
    return made if size is None else replace(made, size_error=made.error[:, 0])


def sized_outcome(falls: np.ndarray) -> Effects:
    """Outcomes of relative falls (N, B), with the relative rise as their size."""
    return outcome(falls, size=-falls.mean(1))


def outcome_over_pairs(draws: np.ndarray | Sequence[np.ndarray], **fields: Any) -> Effects:
    """Outcomes of problems with several pairs: whether a quantity falls, rises or is level.

    Args:
        draws: of each problem the relative falls over its pairs, (B, P), as iid batches; NaN of a
            problem that has no pair.
        **fields: others of :class:`Effects`.
    """
    return _of_batches("outcome", draws, **fields)


def _of_batches(
    kind: Kind, draws: np.ndarray | Sequence[np.ndarray] | None, **fields: Any
) -> Effects:
    """Effects of a kind as means of iid batches, of problems (B, …); None is no problem."""
    if draws is None:
        return Effects(np.empty(0), np.empty(0), kind, **fields)
    value, error, _ = _moments(draws)
    halves = []
    for first in (0, 1):
        if isinstance(draws, np.ndarray) and draws.ndim == 2:
            halves.append(_moments(draws[:, first::2]))
        else:
            halves.append(_moments([batches[first::2] for batches in draws]))
    batches = np.array([len(batches) for batches in draws], float)
    return Effects(value, error, kind, batches=batches, halves=(halves[0], halves[1]), **fields)


def _moments(draws: np.ndarray | Sequence[np.ndarray]) -> Moments:
    """Moments of every problem's batches."""
    if isinstance(draws, np.ndarray):
        batches = draws.swapaxes(0, 1)
        return Moments(draws.mean(1), mcse(batches), skewness(batches))
    value = np.stack([batches.mean(0) for batches in draws])
    error, skew = (np.stack([of(batches) for batches in draws]) for of in (mcse, skewness))
    return Moments(value, error, skew)


def slope(
    x: np.ndarray,
    values: np.ndarray,
    expected: float | np.ndarray,
    rival: np.ndarray | None = None,
    predicted: np.ndarray | None = None,
    valid: np.ndarray | None = None,
) -> Effects:
    """Tolerance of slopes minus the distance of the slope of log y on log x from an expected slope.

    It is minus the tolerance if a line in the rival's regressor fits log y better, since then the
    slope has no meaning.

    Args:
        x: (K,) or (M, K), positive.
        values: (N, B, K) simulated batches, positive in the mean.
        expected: the claimed slope, for all problems or for each, (M,).
        rival: regressor of the rival form, of the shape of x; None without a rival.
        predicted: (M, K) by theory; None without theory.
        valid: (M,) where theory is in its range.
    """

    def fitted(regressor: np.ndarray, log: np.ndarray) -> tuple[np.ndarray, ...]:
        """Weights of log y in the slope, slopes (n,) and the squares that the line leaves (n,)."""
        lines = regressor[: len(log)] if regressor.ndim > 1 else regressor
        centred = lines - lines.mean(-1, keepdims=True)
        by = centred / (centred**2).sum(-1, keepdims=True)
        steep = (by * log).sum(-1)
        residual_squares = log - log.mean(-1, keepdims=True) - steep[:, None] * centred
        return by, steep, (residual_squares**2).sum(-1)

    margin, fits = conventions.TOLERANCES["slope"], []
    expected_slopes = np.atleast_1d(expected)
    for y in (values.mean(1), predicted):
        if y is not None:
            by, steep, residual_squares = fitted(np.log(x), np.log(y))
            worse = residual_squares if rival is None else fitted(rival, np.log(y))[2]
            inside = margin - np.abs(steep - expected_slopes[: len(y)])
            fits.append((np.where(worse < residual_squares, -margin, inside), by, steep))
    relative = (fits[0][1][..., None, :] * values / values.mean(1, keepdims=True)).sum(-1)
    theory = fits[1][0] if len(fits) > 1 else None
    (inside, _, steep), side = fits[0], expected_slopes[: len(values)]
    draws = inside[:, None] + np.where(steep < side, 1, -1)[:, None] * relative
    return share(draws, predicted=theory, valid=valid)

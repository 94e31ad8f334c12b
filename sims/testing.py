"""Assertions about simulated numbers, for tests of a theory, with a stated rate of false alarms.

Simulated numbers are a dataset of :func:`sims.estimate`, an array of iid batches (B, …) or a pair
(mean, Monte Carlo standard error). A test fails if a number is farther from theory than chance
allows: its Student p-value, corrected for the skewness of the batches and times the number of
entries, is below ``false_alarm``. So a true statement fails once in 1 / false_alarm runs, at any
precision; a test needs no fixed seed and no hand-made tolerance to be free of noise. Rounding does
not count: 64 units in the last place of the largest number compared are within every tolerance.

Dependent batches make the standard error too small, and are refused: if independent ones would
have such correlations once in 10⁸ runs, or, when an assertion fails, once in 20.

:func:`on_problems` runs a test of pytest on problems that a law draws.
"""

import os
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import pytest
import xarray as xr
from numpy.typing import ArrayLike

from sims.base.arrays import real_numbers
from sims.base.errors import InputError, one_of
from sims.base.estimates import dependence_p, mcse, skewness
from sims.base.terms import BATCH, CROSS, HEAD, SCALARS, phrases
from sims.judgement.intervals import fixed_p, significant_distance, skewed_distance

Simulated = xr.Dataset | ArrayLike | tuple[ArrayLike, ArrayLike]
Gaps = dict[str, np.ndarray]
"""Name of a statement to the smallest distance from what is expected that fails, (…)."""
FALSE_ALARM = 1e-6
FALSE_ALARMS = (1e-15, 0.5)
"""Allowed rates of false alarms."""
DEPENDENT, DEPENDENT_IF_FAILED = 1e-8, 0.05
"""p-values of independence below which batches are refused."""
ROUNDING = 64
"""Units of rounding by which two equal numbers may differ."""


class DependentBatches(InputError, AssertionError):
    """Raised for dependent batches, whose standard error has no meaning."""


def assert_agree(
    simulated: Simulated,
    predicted: xr.Dataset | ArrayLike,
    within: float = 0.0,
    *,
    terms: Sequence[str] | None = None,
    false_alarm: float = FALSE_ALARM,
) -> Gaps:
    """Assert that simulated and predicted numbers agree within a relative tolerance.

    Error bounds that theory states (``<term>_error``) are added to the tolerance.

    Args:
        simulated: see the module.
        predicted: a dataset of :func:`sims.predict`, or an array (…).
        within: relative tolerance, 0 to 1.
        terms: terms of datasets to compare; None is every scalar term that both have.
        false_alarm: probability that a true statement fails, within :data:`FALSE_ALARMS`.

    Returns:
        For each term, or ``value`` of arrays, the smallest gap that would have failed, (…).

    Raises:
        AssertionError: they do not agree, a number is missing, or a dataset has faults or is of
            another problem. It names term, entry, gap in standard errors, the smallest gap that
            fails and the command that repeats the test.
        DependentBatches: batches are not independent; also an AssertionError.
        InputError: an argument is out of its range, a term is not in both datasets, or theory does
            not bound its error.
    """
    _check_range("within", within, (0.0, 1.0))
    cases = []
    for name, values, theory, bound in _pairs(simulated, predicted, terms):
        tolerance = within * np.abs(theory) + bound
        cases.append(Case(name, _measured(values), theory, theory, tolerance))
    return _settle(cases, f"agreement within {within:.3g}", false_alarm)


def assert_bound(
    simulated: Simulated,
    *,
    at_most: ArrayLike = np.inf,
    at_least: ArrayLike = -np.inf,
    false_alarm: float = FALSE_ALARM,
) -> Gaps:
    """Assert that a simulated number is within bounds; else as :func:`assert_agree`."""
    highest = real_numbers("at_most", at_most)
    lowest = real_numbers("at_least", at_least)
    if not (np.isfinite(highest).any() or np.isfinite(lowest).any()):
        raise InputError("at_most, at_least", "no finite bound", "at least one of them")
    return _settle([Case("value", _measured(simulated), lowest, highest)], "a bound", false_alarm)


def assert_order(lower: ArrayLike, higher: ArrayLike, *, false_alarm: float = FALSE_ALARM) -> Gaps:
    """Assert that one expectation is at most another; batches (B, …) share their draws."""
    for name, batches in (("lower", lower), ("higher", higher)):
        real_numbers(name, batches)
    if np.ndim(higher) and np.shape(lower)[:1] != np.shape(higher)[:1]:
        raise InputError("higher", np.shape(higher), f"as many batches as lower {np.shape(lower)}")
    size = np.asarray(np.abs(lower) + np.abs(higher)).max(0, initial=0.0)
    measured = _measured(np.subtract(lower, higher), _unit(lower) * size)
    return _settle([Case("lower − higher", measured, -np.inf, 0.0)], "an order", false_alarm)


@np.errstate(all="ignore")
def assert_rate(
    x: ArrayLike,
    simulated: ArrayLike,
    exponent: float,
    within: float = 0.1,
    *,
    false_alarm: float = FALSE_ALARM,
) -> Gaps:
    """Assert that the least-squares slope of log y on log x is within a tolerance of an exponent.

    Args:
        x: (K,), positive.
        simulated: (B, K) batches, positive in the mean.
        exponent: the claimed slope.
        within: 0 to 1.
        false_alarm: as in :func:`assert_agree`.

    Returns:
        As :func:`assert_agree`, of the ``slope``.
    """
    _check_range("within", within, (0.0, 1.0))
    log = np.log(real_numbers("x", x))
    batches = real_numbers("simulated", simulated)
    weights = (log - log.mean()) / np.var(log) / len(log)
    mean = batches.mean(0)
    size = (1 + np.abs(np.log(mean))) @ np.abs(weights)  # of relative errors, and of logarithms
    pseudo_values = np.log(mean) @ weights + (batches / mean - 1) @ weights
    measured = _measured(pseudo_values, _unit(simulated) * size)
    case = Case("slope", measured, exponent, exponent, within)
    return _settle([case], f"a slope within {within:.3g}", false_alarm)


class Measured(NamedTuple):
    """A simulated expectation.

    Attributes:
        mean: (…).
        error: its Monte Carlo standard error.
        skewness: that of the mean.
        batches: their number.
        rounding: what rounding may be of the mean.
        independence: p-value of the batches' independence.
    """

    mean: Any
    error: Any
    skewness: Any
    batches: float
    rounding: Any
    independence: Any


class Case(NamedTuple):
    """A statement about a simulated expectation: it lies from ``low`` to ``high``.

    Attributes:
        name: name in the message.
        measured: the expectation.
        low: lower bound.
        high: upper bound.
        tolerance: distance from both that is allowed.
    """

    name: str
    measured: Measured
    low: Any
    high: Any
    tolerance: Any = 0.0


def _pairs(
    simulated: Any, predicted: Any, terms: Sequence[str] | None
) -> Iterator[tuple[str, Any, Any, Any]]:
    """Names, batches, predictions and their bounds."""
    if not isinstance(simulated, xr.Dataset):
        yield "value", simulated, real_numbers("predicted", predicted), 0.0
        return
    if not isinstance(predicted, xr.Dataset):
        raise InputError("predicted", type(predicted).__name__, "a dataset, as `simulated` is")
    _check_datasets(simulated, predicted)
    common = _common_terms(simulated, predicted)
    if terms is None:
        known = {*common} - {*(CROSS if predicted.sizes.get(HEAD) == 1 else ())}
        terms = [name for name in SCALARS if name in known]
    for name in [terms] if isinstance(terms, str) else terms or [""]:
        if name not in common:
            raise InputError("terms", name, one_of(common, name))
        values = simulated[name].transpose(BATCH, ..., *predicted[name].dims, missing_dims="ignore")
        yield name, values.values, predicted[name].values, _bound(predicted, name)


def _common_terms(simulated: xr.Dataset, predicted: xr.Dataset) -> list[str]:
    """Predicted terms that the simulation has batches of; InputError without any."""
    common = [k for k in predicted.data_vars if k in simulated and BATCH in simulated[k].dims]
    if not common:
        got = "no batches of a predicted term"
        raise InputError("simulated", got, "a dataset of sims.estimate")
    return list(map(str, common))


def _bound(predicted: xr.Dataset, name: str) -> np.ndarray:
    """Bound on the error of a predicted term; 0 if theory states none."""
    theory = predicted[name]
    bound = predicted.get(f"{name}_error", xr.zeros_like(theory)).values
    if not ((bound >= 0) & (bound < np.inf) | np.isnan(theory.values)).all():
        allowed = "a finite bound ≥ 0, or `terms` without this one"
        raise InputError(f"predicted: {name}_error", bound.tolist(), allowed)
    return bound


def _check_datasets(simulated: xr.Dataset, predicted: xr.Dataset) -> None:
    """Raise AssertionError for datasets with faults, or of different problems."""
    for method, data in (("simulated", simulated), ("predicted", predicted)):
        faults = phrases(data, "faults")
        if "faults" in data:
            faults += filter(None, map(str, data["faults"].values.flat))
        if faults:
            raise AssertionError(f"{method}: faults: {'; '.join(faults)}")
    for name in ("problem", "inputs", "n"):
        of_both = [str(data.attrs.get(name, "")) for data in (simulated, predicted)]
        if all(of_both) and of_both[0] != of_both[1]:
            raise AssertionError(f"different problems: {name} {' and '.join(of_both)}")
    xr.align(simulated, predicted, join="exact")  # else a ValueError


@np.errstate(all="ignore")  # what is not finite fails
def _measured(simulated: Any, rounding: Any = None) -> Measured:
    """The expectation of batches (B, …), or of a pair (mean, standard error)."""
    if isinstance(simulated, tuple):
        mean, error = (real_numbers("simulated", part) for part in simulated)
        if not ((error >= 0) & (error < np.inf)).all():
            raise InputError("simulated: standard error", error.tolist(), "finite and ≥ 0")
        return Measured(mean, error, 0.0, np.inf, _unit(simulated) * np.abs(mean), 1.0)
    values = real_numbers("simulated", simulated)
    if values.ndim < 1 or len(values) < 2:
        raise InputError("simulated", values.shape, "2 batches or more, first; or (mean, MCSE)")
    if rounding is None:
        rounding = _unit(simulated) * np.abs(values).max(0)
    # What varies by rounding alone has no pattern that tells of draws.
    independence = np.where(np.ptp(values, axis=0) > rounding, dependence_p(values), 1.0)
    skewed = skewness(values)
    return Measured(values.mean(0), mcse(values), skewed, len(values), rounding, independence)


def _unit(values: Any) -> float:
    """Rounding by which equal numbers of this type may differ, relative to their size."""
    single = getattr(values, "dtype", None) == np.float32
    return ROUNDING * float(np.finfo(np.float32 if single else float).eps)


def _check_range(name: str, value: float, ends: tuple[float, float]) -> None:
    """Raise InputError for what is no number from one end to the other."""
    low, high = ends
    if not (np.ndim(value) == 0 and low <= real_numbers(name, value) <= high):
        raise InputError(name, value, f"{low:g} to {high:g}")


@np.errstate(all="ignore")
def _settle(cases: Sequence[Case], tolerance: str, false_alarm: float) -> Gaps:
    """Smallest gaps that fail, unless the entry with the least p-value does, or one is missing."""
    _check_range("false_alarm", false_alarm, FALSE_ALARMS)
    entries = sum(np.broadcast(case.measured.mean, case.high).size for case in cases)
    if entries == 0:
        raise InputError("simulated", "no entries", "one or more")
    gaps = {}
    extremes = []
    for case in cases:
        mean, error, skewed, batches, rounding, independent = case.measured
        allowed = case.tolerance + rounding
        above = mean - case.high
        below = case.low - mean
        off = np.maximum(above, below) - allowed
        p = np.asarray(fixed_p(skewed_distance(off, error, skewed), error, batches - 1))
        p = np.where(np.isnan(off) | ~np.isfinite(error), 0.0, p)
        least = significant_distance(false_alarm / entries, error, skewed, batches - 1)
        gaps[case.name] = np.broadcast_to(allowed + least, p.shape)
        bound = np.where(above > below, case.high, case.low)
        numbers = np.broadcast_arrays(p, mean, bound, off, error, gaps[case.name], independent)
        place = np.unravel_index(int(p.argmin()), p.shape)
        extremes.append((case.name, place, *(number[place] for number in numbers)))
    name, place, p, mean, bound, off, error, gap, independent = min(extremes, key=itemgetter(2))
    passed = p * entries >= false_alarm
    dependent = min(np.min(case.measured.independence) for case in cases) * entries
    if dependent < DEPENDENT or not (passed or independent >= DEPENDENT_IF_FAILED):
        got = f"batches that depend on one another (p = {min(dependent, independent):.1g})"
        independent_ones = "independent ones, or (mean, standard error) where both are known"
        raise DependentBatches("simulated", got, independent_ones)
    if passed:
        return gaps
    location = f"{name} at {tuple(map(int, place))}" if place else name
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
    command = f"; again: pytest '{test}'" if test else ""
    raise AssertionError(
        f"{location}: simulated {mean:.6g} ± {error:.2g}, expected {bound:.6g}; "
        f"{off / error if error else np.inf:.1f} standard errors beyond {tolerance} (p = {p:.1g}, "
        f"{entries} entries, false alarms {false_alarm:.0e}; a gap from {gap:.2g} on fails)"
        f"{command}"
    )


def on_problems(law: Any, count: int, seed: int = 0) -> pytest.MarkDecorator:
    """Decorator of a test that runs on problems of a law, each passed as its argument ``problem``.

    Args:
        law: fields of a :class:`sims.problem.law.Law`, or an object with its method
            ``draw(seed, index)``.
        count: number of problems, at least 1.
        seed: random seed of the law.

    Raises:
        InputError: the law or an argument cannot be used.
    """
    from sims.base.checks import check_count
    from sims.problem.law import Law

    check_count("count", count)
    check_count("seed", seed, minimum=0)
    law = law if hasattr(law, "draw") else Law(law)
    drawn = [law.draw(seed, index) for index in range(count)]
    return pytest.mark.parametrize("problem", drawn, ids=range(count))

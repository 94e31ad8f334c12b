"""Assertions about simulated numbers, for tests of a theory, with a stated rate of false alarms.

Simulated numbers are a dataset of :func:`sims.estimate`, an array of iid batches (B, …) or a pair
(mean, Monte Carlo standard error). A test fails if a number is farther from theory than chance
allows: its Student p-value, corrected for the skewness of the batches and times the number of
entries, is below ``false_alarm``. So a true statement fails once in 1 / false_alarm runs, at any
precision; a test needs no fixed seed and no hand-made tolerance to be free of noise. Rounding does
not count: 64 units in the last place of the largest number compared are within every tolerance.

Dependent batches make the standard error too small, and are refused: if independent ones would
have such correlations once in 10⁸ runs, or, when an assertion fails, once in 20.

In pytest (``pytest_plugins = ["sims.testing"]``) a test with the mark ``law(law, count, seed=0)``
runs on ``count`` problems of that law, passed as its argument ``problem``.
"""

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
import xarray as xr
from numpy.typing import ArrayLike
from pydantic import NonNegativeInt, PositiveInt

from sims.base.arrays import real_numbers
from sims.base.errors import InputError
from sims.base.estimates import dependence_p, mcse, skewness
from sims.base.terms import BATCH, SCALARS
from sims.base.validation import Strict, parse
from sims.judgement.intervals import fixed_p, skewed_distance

Simulated = xr.Dataset | ArrayLike | tuple[ArrayLike, ArrayLike]
FALSE_ALARM = 1e-6
DEPENDENT, DEPENDENT_IF_FAILED = 1e-8, 0.05
"""p-values of independence below which batches are refused."""
MARK = "law(law, count, seed=0): run on so many problems of a law, the argument `problem`"
ROUNDING = 64
"""Units of rounding by which two equal numbers may differ."""


class DependentBatches(InputError, AssertionError):
    """Raised for dependent batches, whose standard error has no meaning."""


class Mark(Strict):
    """Arguments of the mark ``law``."""

    law: Any
    count: PositiveInt
    seed: NonNegativeInt = 0


def assert_agree(
    simulated: Simulated,
    predicted: xr.Dataset | ArrayLike,
    within: float = 0.0,
    *,
    terms: Sequence[str] = SCALARS,
    false_alarm: float = FALSE_ALARM,
) -> None:
    """Assert that simulated and predicted numbers agree within a relative tolerance.

    Error bounds that theory states (``<term>_error``) are added to the tolerance.

    Args:
        simulated: see the module.
        predicted: a dataset of :func:`sims.predict`, or an array (…).
        within: relative tolerance, ≥ 0.
        terms: terms of datasets to compare; terms that one of them lacks are ignored.
        false_alarm: probability that a true statement fails.

    Raises:
        AssertionError: they do not agree; it names term, entry, gap in standard errors and the
            command that repeats the test.
        DependentBatches: batches are not independent; also an AssertionError.
    """
    cases = []
    for name, values, theory, bound in _pairs(simulated, predicted, terms):
        measured = _measured(values)
        off = np.abs(measured[0] - theory) - within * np.abs(theory) - bound
        cases.append((name, measured, theory, off))
    _settle(cases, f"agreement within {within:.3g}", false_alarm)


def assert_bound(
    simulated: Simulated,
    *,
    at_most: ArrayLike = np.inf,
    at_least: ArrayLike = -np.inf,
    false_alarm: float = FALSE_ALARM,
) -> None:
    """Assert that a simulated number is within bounds; else as :func:`assert_agree`."""
    measured = _measured(simulated)
    highest, lowest = real_numbers("at_most", at_most), real_numbers("at_least", at_least)
    above, below = measured[0] - highest, lowest - measured[0]
    bound, off = np.where(above > below, highest, lowest), np.maximum(above, below)
    _settle([("value", measured, bound, off)], "a bound", false_alarm)


def assert_order(lower: ArrayLike, higher: ArrayLike, *, false_alarm: float = FALSE_ALARM) -> None:
    """Assert that one expectation is at most another; batches (B, …) share their draws."""
    for name, batches in (("lower", lower), ("higher", higher)):
        real_numbers(name, batches)
    size = np.asarray(np.abs(lower) + np.abs(higher)).max(0)
    measured = _measured(np.subtract(lower, higher), _unit(lower) * size)
    _settle([("lower − higher", measured, 0.0, measured[0])], "an order", false_alarm)


def assert_rate(
    x: ArrayLike,
    simulated: ArrayLike,
    exponent: float,
    within: float = 0.1,
    *,
    false_alarm: float = FALSE_ALARM,
) -> None:
    """Assert that the least-squares slope of log y on log x is within a tolerance of an exponent.

    Args:
        x: (K,), positive.
        simulated: (B, K) batches, positive in the mean.
        exponent: the claimed slope.
        within: ≥ 0.
        false_alarm: as in :func:`assert_agree`.
    """
    log, batches = np.log(real_numbers("x", x)), real_numbers("simulated", simulated)
    weights, mean = (log - log.mean()) / np.var(log) / len(log), batches.mean(0)
    size = (1 + np.abs(np.log(mean))) @ np.abs(weights)  # of relative errors, and of logarithms
    pseudo_values = np.log(mean) @ weights + (batches / mean - 1) @ weights
    measured = _measured(pseudo_values, _unit(simulated) * size)
    off = np.abs(measured[0] - exponent) - within
    _settle([("slope", measured, exponent, off)], f"a slope within {within:.3g}", false_alarm)


def _pairs(
    simulated: Any, predicted: Any, terms: Sequence[str]
) -> Iterator[tuple[str, Any, Any, Any]]:
    """Names, batches, predictions and their bounds."""
    if not isinstance(simulated, xr.Dataset):
        yield "value", simulated, real_numbers("predicted", predicted), 0.0
        return
    common = [name for name in terms if name in simulated and name in predicted]
    if not common:
        raise InputError("terms", ", ".join(terms), ", ".join(map(str, simulated.data_vars)))
    for name in common:
        theory, bound = predicted[name], predicted.get(f"{name}_error")
        values = simulated[name].transpose(BATCH, *theory.dims).values
        yield name, values, theory.values, 0.0 if bound is None else bound.values


def _measured(simulated: Any, rounding: Any = None) -> tuple[Any, ...]:
    """Mean, its Monte Carlo standard error and skewness, and the number of batches.

    Then what rounding may be of the mean, and the p-value of the batches' independence.
    """
    if isinstance(simulated, tuple):
        mean, error = (real_numbers("simulated", part) for part in simulated)
        return mean, error, 0.0, np.inf, _unit(simulated) * np.abs(mean), 1.0
    values = real_numbers("simulated", simulated)
    if values.ndim < 1 or len(values) < 2:
        raise InputError("simulated", values.shape, "2 batches or more, first; or (mean, MCSE)")
    if rounding is None:
        rounding = _unit(simulated) * np.abs(values).max(0)
    # What varies by rounding alone has no pattern that tells of draws.
    independent = np.where(np.ptp(values, axis=0) > rounding, dependence_p(values), 1.0)
    moments = values.mean(0), mcse(values), skewness(values)
    return *moments, len(values), rounding, independent


def _unit(values: Any) -> float:
    """Rounding by which equal numbers of this type may differ, relative to their size."""
    single = getattr(values, "dtype", None) == np.float32
    return ROUNDING * float(np.finfo(np.float32 if single else float).eps)


def _settle(cases: Sequence[tuple[str, Any, Any, Any]], tolerance: str, false_alarm: float) -> None:
    """Fail for the entry with the least p-value, if it is too small or missing."""
    entries = sum(np.size(off) for *_, off in cases)
    extremes = []
    for name, (mean, error, skewed, batches, rounding, independent), theory, off in cases:
        off = off - rounding
        p = np.asarray(fixed_p(skewed_distance(off, error, skewed), error, batches - 1))
        p = np.where(np.isnan(off), np.isnan(mean) & np.isnan(theory), p)
        place = np.unravel_index(int(p.argmin()), p.shape)
        numbers = mean, theory, off, error, independent
        extremes.append(
            (p[place], name, place, *(np.broadcast_to(x, p.shape)[place] for x in numbers))
        )
    p, name, place, mean, theory, off, error, independent = min(extremes, key=lambda case: case[0])
    passed = p * entries >= false_alarm
    least = min(np.min(measured[-1]) for _, measured, *_ in cases) * entries
    if least < DEPENDENT or not (passed or independent >= DEPENDENT_IF_FAILED):
        got = f"batches that depend on one another (p = {min(least, independent):.1g})"
        allowed = "independent ones, or (mean, standard error) where both are known"
        raise DependentBatches("simulated", got, allowed)
    if passed:
        return
    location = f"{name} at {tuple(map(int, place))}" if place else name
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
    command = f"; again: pytest '{test}'" if test else ""
    raise AssertionError(
        f"{location}: simulated {mean:.6g} ± {error:.2g}, expected {theory:.6g}; "
        f"{off / error if error else np.inf:.1f} standard errors beyond {tolerance} (p = {p:.1g}, "
        f"{entries} entries, false alarms {false_alarm:.0e}){command}"
    )


def _check_independence(p: float, least: float) -> None:
    """Raise DependentBatches if the p-value of independence is too small."""
    if p < least:
        allowed = "independent ones, or (mean, standard error) where both are known"
        got = f"batches that depend on one another (p = {p:.1g})"
        raise DependentBatches("simulated", got, allowed)


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark ``law``."""
    config.addinivalue_line("markers", MARK)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test for every problem, by its index."""
    node = metafunc.definition
    if node.get_closest_marker("law") and "problem" in metafunc.fixturenames:
        _, count, _ = _law_of(node)
        metafunc.parametrize("problem", range(count), indirect=True)


def _law_of(node: pytest.Item) -> tuple[Any, int, int]:
    """Law, count and seed of a test's mark; InputError if the mark is wrong."""
    mark = node.get_closest_marker("law")
    try:
        marks = sum(other.name == "law" for other in node.own_markers)
        if mark is None or marks > 1 or len(mark.args) > len(Mark.model_fields):
            raise InputError(f"{node.name}: the argument `problem`", mark, f"one mark, {MARK}")
        arguments = dict(zip(Mark.model_fields, mark.args, strict=False)) | dict(mark.kwargs)
        law, count, seed = dict(parse(Mark, arguments, node.name)).values()
        if not hasattr(law, "draw"):
            from sims.problem.law import Law

            law = Law(law)
        return law, count, seed
    except InputError as error:
        line = str(error)
    pytest.fail(line, pytrace=False)


@pytest.fixture
def problem(request: pytest.FixtureRequest) -> Any:
    """Problem on which a test runs: ``law.draw(seed, index)``.

    The law is an object with that method, or the fields of a :class:`sims.problem.law.Law`.
    """
    law, _, seed = _law_of(request.node)
    return law.draw(seed, request.param)

"""Assertions about simulated numbers, for tests of a theory, with a stated rate of false alarms.

Simulated is a dataset of :func:`sims.estimate`, an array of iid batches (B, …) or a pair (mean,
Monte Carlo standard error). A test fails where a number is farther off than chance allows: its
Student p-value, corrected for the skewness of the batches and times the number of entries, is below
``false_alarm``. So a true statement fails once in 1 / false_alarm runs, whatever its precision; a
test that is never to fail by noise needs no fixed seed and no hand-made tolerance.

In pytest (``pytest_plugins = ["sims.testing"]``) a test with the mark ``law(law, count, seed=0)``
is run on ``count`` problems of that law, each the value of its argument ``problem``.
"""

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
import xarray as xr
from numpy.typing import ArrayLike

from sims.errors import InputError
from sims.estimates import mcse, skewness
from sims.judgement.intervals import fixed_p, skewed_distance
from sims.terms import BATCH, SCALARS

Simulated = xr.Dataset | ArrayLike | tuple[ArrayLike, ArrayLike]
FALSE_ALARM = 1e-6


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
        terms: of datasets, those to compare; those that one of them lacks are left out.
        false_alarm: probability that a true statement fails.

    Raises:
        AssertionError: they do not; it names term, entry, gap in standard errors and the command
            that runs the test again.
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
    """Assert that a simulated number is within bounds; the rest is as in :func:`assert_agree`."""
    measured = _measured(simulated)
    above, below = np.subtract(measured[0], at_most), np.subtract(at_least, measured[0])
    bound, off = np.where(above > below, at_most, at_least), np.maximum(above, below)
    _settle([("value", measured, bound, off)], "a bound", false_alarm)


def assert_order(lower: ArrayLike, higher: ArrayLike, *, false_alarm: float = FALSE_ALARM) -> None:
    """Assert that one expectation is at most another; batches (B, …) share their draws."""
    measured = _measured(np.subtract(lower, higher))
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
        exponent: the slope that is claimed.
        within: ≥ 0.
        false_alarm: as of :func:`assert_agree`.
    """
    log, batches = np.log(np.asarray(x, float)), np.asarray(simulated, float)
    weights, mean = (log - log.mean()) / np.var(log) / len(log), batches.mean(0)
    measured = _measured(np.log(mean) @ weights + (batches / mean - 1) @ weights)
    off = np.abs(measured[0] - exponent) - within
    _settle([("slope", measured, exponent, off)], f"a slope within {within:.3g}", false_alarm)


def _pairs(
    simulated: Any, predicted: Any, terms: Sequence[str]
) -> Iterator[tuple[str, Any, Any, Any]]:
    """Names, batches, predictions and their bounds."""
    if not isinstance(simulated, xr.Dataset):
        yield "value", simulated, np.asarray(predicted, float), 0.0
        return
    common = [name for name in terms if name in simulated and name in predicted]
    if not common:
        raise InputError("terms", ", ".join(terms), ", ".join(map(str, simulated.data_vars)))
    for name in common:
        theory, bound = predicted[name], predicted.get(f"{name}_error")
        values = simulated[name].transpose(BATCH, *theory.dims).values
        yield name, values, theory.values, 0.0 if bound is None else bound.values


def _measured(simulated: Any) -> tuple[np.ndarray, np.ndarray, Any, float]:
    """Mean, its Monte Carlo standard error and skewness, and the number of batches."""
    if isinstance(simulated, tuple):
        mean, error = (np.asarray(part, float) for part in simulated)
        return mean, error, 0.0, np.inf
    values = np.asarray(simulated, float)
    if values.ndim < 1 or len(values) < 2:
        raise InputError("simulated", values.shape, "2 batches or more, first; or (mean, MCSE)")
    return values.mean(0), mcse(values), skewness(values), len(values)


def _settle(cases: Sequence[tuple[str, Any, Any, Any]], tolerance: str, false_alarm: float) -> None:
    """Fail for the entry with the least p-value, if that is too small, or is missing."""
    entries = sum(np.size(off) for *_, off in cases)
    extremes = []
    for name, (mean, error, skewed, batches), theory, off in cases:
        p = np.asarray(fixed_p(skewed_distance(off, error, skewed), error, batches - 1))
        p = np.where(np.isnan(off), np.isnan(mean) & np.isnan(theory), p)
        place = np.unravel_index(int(p.argmin()), p.shape)
        extremes.append((p[place], name, place, mean, theory, off, error))
    p, name, place, *arrays = min(extremes, key=lambda extreme: extreme[0])
    if p * entries >= false_alarm:
        return
    mean, theory, off, error = (np.broadcast_to(a, np.shape(arrays[0]))[place] for a in arrays)
    location = f"{name} at {tuple(map(int, place))}" if place else name
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
    command = f"; again: pytest '{test}'" if test else ""
    raise AssertionError(
        f"{location}: simulated {mean:.6g} ± {error:.2g}, expected {theory:.6g}; "
        f"{off / error if error else np.inf:.1f} standard errors beyond {tolerance} (p = {p:.1g}, "
        f"{entries} entries, false alarms {false_alarm:.0e}){command}"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Make the mark known."""
    words = "law(law, count, seed=0): run on so many problems of a law, the argument `problem`"
    config.addinivalue_line("markers", words)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test for every problem, by its index."""
    mark = metafunc.definition.get_closest_marker("law")
    if mark is not None and "problem" in metafunc.fixturenames:
        metafunc.parametrize("problem", range(mark.args[1]), indirect=True)


@pytest.fixture
def problem(request: pytest.FixtureRequest) -> Any:
    """The problem of a law that a test is run on: what ``law.draw(seed, index)`` returns.

    The law is an object with that method, or the fields of a :class:`sims.problem.law.Law`.
    """
    mark = request.node.get_closest_marker("law")
    law = mark.args[0]
    if not hasattr(law, "draw"):
        from sims.problem.law import Law

        law = Law(law)
    return law.draw(mark.kwargs.get("seed", 0), request.param)

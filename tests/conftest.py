"""Shared by all tests: JAX is set up before any test module makes an array."""

import atexit
import gc
import os
import re

from tests.environment import SETTINGS

os.environ.update(SETTINGS | os.environ)

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

if os.environ.get("SIMS_SHAPES"):
    # `make test-shapes`: the shapes of annotated arrays, at every call.
    from jaxtyping import install_import_hook

    import tests.shapes  # noqa: F401

    install_import_hook("sims", "tests.shapes.checked")

import sims.problem  # noqa: F401
from tests.pipeline import copy  # noqa: F401
from tests.sequential import sequential_test

# NumPy may be there before its environment is: a plugin of pytest's imports it.
threadpool_limits(int(os.environ["OPENBLAS_NUM_THREADS"]), "blas")


def pytest_collection_modifyitems(config, items):
    """Long tests run only where ``-m`` asks for them, so that ``-m theory`` stays short."""
    if any("::" in a for a in config.args):
        return
    names = {"slow", "documented"} - set(re.findall(r"\w+", config.option.markexpr))
    long = [item for item in items if names & {mark.name for mark in item.iter_markers()}]
    config.hook.pytest_deselected(items=long)
    items[:] = [item for item in items if item not in long]


def pytest_collection_finish():
    """Tracing fills the heap with objects that last: looking for garbage among them is dear."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


def pytest_sessionfinish():
    """A process that ends need not free all that it compiled: that takes seconds."""
    gc.freeze()
    if "PYTEST_XDIST_WORKER" in os.environ:
        atexit.register(os._exit, 0)


@pytest.fixture
def monte_carlo():
    """``monte_carlo(draw, expected, tolerance=0, batches=32)``: once in 1e5 a false alarm.

    See :mod:`tests.sequential`.
    """

    def check(draw, expected, *, tolerance=0.0, batches=32):
        outcome = sequential_test(draw, expected, tolerance=tolerance, batches=batches)
        place = np.unravel_index(outcome.worst, np.shape(expected)) if np.ndim(expected) else ()
        assert outcome.passed, (
            f"at {tuple(map(int, place))}: simulated {outcome.estimate:.6g} ± {outcome.error:.2g}, "
            f"expected {np.ravel(expected)[outcome.worst]:.6g}, p-values {outcome.p_values}"
        )
        return outcome

    return check

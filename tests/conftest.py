"""Shared by all tests: JAX is set up before any test module makes an array."""

import atexit
import gc
import os
import re

from tests.environment import SETTINGS

os.environ.update(SETTINGS | os.environ)

from threadpoolctl import threadpool_limits

if os.environ.get("SIMS_SHAPES"):
    # `make test-shapes`: the shapes of annotated arrays, at every call.
    from jaxtyping import install_import_hook

    import tests.shapes  # noqa: F401

    install_import_hook("sims", "tests.shapes.checked")

import sims.problem  # noqa: F401
from tests.pipeline import copy  # noqa: F401

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

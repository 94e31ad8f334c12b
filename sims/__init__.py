"""Monte Carlo simulation and theory validation of multi-head attention as a kernel ensemble.

Two independent methods solve a *problem* (:mod:`sims.problem`): *theory* (:mod:`sims.theory`) and
*simulation* (:mod:`sims.simulation`). Both return the same labelled *terms*
(:mod:`sims.base.terms`); *questions* turn them into answers (:mod:`sims.judgement`).

The names below are imported on first use, so that ``import sims`` costs nothing::

    from sims import DESIGNS, FRAMES, TARGETS, Heads, Task, ball_queries, estimate, predict

This configures JAX for the entire process: 64-bit numbers, float32 products without further
rounding (matmul precision ``highest``), and one CPU device per core; see
:func:`sims.base.runtime.configure`. To run other code with JAX's defaults, use
``with jax.enable_x64(False), jax.default_matmul_precision("default"):``.
"""

import sys
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sims.montecarlo import Sampling
    from sims.problem import (
        DESIGNS,
        FRAMES,
        KERNELS,
        QUERIES,
        TARGETS,
        CustomDesign,
        CustomTarget,
        Design,
        EmpiricalDesign,
        Heads,
        Kernel,
        StudentDesign,
        Task,
        TrigonometricSeries,
        ball_queries,
        correlated_queries,
        gaussian_queries,
    )
    from sims.simulation import draw, estimate, nw_weights
    from sims.study import DrawnStudy, Run, Study, run
    from sims.theory import predict
    from sims.weights import WeightRule

__version__: str
"""Version of the installed package, from the tags of its repository; "unknown" without install."""
__all__ = [
    "DESIGNS",
    "FRAMES",
    "KERNELS",
    "QUERIES",
    "TARGETS",
    "CustomDesign",
    "CustomTarget",
    "Design",
    "DrawnStudy",
    "EmpiricalDesign",
    "Heads",
    "Kernel",
    "Run",
    "Sampling",
    "StudentDesign",
    "Study",
    "Task",
    "TrigonometricSeries",
    "WeightRule",
    "ball_queries",
    "correlated_queries",
    "draw",
    "estimate",
    "gaussian_queries",
    "nw_weights",
    "predict",
    "run",
]

_HOMES = {
    "Sampling": "montecarlo",
    "draw": "simulation",
    "estimate": "simulation",
    "nw_weights": "simulation",
    "predict": "theory",
    "DrawnStudy": "study",
    "Run": "study",
    "Study": "study",
    "run": "study",
    "WeightRule": "weights",
}
"""Name to its package; all others are in ``problem``."""


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib import metadata

        with suppress(metadata.PackageNotFoundError):
            return metadata.version("nw-attention-sims")
        return "unknown"
    if name not in __all__:
        # With name and object, Python suggests the name that may be meant.
        missing = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(missing, name=name, obj=sys.modules[__name__])
    return getattr(import_module(f"sims.{_HOMES.get(name, 'problem')}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

"""What a theory covers: asked before anything is computed."""

import jax.numpy as jnp
import numpy as np

from sims.errors import Uncovered
from sims.problem import CustomTarget, Heads, Kernel, Task, TrigonometricSeries

FAR, FARTHER = 1e3, 2e3
"""Lengths of keys between which a kernel's growth is looked at, in units of the bandwidth."""
STEEP = 100.0
"""Growth of log K between the two from which K counts as exponential; a power of the length ν would
make it ν log 2."""


def series_of(task: Task, theory: str) -> TrigonometricSeries:
    """The target, where it is a trigonometric series, of which alone there are closed forms.

    Args:
        task: with the target.
        theory: that has closed forms, for the line.

    Raises:
        Uncovered: it is another function.
    """
    if isinstance(task.target, TrigonometricSeries):
        return task.target
    allowed = f"a trigonometric series ({theory}); any function by order exact, with kernels"
    raise Uncovered("target", named(task), allowed)


def named(task: Task) -> str:
    """What the target is, in a few words."""
    if isinstance(task.target, CustomTarget):
        inner = task.target.function
        while hasattr(inner, "func"):  # a function with options bound
            inner = inner.func
        return f"function {getattr(inner, '__name__', type(inner).__name__)}"
    return type(task.target).__name__


def check_exact(task: Task, heads: Heads) -> None:
    """Raise Uncovered where exact theory says nothing about a problem; at no cost.

    Raises:
        Uncovered: the design's law is not known beside its sampler, keys depend on one another, a
            weight rule or its target has no closed forms, or E K is infinite: a kernel that grows
            exponentially in the key, as softmax does, under a design without exponential moments.
    """
    design = task.design
    if not isinstance(heads.rule, Kernel):
        # Imported late: SciPy's integration is slow to load.
        from sims.theory.first_order.adaptive import covered

        covered(task, heads)
        return
    design.from_normals(np.zeros((1, design.dimension + design.EXTRA_NORMALS)))
    if not design.EXPONENTIAL and _grows(heads.rule, heads.width):
        allowed = f"one that is bounded: E K is infinite under {type(design).__name__}"
        raise Uncovered("heads.kernel", heads.rule.name, allowed)


def _grows(kernel: Kernel, width: int) -> bool:
    """Whether log K grows like the key's length, along the query."""
    axis = jnp.eye(width)[0]
    near, far = (
        float(kernel.log_value(axis, size * axis, jnp.ones(()))) for size in (FAR, FARTHER)
    )
    return far - near > STEEP

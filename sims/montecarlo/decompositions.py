"""Check for programs that decompose many matrices: they may deadlock on several CPU devices.

In jaxlib 0.10, LAPACK's decompositions of a stack of matrices run on the threads of the programs,
and a program waits for them in its thread. If two devices do so at the same time, and there are
no more threads than devices, each waits forever for the other's thread. One device is safe.
"""

import functools
import math

import jax
from jax.extend.core import Jaxpr, Primitive

WORK = 20_000
"""Multiplications in a stack, about, up to which a program is left on all devices.

Observed to deadlock: 4·10⁵ (QR of 2,000 matrices 12 × 4) and 8·10⁵ (LU of 448 of 12 × 12); not
observed: 9·10⁴ (QR of 448 of 12 × 4).
"""
SOLVING = {"lu_pivots_to_permutation", "triangular_solve"}
"""Primitives that solve with a decomposition, without LAPACK calls on a stack."""
DECOMPOSITIONS = {
    value.name for value in vars(jax.lax.linalg).values() if isinstance(value, Primitive)
} - SOLVING
"""Names of JAX's primitives that decompose matrices."""


@functools.lru_cache(maxsize=256)
def waits_for_threads(program: Jaxpr) -> bool:
    """True if a traced program decomposes stacks of matrices that are shared out to threads.

    A stack of k matrices m × n is if ``k m n min(m, n)`` exceeds :data:`WORK`; a single matrix
    never is. Loops, branches and inner functions are looked through.
    """
    for equation in program.eqns:
        if equation.primitive.name in DECOMPOSITIONS:
            shape = getattr(equation.invars[0].aval, "shape", ())
            if len(shape) > 2 and math.prod(shape) * min(shape[-2:]) > WORK:
                return True
        inner = jax.tree.leaves(
            list(equation.params.values()), is_leaf=lambda leaf: isinstance(leaf, Jaxpr)
        )
        programs = (getattr(leaf, "jaxpr", leaf) for leaf in inner)
        if any(isinstance(p, Jaxpr) and waits_for_threads(p) for p in programs):
            return True
    return False

"""Targets m, with the properties that theory and simulation need.

A trigonometric series has closed forms under Gaussian laws. Any other function of x is a
:class:`CustomTarget`: simulation, and exact theory on points in R^d, evaluate it directly.
"""

import abc
import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from sims.base.checks import (
    as_floats,
    check_count,
    device_key,
    evaluate_calls,
    is_concrete,
    on_device,
)
from sims.base.errors import InputError
from sims.base.runtime import forget_changed
from sims.problem.design_laws import Design

EPS = float(np.finfo(float).eps)
FORM = "m((…, d)) -> (…) in jax.numpy, coordinates x[..., 0] and so on"

Function = Callable[[Array], Array]
"""``(…, d) -> (…)``, traceable by JAX."""


class Target(eqx.Module):
    """Regression function m on R^d. A subclass defines its dimension and values."""

    @property
    @abc.abstractmethod
    def dimension(self) -> int:
        """Ambient dimension d."""

    @abc.abstractmethod
    def __call__(self, x: Float[Array, "*batch d"]) -> Float[Array, "*batch"]:
        """Values m(x), in the precision of x."""

    @property
    def terms(self) -> int:
        """Number of summands of m at a key: its cost in operations and in arrays of n numbers."""
        return 16

    @property
    def constant(self) -> float:
        """Constant term of m, which both methods subtract because weights of sum 1 ignore it."""
        return 0.0

    def values(self, x: ArrayLike) -> Float[np.ndarray, "*batch"]:
        """Values m(x) as a NumPy array; a series is computed in NumPy, without compiling."""
        return np.asarray(jax.tree.map(np.asarray, self)(np.asarray(x)))

    def without_constant(self) -> "Target":
        """m minus its constant part; the same object if that part is 0."""
        return self

    def padded(self, extra: int) -> "Target":
        """The same function of the first d of ``d + extra`` coordinates."""
        first = functools.partial(_of_first, self, self.dimension)
        return CustomTarget(self.dimension + extra, first)

    def rounding(self, x: Float[np.ndarray, "Q d"]) -> Float[np.ndarray, " Q"]:
        """Rounding error of m(x) in float64: ``4 max |m(x (1 ± ε)) − m(x)| + 2ε |m(x)|``."""
        rng = np.random.default_rng(0)
        value = self.values(x)
        distances = []
        for _ in range(4):
            near = x * (1 + EPS * rng.choice([-1.0, 1.0], np.shape(x)))
            distances.append(np.abs(self.values(near) - value))
        return np.asarray(4 * np.max(distances, axis=0) + 2 * EPS * np.abs(value))

    def largest(self, x: Float[np.ndarray, "Q d"]) -> float:
        """Approximate size of the summands of m near x."""
        return float(np.abs(self.values(x)).max())


class TrigonometricSeries(Target):
    """``m(x) = Σ_j a_j cos(ω_j·x + c_j)``.

    Args:
        amplitude: a, shape (J,).
        frequency: ω, shape (J, d).
        phase: c, shape (J,), radians.

    Raises:
        InputError: shapes disagree, no term is given, or an entry is not finite.
    """

    amplitude: Float[Array, " J"]
    frequency: Float[Array, "J d"]
    phase: Float[Array, " J"]

    def __init__(self, amplitude: ArrayLike, frequency: ArrayLike, phase: ArrayLike) -> None:
        self.frequency = as_floats("target.frequency", frequency)
        if self.frequency.ndim != 2 or not self.frequency.size:
            raise InputError("target.frequency", self.frequency.shape, "shape (J, d), J >= 1")
        self.amplitude = as_floats("target.amplitude", amplitude, (self.terms,))
        self.phase = as_floats("target.phase", phase, (self.terms,))

    @property
    def dimension(self) -> int:
        return self.frequency.shape[1]

    @property
    def terms(self) -> int:
        """Number of terms J."""
        return len(self.frequency)

    @property
    def constant(self) -> float:
        """``Σ_{j: ω_j = 0} a_j cos c_j``, for a series that is not traced."""
        still = ~np.asarray(self.frequency).any(axis=1)
        return float(np.asarray(self.amplitude)[still] @ np.cos(np.asarray(self.phase)[still]))

    def without_constant(self) -> "TrigonometricSeries":
        """The series with amplitude 0 for its waves of frequency 0."""
        moving = np.asarray(self.frequency).any(axis=1)
        if moving.all():
            return self
        amplitude = np.where(moving, np.asarray(self.amplitude), 0.0)
        on_host = isinstance(self.amplitude, np.ndarray)
        return eqx.tree_at(
            lambda m: m.amplitude, self, amplitude if on_host else on_device(amplitude)
        )

    def padded(self, extra: int) -> "TrigonometricSeries":
        frequency = np.pad(np.asarray(self.frequency), ((0, 0), (0, extra)))
        return TrigonometricSeries(self.amplitude, frequency, self.phase)

    def __call__(self, x: Float[Array, "*batch d"]) -> Float[Array, "*batch"]:
        angle = x @ self.frequency.T.astype(x.dtype) + self.phase.astype(x.dtype)
        cos = np.cos if isinstance(angle, np.ndarray) else jnp.cos  # NumPy compiles nothing
        return cos(angle) @ self.amplitude.astype(x.dtype)

    def rounding(self, x: Float[np.ndarray, "Q d"]) -> Float[np.ndarray, " Q"]:
        """``ε Σ_j |a_j| (Σ_i |ω_ji x_i| + |c_j| + 2)``.

        An angle is accurate to ε times the size of its summands, a wave to ε times its amplitude.
        """
        angle = np.abs(x) @ np.abs(np.asarray(self.frequency)).T + np.abs(np.asarray(self.phase))
        return np.asarray(EPS * (angle + 2) @ np.abs(np.asarray(self.amplitude)))

    def largest(self, x: Float[np.ndarray, "Q d"]) -> float:
        """``Σ_j |a_j|``, for any x."""
        del x
        return float(np.abs(np.asarray(self.amplitude)).sum())


class CustomTarget(Target):
    """A custom target: any function of x that JAX can trace.

    It has no closed form. Simulation evaluates it directly, and so does exact theory on points of
    R^d (``order="exact"``, with every design of known density; no derivative is needed). No
    constant part is subtracted.

    Args:
        dimension: d.
        function: m, ``(…, d) -> (…)`` in ``jax.numpy``: coordinates are ``x[..., 0]`` and so on.
            It is called with rows (N, d), in float32 or float64, and must not mix rows.

    Raises:
        InputError: the function raises, cannot be traced by JAX, returns a wrong shape or numbers
            that are not real, or its value for a row depends on other rows.
    """

    size: int = eqx.field(static=True)
    function: Function = eqx.field(static=True)

    def __init__(self, dimension: int, function: Function) -> None:
        check_count("dimension", dimension)
        try:
            hash(function)
        except TypeError:  # an object with arrays; a static field needs a hash
            function = functools.partial(function)
        self.size = int(dimension)
        self.function = function
        rows = np.random.default_rng(0).normal(size=(self.dimension + 3, self.dimension))
        calls: list[tuple[Any, ...]] = []
        for precision in (np.float32, np.float64):
            x = rows.astype(precision)
            calls += [((len(x),), x), ((2,), x[:2])]
        values = evaluate_calls("target", function, FORM, *calls)
        for together, alone in (values[:2], values[2:]):
            # To rounding, a digit of which an unlucky cancellation may leave in float32.
            if not np.allclose(together[:2], alone, rtol=0.1, atol=1e-3, equal_nan=True):
                raise InputError("target", "a value that depends on other rows", "independent rows")

    @property
    def dimension(self) -> int:
        return self.size

    def __call__(self, x: Float[Array, "*batch d"]) -> Float[Array, "*batch"]:
        if is_concrete(x):  # inside a traced program the caller has looked
            forget_changed(self.function)
        return _of_rows(self.function, x)

    def check_under(self, design: Design) -> None:
        """Raise InputError if the function is not finite at 64 keys of a design."""
        if not all(map(is_concrete, jax.tree.leaves(design))):
            return
        with jax.ensure_compile_time_eval():
            values = np.asarray(self(design.sample(device_key("target.check", 0), 64)))
        if not np.isfinite(values).all():
            got = f"NaN or infinity at {(~np.isfinite(values)).sum()} of 64 keys"
            raise InputError("target", got, "finite numbers wherever the design has mass")


@functools.partial(jax.jit, static_argnums=0)
def _of_rows(function: Function, x: Float[Array, "*batch d"]) -> Float[Array, "*batch"]:
    """Values of a function of rows at points of any shape, as one compiled program per shape."""
    return function(x.reshape(-1, x.shape[-1])).astype(x.dtype).reshape(x.shape[:-1])


def _of_first(function: Function, count: int, x: Array) -> Array:
    """The function of the first ``count`` coordinates of x."""
    return function(x[..., :count])

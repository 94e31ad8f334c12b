"""The target m as an object: what the two roads need to know of it stands on it.

A trigonometric series has closed forms under Gaussian laws. Any other function of x is a
:class:`CustomTarget`: simulation and the exact theory of points in R^d take it as it is.
"""

import abc
import functools
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from sims.checks import (
    as_floats,
    check_count,
    check_finite,
    is_concrete,
    on_device,
    seeded_key,
)
from sims.errors import InputError
from sims.problem.design_laws import Design
from sims.problem.showing import span

EPS = float(np.finfo(float).eps)
CUSTOM_TERMS = 16
"""Operations, and arrays of the keys' length, that a target of one's own is taken to cost a key."""

Function = Callable[[Array], Array]
"""``(…, d) -> (…)``, traceable by JAX."""
Moves = Callable[[np.ndarray], np.ndarray | float]
"""Numbers to how far rounding may move each: an error of the same shape and precision, or 0."""


class Target(eqx.Module):
    """The regression function m of R^d. A new kind of target is a subclass; no road asks for it."""

    @property
    @abc.abstractmethod
    def dimension(self) -> int:
        """Ambient dimension d."""

    @property
    @abc.abstractmethod
    def terms(self) -> int:
        """Summands of m at a key: its cost, in operations and in arrays of the keys' length."""

    @property
    @abc.abstractmethod
    def constant(self) -> float:
        """A constant part of m that both roads take off, since weights of sum 1 do not see it."""

    @abc.abstractmethod
    def without_constant(self) -> "Target":
        """m less its constant part; the same object where that is 0 throughout."""

    @abc.abstractmethod
    def padded(self, extra: int) -> "Target":
        """The same function of the first d of ``d + extra`` coordinates."""

    @abc.abstractmethod
    def __call__(self, x: Float[Array, "*batch d"]) -> Float[Array, "*batch"]:
        """m(x), in the precision of x."""

    @abc.abstractmethod
    def moved(self, x: Float[np.ndarray, "N d"], moves: Moves) -> Float[np.ndarray, " N"]:
        """m(x) in NumPy and in the precision of x, every step moved as rounding may move it.

        Args:
            x: points.
            moves: how far; 0 for m(x) itself.
        """

    @abc.abstractmethod
    def rounding(self, x: Float[np.ndarray, "Q d"]) -> Float[np.ndarray, " Q"]:
        """What float64 leaves unknown of m(x), absolute."""

    @abc.abstractmethod
    def largest(self, x: Float[np.ndarray, "Q d"]) -> float:
        """How large the numbers are that m is a sum of, about, in the neighbourhood of x."""


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
        self.amplitude = as_floats("target.amplitude", amplitude)
        self.frequency = as_floats("target.frequency", frequency)
        self.phase = as_floats("target.phase", phase)
        if self.amplitude.ndim != 1 or not self.amplitude.size:
            raise InputError("target.amplitude", self.amplitude.shape, "shape (J,), J >= 1")
        terms = len(self.amplitude)
        if self.frequency.ndim != 2 or len(self.frequency) != terms or not self.frequency.size:
            raise InputError("target.frequency", self.frequency.shape, f"shape ({terms}, d)")
        if self.phase.shape != (terms,):
            raise InputError("target.phase", self.phase.shape, f"shape ({terms},)")
        for name in ("amplitude", "frequency", "phase"):
            check_finite(f"target.{name}", getattr(self, name))

    def __repr__(self) -> str:
        return (
            f"TrigonometricSeries({len(self.amplitude)} waves in {self.dimension} dimensions, "
            f"amplitudes {span(self.amplitude)}, frequencies {span(self.frequency, lengths=True)})"
        )

    @property
    def dimension(self) -> int:
        return self.frequency.shape[1]

    @property
    def terms(self) -> int:
        """J."""
        return len(self.amplitude)

    @property
    def constant(self) -> float:
        """``Σ_{j: ω_j = 0} a_j cos c_j``, of a series that is not traced."""
        still = ~np.asarray(self.frequency).any(axis=1)
        return float(np.asarray(self.amplitude)[still] @ np.cos(np.asarray(self.phase)[still]))

    def without_constant(self) -> "TrigonometricSeries":
        """The series with amplitude 0 for its waves of frequency 0."""
        moving = np.asarray(self.frequency).any(axis=1)
        if moving.all():
            return self
        amplitude = np.where(moving, np.asarray(self.amplitude), 0.0)
        if not isinstance(self.amplitude, np.ndarray):
            return eqx.tree_at(lambda m: m.amplitude, self, on_device(amplitude))
        return eqx.tree_at(lambda m: m.amplitude, self, amplitude)

    def padded(self, extra: int) -> "TrigonometricSeries":
        frequency = np.pad(np.asarray(self.frequency), ((0, 0), (0, extra)))
        return TrigonometricSeries(self.amplitude, frequency, self.phase)

    def __call__(self, x: Float[Array, "*batch d"]) -> Float[Array, "*batch"]:
        angle = x @ self.frequency.T.astype(x.dtype) + self.phase.astype(x.dtype)
        return jnp.cos(angle) @ self.amplitude.astype(x.dtype)

    def moved(self, x: Float[np.ndarray, "N d"], moves: Moves) -> Float[np.ndarray, " N"]:
        """As the engine computes it: angles in turns, of which only the broken part counts."""
        turns = x @ (np.asarray(self.frequency) / (2 * np.pi)).T.astype(x.dtype)
        turns = turns + (np.asarray(self.phase) / (2 * np.pi)).astype(x.dtype)
        part = turns - np.round(turns)
        part = part + moves(turns)
        waves = np.cos(2 * np.pi * part)
        waves = waves + moves(waves)
        return waves @ np.asarray(self.amplitude).astype(x.dtype)

    def rounding(self, x: Float[np.ndarray, "Q d"]) -> Float[np.ndarray, " Q"]:
        """``ε Σ_j |a_j| (Σ_i |ω_ji x_i| + |c_j| + 2)``.

        An angle is known to ε times the size of its summands, a wave to ε times its amplitude.
        """
        angle = np.abs(x) @ np.abs(np.asarray(self.frequency)).T + np.abs(np.asarray(self.phase))
        return np.asarray(EPS * (angle + 2) @ np.abs(np.asarray(self.amplitude)))

    def largest(self, x: Float[np.ndarray, "Q d"]) -> float:
        """``Σ_j |a_j|``, wherever x is."""
        del x
        return float(np.abs(np.asarray(self.amplitude)).sum())


class CustomTarget(Target):
    """A target of one's own: any function of x that JAX can trace.

    No closed form is known of it. Simulation takes it as it is, and so does exact theory on points
    of R^d (``order="exact"``, with every design whose law is known: no derivative is needed).
    Nothing is split off as its constant part.

    Args:
        size: d.
        function: m, ``(…, d) -> (…)`` in ``jax.numpy``: coordinates are ``x[..., 0]`` and so on.
            It is called with rows (N, d), in float32 or float64, and must not mix rows.

    Raises:
        InputError: the function raises, cannot be traced by JAX, returns another shape or no real
            numbers, or another value for a row in other company.
    """

    size: int = eqx.field(static=True)
    function: Function = eqx.field(static=True)

    def __init__(self, size: int, function: Function) -> None:
        check_count("dimension", size)
        try:
            hash(function)
        except TypeError:  # an object with arrays; a static field needs a hash
            function = functools.partial(function)
        self.size, self.function = int(size), function
        self._check()

    @property
    def dimension(self) -> int:
        return self.size

    @property
    def terms(self) -> int:
        """What a function is taken to cost: :data:`CUSTOM_TERMS`."""
        return CUSTOM_TERMS

    @property
    def constant(self) -> float:
        """0: none is known."""
        return 0.0

    def without_constant(self) -> "CustomTarget":
        return self

    def padded(self, extra: int) -> "CustomTarget":
        return CustomTarget(
            self.size + extra, functools.partial(of_first, self.function, self.size)
        )

    def __call__(self, x: Float[Array, "*batch d"]) -> Float[Array, "*batch"]:
        rows = jnp.asarray(x).reshape(-1, self.size)
        return self.function(rows).astype(x.dtype).reshape(x.shape[:-1])

    def moved(self, x: Float[np.ndarray, "N d"], moves: Moves) -> Float[np.ndarray, " N"]:
        """The function at points moved by rounding, and its value moved: steps within are its own.

        With ``moves`` 0 it is m(x) in the precision of x.
        """
        values = np.asarray(self(jnp.asarray((x + moves(x)).astype(x.dtype))))
        return values + moves(values)

    def rounding(self, x: Float[np.ndarray, "Q d"]) -> Float[np.ndarray, " Q"]:
        """``4 max |m(x (1 ± ε)) − m(x)| + 2ε |m(x)|``, of moved points: no derivative is taken."""
        rng = np.random.default_rng(0)
        value = np.asarray(self(jnp.asarray(x)))
        near = [x * (1 + EPS * rng.choice([-1.0, 1.0], np.shape(x))) for _ in range(4)]
        apart = [np.abs(np.asarray(self(jnp.asarray(points))) - value) for points in near]
        return np.asarray(4 * np.max(apart, axis=0) + 2 * EPS * np.abs(value))

    def largest(self, x: Float[np.ndarray, "Q d"]) -> float:
        """The largest ``|m|`` at these points."""
        return float(np.abs(np.asarray(self(jnp.asarray(x)))).max())

    def check_under(self, design: Design) -> None:
        """Raise InputError where the function is not finite at 64 keys of a design."""
        if not all(map(is_concrete, jax.tree.leaves(design))):
            return
        words = on_device(seeded_key("target.check", 0))
        with jax.ensure_compile_time_eval():
            key = jax.random.wrap_key_data(words, impl="threefry2x32")
            values = np.asarray(self(design.sample(key, 64)))
        if not np.isfinite(values).all():
            got = f"NaN or infinity at {(~np.isfinite(values)).sum()} of 64 keys"
            raise InputError("target", got, "finite numbers wherever keys may be")

    def _check(self) -> None:
        """Evaluate it at a few points, as the engine will: compiled."""
        rng, count = np.random.default_rng(0), self.size + 3
        allowed = "m((…, d)) -> (…) in jax.numpy, coordinates x[..., 0] and so on"
        for dtype in (np.float32, np.float64):
            rows = rng.normal(size=(count, self.size)).astype(dtype)
            try:
                with jax.ensure_compile_time_eval():
                    whole, part = (
                        np.asarray(jax.jit(self.function)(jnp.asarray(x))) for x in (rows, rows[:2])
                    )
            except InputError:
                raise
            except Exception as error:
                raise InputError("target", said(error), allowed) from error
            if whole.shape != (count,) or part.shape != (2,):
                got = f"shape {whole.shape} of {(count, self.size)}"
                raise InputError("target", got, allowed)
            if whole.dtype.kind not in "iuf":
                raise InputError("target", f"{whole.dtype} values", "real numbers")
            # To rounding, a digit of which an unlucky cancellation may leave in float32.
            if not np.allclose(whole[:2], part, rtol=0.1, atol=1e-3, equal_nan=True):
                raise InputError("target", "another value in other company", "one row at a time")


def of_first(function: Function, count: int, x: Array) -> Array:
    """The function of the first ``count`` coordinates of x."""
    return function(x[..., :count])


def said(error: Exception) -> str:
    """An exception's kind and the first line of what it says, for an error of one line.

    JAX's exceptions of tracing say the same in short: the function cannot be traced.
    """
    if isinstance(error, jax.errors.JAXTypeError):
        return f"{type(error).__name__}: not to be traced by JAX"
    first = str(error).strip().splitlines()
    return f"{type(error).__name__}: {first[0][:120]}" if first else type(error).__name__

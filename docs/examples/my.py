"""A target, a kernel, a weight rule and a design of one's own, for docs/examples/own.yaml."""

import functools

import jax
import jax.numpy as jnp

from sims.problem import StudentDesign
from sims.problem.kernels import gaussian_log
from sims.weights import WeightRule


def m(x, slope=1.0):
    """A ridge and a kink: coordinates are x[..., 0] and so on, rows are never mixed."""
    return jnp.tanh(slope * x[..., 0]) + 0.5 * jnp.abs(x[..., 1])


def rational(query, key, bandwidth, power=2.0):
    """log K = −power·log(1 + ‖q − k‖²/b²): coordinates come first, and are summed over."""
    return -power * jnp.log1p(jnp.sum(((query - key) / bandwidth) ** 2, axis=0))


def squared(share, scores):
    """Weights ∝ the square of what scores exceed this share of the largest softmax by."""
    soft = jax.nn.softmax(scores)
    rest = jnp.maximum(soft - share * soft.max(), 0.0) ** 2
    return rest / rest.sum()


@functools.cache  # an equal rule is the same object: compiled once
def pruned(share=0.5):
    """A weight rule, made from its options."""
    return WeightRule("pruned", gaussian_log, functools.partial(squared, share))


def stretched(dimension, ratio=4.0):
    """A law of the keys, made for the dimension of the problem."""
    return StudentDesign(jnp.diag(jnp.linspace(1.0, ratio, dimension)), freedom=4.0)

"""Draws for setting up a problem: the streams of :mod:`jax.random`, computed by NumPy.

JAX compiles a program for every operation and shape, and a problem is set up before anything
else: its few thousand numbers would cost seconds of compiling at every start. Keys, bits and
uniforms equal JAX's bit for bit (Threefry, partitionable); normals and their functions, up to
rounding. A key is a pair of 32-bit words, shape (…, 2); functions of one key take no leading axes
unless stated.

Source: Salmon et al. (2011), doi:10.1145/2063384.2063405.
"""

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = np.uint32(0x1BD11BDA)
_inverse = NormalDist().inv_cdf


def root(seed: int) -> np.ndarray:
    """Key of an integer seed, 0 ≤ seed < 2⁶³."""
    return np.array([seed >> 32, seed & 0xFFFFFFFF], np.uint32)


def fold_in(key: np.ndarray, number: ArrayLike) -> np.ndarray:
    """Keys (…, 2) made from key (…, 2) and numbers (…), 0 to 2³² − 1, broadcast."""
    number = np.asarray(number, np.uint32)
    return np.stack(_hash(key, np.zeros_like(number), number), axis=-1)


def split(key: np.ndarray, count: int = 2) -> np.ndarray:
    """New keys, shape (…, count, 2)."""
    return np.stack(_hash(key[..., None, :], *_counters(np.arange(count))), axis=-1)


def uniform(key: np.ndarray, shape: tuple[int, ...] = (), last: int | None = None) -> np.ndarray:
    """Uniform on [0, 1), float64, shape (…, *shape): 52 random bits each.

    With ``last``, only that many entries along the last axis are computed.
    """
    numbers = np.arange(math.prod(shape)).reshape(1, *shape)[..., :last][0]
    high, low = _hash(key[..., None, :], *_counters(numbers.ravel()))
    bits = (high.astype(np.uint64) << np.uint64(32)) | low
    ones = (bits >> np.uint64(12)) | np.float64(1.0).view(np.uint64)
    return (ones.view(np.float64) - 1.0).reshape((*key.shape[:-1], *numbers.shape))


def normal(key: np.ndarray, shape: tuple[int, ...] = (), last: int | None = None) -> np.ndarray:
    """Standard normal, float64, shape (…, *shape); ``last`` as for :func:`uniform`."""
    low = np.nextafter(-1.0, 0.0)
    u = np.maximum(low, uniform(key, shape, last) * (1.0 - low) + low)
    # √2 erf⁻¹(u) from the nearer tail, where 1 − |u| is exact.
    tails = ((1.0 - np.abs(u)) / 2).ravel().tolist()
    return np.copysign(np.fromiter(map(_inverse, tails), float, u.size).reshape(u.shape), u)


def gamma(key: np.ndarray, shape_parameter: float, count: int) -> np.ndarray:
    """Gamma variables of unit rate, shape (count,).

    Source: Marsaglia & Tsang (2000), doi:10.1145/358407.358414.
    """
    boosted = shape_parameter < 1
    d = shape_parameter + boosted - 1 / 3
    c = 1 / 3 / math.sqrt(d)
    pairs = split(split(key, count))
    keys = pairs[:, 0]
    last = pairs[:, 1]
    out = np.empty(count)
    pending = np.arange(count)
    while pending.size:
        threes = split(keys, 3)
        keys = threes[:, 0]
        for_normal = threes[:, 1]
        for_uniform = threes[:, 2]
        x = np.zeros(len(pending))
        v = np.full(len(pending), -1.0)
        while (low := v <= 0).any():
            for_normal, fresh = np.moveaxis(split(for_normal), -2, 0)
            x = np.where(low, normal(fresh), x)
            v = 1 + x * c
        cube = v**3
        u = uniform(for_uniform)
        with np.errstate(divide="ignore"):
            refused = (u >= 1 - 0.0331 * x**4) & (
                np.log(u) >= x**2 / 2 + d * (1 - cube + np.log(cube))
            )
        out[pending[~refused]] = d * cube[~refused]
        pending = pending[refused]
        keys = keys[refused]
    if boosted:
        out *= (1 - uniform(last)) ** (1 / shape_parameter)
    return out


def orthogonal(key: np.ndarray, size: int, width: int) -> np.ndarray:
    """The first columns of a Haar-random orthogonal matrix, shape (size, width)."""
    # Of 64 columns or more, so that up to d = 64 the first ones have the bits of the whole.
    basis, triangle = np.linalg.qr(normal(key, (size, size), max(width, 64)))
    return (basis * np.sign(np.diagonal(triangle)))[:, :width]


def _counters(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return (numbers >> 32).astype(np.uint32), numbers.astype(np.uint32)


def _hash(key: np.ndarray, first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The block function Threefry-2x32-20 of key words (…, 2) and two counter words (…)."""
    low, high = key[..., 0], key[..., 1]
    words = (low, high, low ^ high ^ _PARITY)
    # Sums are modulo 2³², as they should be; NumPy warns of it where all operands are scalars.
    with np.errstate(over="ignore"):
        x = first + low
        y = second + high
        for turn in range(5):
            for distance in _ROTATIONS[turn % 2]:
                x = x + y
                y = (y << np.uint32(distance)) | (y >> np.uint32(32 - distance))
                y = x ^ y
            x = x + words[(turn + 1) % 3]
            y = y + words[(turn + 2) % 3] + np.uint32(turn + 1)
    return x, y

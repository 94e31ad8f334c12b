"""Integrals over the number that a head's score depends on, and nodes for any number of keys.

The number is the distance c from the query for Gaussian heads, ``b² log K = −c²/2``, the component
along the query for softmax, ``b² log K = |x| c``. Given it the response of a wave of the target,
``r = e^{iω·(z − x)} − 1``, has the mean (seen coordinates alone; u is the factor of the others)

::

    gaussian  ₀F₁(d_k/2; c²ζ/4) / ₀F₁(d_k/2; c²|x|²/4) · u − 1,    ζ = |x|² − |ω|² − 2i ω·x
    softmax   exp(i(ω·x̂ c − ω·x) − ½(|ω|² − (ω·x̂)²)) · u − 1

Nodes s have equal steps in ``t = log(−log φ(s))``, so one set serves all n.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.polynomial.chebyshev import chebpts1, chebvander
from scipy.optimize.elementwise import find_root
from scipy.special import ive, logsumexp, roots_genlaguerre

from .problems import Drawn

LENGTHS = 3
"""Lengths of queries."""
STEP, LEFT, RIGHT = 0.9, 3e-4, 40.0
"""Step of nodes in t, and ``−n log φ`` at the first and the last of them."""
FINE = 0.11
"""Step of the lattice of numbers c."""
BELOW, ABOVE = 6.5, 5.0
"""Reach of the lattice around the keys' mean distance from the query."""
ALONG = (-5.5, 9.0)
"""Reach of the lattice along the query."""
POINTS = {"gaussian": 16, "softmax": 40}
"""Chebyshev points in c at which responses of waves are computed."""


class Seen(NamedTuple):
    """What one key contributes, of Q lengths of the query, on lattices of numbers.

    Attributes:
        latent: latent numbers, (N,).
        probable: their probabilities, (Q, N).
        view: probabilities of a head's number given the latent one, (N, V).
        score: b² log K, (Q, V).
        respond: function from latent numbers to ``E r + 1`` of K waves without u, (Q, K, …).
    """

    latent: np.ndarray
    probable: np.ndarray
    view: np.ndarray
    score: np.ndarray
    respond: Callable[[np.ndarray], np.ndarray]


def seen_by_distance(
    width: int, length: np.ndarray, noise: float, along: np.ndarray, square: np.ndarray
) -> Seen:
    """Gaussian heads: numbers are distances from the query, of keys seen through noise or none."""
    middle = (width + length**2) ** 0.5
    low, high = max(0.0, middle.min() - BELOW), middle.max() + ABOVE
    latent = lattice(low, high)
    probable = distances(latent, length[:, None], 1.0, width)
    number = latent
    view = np.eye(len(latent))
    if noise:
        far = (high**2 + width * noise**2) ** 0.5
        number = lattice(max(0.0, low - 4 * noise), far + 4.5 * noise)
        view = distances(number, latent[:, None], noise, width)
    order = width / 2 - 1
    size = length[:, None, None]

    def respond(place: np.ndarray) -> np.ndarray:
        root = (size**2 - square[:, None] - 2j * size * along[:, None]) ** 0.5
        bent = root * place
        plain = size * place
        scale = np.abs(bent.real) - plain + order * np.log(size / root)
        return np.asarray(ive(order, bent) / ive(order, plain) * np.exp(scale))

    return Seen(latent, probable, view, np.tile(-(number**2) / 2, (LENGTHS, 1)), respond)


def seen_along(
    width: int, length: np.ndarray, noise: float, along: np.ndarray, square: np.ndarray
) -> Seen:
    """Softmax heads: numbers are components along the query, of any width."""
    latent = lattice(*ALONG)
    probable = normalised(np.tile(-(latent**2) / 2, (LENGTHS, 1)))
    number = latent
    view = np.eye(len(latent))
    if noise:
        number = lattice(ALONG[0] - 4.5 * noise, ALONG[1] + 4.5 * noise)
        view = normalised(-((number - latent[:, None]) ** 2) / (2 * noise**2))

    def respond(place: np.ndarray) -> np.ndarray:
        turn = along[:, None] * (place - length[:, None, None])
        return np.asarray(np.exp(1j * turn - 0.5 * (square - along**2)[:, None]))

    return Seen(latent, probable, view, length[:, None] * number, respond)


def lengths(drawn: Drawn, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Lengths of the query in coordinates that a head sees, and their probabilities, (Q,) each."""
    node, share = roots_genlaguerre(LENGTHS, width / 2 - 1)
    return drawn["query_scale"] * (2 * node) ** 0.5, share / share.sum()


def seen_numbers(
    drawn: Drawn, width: int, length: np.ndarray, along: np.ndarray, square: np.ndarray
) -> Seen:
    """What one key contributes to heads of the regime's kernel, from K waves.

    Args:
        drawn: the regime.
        width: d_k.
        length: of the query, (Q,).
        along: ω·x̂, (K,).
        square: |ω|², (K,).
    """
    read = seen_by_distance if drawn["kernel"] == "gaussian" else seen_along
    return read(width, length, drawn["view_noise"], along, square)


def interpolation(latent: np.ndarray, kernel: str) -> tuple[np.ndarray, np.ndarray]:
    """Points on the lattice's range, (P,), and the matrix from them to the lattice, (N, P)."""
    middle = (latent[0] + latent[-1]) / 2
    reach = latent[-1] - middle
    orders = POINTS[kernel] - 1
    points = chebpts1(orders + 1)
    vander = chebvander((latent - middle) / reach, orders)
    return middle + reach * points, vander @ np.linalg.inv(chebvander(points, orders))


def lattice(low: float, high: float) -> np.ndarray:
    """Midpoints of cells."""
    count = int(np.ceil((high - low) / FINE))
    return low + (high - low) * (np.arange(count) + 0.5) / count


def distances(distance: np.ndarray, centre: np.ndarray, scale: float, width: int) -> np.ndarray:
    """Probabilities of the distance from a point of N(·, scale² I) at a distance, on a lattice."""
    order = width / 2 - 1
    bessel = ive(order, distance * centre / scale**2)
    radial = width / 2 * np.log(distance) - order * np.log(centre)
    return normalised(radial - (distance - centre) ** 2 / (2 * scale**2) + np.log(bessel))


def normalised(logs: np.ndarray) -> np.ndarray:
    """Probabilities from their logarithms, up to a constant, in rows."""
    weights = np.exp(logs - logs.max(1, keepdims=True))
    return weights / weights.sum(1, keepdims=True)


class Nodes(NamedTuple):
    """Nodes that serve all numbers of keys.

    Attributes:
        log_kernel: log K at the heads' numbers, (Q, V).
        t: of the nodes, (M,).
        log_s: at them, (Q, M).
    """

    log_kernel: np.ndarray
    t: np.ndarray
    log_s: np.ndarray


def nodes_of_bandwidths(
    score: np.ndarray, alone: np.ndarray, bandwidths: np.ndarray, sizes: np.ndarray
) -> list[Nodes]:
    """Nodes at every bandwidth, found together.

    Args:
        score: b² log K, (Q, V).
        alone: probabilities of a head's number, (Q, V).
        bandwidths: b, (B,).
        sizes: n.
    """
    log_kernel = score / bandwidths[:, None, None] ** 2
    rows = log_kernel.reshape(-1, score.shape[-1])
    t, log_s = nodes(rows, np.tile(alone, (len(bandwidths), 1)), sizes)
    parts = log_s.reshape(*log_kernel.shape[:2], len(t))
    return [Nodes(logs, t, part) for logs, part in zip(log_kernel, parts, strict=True)]


def nodes(
    log_kernel: np.ndarray, alone: np.ndarray, sizes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Nodes that serve all sizes n: t, (M,), and log s, (Q, M), of heads' numbers (Q, V)."""
    t = np.arange(np.log(LEFT / sizes.max()), np.log(RIGHT / sizes.min()) + STEP, STEP)

    def excess(log_s: np.ndarray, t: np.ndarray, row: np.ndarray) -> np.ndarray:
        hit = (-np.expm1(-scaled(log_s, log_kernel[row])) * alone[row]).sum(-1)
        return np.log(-np.log1p(-np.clip(hit, 1e-300, 1 - 1e-15))) - t

    # By Jensen's inequality t is at most the logarithm of s E K.
    low = t - logsumexp(log_kernel, axis=1, b=alone, keepdims=True) - 0.01
    high = 2 - log_kernel.min(1, keepdims=True)
    rows = np.arange(len(alone))[:, None]
    return t, find_root(excess, (low, high), args=(t, rows), tolerances={"fatol": 1e-7}).x


def scaled(log_s: np.ndarray, log_kernel: np.ndarray) -> np.ndarray:
    """X = sK, (…, V)."""
    return np.exp(np.minimum(log_s[..., None] + log_kernel, 60.0))


def flat(parts: np.ndarray) -> np.ndarray:
    """Pairs of nodes (Q, F, M, M) as nodes, (Q, M², F)."""
    return parts.reshape(*parts.shape[:2], -1).swapaxes(1, 2)


def of_keys(
    hit: np.ndarray, weight: np.ndarray, same: np.ndarray, apart: np.ndarray, sizes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Moments of n keys from those of one key, in unit weights and in responses r.

    Both are divided by the moment of the weights' sums, which is 1 but for the rule's error.

    Args:
        hit: ``1 − φ`` at the nodes, (Q, M).
        weight: of the nodes, (Q, M).
        same: expected products within one key, of weights and of weighted responses, (Q, M, 2).
        apart: products of two keys' expectations, of weights and of features, (Q, M, 1 + F).
        sizes: n.
    """
    n = sizes[:, None]
    idle = np.log1p(-np.clip(hit, 0, 1 - 1e-15))[:, None]
    power = n * weight[:, None] * np.exp((n - 1) * idle)
    noise, square = np.moveaxis(power @ same, 2, 0)
    unit, *cross = np.moveaxis(power * (n - 1) / np.exp(idle) @ apart, 2, 0)
    return (square + np.sum(cross, axis=0)) / (noise + unit), noise / (noise + unit)

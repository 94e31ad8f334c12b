"""Exact errors of heads that share a view, at any n: quadrature over what one key contributes.

Given the number c of the latent key (:mod:`.integrals`), two heads' views are independent of each
other and of the target. Every integral of docs/theory/exact.md is then a sum over a lattice of
latent numbers. Averages over queries are Gauss rules in their length and quasi-random in direction,
jointly with the waves; the squared bias that first order has in closed form corrects these waves'
by a factor.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import gammaincinv, ndtri
from scipy.stats import qmc

from .integrals import STEP, Nodes, flat, interpolation, lengths, of_keys, scaled, seen_numbers
from .problems import Drawn, relevance

WAVES = 128
"""Waves, each with a direction of the query."""
NEGLIGIBLE = 1e-6
"""Eigenvalues of the waves' covariance in c, relative to the largest, that are left out."""


class Key(NamedTuple):
    """The law of one key at Q lengths of the query, on lattices of latent and of seen numbers.

    Attributes:
        share: of each length, (Q,).
        view: probabilities of a head's number given the latent one, (N, V).
        score: b² log K, (Q, V).
        mean: probabilities of the latent number times 1 and E r, the latter in F real features
            whose products sum to E r·r̄', (Q, 1 + F, N).
        square: the same times 1 and E |r|², (Q, 2, N).
    """

    share: np.ndarray
    view: np.ndarray
    score: np.ndarray
    mean: np.ndarray
    square: np.ndarray

    @property
    def alone(self) -> np.ndarray:
        """Probabilities of a head's number, (Q, V)."""
        return self.square[:, 0] @ self.view


def draw_waves(drawn: Drawn) -> tuple[np.ndarray, np.ndarray]:
    """Queries up to their length and waves of the target, (K, r) each, quasi-random."""
    spectrum = relevance(drawn)
    size = len(spectrum)
    uniform = qmc.Sobol(2 * size + 1, rng=0).random(WAVES)
    queries, waves = np.split(ndtri(uniform[:, :-1]), 2, axis=1)
    waves = waves * spectrum**0.5
    if drawn["smoothness"] == "matern":
        shape = drawn["roughness"]
        waves = waves / (gammaincinv(shape, uniform[:, -1:]) / shape) ** 0.5
    return queries, waves


def law_of_key(drawn: Drawn, queries: np.ndarray, waves: np.ndarray, width: int) -> Key:
    """The law of one key of heads of a width."""
    length, share = lengths(drawn, width)
    seen, rest = waves[:, :width], waves[:, width:]
    direction = queries[:, :width] / np.linalg.norm(queries[:, :width], axis=1, keepdims=True)
    along = (direction * seen).sum(1)
    phase = drawn["query_scale"] * (queries[:, width:] * rest).sum(1)
    unseen = np.exp(-0.5 * (rest**2).sum(1) - 1j * phase)[:, None]
    latent, probable, view, score, respond = seen_numbers(
        drawn, width, length, along, (seen**2).sum(1)
    )
    points, between = interpolation(latent, drawn["kernel"])
    response = respond(points) * unseen - 1
    # Few combinations of waves matter.
    covariance = np.real(response.swapaxes(1, 2) @ response.conj()) / len(waves)
    size, vector = np.linalg.eigh(covariance)
    kept = size.max(0) > NEGLIGIBLE * size.max()
    features = vector[..., kept] * np.maximum(size[:, None, kept], 0) ** 0.5
    mean = np.insert(between @ features, 0, 1, axis=2).swapaxes(1, 2)
    square = -2 * response.real.mean(1) @ between.T
    square = np.stack([np.ones_like(square), square], axis=1)
    probable = probable[:, None]
    return Key(share, view, score, probable * mean, probable * square)


def head_errors(
    key: Key, nodes: Nodes, sizes: np.ndarray, limits: np.ndarray, noise_sd: float
) -> np.ndarray:
    """Errors of one head and products of two heads' errors, (2, n).

    Args:
        key: the law of one key.
        nodes: at a bandwidth.
        sizes: n.
        limits: bias of endless keys, squared and times that of another head, which are equal here;
            the waves' is corrected to it.
        noise_sd: label noise.
    """
    log_kernel, t, log_s = nodes
    x = scaled(log_s, log_kernel[:, None])
    once = x * np.exp(-x)
    hit, once, twice = (part @ key.view.T for part in (-np.expm1(-x), once, x * once))
    idle = 1 - hit
    latent = key.square[:, 0, :, None]
    weight = STEP * np.exp(t - np.exp(t)) / (once @ latent)[..., 0]
    single = of_keys(
        (hit @ latent)[..., 0],
        weight,
        twice @ key.square.swapaxes(1, 2),
        (once @ key.mean.swapaxes(1, 2)) ** 2,
        sizes,
    )
    # One head's key, at which the other is idle; the other way round it is the transpose.
    mean = gram(key.mean, once, idle)
    pair = of_keys(
        1 - flat(gram(key.square[:, :1], idle, idle))[..., 0],
        flat(weight[:, None, :, None] * weight[:, None, None])[..., 0],
        flat(gram(key.square, once, once)),
        flat(mean * mean.swapaxes(2, 3)),
        sizes,
    )
    kernel = np.exp(log_kernel - log_kernel.max(1, keepdims=True)) @ key.view.T
    total, *means = np.moveaxis(key.mean @ kernel[..., None], 1, 0)[..., 0]
    factor = limits[0] / (key.share @ np.sum((np.array(means) / total) ** 2, axis=0))
    signal, noise = np.stack([single, pair], axis=1)
    return np.asarray(key.share @ (factor * signal + noise_sd**2 * noise))


def gram(weight: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Sums over latent numbers of products at any two nodes, (Q, F, M, M)."""
    return (first[:, None] * weight[:, :, None]) @ second[:, None].swapaxes(2, 3)

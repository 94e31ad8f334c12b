"""Exact errors of heads that see coordinates of their own, at any n.

Two heads' numbers c (:mod:`.integrals`) are independent, and a wave's response to a key is a
product of what each block makes of it: ``r = A_h(c_h) A_g(c_g) u − 1``, u the factor of the
coordinates that neither sees. The integrals of a pair are then sums over waves of products of one
head's integrals. Averages over queries are Gauss rules in their lengths in both blocks; along the
query and across it waves are quasi-random. The squared bias that first order has in closed form
corrects these waves' by a factor, for one head and for a pair.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import gammaincinv, ndtri
from scipy.stats import qmc

from .integrals import STEP, Nodes, interpolation, lengths, of_keys, scaled, seen_numbers
from .problems import Drawn

WAVES = 256
"""Waves, each with components of its own along the query."""


class Blocks(NamedTuple):
    """The law of one key for heads of a width, at Q lengths of the query, from K waves.

    Attributes:
        share: of each length, (Q,).
        alone: probabilities of the head's number, (Q, N).
        score: b² log K, (Q, N).
        place: ``alone`` times polynomials of the number, each 1 at one of P points, (Q, N, P).
        first: A of one head at these points, (Q, P, K).
        second: the same of the other head.
        outside: factor of coordinates outside one head's block, (K,).
        beside: factor of coordinates outside both, (K,).
    """

    share: np.ndarray
    alone: np.ndarray
    score: np.ndarray
    place: np.ndarray
    first: np.ndarray
    second: np.ndarray
    outside: np.ndarray
    beside: np.ndarray


def law_of_blocks(drawn: Drawn, size: int, each: float, width: int) -> Blocks:
    """The law of one key of heads of a width.

    Args:
        drawn: the regime.
        size: number of coordinates.
        each: λ of a coordinate.
        width: d_k.
    """
    uniform = iter(qmc.Sobol(9, rng=0).random(WAVES).T)
    scale = np.full(WAVES, each)
    shape = drawn["roughness"]
    mixed = next(uniform)
    if drawn["smoothness"] == "matern":
        scale = scale * shape / gammaincinv(shape, mixed)

    def across(count: int) -> np.ndarray:
        """Squared lengths of the waves in as many coordinates."""
        half = max(count, 0) / 2
        return scale * 2 * gammaincinv(half, next(uniform)) if half else 0 * next(uniform)

    def unseen(count: int) -> np.ndarray:
        square = across(count)
        phase = drawn["query_scale"] * square**0.5 * ndtri(next(uniform))
        return np.asarray(np.exp(-0.5 * square - 1j * phase))

    length, share = lengths(drawn, width)
    heads = []
    for _ in range(2):
        along = scale**0.5 * ndtri(next(uniform))
        seen = seen_numbers(drawn, width, length, along, along**2 + across(width - 1))
        points, between = interpolation(seen.latent, drawn["kernel"])
        heads.append(np.ascontiguousarray(seen.respond(points).swapaxes(1, 2)))
    place = seen.probable[..., None] * between
    outside, beside = (unseen(size - count * width) for count in (1, 2))
    return Blocks(share, seen.probable, seen.score, place, heads[0], heads[1], outside, beside)


def block_errors(
    blocks: Blocks, nodes: Nodes, sizes: np.ndarray, limits: np.ndarray, noise_sd: float
) -> np.ndarray:
    """Errors of one head and products of two heads' errors, (2, n).

    Args:
        blocks: the law of one key.
        nodes: at a bandwidth.
        sizes: n.
        limits: bias of endless keys, squared and times that of another head; the waves' is
            corrected to them.
        noise_sd: label noise.
    """
    log_kernel, t, log_s = nodes
    x = scaled(log_s, log_kernel[:, None])
    once = x * np.exp(-x)
    hit, drawn_once, twice = (
        (part @ blocks.alone[..., None])[..., 0] for part in (-np.expm1(-x), once, x * once)
    )
    weight = STEP * np.exp(t - np.exp(t)) / drawn_once
    # Integrals of waves, (Q, M, K): of one head's key, and where a head is idle.
    drawn_part, idle_part = once @ blocks.place, np.exp(-x) @ blocks.place
    first, second = (of_waves(drawn_part, part) for part in (blocks.first, blocks.second))
    idle_first, idle_second = (of_waves(idle_part, part) for part in (blocks.first, blocks.second))
    both = of_waves((x * once) @ blocks.place, blocks.first) * blocks.outside
    apart = np.abs(first * blocks.outside - drawn_once[..., None]) ** 2
    single = of_keys(
        hit,
        weight,
        np.stack([twice, 2 * (twice - both.real.mean(-1))], axis=-1),
        np.stack([drawn_once**2, apart.mean(-1)], axis=-1),
        sizes,
    )
    idle = 1 - hit
    unit = drawn_once * idle
    same = outer(drawn_once, drawn_once)
    met = crossed(first * blocks.beside, second)
    mean_first = crossed(first * blocks.beside, idle_second)
    mean_second = crossed(idle_first * blocks.beside, second)
    product = crossed(
        first * idle_first.conj() * np.abs(blocks.beside) ** 2, idle_second * second.conj()
    )
    product = product - mean_first * outer(idle, drawn_once) - mean_second * outer(drawn_once, idle)
    units = outer(unit, unit)
    pair = of_keys(
        1 - joined(outer(idle, idle)),
        joined(outer(weight, weight)),
        np.stack([joined(same), joined(2 * (same - met))], axis=-1),
        np.stack([joined(units), joined(product + units)], axis=-1),
        sizes,
    )
    shares = [blocks.share, np.outer(blocks.share, blocks.share).ravel()]
    biases = endless(blocks, log_kernel)
    errors = []
    for share, limit, bias, moments in zip(shares, limits, biases, (single, pair), strict=True):
        signal, noise = moments
        errors.append(share @ (limit / (share @ bias) * signal + noise_sd**2 * noise))
    return np.array(errors)


def endless(blocks: Blocks, log_kernel: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Squared bias of endless keys of these waves, (Q,), and its product of two heads, (Q²,)."""
    kernel = np.exp(log_kernel - log_kernel.max(1, keepdims=True))
    total = (kernel * blocks.alone).sum(1)[:, None]
    weighted = kernel[:, None] @ blocks.place / total[..., None]
    plain = blocks.place.sum(1, keepdims=True)
    first, second = ((weighted @ part)[:, 0] for part in (blocks.first, blocks.second))
    plain_first, plain_second = ((plain @ part)[:, 0] for part in (blocks.first, blocks.second))
    one = first[:, None] * plain_second * blocks.beside - 1
    other = plain_first[:, None] * second * blocks.beside - 1
    own = np.abs(first * blocks.outside - 1) ** 2
    return own.mean(-1), (one * other.conj()).real.mean(-1).ravel()


def outer(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Products at any two lengths and nodes, (Q, M, Q, M)."""
    return np.multiply.outer(first, second)


def of_waves(integrals: np.ndarray, response: np.ndarray) -> np.ndarray:
    """Integrals of waves, (Q, M, K), from those of polynomials, (Q, M, P)."""
    return np.asarray((integrals @ response.view(float)).view(complex))


def crossed(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Mean over waves of products at any two lengths and nodes, (Q, M, Q, M)."""
    return np.tensordot(first.conj().view(float), second.view(float), (2, 2)) / first.shape[-1]


def joined(parts: np.ndarray) -> np.ndarray:
    """Pairs of lengths and nodes (Q, M, Q, M) as (Q², M²)."""
    lengths = len(parts)
    return parts.swapaxes(1, 2).reshape(lengths**2, -1)

"""Exact errors of heads that share a view, at any n: quadrature over what one key contributes.

A head's score depends on one number c of its view of a key: gaussian, the distance from the query,
``b² log K = −c²/2``; softmax, the component along the query, ``b² log K = |x| c``. Given this
number of the latent key, two heads' views are independent of each other and of the target, and the
response of a wave of the target, ``r = e^{iω·(z − x)} − 1``, has the mean (seen coordinates alone;
u is the factor of the others)

::

    gaussian  ₀F₁(d_k/2; c²ζ/4) / ₀F₁(d_k/2; c²|x|²/4) · u − 1,    ζ = |x|² − |ω|² − 2i ω·x
    softmax   exp(i(ω·x̂ c − ω·x) − ½(|ω|² − (ω·x̂)²)) · u − 1

Every integral of docs/theory.md, "Exact at every n", is then a sum over a lattice of latent
numbers. Nodes s have equal steps in ``t = log(−log φ(s))``, so one set serves all n. Averages over
queries are Gauss rules in their length and quasi-random in direction, jointly with the waves; the
squared bias that first order has in closed form corrects these waves' by a factor.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.polynomial.chebyshev import chebpts1, chebvander
from numpy.typing import ArrayLike
from scipy.interpolate import CubicSpline
from scipy.optimize.elementwise import find_root
from scipy.special import gammaincinv, ive, logsumexp, ndtri, roots_genlaguerre
from scipy.stats import qmc

from .grids import GIVEN, WIDTHS
from .problems import Curve, Drawn, at_best_bandwidth, bandwidths, relevance, terms_of

DENSE = np.array([*range(1, 13), 14, 16, 18, 20, 24, 28, 32, 40, 48, 64])
"""Widths that show where a curve is least, to one per cent of d_k*."""
LOST, ROW = 1.2, 3
"""Ratio to the least error that so many widths in a row exceed where wider heads are left out."""
LENGTHS = 3
"""Lengths of queries."""
WAVES = 128
"""Waves, each with a direction of the query."""
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


def exact_curve(
    drawn: Drawn,
    n: ArrayLike,
    budget: ArrayLike,
    widths: np.ndarray = DENSE,
    lost: float = LOST,
) -> Curve:
    """Exact errors of every width at pairs of n and D, by the regime's rule for the temperature.

    Between the given widths the logarithm of the error is a cubic spline in log width. Widths are
    left out, as infinite errors, once :data:`ROW` narrower ones in a row err more by a ratio.

    Args:
        drawn: the regime, of a shared view.
        n: numbers of keys, broadcast against the budgets.
        budget: D.
        widths: in ascending order, two or more.
        lost: the ratio; infinite for all widths.
    """
    keys, budgets = (np.ravel(part).astype(float) for part in np.broadcast_arrays(n, budget))
    queries, waves = draw_waves(drawn)
    limits = terms_of(drawn, drawn["budget"], GIVEN[0]).limit_squared
    bands = np.broadcast_to(bandwidths(drawn), limits.shape)
    errors: list[np.ndarray] = []
    chosen: list[np.ndarray] = []
    for width in widths:
        key = law_of_key(drawn, width, queries, waves)
        terms = []
        for bandwidth, limit in zip(bands[width - 1], limits[width - 1], strict=True):
            terms.append(head_errors(key, bandwidth, keys, limit, drawn["noise_sd"]))
        single, pair = np.stack(terms, axis=-1)
        heads = budgets[:, None] / width
        error = np.where(heads >= 1, single / heads + (1 - 1 / heads) * pair, np.inf)
        curve = Curve(error[:, 0], np.isfinite(error[:, 0]), bands[None, width - 1, 0])
        if bands.shape[1] > 1:
            curve = at_best_bandwidth(bands[width - 1], error, np.isfinite(error))
        errors.append(curve.error)
        chosen.append(np.broadcast_to(curve.bandwidth, len(keys)))
        if (np.array(errors[-ROW:]) > lost * np.min(errors, axis=0)).all():
            break
    computed = widths[: len(errors)]
    return between_widths(computed, np.transpose(errors), np.transpose(chosen))


def between_widths(widths: np.ndarray, errors: np.ndarray, bands: np.ndarray) -> Curve:
    """The curve of all widths from errors and bandwidths at some, (K, width)."""
    filled = np.full((len(errors), len(WIDTHS)), np.inf)
    bandwidth = np.full(filled.shape, np.nan)
    for row, (error, band) in enumerate(zip(errors, bands, strict=True)):
        known = np.isfinite(error)
        log = np.log(widths[known])
        inside = widths[known][-1] >= WIDTHS
        spline = CubicSpline(log, np.log(error[known]))
        filled[row, inside] = np.exp(spline(np.log(WIDTHS[inside])))
        bandwidth[row, inside] = np.interp(np.log(WIDTHS[inside]), log, band[known])
    return Curve(filled, np.isfinite(filled), bandwidth)


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


def law_of_key(drawn: Drawn, width: int, queries: np.ndarray, waves: np.ndarray) -> Key:
    """The law of one key of heads of a width."""
    node, share = roots_genlaguerre(LENGTHS, width / 2 - 1)
    length = drawn["query_scale"] * (2 * node) ** 0.5
    seen, rest = waves[:, :width], waves[:, width:]
    direction = queries[:, :width] / np.linalg.norm(queries[:, :width], axis=1, keepdims=True)
    along = (direction * seen).sum(1)
    phase = drawn["query_scale"] * (queries[:, width:] * rest).sum(1)
    unseen = np.exp(-0.5 * (rest**2).sum(1) - 1j * phase)[:, None]
    read = seen_by_distance if drawn["kernel"] == "gaussian" else seen_along
    latent, probable, view, score, respond = read(
        width, length, drawn["view_noise"], along, (seen**2).sum(1)
    )
    # From a few points to the lattice by their polynomial; few combinations of waves matter.
    middle = (latent[0] + latent[-1]) / 2
    reach = latent[-1] - middle
    orders = POINTS[drawn["kernel"]] - 1
    points = chebpts1(orders + 1)
    response = respond(middle + reach * points) * unseen - 1
    vander = chebvander((latent - middle) / reach, orders)
    between = vander @ np.linalg.inv(chebvander(points, orders))
    covariance = np.real(response.swapaxes(1, 2) @ response.conj()) / len(waves)
    size, vector = np.linalg.eigh(covariance)
    kept = size.max(0) > NEGLIGIBLE * size.max()
    features = vector[..., kept] * np.maximum(size[:, None, kept], 0) ** 0.5
    mean = np.insert(between @ features, 0, 1, axis=2).swapaxes(1, 2)
    square = -2 * response.real.mean(1) @ between.T
    square = np.stack([np.ones_like(square), square], axis=1)
    probable = probable[:, None]
    return Key(share / share.sum(), view, score, probable * mean, probable * square)


def seen_by_distance(
    width: int, length: np.ndarray, noise: float, along: np.ndarray, square: np.ndarray
) -> Seen:
    """Gaussian heads: numbers are distances from the query.

    Args:
        width: d_k.
        length: of the query, (Q,).
        noise: of the views.
        along: ω·x̂ of K waves, (K,).
        square: |ω|², (K,).
    """
    middle = (width + length**2) ** 0.5
    low, high = max(0.0, middle.min() - BELOW), middle.max() + ABOVE
    latent = lattice(low, high)
    far = (high**2 + width * noise**2) ** 0.5
    number = lattice(max(0.0, low - 4 * noise), far + 4.5 * noise)
    probable = distances(latent, length[:, None], 1.0, width)
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
    """Softmax heads: numbers are components along the query, of any width; arguments as above."""
    latent = lattice(*ALONG)
    number = lattice(ALONG[0] - 4.5 * noise, ALONG[1] + 4.5 * noise)
    probable = normalised(np.tile(-(latent**2) / 2, (LENGTHS, 1)))
    view = normalised(-((number - latent[:, None]) ** 2) / (2 * noise**2))

    def respond(place: np.ndarray) -> np.ndarray:
        turn = along[:, None] * (place - length[:, None, None])
        return np.asarray(np.exp(1j * turn - 0.5 * (square - along**2)[:, None]))

    return Seen(latent, probable, view, length[:, None] * number, respond)


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


def head_errors(
    key: Key, bandwidth: float, sizes: np.ndarray, limit: float, noise_sd: float
) -> np.ndarray:
    """Errors of one head and products of two heads' errors, (2, n).

    Args:
        key: the law of one key.
        bandwidth: b.
        sizes: n.
        limit: squared bias of endless keys; the waves' is corrected to it.
        noise_sd: label noise.
    """
    log_kernel = key.score / bandwidth**2
    t, log_s = nodes(log_kernel, key.square[:, 0] @ key.view, sizes)
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
    factor = limit / (key.share @ np.sum((np.array(means) / total) ** 2, axis=0))
    signal, noise = np.stack([single, pair], axis=1)
    return np.asarray(key.share @ (factor * signal + noise_sd**2 * noise))


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


def gram(weight: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Sums over latent numbers of products at any two nodes, (Q, F, M, M)."""
    return (first[:, None] * weight[:, :, None]) @ second[:, None].swapaxes(2, 3)


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

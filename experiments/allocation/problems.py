"""Regimes drawn from the law of experiment.yaml, and the error of every head dimension by theory.

Heads share a view (relevance decays from coordinate to coordinate, each head sees the first ones
through noise of its own), or relevance is even and each head sees coordinates of its own.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import CubicSpline

from sims.base.arrays import extremum
from sims.problem import TrigonometricSeries
from sims.study.study import Fields
from sims.theory import FEW_KEYS, block_terms, view_terms

from .grids import BUDGETS, GIVEN, LATENT, WIDTHS

GRIDS = {"gaussian": np.geomspace(0.1, 4, 18), "softmax": np.geomspace(0.93, 4, 16)}
"""Bandwidths that tuning tries."""
FINE = 50
"""Places a step of a grid at which a curve is looked for its least value."""

Drawn = Mapping[str, Any]


class Curve(NamedTuple):
    """Errors of heads of every width at K pairs of n and D, (K, width).

    Attributes:
        error: of the average of H = D/d_k heads, to first order; NaN where H < 1.
        known: whether theory is in its range.
        bandwidth: of the heads.
    """

    error: np.ndarray
    known: np.ndarray
    bandwidth: np.ndarray


def regime(fields: Fields) -> Fields:
    """What the law draws, and the scale of the queries.

    That is a share of the largest at which averages over queries are finite.
    """
    drawn = dict(fields)
    drawn["view_noise"] *= drawn["decay"] != "even"
    most = 0.5**0.5
    if drawn["kernel"] == "softmax":
        drawn["bandwidth"] = drawn["softmax_bandwidth"]
        most = GRIDS["softmax"][0] ** 2 / (2 * (1 + drawn["view_noise"] ** 2) ** 0.5)
    drawn["query_scale"] = drawn["reach"] * most
    return Fields(drawn, fields.seed, fields.number)


def relevance(drawn: Drawn) -> np.ndarray:
    """λ of the target's coordinates: as many as a shared view has, (r,), or as the budget, (D,)."""
    shares = {
        "exponential": np.exp(-drawn["alpha"] * WIDTHS),
        "polynomial": WIDTHS ** -drawn["power"],
        "even": np.ones(drawn["budget"]),
    }[drawn["decay"]]
    return drawn["relevance"] * shares / shares.sum()


def draw_task(drawn: Drawn, rng: np.random.Generator) -> tuple[TrigonometricSeries, np.ndarray]:
    """A target of the regime's law, as waves from its spectrum, and queries (Q, r or D)."""
    spectrum = relevance(drawn)
    waves = rng.normal(size=(drawn["waves"], len(spectrum))) * spectrum**0.5
    if drawn["smoothness"] == "matern":
        waves /= rng.gamma(drawn["roughness"], 1 / drawn["roughness"], (len(waves), 1)) ** 0.5
    queries = drawn["query_scale"] * rng.normal(size=(drawn["query_count"], len(spectrum)))
    amplitude = np.full(len(waves), (2 / len(waves)) ** 0.5)
    return TrigonometricSeries(amplitude, waves, rng.uniform(0, 2 * np.pi, len(waves))), queries


def curve(drawn: Drawn, n: ArrayLike, budget: ArrayLike, condition: str = GIVEN[0]) -> Curve:
    """Errors of every width at pairs of n and D, by the regime's rule for the temperature.

    Args:
        drawn: the regime.
        n: numbers of keys, broadcast against the budgets.
        budget: D.
        condition: one of :data:`GIVEN`.
    """
    errors = []
    effective = []
    for keys, dimensions in np.broadcast(n, budget):
        terms = terms_of(drawn, dimensions, condition)
        heads = dimensions / WIDTHS[:, None]
        heads = np.where(fits(drawn, heads), heads, np.nan)
        errors.append(terms.error(keys, heads, drawn["noise_sd"]))
        n_eff = keys / terms.noise_variance
        if drawn["kernel"] == "softmax":
            # n_third, which governs the remainder there, is near n_eff²/n.
            n_eff = np.minimum(n_eff, n_eff**2 / keys)
        effective.append(n_eff)
    error = np.stack(errors)
    known = (np.stack(effective) >= FEW_KEYS) & np.isfinite(error)
    error = np.nan_to_num(error, nan=np.inf)
    if drawn["temperature"] == "tuned":
        return at_best_bandwidth(GRIDS[drawn["kernel"]], error, known)
    bandwidth = np.broadcast_to(bandwidths(drawn).T, (1, LATENT))
    return Curve(error[..., 0], known[..., 0], bandwidth)


def at_best_bandwidth(grid: np.ndarray, error: np.ndarray, known: np.ndarray) -> Curve:
    """The curve of tuned heads from errors (…, bandwidth); an end of the grid may be best."""
    place, value = least(np.log(grid), error, known)
    inside = np.isfinite(place)
    return Curve(
        np.where(inside, value, error.min(-1)),
        inside,
        np.where(inside, np.exp(place), grid[error.argmin(-1)]),
    )


def bandwidths(drawn: Drawn) -> np.ndarray:
    """Those of every width, (1 or width, bandwidth)."""
    if drawn["temperature"] == "tuned":
        return GRIDS[drawn["kernel"]][None]
    fixed = np.full((1, 1), drawn["bandwidth"])
    return fixed if drawn["temperature"] == "fixed" else fixed * WIDTHS[:, None] ** 0.25


def fits(drawn: Drawn, heads: np.ndarray) -> np.ndarray:
    """Whether as many heads fit into a budget; own coordinates have room for one, or for a pair."""
    if drawn["decay"] == "even":
        return (heads == 1) | (heads >= 2)
    return heads >= 1


def terms_of(drawn: Drawn, budget: int, condition: str) -> Any:
    """Terms of every width and bandwidth at a budget, under one of the conditions."""
    fields = tuple(drawn.items())
    if drawn["decay"] != "even":
        return _terms(fields)
    return _terms(fields, *own_coordinates(drawn, budget, condition))


def own_coordinates(drawn: Drawn, budget: int, condition: str) -> tuple[int, float]:
    """Number of coordinates of a target of even relevance under a condition, and the λ of each."""
    size = BUDGETS[-1] if condition == "one target" else budget
    divisor = drawn["budget"] if condition == "a coordinate's relevance" else size
    return int(size), float(drawn["relevance"] / divisor)


@lru_cache(maxsize=8)  # the curves of a regime share them
def _terms(fields: tuple[tuple[str, Any], ...], size: int = 0, each: float = 0.0) -> Any:
    """Terms of every width and bandwidth; of even relevance those of D = size coordinates."""
    drawn = dict(fields)
    options = {"query_scale": drawn["query_scale"], "kernel": drawn["kernel"]}
    options["nu"] = drawn["roughness"] if drawn["smoothness"] == "matern" else None
    if size:
        options |= {"dimension": size, "relevance": each}
        return block_terms(np.minimum(WIDTHS, size)[:, None], bandwidths(drawn), **options)
    options |= {"noise": drawn["view_noise"], "relevance": relevance(drawn)}
    return view_terms(WIDTHS[:, None].astype(int), bandwidths(drawn), **options)


def least(x: np.ndarray, values: np.ndarray, known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where positive curves (…, K) on equally spaced x are least, and how low; NaN where censored.

    The least known value has known ones to both sides; between them a cubic spline through the
    logarithms of all is least. Else an end of the finite values may be least, if it is known there
    and beside it.
    """
    rows = values.reshape(-1, len(x))
    seen = known.reshape(rows.shape)
    middle = extremum(rows, seen)
    inside = np.isfinite(middle)
    logs = np.log(np.minimum(rows[inside], 1e300))
    gone = np.isinf(rows[inside])
    for k in range(2, len(x)):  # beyond the last width of a budget a curve goes on in a line
        logs[gone[:, k], k] = (2 * logs[:, k - 1] - logs[:, k - 2])[gone[:, k]]
    fine = np.linspace(x[0], x[-1], FINE * (len(x) - 1) + 1)
    between = CubicSpline(x, logs, axis=1)(fine)
    between[np.abs(np.arange(len(fine)) - FINE * middle[inside, None]) > FINE] = np.inf
    place, low = np.full((2, len(rows)), np.nan)
    place[inside] = fine[between.argmin(1)]
    low[inside] = np.exp(between.min(1))
    for row in np.flatnonzero(~inside & np.isfinite(rows).any(1)):
        possible = np.flatnonzero(np.isfinite(rows[row]))
        order = rows[row, possible].argmin()
        if seen[row, possible[max(order - 1, 0) : order + 2]].all():
            place[row] = x[possible[order]]
            low[row] = rows[row, possible[order]]
    shape = values.shape[:-1]
    return place.reshape(shape), low.reshape(shape)

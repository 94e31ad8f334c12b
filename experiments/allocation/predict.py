"""Closed-form errors of every split of a budget, and the splits that minimise them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.polynomial.polynomial import polyder, polyval

from sims.study.experiment import Experiment
from sims.theory import BlockTerms, ViewTerms, block_terms, rescaled, view_terms

from .regimes import LABELS, checked, combinations, sizes

Settings = Mapping[str, Any]
"""The settings of one geometry, or the target's, as in the experiment's file."""
Terms = ViewTerms | BlockTerms
TEMPERATURES = ["fixed", "transformer", "tuned"]
MAP_BUDGET = 24
"""D of the map's curves d_k*(n)."""
READINGS = ["coordinate", "one target"]
"""What is given beside the total relevance that does not depend on D: that of a coordinate, or the
target and its keys, of which the heads see D coordinates."""
POINTS = 9
"""Widths, or bandwidths, that a polynomial about the best one goes through."""
NEWTON = 6
"""Steps from the parabola's vertex to the polynomial's."""
SAME_TARGET = 32
"""D at which the relevance of a coordinate is that of the target of a given total."""


def predict(experiment: Experiment) -> dict[str, xr.Dataset]:
    """A geometry and kernel: errors on the simulation's grid, and dense in n, D and d_k.

    The dense ones with their minima. Redundant views have the map's curves d_k*(n), too.
    """
    geometries = checked(experiment.settings)
    out = {name: xr.merge([points(s), dense(s)]) for name, s in geometries.items()}
    for name in out:
        if geometries[name]["geometry"] == "blocks":
            out[name] = xr.merge([out[name], readings(geometries[name])])
    cells = combinations(experiment.settings)
    out["views"] = xr.merge([out["views"], regimes(geometries["views"], cells)])
    # What differs between geometries is labelled where it is read.
    return {name: data.drop_vars(set(LABELS) & set(data.coords)) for name, data in out.items()}


def rungs(settings: Settings, widths: np.ndarray) -> np.ndarray:
    """Bandwidths by width: the ladder, which holds the fixed one, and last ``b² = b₁² √d_k``."""
    hot = settings["bandwidth"] * widths[:, None] ** 0.25
    return np.hstack([np.tile(settings["ladder"], (len(widths), 1)), hot])


def terms(
    settings: Settings, family: Settings, budget: int, widths: np.ndarray, bandwidths: np.ndarray
) -> Terms:
    """Of targets of a family; widths (K,), bandwidths (K, B). Views do not depend on the budget."""
    if settings["geometry"] == "views":
        decay = np.exp(-family["alpha"] * np.arange(settings["latent"]))
        return view_terms(
            widths[:, None], bandwidths, noise=settings["noise"],
            relevance=decay / family["lengthscale"] ** 2, nu=family["nu"],
            query_scale=settings["queries"]["scale"], kernel=settings["kernel"],
        )  # fmt: skip
    spread = budget if family["interactions"] == "all" else 1
    own = {**family, "relevance": family["relevance"] / spread}
    return of_target(settings, own, budget, widths, bandwidths)


def of_target(
    settings: Settings, family: Settings, size: int, widths: np.ndarray, bandwidths: np.ndarray
) -> BlockTerms:
    """Of blocks and a target on ``size`` coordinates, of the family's relevance each."""
    # Widths above the budget are no splits, and counted as no heads below.
    return block_terms(
        np.minimum(widths, size)[:, None], bandwidths, dimension=size,
        query_scale=settings["queries"]["scale"], relevance=family["relevance"],
        interactions=family["interactions"], nu=family["nu"], kernel=settings["kernel"],
    )  # fmt: skip


def sizes_seen(settings: Settings, own: Terms, n: np.ndarray) -> dict[str, np.ndarray]:
    """``n_eff``, and for softmax ``n_third = n_eff²/n``, which its remainder is governed by.

    n over the mean over queries of r_hh, or over its square.
    """
    n_eff = n / np.asarray(own.noise_variance)
    third = {"n_third": n_eff**2 / n} if settings["kernel"] == "softmax" else {}
    return {"n_eff": n_eff, **third}


def by_budget(
    settings: Settings,
    family: Settings,
    budgets: Sequence[int],
    widths: np.ndarray,
    bandwidths: np.ndarray,
) -> list[Terms]:
    """:func:`terms` of every budget."""
    if settings["geometry"] == "views":
        return [terms(settings, family, 0, widths, bandwidths)] * len(budgets)
    return [terms(settings, family, budget, widths, bandwidths) for budget in budgets]


def number(budget: int, widths: np.ndarray) -> np.ndarray:
    """H = D/d_k (K, 1); NaN where d_k is above D."""
    return np.where(widths <= budget, budget / widths, np.nan)[:, None]


def points(settings: Settings) -> xr.Dataset:
    """The simulation's grid: error, variance, label noise's part; the fixed rung as an attribute.

    NaN where blocks leave no room for a pair of heads.
    """
    grid, families = settings["simulated"], settings["families"]
    widths, n = np.array(grid["widths"]), np.array(grid["n"], float)[:, None, None]
    ladder, noise_sd = rungs(settings, widths), settings["noise_sd"]
    value: dict[str, list[np.ndarray]] = {"mse": [], "variance": [], "noise": []}
    for family in families.values():
        every = by_budget(settings, family, grid["budgets"], widths, ladder)
        cases = [
            (own, number(budget, widths))
            for own, budget in zip(every, grid["budgets"], strict=True)
        ]
        value["mse"].append(np.stack([own.error(n, h, noise_sd) for own, h in cases], 1))
        value["variance"].append(np.stack([own.variance(n, h, noise_sd) for own, h in cases], 1))
        value["noise"].append(np.stack([own.noise(n, h) for own, h in cases], 1))
    dims = ("family", "n", "budget", "width", "rung")
    # What a head attends to does not depend on the target, nor on the budget where it has room.
    seen = sizes_seen(settings, every[-1], n)
    return xr.Dataset(
        {name: (dims, np.stack(rows)) for name, rows in value.items()}
        | {name: (("n", "width", "rung"), size) for name, size in seen.items()}
        | {"bandwidth": (("width", "rung"), ladder)},
        coords={"family": list(families), "n": grid["n"], "budget": grid["budgets"],
                "width": widths},
        attrs={"fixed": settings["ladder"].index(settings["bandwidth"]),
               "least_n_eff": settings["least_n_eff"]},
    )  # fmt: skip


def dense(settings: Settings) -> xr.Dataset:
    """Errors of every width at each temperature (``surface``), NaN where n_eff or n_third is too
    small.

    Their minima are at ``optimum`` if it is inside, with admissible widths, and bandwidths, to both
    sides; else that is NaN. ``optimum_error`` is how far it is from that by two points fewer. For
    blocks ``scaled_surface`` is of the average times its best factor.
    """
    widths, n = np.arange(1, settings["widest"] + 1), sizes(settings)
    rows: dict[str, list[list[np.ndarray]]] = {}
    for family in settings["families"].values():
        every = by_budget(settings, family, settings["budgets"], widths, bands(settings, widths))
        found = [
            curves(settings, own, number(budget, widths), n)
            for own, budget in zip(every, settings["budgets"], strict=True)
        ]
        for name in found[0]:
            rows.setdefault(name, []).append([own[name] for own in found])
    dims = ("family", "dense_budget", "temperature", "dense_n", "dense_width")
    return xr.Dataset(
        {
            name: (dims if "surface" in name else dims[:-1], np.array(parts))
            for name, parts in rows.items()
        },
        coords={"temperature": TEMPERATURES, "dense_n": n, "dense_width": widths,
                "family": list(settings["families"]), "dense_budget": settings["budgets"]},
    )  # fmt: skip


def readings(settings: Settings) -> xr.Dataset:
    """Of blocks, ``reading_optimum``: d_k* at the fixed temperature by :data:`READINGS`.

    At width 1, and where one head sees all that a budget can, the end is the best width; NaN where
    the least error is at the last width that theory knows.
    """
    widths, n, budgets = np.arange(1, settings["widest"] + 1), sizes(settings), settings["budgets"]
    bandwidths = np.full((len(widths), 1), settings["bandwidth"])
    rows: list[list[list[np.ndarray]]] = []
    for reading in READINGS:
        # Of every budget, whose target is taken, and how many of its coordinates it spreads over.
        of = budgets if reading == "coordinate" else [max(budgets)] * len(budgets)
        share = SAME_TARGET if reading == "coordinate" else max(budgets)
        rows.append([])
        for family in settings["families"].values():
            own = family | {"relevance": family["relevance"] / share}
            if family["interactions"] == "none":
                own = family
            every = [of_target(settings, own, size, widths, bandwidths) for size in of]
            rows[-1].append([
                best_width(settings, terms, budget, widths, n)
                for terms, budget in zip(every, budgets, strict=True)
            ])  # fmt: skip
    dims = ("reading", "family", "dense_budget", "dense_n")
    return xr.Dataset({"reading_optimum": (dims, np.array(rows))}, coords={"reading": READINGS})


def best_width(
    settings: Settings, own: Terms, budget: int, widths: np.ndarray, n: np.ndarray
) -> np.ndarray:
    """Where the error of a split into ``H = D/d_k`` heads is least, an end included (n,)."""
    surface = admissible(settings, own, number(budget, widths), n)[..., 0]
    _, best, inside = valley(surface, widths.astype(float))
    return np.where(inside | np.isin(best, (1, budget)), best, np.nan)


def bands(settings: Settings, widths: np.ndarray) -> np.ndarray:
    """Bandwidths (K, 2 + count): the fixed one, the Transformer's, and those to choose from."""
    grid = np.geomspace(*(settings["bandwidths"][k] for k in ("low", "high", "count")))
    first = [settings["bandwidth"] * np.ones(len(widths)), rungs(settings, widths)[:, -1]]
    return np.hstack([np.stack(first, 1), np.tile(grid, (len(widths), 1))])


def curves(
    settings: Settings, own: Terms, heads: np.ndarray, n: np.ndarray
) -> dict[str, np.ndarray]:
    """Of one family and budget, as :func:`dense` names them: (temperature, n, width)."""
    error = admissible(settings, own, heads, n)
    values = {"surface": error}
    if isinstance(own, BlockTerms):
        values["scaled_surface"] = rescaled(error, own.limit_fit + own.ratio_fit / n[:, None, None])
    out = {}
    for name, value in values.items():
        out[name], optimum = minima(value, settings)
        if name == "surface":
            out["optimum"] = optimum
            out["optimum_error"] = np.abs(optimum - minima(value, settings, POINTS - 2)[1])
    return out


def admissible(settings: Settings, own: Terms, heads: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Errors (n, width, bandwidth), NaN where n_eff, or softmax's n_third, is too small."""
    size = n[:, None, None]
    seen = sizes_seen(settings, own, size)
    known = seen.get("n_third", seen["n_eff"]) >= settings["least_n_eff"]
    return np.where(known, own.error(size, heads, settings["noise_sd"]), np.nan)


def minima(
    value: np.ndarray, settings: Settings, points: int = POINTS
) -> tuple[np.ndarray, np.ndarray]:
    """Of errors (n, width, bandwidth), the first two bandwidths the fixed and the Transformer's.

    Returns:
        Surfaces (temperature, n, width), and where they are least (temperature, n), NaN at an end.
    """
    grid = (settings["bandwidths"][k] for k in ("low", "high", "count"))
    tuned, _, inside = valley(value[..., 2:], np.log(np.geomspace(*grid)), points)
    surfaces = np.stack([value[..., 0], value[..., 1], tuned])
    at = np.argmin(np.where(np.isnan(tuned), np.inf, tuned), axis=-1)[:, None]
    # Where the best bandwidth is cut off the curve has a kink, and no polynomial goes through such
    # widths, but for those beside the best.
    near = np.abs(np.arange(value.shape[1]) - at) <= 1
    smooth = np.stack([value[..., 0], value[..., 1], np.where(inside | near, tuned, np.nan)])
    _, width, interior = valley(smooth, np.arange(1.0, value.shape[1] + 1), points)
    interior[2] &= np.take_along_axis(inside, at, -1)[..., 0]
    return surfaces, np.where(interior, width, np.nan)


def regimes(settings: Settings, cells: Sequence[Settings]) -> xr.Dataset:
    """The map: ``map_optimum`` of d_k*(n) by cell and temperature, at the budget of the map."""
    widths, n, rows = np.arange(1, settings["widest"] + 1), sizes(settings), []
    length = next(iter(settings["families"].values()))["lengthscale"]
    every: dict[tuple[float | None, ...], Terms] = {}
    for cell in cells:
        # Terms are the same whatever the labels' noise.
        key = (cell["alpha"], cell["nu"], cell["noise"])
        own = {**settings, "noise": cell["noise"], "noise_sd": cell["noise_sd"]}
        if key not in every:
            family = {"alpha": cell["alpha"], "nu": cell["nu"], "lengthscale": length}
            every[key] = terms(own, family, MAP_BUDGET, widths, bands(own, widths))
        rows.append(curves(own, every[key], number(MAP_BUDGET, widths), n)["optimum"])
    coords = {
        f"cell_{key}": ("cell", [np.inf if cell[key] is None else cell[key] for cell in cells])
        for key in cells[0]
    }
    return xr.Dataset({"map_optimum": (("cell", "temperature", "dense_n"), np.array(rows))},
                      coords={"temperature": TEMPERATURES, "dense_n": n, **coords})  # fmt: skip


def valley(
    values: np.ndarray, x: np.ndarray, points: int = POINTS
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Least value along the last axis, its place, and whether it is inside.

    Where the polynomial through the logarithms about the least value is least, within a step of it:
    through ``points`` of them, or as many of an odd number as are known; at an end, or beside a
    missing value, the least value itself. x is equally spaced, and ``points`` is odd.
    """
    known = np.where(np.isnan(values), np.inf, values)
    at, place, missing = np.argmin(known, axis=-1), np.arange(len(x)), ~np.isfinite(known)
    before, after = (missing & (place < at[..., None]), missing & (place > at[..., None]))
    first = np.max(np.where(before, place, -1), axis=-1) + 1
    last = np.min(np.where(after, place, len(x)), axis=-1) - 1
    inside = np.isfinite(np.min(known, axis=-1)) & (first < at) & (at < last)
    count = np.minimum(points, last - first + 1)
    count -= 1 - count % 2
    least = np.take_along_axis(known, at[..., None], -1)[..., 0]
    shift, drop = np.zeros(at.shape), np.zeros(at.shape)
    for size in np.unique(count[inside]).tolist():
        chosen = inside & (count == size)
        start = np.clip(at - size // 2, first, last - size + 1)[chosen]
        own = np.take_along_axis(known[chosen], start[:, None] + np.arange(size), -1)
        shift[chosen], drop[chosen] = lowest(
            np.log(own / least[chosen][:, None]), at[chosen] - start
        )
    least = np.where(np.isfinite(least), least * np.exp(drop), np.nan)
    return least, x[at] + shift * (x[1] - x[0]), inside


def lowest(values: np.ndarray, middle: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the polynomial through values (m, k) at 0, …, k − 1 is least, and how low it is there.

    By Newton's method from the vertex of the parabola about the place of the least value (m,), and
    never further than 1 from it.

    Returns:
        How far off that place (m,), and the polynomial there (m,).
    """
    half = values.shape[-1] // 2
    powers = np.vander((np.arange(2 * half + 1) - half) / half, increasing=True)
    curve = np.linalg.solve(powers, values.T)
    slope, bend = polyder(curve), polyder(curve, 2)
    near = middle[:, None] + np.arange(-1, 2)
    left, low, right = np.take_along_axis(values, near, axis=-1).T
    shift = 0.5 * (left - right) / (left - 2 * low + right)
    for _ in range(NEWTON):
        at = (middle + shift - half) / half
        moved = shift - half * polyval(at, slope, tensor=False) / polyval(at, bend, tensor=False)
        shift = np.clip(moved, -1, 1)
    return shift, polyval((middle + shift - half) / half, curve, tensor=False)

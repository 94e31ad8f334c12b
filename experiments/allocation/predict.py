"""Closed-form errors of every split of a budget, and the splits that minimise them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from sims.study.experiment import Experiment
from sims.theory import BlockTerms, ViewTerms, block_terms, rescaled, view_terms

from .regimes import LABELS, checked, combinations, lowest, sizes

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
FEWEST = 3
"""Points of the coarsest polynomial that is least between whole ones."""
NEARLY = 0.25
"""Share of the number of keys asked for from which on the formula's values are gone through."""
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
            widths[:, None],
            bandwidths,
            noise=settings["noise"],
            relevance=decay / family["lengthscale"] ** 2,
            nu=family["nu"],
            query_scale=settings["queries"]["scale"],
            kernel=settings["kernel"],
        )
    spread = budget if family["interactions"] == "all" else 1
    own = {**family, "relevance": family["relevance"] / spread}
    return of_target(settings, own, budget, widths, bandwidths)


def of_target(
    settings: Settings, family: Settings, size: int, widths: np.ndarray, bandwidths: np.ndarray
) -> BlockTerms:
    """Of blocks and a target on ``size`` coordinates, of the family's relevance each."""
    # Widths above the budget are no splits, and counted as no heads below.
    return block_terms(
        np.minimum(widths, size)[:, None],
        bandwidths,
        dimension=size,
        query_scale=settings["queries"]["scale"],
        relevance=family["relevance"],
        interactions=family["interactions"],
        nu=family["nu"],
        kernel=settings["kernel"],
    )


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
        coords={
            "family": list(families),
            "n": grid["n"],
            "budget": grid["budgets"],
            "width": widths,
        },
        attrs={
            "fixed": settings["ladder"].index(settings["bandwidth"]),
            "least_n_eff": settings["least_n_eff"],
        },
    )


def dense(settings: Settings) -> xr.Dataset:
    """Errors of every width at each temperature (``surface``), NaN where n_eff or n_third is too
    small.

    Their minima are at ``optimum`` if it is inside, with admissible widths, and bandwidths, to both
    sides, and off by about ``optimum_error``, the difference to that by coarser polynomials; where
    there is no inner one, or none is coarser, both are NaN. For blocks ``scaled_surface`` is of the
    average times its best factor.
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
        coords={
            "temperature": TEMPERATURES,
            "dense_n": n,
            "dense_width": widths,
            "family": list(settings["families"]),
            "dense_budget": settings["budgets"],
        },
    )


def readings(settings: Settings) -> xr.Dataset:
    """Of blocks, ``reading_optimum``: d_k* at the fixed temperature by :data:`READINGS`.

    At width 1, and where one head sees all that a budget can, the end is the best width; NaN where
    the least error is at the last width that theory knows. ``reading_optimum_error`` is how far off
    it may be: 0 at an end.
    """
    widths, n, budgets = np.arange(1, settings["widest"] + 1), sizes(settings), settings["budgets"]
    bandwidths = np.full((len(widths), 1), settings["bandwidth"])
    rows: list[list[list[tuple[np.ndarray, np.ndarray]]]] = []
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
            rows[-1].append(
                [
                    best_width(settings, terms, budget, widths, n)
                    for terms, budget in zip(every, budgets, strict=True)
                ]
            )
    dims, found = (
        ("reading", "family", "dense_budget", "dense_n"),
        np.moveaxis(np.array(rows), 3, 0),
    )
    names = ("reading_optimum", "reading_optimum_error")
    return xr.Dataset(
        {name: (dims, values) for name, values in zip(names, found, strict=True)},
        coords={"reading": READINGS},
    )


def best_width(
    settings: Settings, own: Terms, budget: int, widths: np.ndarray, n: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Where the error of a split into ``H = D/d_k`` heads is least, an end included (n,).

    And how far off that may be, (n,).
    """
    error, known = (part[..., 0] for part in errors(settings, own, number(budget, widths), n))
    (_, best, inside), (_, other, turns) = (
        valley(error, widths * 1.0, known, coarser=coarser) for coarser in (False, True)
    )
    end = ~inside & np.isin(best, (1, budget))
    off = np.where(end, 0.0, np.where(turns, np.abs(best - other), np.nan))
    return np.where(np.isnan(off), np.nan, best), off


def bands(settings: Settings, widths: np.ndarray) -> np.ndarray:
    """Bandwidths (K, 2 + count): the fixed one, the Transformer's, and those to choose from."""
    grid = np.geomspace(*(settings["bandwidths"][k] for k in ("low", "high", "count")))
    first = [settings["bandwidth"] * np.ones(len(widths)), rungs(settings, widths)[:, -1]]
    return np.hstack([np.stack(first, 1), np.tile(grid, (len(widths), 1))])


def curves(
    settings: Settings, own: Terms, heads: np.ndarray, n: np.ndarray
) -> dict[str, np.ndarray]:
    """Of one family and budget, as :func:`dense` names them: (temperature, n, width)."""
    error, known = errors(settings, own, heads, n)
    values = {"surface": error}
    if isinstance(own, BlockTerms):
        values["scaled_surface"] = rescaled(error, own.limit_fit + own.ratio_fit / n[:, None, None])
    out = {}
    for name, value in values.items():
        out[name], optimum = minima(value, known, settings)
        if name == "surface":
            off = np.abs(optimum - minima(value, known, settings, coarser=True)[1])
            out |= {"optimum": np.where(np.isnan(off), np.nan, optimum), "optimum_error": off}
    return out


def errors(
    settings: Settings, own: Terms, heads: np.ndarray, n: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """By first-order theory (n, width, bandwidth), and where n_eff, or n_third, is large enough.

    Down to :data:`NEARLY` of what is asked for, the formula's value is still one for polynomials to
    go through; below it is NaN.
    """
    size = n[:, None, None]
    seen = sizes_seen(settings, own, size)
    keys, least = seen.get("n_third", seen["n_eff"]), settings["least_n_eff"]
    error = np.asarray(own.error(size, heads, settings["noise_sd"]))
    return np.where(keys >= NEARLY * least, error, np.nan), keys >= least


def minima(
    error: np.ndarray, known: np.ndarray, settings: Settings, *, coarser: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Of errors (n, width, bandwidth), the first two bandwidths the fixed and the Transformer's.

    Returns:
        Surfaces (temperature, n, width), NaN where the error is not known, and where they are least
        (temperature, n), NaN at an end, or where no polynomial is ``coarser``.
    """
    logs = np.log(np.geomspace(*(settings["bandwidths"][k] for k in ("low", "high", "count"))))
    tuned, _, inside = valley(error[..., 2:], logs, known[..., 2:], coarser=coarser)
    free, _, turns = valley(error[..., 2:], logs, coarser=coarser)
    seen = np.where(known, error, np.nan)
    surfaces = np.stack([seen[..., 0], seen[..., 1], tuned])
    at = np.argmin(np.where(np.isnan(tuned), np.inf, tuned), axis=-1)[:, None]
    least = np.take_along_axis(tuned, at, -1)
    # Where the best bandwidth is cut off the curve has a kink. What goes on smoothly there is the
    # formula's least value at any bandwidth, good for going through, unless it is below the least.
    through = np.where(inside, tuned, np.where(turns & (free > least), free, np.nan))
    smooth = np.stack([error[..., 0], error[..., 1], through])
    places = np.arange(1.0, error.shape[1] + 1)
    _, width, interior = valley(smooth, places, np.isfinite(surfaces), coarser=coarser)
    at = at[:, 0]
    interior[2] &= inside[np.arange(len(at)), at] & (np.abs(width[2] - places[at]) <= 1)
    return surfaces, np.where(interior, width, np.nan)


def regimes(settings: Settings, cells: Sequence[Settings]) -> xr.Dataset:
    """The map: ``map_optimum`` of d_k*(n) by cell and temperature, at the budget of the map.

    With ``map_optimum_error``, as :func:`dense` has it.
    """
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
        rows.append(curves(own, every[key], number(MAP_BUDGET, widths), n))
    coords = {
        f"cell_{key}": ("cell", [np.inf if cell[key] is None else cell[key] for cell in cells])
        for key in cells[0]
    }
    names, dims = ("optimum", "optimum_error"), ("cell", "temperature", "dense_n")
    return xr.Dataset(
        {f"map_{name}": (dims, np.array([row[name] for row in rows])) for name in names},
        coords={"temperature": TEMPERATURES, "dense_n": n, **coords},
    )


def valley(
    values: np.ndarray,
    x: np.ndarray,
    known: np.ndarray | None = None,
    points: int = POINTS,
    *,
    coarser: bool = False,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Least known value along the last axis, its place, and whether it is inside.

    Inside it has known values to both sides, and is that of the polynomial through the logarithms
    of ``points`` values about the least one, known or not, or of as many as are positive; its place
    is where that is least, within a step. Elsewhere it is the least known value itself. If
    ``coarser``, the polynomial goes through two values fewer, or one of four, and inside is where
    that leaves :data:`FEWEST` at least. x is equally spaced, and all values are known unless told.
    """
    usable = np.isfinite(values) & (values > 0)
    known = usable if known is None else usable & known
    at, place = np.argmin(np.where(known, values, np.inf), axis=-1), np.arange(len(x))
    sides = np.pad(known, [(0, 0)] * (known.ndim - 1) + [(1, 1)])
    inside = np.ones(at.shape, bool)
    for step in range(3):
        inside &= np.take_along_axis(sides, at[..., None] + step, -1)[..., 0]
    before, after = (~usable & (place < at[..., None]), ~usable & (place > at[..., None]))
    first = np.max(np.where(before, place, -1), axis=-1) + 1
    last = np.min(np.where(after, place, len(x)), axis=-1) - 1
    count = np.minimum(points, last - first + 1)
    if coarser:
        inside &= count > FEWEST
        count = np.maximum(count - 2, FEWEST)
    least = np.take_along_axis(np.where(known, values, np.nan), at[..., None], -1)[..., 0]
    shift, drop = np.zeros(at.shape), np.zeros(at.shape)
    for size in np.unique(count[inside]).tolist():
        chosen = inside & (count == size)
        start = np.clip(at - size // 2, first, last - size + 1)[chosen]
        own = np.take_along_axis(values[chosen], start[:, None] + np.arange(size), -1)
        shift[chosen], drop[chosen] = lowest(
            np.log(own / least[chosen][:, None]), at[chosen] - start
        )
    return least * np.exp(drop), x[at] + shift * (x[1] - x[0]), inside

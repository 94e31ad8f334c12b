"""The geometries of the heads, as the file sets them, and the regimes of the map."""

from collections.abc import Callable, Mapping
from itertools import product
from typing import Any, Literal

import numpy as np
import xarray as xr
from numpy.polynomial.polynomial import polyder, polyval
from pydantic import Field, PositiveFloat, PositiveInt

from sims.errors import InputError
from sims.validation import Strict, parse

NEWTON = 6
"""Steps from the parabola's vertex to the polynomial's."""


class Decaying(Strict):
    """Targets of redundant views: relevance ``e^{−αj}/ℓ²`` of coordinate j; ν None is smooth."""

    alpha: float = Field(ge=0)
    lengthscale: PositiveFloat
    nu: PositiveFloat | None


class Even(Strict):
    """Targets of blocks: relevance λ/D of every coordinate, or λ of one if additive."""

    interactions: Literal["all", "none"]
    relevance: PositiveFloat
    nu: PositiveFloat | None


class Queries(Strict):
    """Queries N(0, scale² I), so many a replicate; how large a scale may be is theory's to say."""

    scale: float = Field(ge=0)
    count: PositiveInt


class Bands(Strict):
    """A geometric grid of bandwidths."""

    low: PositiveFloat
    high: PositiveFloat
    count: int = Field(ge=3)


class Decades(Strict):
    """Powers of ten of n, and numbers a decade."""

    low: float = Field(gt=0)
    high: float
    per_decade: PositiveInt


class Simulated(Strict):
    """The grid of the simulation, and the most heads that are simulated of a pool."""

    budgets: list[PositiveInt] = Field(min_length=1)
    widths: list[PositiveInt] = Field(min_length=3)
    n: list[PositiveInt] = Field(min_length=2)
    heads: int = Field(ge=2)


class Geometry(Strict):
    """What both geometries have; ``noise_sd`` is that of the labels."""

    kernel: Literal["gaussian", "softmax"]
    noise_sd: float = Field(ge=0)
    queries: Queries
    waves: PositiveInt
    bandwidth: PositiveFloat
    bandwidths: Bands
    ladder: list[PositiveFloat] = Field(min_length=1)
    widest: int = Field(ge=3)
    budgets: list[PositiveInt] = Field(min_length=3)
    decades: Decades
    least_n_eff: float = Field(ge=0)


class Views(Geometry):
    """Heads that see the same coordinates through noise of their own."""

    latent: PositiveInt
    noise: float = Field(ge=0)
    families: dict[str, Decaying] = Field(min_length=1)


class Blocks(Geometry):
    """Heads that see different coordinates."""

    families: dict[str, Even] = Field(min_length=1)


class Varied(Strict):
    """The map: every combination of these, at redundant views."""

    alpha: list[float] = Field(min_length=1)
    nu: list[PositiveFloat | None] = Field(min_length=1)
    noise: list[float] = Field(min_length=1)
    noise_sd: list[float] = Field(min_length=1)


SOFTMAX = "softmax "
"""Before a geometry's name: its point under that kernel."""


class _Geometries(Strict):
    views: Views
    blocks: Blocks


class _File(_Geometries):
    softmax: _Geometries
    simulated: dict[Literal["views", "blocks", "softmax views", "softmax blocks"], Simulated]
    map: Varied


def checked(settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Settings of both geometries under both kernels, by name of the point.

    Each has the name of its geometry as ``geometry``, views or blocks; the points of softmax are
    those names after "softmax".

    Raises:
        InputError: a setting is missing, unknown or outside its range.
    """
    file = parse(_File, dict(settings), "settings")
    out: dict[str, dict[str, Any]] = {}
    for part, prefix, field in ((file, "", ""), (file.softmax, SOFTMAX, "softmax.")):
        for name in ("views", "blocks"):
            point, geometry = prefix + name, getattr(part, name)
            if point not in file.simulated:
                raise InputError("settings.simulated", list(file.simulated), f"`{point}`, too")
            grid = file.simulated[point]
            if geometry.bandwidth not in geometry.ladder:
                raise InputError(
                    f"settings.{field}{name}.ladder", geometry.ladder, "the fixed bandwidth in it"
                )
            if max(grid.widths) > geometry.widest:
                raise InputError(
                    f"settings.simulated.{point}.widths", max(grid.widths), "at most `widest`"
                )
            out[point] = {"geometry": name, "simulated": grid.model_dump(), **geometry.model_dump()}
        if part.views.widest > part.views.latent:
            raise InputError(f"settings.{field}views.widest", part.views.widest, "at most `latent`")
    return out


def combinations(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The cells of the map: every combination of decay, smoothness, view noise and label noise."""
    varied = parse(_File, dict(settings), "settings").map.model_dump()
    return [dict(zip(varied, cell, strict=True)) for cell in product(*varied.values())]


def pooled_heads(budget: int, width: int, most: int) -> int:
    """How many heads of a budget are pooled: at most so many; 0 where no pair of heads fits.

    One head that takes the whole budget needs no pair.
    """
    heads = min(most, budget // width)
    return heads if heads > 1 or width == budget else 0


def groups(settings: Mapping[str, Any]) -> list[int]:
    """The largest budget of every group of budgets with common targets, of a geometry."""
    budgets = settings["simulated"]["budgets"]
    return list(budgets) if settings["geometry"] == "blocks" else [max(budgets)]


def sizes(settings: Mapping[str, Any]) -> np.ndarray:
    """Numbers of keys of the theory's curves of a geometry, those of the simulation among them."""
    span = settings["decades"]
    count = round((span["high"] - span["low"]) * span["per_decade"]) + 1
    grid = np.logspace(span["low"], span["high"], count)
    return np.union1d(grid, settings["simulated"]["n"])


LABELS: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "family": lambda s: list(s["families"]),
    "n": lambda s: s["simulated"]["n"],
    "budget": lambda s: s["simulated"]["budgets"],
    "width": lambda s: s["simulated"]["widths"],
    "group": groups,
    "dense_n": sizes,
    "dense_budget": lambda s: s["budgets"],
    "dense_width": lambda s: np.arange(1, s["widest"] + 1),
}
"""Coordinates by dimension, from a geometry's settings: points of one file have to share theirs."""


def labelled(data: xr.Dataset, settings: Mapping[str, Any]) -> xr.Dataset:
    """Results of either road at a geometry, with the coordinates of its dimensions."""
    return data.assign_coords({k: of(settings) for k, of in LABELS.items() if k in data.dims})


def lowest(values: np.ndarray, middle: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the polynomial through values (m, k) at 0, …, k − 1 is least, and how low it is there.

    By Newton's method from the vertex of the parabola about the place of the least value (m,), and
    never further than 1 from it.

    Returns:
        How far off that place (m,), and the polynomial there (m,).
    """
    half = (values.shape[-1] - 1) / 2
    powers = np.vander(np.arange(values.shape[-1]) / half - 1, increasing=True)
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

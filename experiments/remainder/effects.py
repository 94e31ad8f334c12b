"""The gap between exact and first-order theory against n."""

import numpy as np
import xarray as xr

from sims.effects import Effect, Families, of_batches
from sims.study.results import Results

TERMS = {"noise variance": ("noise_variance", 3), "total variance": ("variance", 7)}
"""Term in words, to its name and how many of the controls concern it."""


def effects(results: Results) -> Families:
    """First order less exact, relative, at every number of keys: by kernel and term."""
    return {
        f"{kernel}, {term}": gaps(results, kernel, term)
        for kernel in results.points
        for term in TERMS
    }


def gaps(results: Results, kernel: str, term: str) -> list[Effect]:
    """Relative gaps first order − exact; points of a kernel share their draws."""
    name, count = TERMS[term]
    law = results.prediction(kernel)[name]
    columns = controlled(results.estimates[kernel], f"{name}_remainder", count)
    return [
        of_batches(f"n = {n}", -column / float(law.sel(size=n)), kernel, x=float(n))
        for n, column in zip(law["size"].values.tolist(), columns.T, strict=True)
    ]


def controlled(data: xr.Dataset, name: str, count: int) -> np.ndarray:
    """Means (batch, size) of a quantity less its regression on the first controls.

    A batch's coefficients come from the other batches, so that its mean stays unbiased.

    Args:
        data: means over a batch of the quantity times each control after a leading 1, and of the
            products of ``controls``.
        name: of the quantity.
        count: number of controls.
    """
    products = data[name].transpose("batch", "size", "control").values[..., : count + 1]
    squares = data["controls"].transpose("batch", "size", "control", "other").values
    squares = squares[..., : count + 1, : count + 1]
    # Moments with the controls less their overall means.
    means = squares[..., 0, 1:].mean(0)
    cross = products[..., 1:] - means * products[..., :1]
    square = squares[..., 1:, 1:] - means[..., None] * squares[..., :1, 1:]
    others = np.linalg.solve(square.sum(0) - square, (cross.sum(0) - cross)[..., None])[..., 0]
    return products[..., 0] - np.einsum("bsi,bsi->bs", others, squares[..., 0, 1:])

"""First-order theory at every point, and exact theory beside it where the heads are narrow."""

from typing import Any

import xarray as xr

from sims.runtime import in_threads
from sims.specification import Problem
from sims.terms import SCALARS
from sims.theory import predict as theory


def predict(experiment: Any, fidelity: str) -> dict[str, xr.Dataset]:
    """Every point's first-order prediction, with `exact_<term>` and `exact_<term>_error`.

    Exact theory stops at the head dimension in the setting `exact_width`: the integrals of a pair
    have 2 d_k dimensions.
    """
    settings = experiment.settings | experiment.settings.get(fidelity, {})

    def both(point: Any) -> xr.Dataset:
        problem: Problem = point.spec.build()
        first = theory(*problem)
        if point.spec.heads.width <= settings["exact_width"]:
            exact = theory(*problem, order="exact", rtol=settings["exact_rtol"])
            names = [k for s in SCALARS if s in exact for k in (s, f"{s}_error")]
            first = first.assign({f"exact_{name}": exact[name] for name in names})
        return first

    points = experiment.points(fidelity)
    found = in_threads(both, points)
    return {point.name: data for point, data in zip(points, found, strict=True)}

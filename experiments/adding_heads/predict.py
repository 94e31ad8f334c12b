"""First-order theory at every point, and exact theory beside it where the heads are narrow."""

from typing import Any

import xarray as xr

from sims.specification import Problem
from sims.theory import predict as theory

PARTS = ("integrated_bias_product", "integrated_signal_covariance", "integrated_noise_covariance")


def predict(experiment: Any, fidelity: str) -> dict[str, xr.Dataset]:
    """Every point's first-order prediction, with ``exact_<part>`` and ``exact_<part>_error``.

    Exact theory stops at the head dimension in the setting ``exact_width``: a pair of heads takes
    integrals over twice as many dimensions.
    """
    settings, found = experiment.settings | experiment.settings.get(fidelity, {}), {}
    for point in experiment.points(fidelity):
        problem: Problem = point.spec.build()
        data = theory(*problem)
        if point.spec.heads.width <= settings["exact_width"]:
            exact = theory(*problem, order="exact", rtol=settings["exact_rtol"])
            names = [n for part in PARTS for n in (part, f"{part}_error")]
            data = data.assign({f"exact_{name}": exact[name] for name in names})
        found[point.name] = data
    return found

"""First-order theory at the run's queries, and the angle law, an average over all queries.

Exact theory instead of both where a point has a number of queries of its own.
"""

from typing import Any

import numpy as np
import xarray as xr
from sims.specification import Problem

from sims.theory import noise_correlation_law
from sims.theory import predict as theory


def predict(experiment: Any, fidelity: str) -> dict[str, xr.Dataset]:
    """Every point's terms; ``law`` at its angles and ``law_curve`` at equal ones (``angle``)."""
    angles, found = np.linspace(0, 90, 181), {}
    for point in experiment.points(fidelity):
        problem: Problem = point.spec.build()
        heads = point.spec.heads
        if "queries.count" in point.coordinates:
            rtol = experiment.settings["exact_rtol"]
            found[point.name] = theory(*problem, order="exact", rtol=rtol)
            continue
        own = np.broadcast_to(point.coordinates["heads.frames.angle"], heads.width)
        equal = np.repeat(angles[:, None], heads.width, axis=1)
        law, curve = (
            np.asarray(
                noise_correlation_law(
                    np.cos(np.deg2rad(a)),
                    point.coordinates["heads.bandwidth"],
                    experiment.problem["queries"]["scale"],
                    heads.kernel,
                )
            )
            for a in (own, equal)
        )
        found[point.name] = theory(*problem).assign(
            law=law, law_curve=("angle", curve), angle=("angle", angles)
        )
    return found

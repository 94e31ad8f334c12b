"""First-order theory at the run's queries, and the angle law, an average over all queries.

Exact theory beside first order where there are few queries.
"""

import numpy as np
import xarray as xr

from sims.study.experiment import Experiment, Point
from sims.study.roads import predict_terms
from sims.study.schema import TheorySpec
from sims.theory import noise_correlation_law


def predict(experiment: Experiment) -> dict[str, xr.Dataset]:
    """Every point's terms; with many queries ``law`` at its angles and ``law_curve`` at equal ones.

    ``curve_angle`` is in degrees.
    """
    most, settings = experiment.settings["exact_queries"], experiment.theory
    return {
        point.name: predict_terms(point.spec.build(), settings)
        if point.spec.queries.count <= most
        else _with_law(point, settings.model_copy(update={"order": "first"}))
        for point in experiment.points
    }


def _with_law(point: Point, settings: TheorySpec) -> xr.Dataset:
    heads, curve = point.spec.heads, np.linspace(0, 90, 181)
    assert heads.frames is not None  # of this experiment's design
    own = np.broadcast_to(heads.frames.angle, heads.width)
    law, along = (
        np.asarray(
            noise_correlation_law(
                np.cos(np.deg2rad(angles)), heads.bandwidth, point.spec.queries.scale, heads.kernel
            )
        )
        for angles in (own, np.repeat(curve[:, None], heads.width, axis=1))
    )
    return predict_terms(point.spec.build(), settings).assign(
        law=law, law_curve=("curve_angle", along), curve_angle=curve
    )

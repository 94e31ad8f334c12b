"""The angle series of every rule at many keys."""

import numpy as np
import xarray as xr

from sims.runtime import in_threads
from sims.study.experiment import Experiment
from sims.theory.first_order.angle_series import angle_series

from .rules import Point, points, rule_of

CURVE = np.linspace(5, 90, 171)
"""Angles of the lines, in degrees."""
FINE = 2e-3
"""Lines end where the bound on their error is above this: near alignment, in d_k = 2."""


def predict(experiment: Experiment) -> dict[str, xr.Dataset]:
    """The noise correlation ``law`` (angle) with ``law_error``, and ``line`` (line_angle).

    In d_k = 2 also ``product`` (angle), by how much ρ(c, c) is above ρ(c, 0)², relatively.
    """
    settings = experiment.settings
    angles = np.asarray(settings["angles"], float)

    def one(point: Point) -> xr.Dataset:
        series = angle_series(
            rule_of(point.rule),
            point.bandwidth,
            settings["query_scale"],
            width=point.width,
            n=point.n,
            degree=settings["degree"][str(point.width)],
        )
        cosines, along = (
            np.repeat(np.cos(np.deg2rad(a))[:, None], point.width, axis=1) for a in (angles, CURVE)
        )
        law, error = series.correlation(cosines)
        line, coarse = series.correlation(along)
        data = {
            "law": ("angle", law),
            "law_error": ("angle", error),
            "line": ("line_angle", np.where(coarse < FINE, line, np.nan)),
            "aligned": series.aligned,
        }
        if point.width == 2:
            whole, rest = series.overlap(cosines)
            one_only, less = series.overlap(cosines * [1.0, 0.0])
            data["product"] = ("angle", whole / one_only**2 - 1)
            data["product_error"] = ("angle", rest / one_only**2 + 2 * less * whole / one_only**3)
        return xr.Dataset(data, {"angle": angles, "line_angle": CURVE})

    many = [point for point in points(settings) if point.group != "few"]
    return dict(zip([p.name for p in many], in_threads(one, many), strict=True))

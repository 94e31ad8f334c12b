"""Both orders of theory at every point, and along a denser line of sizes for each kernel."""

import xarray as xr

from sims.runtime import in_threads
from sims.study.experiment import Experiment, Point
from sims.study.results import ORDER
from sims.study.roads import predict_terms
from sims.terms import SCALARS

CURVE = "curve_n"


def predict(experiment: Experiment) -> dict[str, xr.Dataset]:
    """Every point's terms; the first point of each kernel carries the curves.

    These are ``curve_<term>`` and ``curve_<term>_error`` (order, curve_n), and ``curve_n_eff``
    (curve_n), the harmonic mean over queries and heads.
    """
    points, sizes = experiment.points, list(experiment.settings["curve"])
    carriers: dict[str, str] = {}
    for point in points:
        kernel = {path: value for path, value in point.coordinates.items() if path != "n"}
        carriers.setdefault(repr(kernel), point.name)

    def terms(point: Point) -> xr.Dataset:
        problem = point.spec.build()
        own = predict_terms(problem, experiment.theory)
        if point.name not in carriers.values():
            return own
        line = [predict_terms(problem._replace(n=n), experiment.theory) for n in sizes]
        names = [k for term in SCALARS for k in (term, f"{term}_error") if k in own]
        curves = xr.concat([at[names] for at in line], CURVE).transpose(ORDER, CURVE)
        keys = [float(1 / (1 / at["n_eff"].sel({ORDER: "first"})).mean()) for at in line]
        curves = curves.assign(n_eff=(CURVE, keys))
        curves = curves.rename({k: f"curve_{k}" for k in curves.data_vars})
        return own.merge(curves.assign_coords({CURVE: sizes}))

    return dict(zip([p.name for p in points], in_threads(terms, points), strict=True))

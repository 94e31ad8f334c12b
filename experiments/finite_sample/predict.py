"""Exact theory at every point, first order beside it, and both along a denser line of sizes."""

from typing import Any

import numpy as np
import xarray as xr
from sims.specification import Problem

from sims.runtime import in_threads
from sims.terms import SCALARS
from sims.theory import predict as theory

CURVE = "curve_n"


def predict(experiment: Any, fidelity: str) -> dict[str, xr.Dataset]:
    """Every point's exact prediction; `first_<term>` is first order.

    The first point of each kernel carries the curves: `curve_<term>`, `curve_first_<term>`,
    their `curve_<term>_error`, and `curve_n_eff`, over `curve_n`.
    """
    settings = experiment.settings | experiment.settings.get(fidelity, {})
    sizes = np.array(settings["curve"])
    rtol = experiment.theory.rtol
    points = experiment.points(fidelity)
    carries: dict[str, str] = {}
    for point in points:
        at = {k: v for k, v in point.coordinates.items() if k != "n"}
        carries.setdefault(repr(at), point.name)

    def both(point: Any) -> xr.Dataset:
        problem: Problem = point.spec.build()
        exact, first = theory(*problem, order="exact", rtol=rtol), theory(*problem)
        found = exact.assign({f"first_{k}": first[k] for k in SCALARS if k in first})
        carrier = point.name in carries.values()
        return found.assign(_curves(problem, sizes, rtol)) if carrier else found

    found = in_threads(both, points)
    return {point.name: data for point, data in zip(points, found, strict=True)}


def _curves(problem: Problem, sizes: np.ndarray, rtol: float) -> dict[str, Any]:
    rows: dict[str, list[float]] = {}
    for n in sizes:
        one = problem._replace(n=int(n))
        exact, first = theory(*one, order="exact", rtol=rtol), theory(*one)
        rows.setdefault("curve_n_eff", []).append(float(1 / (1 / exact["n_eff"]).mean()))
        for term in SCALARS:
            if term in exact:
                rows.setdefault(f"curve_{term}", []).append(float(exact[term]))
                rows.setdefault(f"curve_{term}_error", []).append(float(exact[f"{term}_error"]))
                rows.setdefault(f"curve_first_{term}", []).append(float(first[term]))
    columns = {name: (CURVE, values) for name, values in rows.items()}
    return columns | {CURVE: (CURVE, sizes)}

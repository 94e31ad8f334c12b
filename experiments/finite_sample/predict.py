"""Exact theory at every point, first order beside it, and both along a denser line of sizes."""

from typing import Any

import numpy as np
import xarray as xr

from sims.specification import Problem
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
    found, seen = {}, set()
    for point in experiment.points(fidelity):
        problem: Problem = point.spec.build()
        exact = theory(*problem, order="exact", rtol=rtol)
        first = theory(*problem)
        found[point.name] = exact.assign({f"first_{k}": first[k] for k in SCALARS if k in first})
        at = {k: v for k, v in point.coordinates.items() if k != "n"}
        if repr(at) not in seen:
            seen.add(repr(at))
            found[point.name] = found[point.name].assign(_curves(problem, sizes, rtol))
    return found


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

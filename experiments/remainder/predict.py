"""First-order variances of a head, of every kernel at every number of keys."""

import xarray as xr

from sims.study.experiment import Experiment
from sims.study.roads import predict_terms


def predict(experiment: Experiment) -> dict[str, xr.Dataset]:
    """``noise_variance`` and ``variance`` (size) of the grid's points, by their kernel."""
    laws: dict[str, list[xr.Dataset]] = {}
    for point in sorted(experiment.points, key=lambda point: point.spec.n):
        terms = predict_terms(point.spec.build(), experiment.theory).isel(order=0, drop=True)
        terms = terms[["noise_variance", "variance"]].expand_dims(size=[point.spec.n])
        laws.setdefault(point.spec.heads.kernel, []).append(terms)
    return {kernel: xr.concat(rows, "size") for kernel, rows in laws.items()}

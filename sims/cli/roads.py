"""Both roads, as the experiment file's settings ask for them."""

from typing import Any

import xarray as xr

from sims.experiment import Problem, SimulationSpec, TheorySpec
from sims.simulation import estimate
from sims.theory import predict


def estimate_terms(problem: Problem, settings: SimulationSpec, progress: bool) -> xr.Dataset:
    """The terms by simulation."""
    options: dict[str, Any] = settings.model_dump(exclude={"seed", "max_batches"})
    if settings.rel_mcse is not None:
        options["max_batches"] = settings.max_batches or settings.batches
    return estimate(*problem, settings.seed, progress=progress, **options)


def predict_terms(problem: Problem, settings: TheorySpec) -> xr.Dataset:
    """The terms by theory."""
    options: dict[str, Any] = {"rtol": settings.rtol} if settings.order == "exact" else {}
    return predict(*problem, order=settings.order, **options)

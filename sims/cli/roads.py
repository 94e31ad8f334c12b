"""Both roads, as the experiment file's settings ask for them."""

from typing import Any

import xarray as xr

from sims.experiment import SimulationSpec, TheorySpec
from sims.simulation import estimate
from sims.specification import Problem
from sims.theory import predict


def estimate_terms(
    problem: Problem,
    settings: SimulationSpec,
    resume: xr.Dataset | None = None,
    progress: bool = False,
) -> xr.Dataset:
    """The terms by simulation; going on after the batches of ``resume``, if given."""
    options: dict[str, Any] = settings.model_dump(exclude={"seed", "max_batches", "decide"})
    if settings.rel_mcse is not None:
        options["max_batches"] = settings.max_batches or settings.batches
    return estimate(*problem, settings.seed, progress=progress, resume=resume, **options)


def predict_terms(problem: Problem, settings: TheorySpec) -> xr.Dataset:
    """The terms by theory."""
    options: dict[str, Any] = {"rtol": settings.rtol} if settings.order == "exact" else {}
    return predict(*problem, order=settings.order, **options)

"""Both roads, as the experiment file's settings ask for them."""

from typing import Any

import xarray as xr

from sims.experiment import SimulationSpec, TheorySpec
from sims.problem import Task
from sims.simulation import Linearisation, estimate
from sims.specification import Problem
from sims.theory import first_order_arrays, predict


def estimate_terms(
    problem: Problem,
    settings: SimulationSpec,
    resume: xr.Dataset | None = None,
    progress: bool = False,
) -> xr.Dataset:
    """The terms by simulation; going on after the batches of ``resume``, if given."""
    skipped = {"seed", "max_batches", "remainders", "decide"}
    options: dict[str, Any] = settings.model_dump(exclude=skipped)
    if settings.remainders:
        task, heads, _, queries = problem
        known = first_order_arrays(task, heads, 1.0, queries)
        overlap = first_order_arrays(
            Task(task.design, task.target, 1.0), heads, 1.0, queries
        ).noise_covariance
        options["linearisation"] = Linearisation(known.limit, known.log_mass, overlap)
    if settings.rel_mcse is not None:
        options["max_batches"] = settings.max_batches or settings.batches
    return estimate(*problem, settings.seed, progress=progress, resume=resume, **options)


def predict_terms(problem: Problem, settings: TheorySpec) -> xr.Dataset:
    """The terms by theory."""
    options: dict[str, Any] = {"rtol": settings.rtol} if settings.order == "exact" else {}
    return predict(*problem, order=settings.order, **options)

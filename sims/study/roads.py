"""Terms of one problem by both roads, under the settings of a file."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import xarray as xr

from sims.simulation import estimate
from sims.study.results import ORDER
from sims.study.schema import SimulationSpec, TheorySpec
from sims.study.specification import Problem
from sims.theory import predict


def estimate_terms(
    problem: Problem,
    settings: SimulationSpec,
    resume: xr.Dataset | None = None,
    progress: bool = False,
    checkpoint: Path | None = None,
) -> xr.Dataset:
    """The terms by simulation; going on after the batches of ``resume``, if given."""
    options = settings.model_dump(exclude={"seed", "max_batches"})
    if settings.rel_mcse is not None:
        options["max_batches"] = settings.max_batches or settings.batches
    options |= {"resume": resume, "checkpoint": checkpoint, "progress": progress}
    return estimate(*problem, settings.seed, **options)


def predict_terms(
    problem: Problem, settings: TheorySpec, progress: Callable[[int, int], None] | None = None
) -> xr.Dataset:
    """The terms by theory, along ``order``; exact theory tells ``progress`` how far it is."""
    assert settings.order != "none"  # refused before: sims.study.planning
    options: dict[str, Any] = {}
    if settings.order != "first":
        options = {"rtol": settings.rtol} | ({"progress": progress} if progress else {})
    terms = predict(*problem, order=settings.order, **options)
    return terms.expand_dims({ORDER: [terms.attrs["order"]]}, axis=0)

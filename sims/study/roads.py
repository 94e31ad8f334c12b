"""Both roads for the problem of one grid point, as the experiment file's settings ask for them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import xarray as xr

from sims.simulation import estimate
from sims.study.results import ORDER
from sims.study.schema import SimulationSpec, TheorySpec
from sims.study.specification import Problem
from sims.terms import QUERY
from sims.theory import predict


def estimate_terms(
    problem: Problem,
    settings: SimulationSpec,
    resume: xr.Dataset | None = None,
    progress: bool = False,
    checkpoint: Path | None = None,
    stream: tuple[int, ...] = (),
) -> xr.Dataset:
    """The terms by simulation; going on after the batches of ``resume``, if given.

    ``stream`` tells its draws from those of other problems with one seed.
    """
    options = settings.model_dump(exclude={"seed", "max_batches", "decide"})
    if settings.rel_mcse is not None:
        options["max_batches"] = settings.max_batches or settings.batches
    options |= {"resume": resume, "checkpoint": checkpoint, "progress": progress}
    return estimate(*problem, settings.seed, stream=stream, **options)


def predict_terms(
    problem: Problem, settings: TheorySpec, progress: Callable[[int, int], None] | None = None
) -> xr.Dataset:
    """The terms by theory, along ``order``; exact theory tells ``progress`` how far it is.

    Under ``both`` first order has every variable and exact theory its averages over queries with
    the bounds on their errors, where the heads are no wider than ``exact_width``.
    """
    assert settings.order != "none"  # refused before: sims.study.planning
    asked: dict[str, Any] = {"rtol": settings.rtol}
    if progress is not None:
        asked["progress"] = progress
    if settings.order != "both":
        options = {} if settings.order == "first" else asked
        terms = predict(*problem, order=settings.order, **options)
        return terms.expand_dims({ORDER: [terms.attrs["order"]]}, axis=0)
    first = predict(*problem, order="first")
    if settings.exact_width is not None and problem.heads.width > settings.exact_width:
        return first.expand_dims({ORDER: ["first"]}, axis=0)
    exact = predict(*problem, order="exact", **asked)
    averages = [k for k in exact if f"{k}_error" in exact and QUERY not in exact[k].dims]
    exact = exact[[name for k in averages for name in (k, f"{k}_error")]]
    both = xr.concat([first, exact], ORDER, combine_attrs="override", join="exact")
    return both.assign_coords({ORDER: ["first", "exact"]})

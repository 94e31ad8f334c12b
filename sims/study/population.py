"""Populations: points of the grid whose batches are problems, each with draws of its own.

What is held fixed at a point decides what its intervals speak of. Here target, queries and frames
are drawn anew for every batch, so that an interval over batches is one over all of them, and the
two roads are compared problem by problem. Both take the problems from the same seeds.
"""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import xarray as xr
from pydantic import BaseModel

from sims import terms
from sims.study.experiment import Point
from sims.study.results import ORDER
from sims.study.roads import estimate_terms, predict_terms
from sims.study.schema import SimulationSpec, TheorySpec
from sims.study.specification import Problem
from sims.terms import PROBLEM

Part = TypeVar("Part", bound=BaseModel)
EACH = "each_"
"""Before the name of a term: theory's for every problem, whose mean is the term."""


def members(point: Point, seed: int) -> list[Problem]:
    """The problems of a population: the point's, with seeds that follow one another.

    The first has ``seed`` in all of its parts: seeds of different parts name independent draws,
    equal ones too. A part that the file gives no seed, or ``null``, is not drawn.
    """
    assert point.population is not None
    numbers = range(seed, seed + point.population.problems)
    return [_seeded(point.spec, number).build() for number in numbers]


def _seeded(part: Part, seed: int) -> Part:
    """A part of a problem, with the seed in it and in its own parts."""
    update: dict[str, object] = {}
    for name in type(part).model_fields:
        value = getattr(part, name)
        if isinstance(value, BaseModel):
            update[name] = _seeded(value, seed)
        elif name in ("seed", "rotation_seed") and isinstance(value, int):
            update[name] = seed
    return part.model_copy(update=update)


def estimate_population(point: Point, settings: SimulationSpec) -> xr.Dataset:
    """The terms by simulation: a batch a problem, each from replicates of its own.

    Terms are averaged over queries; what is kept of single queries is dropped.
    """
    assert point.population is not None
    halves = {
        "batches": 2,
        "replicates_per_batch": point.population.replicates // 2,
        "rel_mcse": None,
        "keep_queries": False,
    }
    each = [
        estimate_terms(problem, settings.model_copy(update=halves), stream=(place,))
        for place, problem in enumerate(members(point, settings.seed))
    ]
    names = [name for name, values in each[0].data_vars.items() if terms.BATCH in values.dims]
    # Plain arrays, batches first: labelled ones would take as long as the smallest problems.
    means = {
        name: np.stack([data.variables[name].values.mean(0) for data in each]) for name in names
    }
    whole = xr.Dataset({name: (each[0][name].dims, values) for name, values in means.items()})
    counts = {
        "batches": len(each),
        "batches_asked": len(each),
        "replicates": sum(data.attrs["replicates"] for data in each),
        "replicates_per_batch": point.population.replicates,
        "stopped": "limit",
    }
    said = {name: _said(each, name) for name in ("faults", "cautions")}
    found = {name: phrases for name, phrases in said.items() if phrases}
    dropped = {k: v for k, v in each[0].attrs.items() if k not in (*said, "stream")}
    return terms.add_mcse(whole).assign_attrs(dropped | counts | found)


def _said(each: Sequence[xr.Dataset], name: str) -> list[str]:
    """Phrases of an attribute, each once, with the first problem that they are said of."""
    first: dict[str, int] = {}
    for place, data in enumerate(each):
        for phrase in data.attrs.get(name, ()):
            first.setdefault(phrase, place)
    return [f"problem {place}: {phrase}" for phrase, place in first.items()]


def predict_point(point: Point, settings: TheorySpec, seed: int) -> xr.Dataset:
    """The terms by theory at a point of the grid: of its problem, or of its population.

    Of a population there are the scalar terms, means over problems, with the means of the bounds on
    their errors; ``each_<term>`` (order, problem) beside them; and ``n_eff``, the harmonic mean
    over problems.
    """
    if point.population is None:
        return predict_terms(point.spec.build(), settings)
    each = [predict_terms(problem, settings) for problem in members(point, seed)]
    names = [k for term in terms.SCALARS for k in (term, f"{term}_error") if k in each[0]]
    every = xr.concat([data[names] for data in each], PROBLEM).transpose(ORDER, PROBLEM)
    renamed = every.rename({name: f"{EACH}{name}" for name in names})
    keys = np.mean([1 / data["n_eff"].values for data in each], axis=0)
    return renamed.assign(every.mean(PROBLEM)).assign(n_eff=(each[0]["n_eff"].dims, 1 / keys))

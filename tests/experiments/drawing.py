"""Problems and small runs of an experiment with some of its law changed, and its effects."""

from contextlib import contextmanager
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from experiments.house import pilot, simulate
from sims import steps
from sims.problem.law import Law
from sims.study.running import Run
from sims.study.stored import results_of


@cache
def law_of(name):
    """Law of an experiment's problems."""
    return Run.load(name).spec.law


def fields_of(name, number=0, **changes):
    """What is drawn of one problem."""
    return Law(law_of(name) | changes).draw(3, number)


def small_run(name, law, settings, simulation):
    """The smoke run of an experiment with some of its law, settings and simulation changed."""
    run = Run.load(name, "smoke")
    declared = run.study.declared
    content = declared.content | {"law": declared.content["law"] | law}
    run.study._declare(replace(declared, content=content), True)
    known = {key: value for key, value in settings.items() if key in run.settings}
    changed = run.simulation.model_copy(update=simulation)
    return Run(run.study, "smoke").changed(run.settings | known, changed)


@contextmanager
def short_house():
    """Pilots of 6 batches of 16 queries, 4 of them on the grid, and fixed queries to 2 %."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pilot, "GRID_BATCHES", 4)
        patch.setattr(pilot, "LEAST_QUERIES", 96)
        patch.setitem(pilot.QUERIES, 64, 16)
        patch.setattr(simulate, "PRECISE", 0.02)
        yield


def two_problems(folder, name, batches, replicates, **law):
    """Two problems of a small run, what was simulated of the first, and the run's effects."""
    few = {"simulated": 2, "problems": 2, "times": {"heads": 1, "trees": 1, "ants": 1}}
    many = {"batches": batches, "replicates_per_batch": replicates}
    run = small_run(name, law, few, many)
    for step, file in (("simulate", "simulation.nc"), ("predict", "theory.nc")):
        steps.function(step)(run, folder / file)
    results = results_of(run, folder)
    problems = [run.study.draw(number) for number in range(2)]
    return problems, results.estimates["0000"], run.study.effects(results)


def fall(later, earlier):
    """Relative fall of a mean over replicates, with its standard error to first order."""
    kept = later.mean() / earlier.mean()
    return 1 - kept, (later - kept * earlier).std() / earlier.mean() / len(later) ** 0.5


def assert_effect(effect, number, expected, pair=0):
    """An effect of a problem is the expected one; their joint error is at most 0.15 of it or 1."""
    value, error = effect.value[number], effect.error[number]
    if effect.kind == "outcome":
        value, error = value[pair], error[pair]
    joint = np.hypot(error, expected[1])
    assert joint < 0.15 * max(1, abs(value))
    assert value == pytest.approx(expected[0], abs=5 * joint)

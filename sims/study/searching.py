"""A search for a counterexample where no drawn problem is one: by theory, inside the law."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from scipy.optimize import differential_evolution

from sims.base.errors import InputError
from sims.base.runtime import in_threads
from sims.judgement.answers import Answer, condition_mask, read_answers, write_answers
from sims.judgement.effects import foreseen
from sims.problem.law import Law
from sims.study.experiment import Experiment
from sims.study.loading import load_study
from sims.study.results import Results
from sims.study.runner import results_of
from sims.study.schema import QuestionSpec
from sims.study.study import Fields, Study

STARTS = 12
"""Drawn problems, those whose effect is least by theory, that a search starts from."""
SMOKE = 2 * STARTS
"""Problems that a search tries at smoke."""
SEED = 0


def search(experiment: Experiment, output: Path) -> list[Answer]:
    """The answers of an experiment, with what its searches found, also written as JSON.

    Args:
        experiment: of which theory has one point, ``law``, along ``number``, the simulated problems
            first, each of which is a point of the simulation.
        output: beside answers.json.

    Raises:
        InputError: there is no such module, or a file cannot be believed.
    """
    results = results_of(experiment, output.parent)
    path = output.with_name("answers.json")
    answers = read_answers(path, f"{path.name} of {experiment.identity}")
    questions = {question.id: question for question in experiment.spec.questions}
    outcomes = [
        searched(experiment, results, questions[answer.id], answer)
        if questions[answer.id].search and answer.counterexample is None
        else answer
        for answer in answers
    ]
    write_answers(outcomes, output, f"{output.name} of {experiment.identity}")
    return outcomes


def searched(
    experiment: Experiment, results: Results, question: QuestionSpec, answer: Answer
) -> Answer:
    """The answer with the number of problems tried, the least effect, and a counterexample.

    The problems that theory alone predicts are tried first. If none fails, differential evolution
    (Storn & Price 1997) goes on from the worst: it moves what the law draws from a list or a span,
    in the unit cube of its quantiles, and takes the seeds from one of them.
    """
    study = load_study(experiment)
    predictions, numbers = results.predictions["law"], len(results.estimates)
    with experiment.code_errors():
        effects = effects_by_theory(study, results, question)
    order = [int(k) for k in effects.argsort() if np.isfinite(effects[k])][:STARTS]
    law = Law(study.law)
    starts = [_fields(law, predictions.isel(number=k), answer.seed, k) for k in order]
    count = int(np.isfinite(effects[numbers:]).sum())
    if not starts:
        return answer
    best, fields = float(effects[order[0]]), starts[0]
    if best > 0 and len(starts) == STARTS:
        first = min(results.estimates)
        small = replace(results, estimates={first: results.estimates[first]})
        sample, tried = predictions.isel(number=[0]), list[float]()

        def moved_fields(place: np.ndarray) -> Fields:
            start = starts[min(int(place[0] * STARTS), STARTS - 1)]
            return Fields(law.moved(start, place[1:]), answer.seed)

        def effect(place: np.ndarray) -> float:
            problem = study.problem(moved_fields(place))
            theory = None if problem is None else study.search_row(problem)
            if theory is None:
                return np.inf
            pair = xr.concat([sample, theory.expand_dims("number")], "number")
            pair_results = replace(small, predictions={"law": pair})
            tried.append(float(effects_by_theory(study, pair_results, question)[-1]))
            return tried[-1]

        places = [np.r_[(k + 0.5) / STARTS, law.quantiles(s)] for k, s in enumerate(starts)]
        limit = SMOKE if experiment.fidelity == "smoke" else question.search
        with experiment.code_errors():
            optimum = differential_evolution(
                effect,
                [(0, 1)] * len(places[0]),
                init=np.clip(places, 0, 1),
                maxiter=limit // STARTS - 1,
                tol=0,
                polish=False,
                updating="deferred",
                workers=in_threads,
                rng=np.random.default_rng([SEED, answer.seed]),
            )
        count += int(np.isfinite(tried).sum())
        if optimum.fun < best:
            best, fields = float(optimum.fun), moved_fields(optimum.x)
    result = replace(answer, searched=count, least=best)
    if best > 0:
        return result
    with experiment.code_errors():
        return replace(result, problem=study.as_file(study.problem(fields)))


def effects_by_theory(study: Study[Any], results: Results, question: QuestionSpec) -> np.ndarray:
    """Theory's effects, inf where it is out of its range or the question is not asked, (M,)."""
    effects = study.effects(results)[question.effect]
    conditions = question.restrict.where if question.restrict else {}
    mask, calls = condition_mask(study.parameters(results), conditions), foreseen(effects)
    if effects.predicted is None or not len(calls):
        allowed = "0, of effects that are no shares or that theory does not predict"
        raise InputError(f"questions, {question.id}, search", question.search, allowed)
    return np.where(mask & np.isin(calls, (-1, 1)), effects.predicted, np.inf)


def _fields(law: Law, prediction: xr.Dataset, seed: int, number: int) -> Fields:
    """Fields that the law drew for a problem, before any was solved for."""
    return Fields(law.draw(seed, number, int(prediction.get("rejected", 0))), seed)

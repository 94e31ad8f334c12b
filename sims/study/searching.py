"""Search by theory for a counterexample inside the law, if no drawn problem is one."""

from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from scipy.optimize import differential_evolution

from sims.base.errors import InputError
from sims.base.runtime import in_threads
from sims.judgement.answers import Answer, condition_mask, read_answers, write_answers
from sims.problem.law import Law
from sims.study.results import Results
from sims.study.running import Run
from sims.study.schema import QuestionSpec
from sims.study.stored import results_of
from sims.study.study import Fields, Study

STARTS = 12
"""Number of drawn problems, with the least effects by theory, from which a search starts."""
SMOKE = 2 * STARTS
"""Number of problems that a search tries at smoke."""
SEED = 0


def search(run: Run, output: Path) -> list[Answer]:
    """Answers of an experiment with the results of its searches, also written as JSON.

    Args:
        run: the run whose theory has one point, ``law``, along ``number``, with the
            simulated problems first; each of these is a point of the simulation.
        output: path in the folder of answers.json.

    Raises:
        InputError: a module is missing, or a file is damaged.
    """
    results = results_of(run, output.parent)
    path = output.with_name("answers.json")
    answers = read_answers(path, f"{path.name} of {run.identity}")
    questions = {question.id: question for question in run.spec.questions}
    outcomes = []
    for answer in answers:
        question = questions[answer.id]
        if question.search and answer.counterexample is None:
            answer = extend(run, results, question, answer)
        outcomes.append(answer)
    write_answers(outcomes, output, f"{output.name} of {run.identity}")
    return outcomes


def extend(run: Run, results: Results, question: QuestionSpec, answer: Answer) -> Answer:
    """Answer with the number of problems tried, the least effect, and a counterexample.

    Problems predicted by theory only are tried first. If none fails, differential evolution (Storn
    & Price 1997) starts from the worst: it varies fields drawn from a list or a span, in the unit
    cube of their quantiles, and takes the seeds from one of the starts.
    """
    study = run.study
    predictions = results.predictions["law"]
    with run.code_errors():
        effects = effects_by_theory(study, results, question)
    order = effects.argsort()[: np.isfinite(effects).sum()][:STARTS].tolist()
    law = Law(study.law)
    starts = [_fields(law, predictions.isel(number=k), answer.seed, k) for k in order]
    count = int(np.isfinite(effects[len(results.estimates) :]).sum())
    if not starts:
        return answer
    best = float(effects[order[0]])
    fields = starts[0]
    if best > 0 and len(starts) == STARTS:
        limit = SMOKE if run.fidelity == "smoke" else question.search
        with run.code_errors():
            tried = neighbours(study, results, question, starts, limit)
        count += sum(effect < np.inf for effect, _ in tried)
        best, fields = min([(best, fields), *tried], key=itemgetter(0))
    result = replace(answer, searched=count, least=best)
    if best > 0:
        return result
    with run.code_errors():
        return replace(result, problem=study.as_file(study.problem(fields)))


def neighbours(
    study: Study[Any],
    results: Results,
    question: QuestionSpec,
    starts: list[Fields],
    limit: int,
) -> list[tuple[float, Fields]]:
    """Problems of a law near drawn ones, with their effects, tried by differential evolution.

    They are points of a cube. The first coordinate of a point chooses the start; the others are
    quantiles of varied fields.

    Args:
        study: study of the experiment.
        results: results of the run.
        question: the question.
        starts: fields of drawn problems, the worst first.
        limit: number of problems.
    """
    law = Law(study.law)
    seed = starts[0].seed
    sample = results.predictions["law"].isel(number=[0])
    first = min(results.estimates)
    estimates = {first: results.estimates[first]}
    tried: list[tuple[float, Fields]] = []

    def effect_at(place: np.ndarray) -> float:
        """Theory's effect of the problem at a point; infinite if there is none."""
        start = starts[min(int(place[0] * STARTS), STARTS - 1)]
        fields = Fields(law.moved(start, place[1:]), seed)
        problem = study.problem(fields)
        if problem is None:
            return np.inf
        theory = study.theory(problem)
        pair = xr.concat([sample, theory.expand_dims("number")], "number")
        found = replace(results, estimates=estimates, predictions={"law": pair})
        effect = float(effects_by_theory(study, found, question)[-1])
        tried.append((effect, fields))
        return effect

    places = []
    for number, start in enumerate(starts):
        places.append(np.r_[(number + 0.5) / STARTS, law.quantiles(start)])
    differential_evolution(
        effect_at,
        [(0, 1)] * len(places[0]),
        init=np.clip(places, 0, 1),
        maxiter=limit // STARTS - 1,
        tol=0,
        polish=False,
        updating="deferred",
        workers=in_threads,
        rng=np.random.default_rng([SEED, seed]),
    )
    return tried


def effects_by_theory(study: Study[Any], results: Results, question: QuestionSpec) -> np.ndarray:
    """Theory's effects, (M,); infinite outside its range or where the question has no meaning."""
    effects = study.effects(results)[question.effect]
    conditions = question.restrict.where if question.restrict else {}
    mask = condition_mask(study.parameters(results), conditions)
    calls = effects.predicted_call
    if effects.predicted is None or not len(calls):
        allowed = "0 for effects that are not shares or that theory does not predict"
        raise InputError(f"questions, {question.id}, search", question.search, allowed)
    return np.where(mask & np.isin(calls, (-1, 1)), effects.predicted, np.inf)


def _fields(law: Law, prediction: xr.Dataset, seed: int, number: int) -> Fields:
    """Fields that the law drew for a problem, before solving for others."""
    return Fields(law.draw(seed, number, int(prediction.get("rejected", 0))), seed)

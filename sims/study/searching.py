"""Search by theory for a counterexample inside the law, if no drawn problem is one."""

from dataclasses import dataclass, field, replace
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
        neighbourhood = Neighbourhood(study, results, question, law, starts, answer.seed)
        limit = SMOKE if run.fidelity == "smoke" else question.search
        with run.code_errors():
            optimum = neighbourhood.minimize(limit)
        count += int(np.isfinite(neighbourhood.tried).sum())
        if optimum.fun < best:
            best = float(optimum.fun)
            fields = neighbourhood.fields_at(optimum.x)
    result = replace(answer, searched=count, least=best)
    if best > 0:
        return result
    with run.code_errors():
        return replace(result, problem=study.as_file(study.problem(fields)))


@dataclass
class Neighbourhood:
    """Problems of a law near drawn ones, as points of a cube.

    The first coordinate of a point chooses the start; the others are quantiles of varied fields.

    Attributes:
        study: study of the experiment.
        results: results of the run.
        question: the question.
        law: law of the problems.
        starts: fields of drawn problems, the worst first.
        seed: random seed for problems and for the search.
        tried: effects so far of the problems that theory covers.
    """

    study: Study[Any]
    results: Results
    question: QuestionSpec
    law: Law
    starts: list[Fields]
    seed: int
    tried: list[float] = field(default_factory=list)

    def fields_at(self, place: np.ndarray) -> Fields:
        """Fields of the problem at a point."""
        start = self.starts[min(int(place[0] * STARTS), STARTS - 1)]
        return Fields(self.law.moved(start, place[1:]), self.seed)

    def effect_at(self, place: np.ndarray) -> float:
        """Theory's effect of the problem at a point; infinite if there is none."""
        problem = self.study.problem(self.fields_at(place))
        if problem is None:
            return np.inf
        theory = self.study.theory(problem)
        sample = self.results.predictions["law"].isel(number=[0])
        pair = xr.concat([sample, theory.expand_dims("number")], "number")
        first = min(self.results.estimates)
        estimates = {first: self.results.estimates[first]}
        results = replace(self.results, estimates=estimates, predictions={"law": pair})
        self.tried.append(float(effects_by_theory(self.study, results, self.question)[-1]))
        return self.tried[-1]

    def minimize(self, limit: int) -> Any:
        """Least effect, by differential evolution over a number of problems."""
        places = []
        for number, start in enumerate(self.starts):
            places.append(np.r_[(number + 0.5) / STARTS, self.law.quantiles(start)])
        return differential_evolution(
            self.effect_at,
            [(0, 1)] * len(places[0]),
            init=np.clip(places, 0, 1),
            maxiter=limit // STARTS - 1,
            tol=0,
            polish=False,
            updating="deferred",
            workers=in_threads,
            rng=np.random.default_rng([SEED, self.seed]),
        )


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

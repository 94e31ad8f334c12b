"""A search finds a planted corner of a law where a claim fails, and none where there is none."""

from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from sims.judgement.answers import answer
from sims.judgement.effects_of_problems import of_batches
from sims.problem.law import Law
from sims.report.answers import page
from sims.study.ledger import _searched
from sims.study.results import Results
from sims.study.schema import QuestionSpec
from sims.study.searching import searched

LAW = {
    "text": "made up",
    "x": {"uniform": [0, 1]},
    "y": {"loguniform": [0.01, 1]},
    "kernel": ["gaussian", "softmax"],
    "seed": "drawn",
}
SEED, COUNT, SIMULATED = 3, 40, 20
QUESTION = {"id": "q", "question": "?", "effect": "holds", "status": "confirmatory", "search": 120}
GAUSSIAN = {"text": "gaussian", "where": {"kernel": "gaussian"}}


def theory(experiment, fields):
    return None if fields["x"] + fields["y"] > 1.999 else xr.Dataset(dict(fields))


def effects(limit):
    """The claim x + y < limit; of softmax heads it is false, out of theory's range where x < 0.1"""

    def of(results):
        law = results.predictions["law"]
        margin = limit - (law["x"] + law["y"]).values - 2 * (law["kernel"].values == "softmax")
        few = margin[: len(results.estimates), None]
        draws = np.abs(few) + 0.01 * np.random.default_rng(0).standard_normal((len(few), 8))
        return {"holds": of_batches(draws, predicted=margin, valid=law["x"].values > 0.1)}

    return of


def asked(limit, **changes):
    law = Law(LAW)
    drawn = [xr.Dataset(law.draw(SEED, k)) for k in range(COUNT)]
    estimates = {f"{k:02}": xr.Dataset() for k in range(SIMULATED)}
    results = Results("e", "standard", estimates, {"law": xr.concat(drawn, "number")}, {}, {})
    modules = {
        "search": SimpleNamespace(theory=theory, problem=lambda _, fields: {"problem": fields}),
        "statistic": SimpleNamespace(
            effects=effects(limit),
            parameters=lambda of: pd.DataFrame({"kernel": of.predictions["law"]["kernel"].values}),
        ),
    }
    experiment = SimpleNamespace(
        module=modules.get,
        code_errors=nullcontext,
        spec=SimpleNamespace(law=LAW),
        fidelity="standard",
    )
    question = QuestionSpec.model_validate(QUESTION | changes)
    statistic = modules["statistic"]
    one = answer(
        question,
        statistic.effects(results)["holds"],
        statistic.parameters(results),
        experiment="e",
        law="",
        seed=SEED,
    )
    return one, searched(experiment, results, question, one)


def test_a_search_goes_where_no_draw_has_been():
    one, found = asked(1.9, restrict=GAUSSIAN)
    assert one.counterexample is None
    fields = found.problem["problem"]
    assert 1.9 < fields["x"] + fields["y"] <= 1.999
    assert fields["kernel"] == "gaussian"
    assert found.least == pytest.approx(1.9 - fields["x"] - fields["y"])
    assert 120 < found.searched + SIMULATED <= 120 + COUNT
    assert "/q.yaml` (by theory, in a search).\n" in page([found], "standard")
    assert _searched(one, [found]) == found
    other = replace(one, results="other")
    assert _searched(other, [found]) == other  # a search beside other results


def test_no_counterexample_where_there_is_none():
    one, found = asked(2.0, restrict=GAUSSIAN)
    assert found == replace(one, searched=found.searched, least=found.least)
    assert 0 < found.least < 0.1
    assert f"nor in a search over {found.searched} more" in page([found], "standard")


def test_a_drawn_problem_that_theory_alone_predicts_is_found_first():
    _, found = asked(1.9)
    assert found.problem["problem"]["kernel"] == "softmax"
    assert found.searched < COUNT - SIMULATED
    assert found.problem["problem"]["x"] > 0.1

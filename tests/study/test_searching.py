"""A search finds a planted corner of a law where a claim fails, and none where there is none."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import xarray as xr
import yaml

from sims.judgement.answers import answer, write_answers
from sims.judgement.effects import share
from sims.problem.law import Law
from sims.report.claims import page
from sims.study import searching
from sims.study.ledger import gather
from sims.study.results import Results
from sims.study.running import Run
from sims.study.schema import QuestionSpec
from sims.study.study import Study

LAW = yaml.safe_load("""
text: made up
x: {uniform: [0, 1]}
y: {loguniform: [0.01, 1]}
kernel: [gaussian, softmax]
seed: drawn
""")
SEED, COUNT, SIMULATED = 3, 40, 20
QUESTION = yaml.safe_load("""
{id: q, question: "?", asks: share, effect: holds, status: confirmatory, search: 120}
""")
GAUSSIAN = {"text": "gaussian", "where": {"kernel": "gaussian"}}


class Corner(Study):
    """The claim x + y < limit; of softmax heads it is false, out of theory's range where x < 0.1"""

    limit: float

    def problem(self, fields):
        return None if fields["x"] + fields["y"] > 1.999 else dict(fields)

    def theory(self, problem):
        return xr.Dataset(problem)

    def as_file(self, problem):
        return {"problem": problem}

    def effects(self, results):
        law = results.predictions["law"]
        softmax = law["kernel"].values == "softmax"
        margin = self.limit - (law["x"] + law["y"]).values - 2 * softmax
        few = margin[: len(results.estimates), None]
        draws = np.abs(few) + 0.01 * np.random.default_rng(0).standard_normal((len(few), 8))
        return {"holds": share(draws, predicted=margin, valid=law["x"].values > 0.1)}

    def parameters(self, results):
        return pd.DataFrame({"kernel": results.predictions["law"]["kernel"].values})


@pytest.fixture
def asked():
    def search(limit, **changes):
        law = Law(LAW)
        drawn = [xr.Dataset(law.draw(SEED, k)) for k in range(COUNT)]
        estimates = {f"{k:02}": xr.Dataset() for k in range(SIMULATED)}
        results = Results(estimates, {"law": xr.concat(drawn, "number")}, {})
        study = Corner(LAW, [QUESTION | {"claim": "decomposition"}])
        study.limit = limit
        opened = Run(study)
        question = QuestionSpec.model_validate(QUESTION | changes)
        effects, parameters = study.effects(results)["holds"], study.parameters(results)
        one = answer(question, effects, parameters, experiment="e", law="", seed=SEED)
        return one, searching.extend(opened, results, question, one)

    return search


def test_a_search_goes_where_no_draw_has_been(asked):
    one, found = asked(1.9, restrict=GAUSSIAN)
    assert one.counterexample is None
    fields = found.problem["problem"]
    assert 1.9 < fields["x"] + fields["y"] <= 1.999
    assert fields["kernel"] == "gaussian"
    assert found.least == pytest.approx(1.9 - fields["x"] - fields["y"])
    assert 120 < found.searched + SIMULATED <= 120 + COUNT
    assert f"found in a search over {found.searched} more problems" in page([found])


def test_gathered_answers_have_the_search_of_the_same_results(asked, tmp_path):
    one, found = asked(1.9, restrict=GAUSSIAN)
    for original, problem in ((one, found.problem), (replace(one, results="other"), None)):
        for stem, each in {"answers": original, "search": found}.items():
            file = f"{stem}.json"
            write_answers([each], tmp_path / "house" / file, f"{file} of house at standard")
        (gathered,) = gather("standard", tmp_path)
        assert gathered.problem == problem


def test_no_counterexample_where_there_is_none(asked):
    one, found = asked(2.0, restrict=GAUSSIAN)
    assert found == replace(one, searched=found.searched, least=found.least)
    assert 0 < found.least < 0.1
    assert f"nor in a search over {found.searched} more" in page([found])


def test_a_drawn_problem_that_theory_alone_predicts_is_found_first(asked):
    _, found = asked(1.9)
    assert found.problem["problem"]["kernel"] == "softmax"
    assert found.searched < COUNT - SIMULATED
    assert found.problem["problem"]["x"] > 0.1

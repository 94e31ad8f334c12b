"""The table of effects: its file alone gives the answers of the run that made it, to the bit."""

import numpy as np
import pandas as pd
import pytest

from sims.base.errors import InputError
from sims.judgement import conventions
from sims.judgement.effects import Effects, gap, mean, outcome_over_pairs, share
from sims.judgement.table import PRECISION, Table
from sims.study import results as files
from sims.study.judge import answers_of
from sims.study.schema import ExperimentSpec, QuestionSpec
from tests.by_hand import refused

ROWS, EVERY = 150, 200
READ = {"gap": {"tolerance": "methods"}, "outcome": {"tolerance": "order"}}
READ["mean"] = {"status": "exploratory"}
ORIGIN = {"experiment": "e", "fidelity": "standard", "results": "d", "seed": 3, "salt": "dev"}


def question(kind, effect, **changes):
    """A question of this kind about an effect."""
    asked = {"id": effect, "own": "S.", "question": "?", "asks": kind, "effect": effect}
    return asked | {"status": "confirmatory"} | READ.get(kind, {}) | changes


@pytest.fixture
def stored(tmp_path):
    """A table of every kind of effects and parameters, its experiment's file, and its own file."""
    rng = np.random.default_rng(8)
    truth = rng.normal(0.5, 1, EVERY)
    draws = truth[:ROWS, None] + 0.4 * rng.gamma(4, 0.5, (ROWS, 33))
    draws[::20] = np.nan
    pairs = [row[: 16 + k % 3, None] * np.array([0.02, 0.03]) for k, row in enumerate(draws)]
    size = {"size": truth[:ROWS], "size_error": 0.1 * abs(draws.mean(1))}
    effects = {
        "share": share(draws, predicted=truth, valid=rng.random(EVERY) < 0.9, **size),
        "gap": gap(1 + 0.05 * draws, np.ones(ROWS)),
        "mean": mean(draws, predicted=truth),
        "outcome": outcome_over_pairs(pairs, looks=3, components={"part": truth[:ROWS]}, **size),
        "alone": Effects(0.02 * truth[:, None], np.zeros((EVERY, 1)), "outcome"),
        "theory": share(None, predicted=truth, valid=truth > -1),
    }
    parameters = {
        "real": truth + rng.normal(size=EVERY),
        "count": rng.integers(1, 9, EVERY),
        "flag": rng.random(EVERY) < 0.5,
        "text": rng.choice(["ä", "b"], EVERY),
        "gone": [None, "given"] * (EVERY // 2),
        "missing": np.where(truth > 0, truth, np.nan),
    }
    strata = {"strata": {"b": {"text": "b"}, "flagged": {"flag": 1.0}}}
    questions = [question(each.kind, name, **strata) for name, each in effects.items()]
    questions[0]["quantity"] = questions[3]["quantity"] = "error"
    questions[0]["restrict"] = {"text": "few", "where": {"count": {"at_most": 7}}}
    questions[0]["specifications"] = {
        "effects": {"share": {"as": "it is"}, "theory": {"as": "theory"}},
        "problems": {"text": {"ä": {"text": "ä"}, "b": {"text": "b"}}},
    }
    questions[5]["restrict"] = {"text": "flagged", "where": {"flag": 1.0}}
    questions[5]["specifications"] = {
        "effects": {"theory": {"limit": "1"}, "share": {"limit": "2"}}
    }
    spec = {"title": "T", "aim": "A", "law": {"text": "L"}, "fidelities": {"standard": {}}}
    spec = ExperimentSpec.model_validate(spec | {"questions": questions})
    table = Table(effects, pd.DataFrame(parameters), ORIGIN | {"versions": {"a": "1"}})
    files.write(table.dataset(spec.questions), tmp_path / "effects.nc", "t", packed=True)
    return table, spec, files.read(tmp_path / "effects.nc", "t")


def test_answers_are_functions_of_the_file(stored, monkeypatch, tmp_path):
    """Words, failures, sizes, strata, changes, specifications; and under other thresholds."""
    table, spec, data = stored
    read = Table.of(data)
    answers = answers_of(read, spec)
    for name, effects in table.effects.items():
        np.testing.assert_allclose(read.effects[name].value, effects.value, rtol=2.0**-PRECISION)
        np.testing.assert_array_equal(read.effects[name].call, effects.call)
    pd.testing.assert_frame_equal(read.parameters, table.parameters)
    files.write(read.dataset(spec.questions), tmp_path / "again.nc", "t")
    assert answers_of(Table.of(files.read(tmp_path / "again.nc", "t")), spec) == answers
    assert {one.word for one in answers} > {"usually", ""}
    assert {one.always for one in answers} == {"no", "not refuted", ""}
    assert {len(one.strata) for one in answers} == {2}
    assert answers[0].where
    assert [read.effects["gap"].half(k).freedom[0] for k in (0, 1)] == [16, 15]  # of 33 batches
    assert (answers[0].robust.cells, answers[0].robust.choice) == (3, "text")
    of_flagged = sum(answers[5].result.deciding.bracket) / 2
    assert answers[5].robust.shares["1"] == pytest.approx(of_flagged)
    monkeypatch.setattr(conventions, "CALLED", 20.0)
    before, after = answers[0].result.simulated, answers_of(read, spec)[0].result.simulated
    assert after.undecided > before.undecided
    assert after.total == before.total


def test_margins_and_calls_are_columns(stored):
    table, spec, data = stored
    judged = table.effects["outcome"].within(conventions.tolerance(spec.questions[3].tolerance))
    for name, wanted in {"margin": judged.margin.min(1), "call": judged.call}.items():
        (column,) = data["number"].values[data["quantity"].values == f"{name}: outcome"]
        np.testing.assert_allclose(column[:ROWS], wanted, rtol=2.0**-PRECISION)
        assert np.isnan(column[ROWS:]).all()


@pytest.mark.parametrize(("kind", "of"), [("share", "mean"), ("mean", "gap"), ("gap", "outcome")])
def test_a_question_and_its_effect_agree_on_what_is_asked(stored, kind, of):
    table, spec, _ = stored
    asked = QuestionSpec.model_validate(question(kind, of))
    words = f"questions, {of}, asks: got '{kind}'; allowed: {of}, which the effect '{of}' is"
    with refused(words):
        answers_of(table, spec.model_copy(update={"questions": [asked]}))


@pytest.mark.parametrize(
    ("effect", "quantity", "words"),
    [
        ("share", None, "got None; allowed: what the effect 'share' has the size of"),
        ("theory", "error", "got 'error'; allowed: nothing: the effect 'theory' has no size"),
    ],
)
def test_a_size_is_that_of_a_named_quantity(stored, effect, quantity, words):
    table, spec, _ = stored
    asked = QuestionSpec.model_validate(question("share", effect, quantity=quantity))
    with pytest.raises(InputError, match=f"questions, {effect}, quantity: {words}"):
        answers_of(table, spec.model_copy(update={"questions": [asked]}))


@pytest.mark.parametrize(
    ("kind", "change", "words"),
    [
        (
            "share",
            {"tolerance": "methods"},
            "tolerance: got 'methods'; allowed: only where asks is gap",
        ),
        (
            "mean",
            {"says": "always"},
            "says: got 'always'; allowed: only where asks is share or gap",
        ),
        ("gap", {"quantity": "q"}, "quantity: got 'q'; allowed: only where asks is share or out"),
        ("mean", {"status": "confirmatory"}, "allowed: exploratory: a mean gets no word"),
        (
            "outcome",
            {"tolerance": None},
            "tolerance: got None; allowed: a tolerance, which outcome",
        ),
        ("gap", {"tolerance": None}, "tolerance: got None; allowed: a tolerance, which gap needs"),
        ("estimate", {}, "asks"),
        (None, {}, "asks"),
    ],
)
def test_what_a_kind_does_not_read_is_refused(kind, change, words):
    with pytest.raises(ValueError, match=words):
        QuestionSpec.model_validate(question(kind, "e", **change))


@pytest.mark.parametrize(
    ("shape", "kind", "words"),
    [
        (3, "estimate", "kind of effects: got 'estimate'; allowed: share, gap, mean"),
        (3, "outcome", r"\(problem, pair\) for outcomes"),
        ((3, 2), "share", r"else \(problem,\)"),
    ],
)
def test_effects_have_a_kind_and_its_shape(shape, kind, words):
    with refused(words):
        Effects(np.zeros(shape), np.zeros(shape), kind)
    with pytest.raises(TypeError):
        Effects(np.zeros(shape), np.zeros(shape))

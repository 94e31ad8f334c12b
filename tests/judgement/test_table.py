"""The table of effects: its file alone gives the answers of the run that made it, to the bit."""

import numpy as np
import pandas as pd
import pytest

from sims.base.errors import InputError
from sims.judgement import conventions
from sims.judgement.effects import Effects, gap, mean, outcome, outcome_over_pairs, share
from sims.judgement.table import Table
from sims.study import results as files
from sims.study.judge import answers_of, cells_of
from sims.study.schema import ExperimentSpec

ROWS, EVERY = 150, 200
KINDS = {"share": {}, "gap": {"tolerance": "roads"}, "mean": {}, "outcome": {"tolerance": "order"}}
ORIGIN = {"experiment": "e", "fidelity": "standard", "results": "d", "seed": 3, "salt": "dev"}


def make():
    """Effects of every kind, some without a meaning, and parameters of every type."""
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
        "one pair": outcome(0.02 * draws),
        "theory alone": Effects(0.02 * truth[:, None], np.zeros((EVERY, 1)), "outcome"),
        "no problem": share(None, predicted=truth, valid=truth > -1),
    }
    parameters = {
        "real": truth + rng.normal(size=EVERY),
        "count": rng.integers(1, 9, EVERY),
        "flag": rng.random(EVERY) < 0.5,
        "text": rng.choice(["ä", "b"], EVERY),
        "gone": [None, "given"] * (EVERY // 2),
        "missing": np.where(truth > 0, truth, np.nan),
    }
    questions = []
    for name, each in effects.items():
        asked = {"id": name.replace(" ", "-"), "own": "S.", "question": "?", "effect": name}
        asked |= {
            "asks": each.kind,
            "status": "exploratory" if each.kind == "mean" else "confirmatory",
        }
        asked["strata"] = {"b": {"text": "b"}, "flagged": {"flag": 1.0}}
        if each.kind == "share":
            asked["restrict"] = {"text": "few", "where": {"count": {"at_most": 7}}}
        questions.append(asked | KINDS[each.kind])
    spec = {"title": "T", "aim": "A", "law": {"text": "L"}, "fidelities": {"standard": {}}}
    choices = {"effects": {"as": ["share", "no problem"]}, "effect": "{as}"}
    choices |= {
        "questions": ["share"],
        "problems": {"text": {"ä": {"text": "ä"}, "b": {"text": "b"}}},
    }
    spec |= {"questions": questions, "specifications": choices}
    table = Table(effects, pd.DataFrame(parameters), ORIGIN | {"versions": {"a": "1"}})
    return table, ExperimentSpec.model_validate(spec)


@pytest.fixture
def stored(tmp_path):
    """A table, its experiment's file, and the table from a file."""
    table, spec = make()
    files.write(table.dataset(spec.questions), tmp_path / "effects.nc", "t")
    return table, spec, Table.of(files.read(tmp_path / "effects.nc", "t"))


def test_answers_are_functions_of_the_file(stored):
    """Words, failures, sizes, strata, changes, cells of specifications: all are the same."""
    table, spec, read = stored
    answers = answers_of(read, spec)
    assert answers == answers_of(table, spec)
    assert {one.word for one in answers} > {"usually", ""}
    assert {one.always for one in answers} == {"no", "not refuted", ""}
    assert [len(one.strata) for one in answers] == [2] * len(answers)
    assert answers[0].where
    assert answers[0].robust.cells == 3
    cells = cells_of(read, spec, "share")
    assert [one.choices["as"] for one in cells] == ["share", "share", "no problem", "no problem"]
    for name, effects in table.effects.items():
        for number in (0, 1):
            half = read.effects[name].half(number)
            np.testing.assert_array_equal(half.value, effects.half(number).value)
            np.testing.assert_array_equal(half.freedom, effects.half(number).freedom)


def test_margins_and_calls_are_columns(stored):
    table, spec, _ = stored
    data = table.dataset(spec.questions)
    asked = spec.questions[3]
    for quantity in ("margin: outcome", "call: outcome"):
        (column,) = data["number"].values[data["quantity"].values == quantity]
        judged = table.effects["outcome"].within(conventions.tolerance(asked.tolerance))
        wanted = judged.call if "call" in quantity else judged.margin.min(1)
        np.testing.assert_allclose(column[:ROWS], wanted, rtol=1e-6)
        assert np.isnan(column[ROWS:]).all()


def test_other_thresholds_need_no_other_run(stored, monkeypatch):
    _, spec, read = stored
    before = answers_of(read, spec)[0].result.simulated
    monkeypatch.setattr(conventions, "CALLED", 20.0)
    after = answers_of(read, spec)[0].result.simulated
    assert after.undecided > before.undecided
    assert after.total == before.total


@pytest.mark.parametrize(
    ("asked", "is_one"), [("share", "mean"), ("mean", "gap"), ("gap", "outcome")]
)
def test_a_question_and_its_effect_agree_on_what_is_asked(asked, is_one):
    table, spec = make()
    (question,) = [q for q in spec.questions if q.id == asked]
    changed = question.model_copy(update={"effect": is_one})
    wrong = spec.model_copy(update={"questions": [changed]})
    words = (
        f"questions, {asked}, asks: got '{asked}'; allowed: {is_one}, which the effect '{is_one}'"
    )
    with pytest.raises(InputError, match=words):
        answers_of(table, wrong)


REFUSED = [
    ("share", {"tolerance": "roads"}, "tolerance: got 'roads'; allowed: only where asks is gap or"),
    ("mean", {"says": "always"}, "says: got 'always'; allowed: only where asks is share or gap or"),
    ("gap", {"search": 9}, "search: got 9; allowed: only where asks is share"),
    ("mean", {"status": "confirmatory"}, "allowed: exploratory: a mean gets no word"),
    ("outcome", {"tolerance": None}, "tolerance: got None; allowed: a tolerance, which outcome"),
    ("gap", {"tolerance": None}, "tolerance: got None; allowed: a tolerance, which gap needs"),
    ("share", {"asks": "estimate"}, "asks"),
    ("share", {"asks": None}, "asks"),
]


@pytest.mark.parametrize(("asked", "change", "words"), REFUSED)
def test_what_a_kind_does_not_read_is_refused(asked, change, words):
    _, spec = make()
    (question,) = [q for q in spec.questions if q.id == asked]
    with pytest.raises(ValueError, match=words):
        type(question).model_validate(question.model_dump(exclude={"paper"}) | change)


@pytest.mark.parametrize(
    ("value", "kind", "words"),
    [
        (np.zeros(3), "estimate", "kind of effects: got 'estimate'; allowed: share, gap, mean"),
        (np.zeros(3), "outcome", r"\(problem, pair\) for outcomes"),
        (np.zeros((3, 2)), "share", r"else \(problem,\)"),
    ],
)
def test_effects_have_a_kind_and_its_shape(value, kind, words):
    with pytest.raises(InputError, match=words):
        Effects(value, value, kind)
    with pytest.raises(TypeError):
        Effects(value, value)

"""The contract: prose and layout change nothing, whatever decides a test does."""

import pytest

from sims.errors import InputError
from sims.study.contract import contract
from sims.study.experiment import Experiment
from sims.study.schema import ExperimentSpec
from sims.validation import parse

CODE = '''"""Effects."""

def effects(results):
    """Of every point."""
    return {"gap": results.gap(1.0)}  # relative
'''
FILE = {
    "title": "T", "aim": "A", "data_generating_process": "D", "estimands": "E", "methods": "M",
    "performance_measures": "P", "problem": {"n": 64, "heads": {"count": 2}},
    "grid": [{"heads.count": [2, 4]}], "settings": {"least": 50},
    "fidelities": {
        "smoke": {"problem": {"n": 32}, "settings": {"least": 10}}, "standard": {}, "paper": {},
    },
    "claims": [
        {"id": "angles", "regime": "all", "statement": "S.", "test": "bound", "effects": "e",
         "margin": 0.1, "formula": "#a", "kind": "simulation", "over": ["seeds"]},
    ],
}  # fmt: skip


@pytest.fixture
def of(tmp_path):
    """``of(changes, code, fidelity)``: the contract of the experiment so changed."""

    def made(changes=(), code=CODE, fidelity="standard", seed_offset=0, **modules):
        for old in tmp_path.iterdir():
            old.unlink()
        for name, text in {"effects": code, **modules}.items():
            if text is not None:
                (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
        spec = parse(ExperimentSpec, {**FILE, **dict(changes)}, "file")
        return contract(Experiment(tmp_path, spec, fidelity, seed_offset))

    return made


def _claim(**changes):
    return {"claims": [{**FILE["claims"][0], **changes}]}


@pytest.mark.parametrize(
    "changes",
    [
        {"title": "Another"}, {"aim": "Another"}, {"methods": "Another"},
        {"simulation": {"seed": 5, "batches": 64}},
        _claim(statement="Said better."), _claim(formula="#b"), _claim(level=0.95),
        {"seen_before": "All of it, at seed 5."}, _claim(seen_before="At seed 5 it was open."),
        {"fidelities": {**FILE["fidelities"], "paper": {"problem": {"n": 9}}}},
        {"grid": [{"heads.count": 2}, {"heads.count": 4}]},
    ],
)  # fmt: skip
def test_what_decides_no_test_does_not_count(of, changes):
    """Prose, sizes of the run, other fidelities, and another spelling of the same points."""
    assert of(changes) == of()


@pytest.mark.parametrize(
    "changes",
    [
        _claim(id="extremes"), _claim(test="ordering"), _claim(effects="f"),
        _claim(sequential=True), _claim(regime="some"), _claim(kind="both roads"),
        _claim(over=["queries"]), _claim(margin=0.2), _claim(level=0.9),
        _claim(paper="2601.22766"), {"claims": FILE["claims"] + [_claim(id="hdi")["claims"][0]]},
        {"settings": {"least": 40}}, {"grid": [{"heads.count": [2, 8]}]},
        {"grid": [{"heads.count": [4, 2]}]}, {"problem": {"n": 65, "heads": {"count": 2}}},
    ],
)  # fmt: skip
def test_what_decides_a_test_counts(of, changes):
    assert of(changes) != of()


def test_fidelities_have_contracts_of_their_own(of):
    assert of(fidelity="smoke") != of()
    assert of(fidelity="paper") == of()
    smoke = {"problem": {"n": 32}, "settings": {"least": 9}}
    changed = {"fidelities": {**FILE["fidelities"], "smoke": smoke}}
    assert of(changed, fidelity="smoke") != of(fidelity="smoke")
    assert of(seed_offset=1) == of()


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("Of every point.", "Of each point.", True),
        ("  # relative", "", True),
        ('"""Effects."""\n', "", True),
        ('"gap": results', "\n        'gap':   results", True),
        ("1.0", "2.0", False),
        ('"gap"', '"ratio"', False),
    ],
)
def test_of_the_code_only_what_it_does_counts(of, old, new, same):
    assert old in CODE
    assert (of(code=CODE.replace(old, new)) == of()) == same


def test_code_may_be_missing_but_not_broken(of):
    assert of(code=None) != of()
    assert of(code=None, other=CODE) == of(code=None)
    with pytest.raises(InputError, match=r"effects\.py: got 'a mistake at line 1'"):
        of(code="def (")


@pytest.mark.parametrize(
    "line",
    ["from .curves import slope", "from . import curves", "def f():\n    from . import curves"],
)
def test_modules_that_effects_import_count(of, line):
    """However they are imported, and those that they import in turn, as often as they like."""
    code = f"{line}\n{CODE}"
    curves = "from .widths import WIDTHS\nfrom .effects import effects\nslope = 2.0"
    widths = "WIDTHS = 1, 2"

    def with_modules(curves=curves, widths=widths, **modules):
        return of(code=code, curves=curves, widths=widths, **modules)

    assert with_modules() == with_modules()
    assert with_modules(curves=f'"""Curves."""\n{curves}  # of theory') == with_modules()
    assert with_modules(figure="import seaborn") == with_modules()
    assert with_modules(curves=curves.replace("2.0", "3.0")) != with_modules()
    assert with_modules(widths="WIDTHS = 1, 3") != with_modules()
    assert of(code=CODE, curves=curves) == of()
    with pytest.raises(InputError, match=r"widths\.py: got 'a mistake at line 1'"):
        with_modules(widths="def (")

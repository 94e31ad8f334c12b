"""Bad files of `sims run`, `step` and `claims`: one line, exit code 2, nothing written."""

import shutil
from pathlib import Path

import pytest
import yaml

from sims.base.files import write_json
from tests.cli.small import EXPERIMENT, changed, run, typed, write
from tests.pipeline import ROOT

EXPERIMENT_FILE = Path("experiments/small/experiment.yaml")
ASKED = "questions.0."
SETTINGS = [
    ("titel", "T", "titel: got 'titel'; allowed: aim, derivation, fidelities, labels, "),
    ("title", 3, "title: got 3; allowed: a valid string"),
    ("claims", "[]", "claims: got 'claims'; allowed: aim, "),
    ("paper", "'2604.23618'", "got '2604.23618'; allowed: "),
    ("settings", 3, "settings: got 3; allowed: a mapping of keys to values"),
    ("law", 3, "law: got 3; allowed: a mapping of keys to values"),
    ("questions", "[]", "questions: got []; allowed: "),
    ("questions", 2 * EXPERIMENT["questions"], "questions: got 'gaps'; allowed: each id once"),
    (ASKED + "id", "a b", "questions.0.id: got 'a b'; allowed: "),
    (ASKED + "claim", "decompositon", "(did you mean decomposition?)"),
    (ASKED + "tolerance", "method", "tolerance: got 'method'; allowed: methods, exact, slope"),
    (ASKED + "tolerence", "methods", "(did you mean tolerance?)"),
    (ASKED + "status", "confirmative", "(did you mean confirmatory?)"),
    (ASKED + "says", "never", "says: got 'never'; allowed: always"),
    (ASKED + "restrict", "{text: t, where: {n: {}}}", "allowed: at_least, at_most or both"),
    ("fidelities", "{standard: {}}", "fidelity: got 'smoke'; allowed: standard"),
    (
        "fidelities.paper",
        "{simulation: {batchs: 8}}",
        "fidelities.paper.simulation: batchs: got 'b",
    ),
    ("fidelities.smoke", "{settings: {deph: 3}}", "fidelities.smoke.settings: got 'deph'; all"),
    ("fidelities.smoke", "{law: {}}", "fidelities.smoke.law: got 'law'; allowed: "),
]


@pytest.mark.parametrize(("path", "value", "words"), SETTINGS, ids=lambda v: str(v)[:40])
def test_an_experiment(refuses, path, value, words):
    shutil.copytree(ROOT / "papers", "papers")
    EXPERIMENT_FILE.write_text(yaml.safe_dump(changed(EXPERIMENT, path, typed(value))))
    refuses(words, "run", "small", "--fidelity", "smoke", "--dry")


LAWS = [
    ("heads.bandwith", "{uniform: [0.7, 0.9]}", "(did you mean bandwidth?)"),
    ("heads.bandwidth", "{uniform: [0.9, 0.7]}", "law.heads.bandwidth.uniform: got [0.9, 0.7]"),
    ("heads.bandwidth", "{normal: [0, 1]}", "law.heads.bandwidth: got {'normal': [0, 1]}; all"),
    ("hats.count", 2, "hats.count: got 'hats'; allowed: "),
    ("noise_sd", -1.0, "noise_sd: got -1.0; allowed: greater than or equal to 0"),
]


@pytest.mark.parametrize(("path", "value", "words"), LAWS, ids=lambda v: str(v)[:40])
def test_a_law_of_problems(refuses, path, value, words):
    write(law=EXPERIMENT["law"] | {path: typed(value)})
    refuses(words, "step", "simulate", "small")


def test_an_effect_that_the_study_does_not_name(refuses):
    write(questions=[EXPERIMENT["questions"][0] | {"effect": "msee"}])
    words = "small: questions, gaps, effect: got 'msee'; allowed: "
    refuses(words, "step", "rehearse", "small")


def test_settings_that_the_experiments_own_code_cannot_use(refuses):
    own = Path("experiments/small/study.py")
    study = "from sims.study.drawn import DrawnStudy\nclass Own(DrawnStudy):\n  def units(self):\n"
    own.write_text(f"{study}    return {{self.settings['widths']: None}}\n")
    words = "study.py, line 4: got \"KeyError: 'widths'\"; allowed: settings in experiment.yaml"
    refuses(words, "step", "simulate", "small")
    own.write_text(f"{study}    return 3 + broken\n")
    with pytest.raises(NameError):  # no setting's fault: the traceback is wanted
        run("step", "simulate", "small")


def test_code_that_no_study_uses(refuses):
    Path("experiments/small/statistic.py").write_text("")
    words = "study.py: file not found; a Study in it has to use statistic.py"
    refuses(words, "step", "simulate", "small")


ANSWER = yaml.safe_load("""
result: {kind: gap, problems: 3}
word: ""
paper: "2605.20271"
experiment: small
id: gaps
claim: decomposition
question: Q?
status: confirmatory
says: null
law: w
""")
LEDGERS = [
    ({"problms": 3}, "0.problms: got 3; allowed: "),
    (
        {"result": {"kind": "gap", "problems": 3, "tolerance": "0.5"}},
        "0.result.tolerance: got '0.5'; allowed: a valid number",
    ),
    ({"result": {"kind": "gap", "problems": 3, "within": [0.0]}}, "0.result.within.1: got "),
    ("[3]", "as its step wrote it: run that step again"),
]


@pytest.mark.parametrize(("change", "words"), LEDGERS, ids=str)
@pytest.mark.parametrize("command", [["claims"], ["step", "report"]])
def test_answers(refuses, command, change, words):
    path = Path("results/smoke/answers.json")
    path.parent.mkdir(parents=True)
    if isinstance(change, str):
        path.write_text(change)
    else:
        write_json([ANSWER | change], path, "answers.json of smoke")
    refuses(words, *command, "--fidelity", "smoke")

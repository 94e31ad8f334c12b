"""Bad input: one line that says what, where and what is allowed, exit code 2, nothing written.

One table for each way in: the problem's file, the sweep's, the experiment's, answers, and the
command line itself.
"""

import shutil
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from sims.base.documents import mapping
from sims.base.files import write_json
from tests.cli.small import EXPERIMENT, SPEC, changed, refused, run, write
from tests.pipeline import ROOT

EXPERIMENT_FILE = Path("experiments/small/experiment.yaml")

LAUGHS = "a: &a 1\n" + "".join(f"{b}: &{b} [{f'*{a}, ' * 9}]\n" for a, b in pairwise("abcdefg"))
TEXTS = [
    ("", "got 'NoneType'; allowed: a mapping of keys to values"),
    ("- 1", "got 'list'; allowed: a mapping"),
    ("problem: {n: 1\n", ": line 2: not valid YAML (expected ',' or '}')\n"),
    ("a: [\n? b", ": line 3: not valid YAML (expected"),
    ('a: 1\n"b": 2\n"c" 3', "not valid YAML (could not find expected ':')"),
    ("a: 1\n  b: 2", ": line 2: not valid YAML (mapping values are not allowed in this context)"),
    ("n: 1\nm: {a: 1, a: 2}", ": line 2: the key a a second time; allowed: unique keys"),
    ("\na: !!python/name:os.system x", ": line 2: could not determine a constructor"),
    ("a: *here", "found undefined alias"),
    ("a: {b: &a [*a]}", "found undefined alias"),
    (LAUGHS, "too many values or levels"),
    ("- " * 10**5, "too many values or levels"),
    ("a: !!timestamp x", "could not determine a constructor"),
    ("a: 1\n---\na: 2", "found another document"),
    ("n: " + "9" * 5000, "40 digits or more; allowed: "),
    ("n: -" + "9" * 400, "a whole number of 40 digits or more"),
    ("a: \x1b[31m", "not valid YAML"),
    (b"problem: \xe9", "allowed: a text file in UTF-8"),
]


@pytest.mark.parametrize(("text", "words"), TEXTS, ids=lambda v: ascii(v)[:20])
@pytest.mark.parametrize(
    ("file", "command"),
    [
        (Path("spec.yaml"), ["decompose", "spec.yaml"]),
        (EXPERIMENT_FILE, ["experiments"]),
        (Path("papers/2605.20271.yaml"), ["claims"]),
    ],
    ids=str,
)
def test_what_is_no_yaml(folder, capsys, recwarn, file, command, text, words):
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    refused(capsys, recwarn, words, *command)


def test_numbers_and_words_mean_what_yaml_1_2_says(folder, capsys):
    text = yaml.safe_dump(SPEC) + "theory: {order: exact, rtol: 1e-3}\n"
    Path("spec.yaml").write_text(text)
    assert run("decompose", "spec.yaml", "--dry") == 0, capsys.readouterr().err
    Path("spec.yaml").write_text(text.replace("precision: float64", "precision: no"))
    assert run("decompose", "spec.yaml", "--dry") == 2
    assert "simulation.precision: got 'no'; " in capsys.readouterr().err


def typed(value):
    """The value of a text as a user types it into a file; other values stay."""
    return mapping(f"value: {value}", "typed")["value"] if isinstance(value, str) else value


PROBLEM = [
    # values
    ("problem.n", "'64'", "problem.n: got '64'; allowed: a valid integer"),
    ("problem.n", 64.0, "problem.n: got 64.0; allowed: a valid integer"),
    ("problem.n", True, "problem.n: got True; allowed: a valid integer"),
    ("problem.n", None, "problem.n: got None; allowed: a valid integer"),
    ("problem.n", "[64]", "problem.n: got [64]; allowed: a valid integer"),
    ("problem.n", 0, "problem.n: got 0; allowed: greater than or equal to 1"),
    ("problem.n", 10**15, "n: got '1,000,000,000,000,000 keys x 4 queries x 2 heads x"),
    ("problem.n", 10**20 - 1, "n: got 99999999999999999999; allowed: at most 9007199"),
    ("problem.noise_sd", float("inf"), "problem.noise_sd: got '.inf'; allowed: a valid number"),
    ("problem.noise_sd", "0,5", "problem.noise_sd: got '0,5'; allowed: a valid number"),
    ("problem.noise_sd", -0.5, "problem.noise_sd: got -0.5; allowed: greater than or"),
    ("problem.noise_sd", 1e200, "noise_sd: got 1e+200; allowed: finite and >= 0"),
    ("problem.dimension", 10**9, "problem: got 'about"),
    ("problem.dimension", 1, "dimension: got 1; allowed: at least heads.count * heads.wid"),
    ("problem.heads.count", 10**6, "GiB'; allowed: "),
    ("problem.heads.width", 5, "heads.width: got 5; allowed: 1 to dimension = 4"),
    ("problem.heads.bandwidth", 0, "heads.bandwidth: got 0.0; allowed: 1e-12 to 1e+12"),
    ("problem.heads.bandwidth", 1e50, "heads.bandwidth: got 1e+50; allowed: 1e-12 to 1e+12"),
    ("problem.heads.bandwidth", "[]", "heads.bandwidth: got (0,); allowed: a number or shape"),
    ("problem.heads.bandwidth", "[1.0, -2.0]", "heads.bandwidth: got -2.0"),
    (
        "problem.heads.bandwidth",
        "[1.0]",
        "heads.bandwidth: got (1,); allowed: a number or shape (2,)",
    ),
    ("problem.heads.frames", None, "heads.frames: got None; allowed: equiangular, gram"),
    ("problem.heads.frames.angle", 91, "heads.frames.angle: got 91; allowed: degrees, 0 to 90"),
    ("problem.heads.frames.cosine", 0.5, "heads.frames: got 'both'; allowed: exactly one of"),
    ("problem.heads.frames.seed", -1, "heads.frames.seed: got -1; allowed: an integer from"),
    ("problem.heads.kernel", "{kind: entmax}", "heads.kernel: got 'neither'; allowed: exact"),
    (
        "problem.heads.kernel",
        "{kind: top_k, k: 65}",
        "n: got 64; allowed: 65 or more, which top_k (dot) weighs",
    ),
    ("problem.heads.kernel", "{kind: relu, gain: 0}", "heads.kernel.gain: got 0.0; allowed: "),
    ("problem.design", "{kind: sphere, radius: 0}", "design.radius: got 0.0; allowed: finite"),
    ("problem.design", "{kind: gaussian, covariance: [[-1.0]]}", "design.covariance: got "),
    ("problem.design", "{kind: gaussian, covariance: [[1.0]]}", "design.dimension: got 1; all"),
    ("problem.target.lengthscale", 0.0, "target.lengthscale: got 0.0"),
    ("problem.target.features", 10**12, "GiB'; allowed: "),
    ("problem.target", "{kind: holder, levels: 2000}", "target.frequency: got 'NaN or infini"),
    ("problem.queries.count", -4, "queries.count: got -4; allowed: an integer >= 1"),
    ("simulation", 3, "simulation: got 3; allowed: a mapping of keys to values"),
    ("simulation.batches", 1, "simulation.batches: got 1; allowed: greater than or equal to 2"),
    ("simulation.batches", 10**15, "replicates'; allowed: at most 1e+17 operat"),
    ("simulation.seed", 2**63, "simulation.seed: got 92233720368547"),
    # settings that would be passed over
    ("simulation.max_batches", 64, "max_batches: got 64; allowed: only with rel_mcse"),
    ("theory.rtol", 1e-3, "theory.rtol: got 0.001; allowed: only with order: exact or auto"),
    ("theory", "{order: none, rtol: 0.001}", "allowed: only with order: exact or auto"),
    # misspelt words
    (
        "problm",
        1,
        "got 'problm'; allowed: about, problem, simulation, theory (did you mean problem?)",
    ),
    (
        "problem.nosie_sd",
        1,
        "problem.nosie_sd: got 'nosie_sd'; allowed: design, dimension, heads, n",
    ),
    ("problem.nosie_sd", 1, "(did you mean noise_sd?)"),
    (
        "problem.heads.bandwith",
        1,
        "problem.heads.bandwith: got 'bandwith'; allowed: bandwidth, count",
    ),
    ("problem.target.lenghtscale", 1, "problem.target.lenghtscale: got 'lenghtscale'"),
    ("problem.target.kind", "rfb", "problem.target.kind: got 'rfb'; allowed: "),
    ("problem.target.kind", "rfb", "(did you mean rbf?)"),
    ("problem.target.kind", "squared_exponential", "(did you mean rbf?)"),
    ("problem.heads.frames.kind", "random", "(did you mean haar?)"),
    ("problem.heads.frames", "random", "frames: got 'random'; allowed: a mapping {kind: NAME, …}"),
    ("problem.heads.kernel", "RBF", "(did you mean gaussian?)"),
    ("problem.heads.kernel", "{kind: entmax, alpha: 1}", "(α = 1 is the kernel softmax)"),
    ("problem.heads.kernel", "gausian", "got 'gausian'; allowed: "),
    ("problem.heads.kernel", "{kind: entmx}", "(did you mean entmax?)"),
    ("problem.heads.kernel", "{kind: entmax, alpah: 1.5}", "(did you mean alpha?)"),
    ("problem.heads.frames", "{}", "problem.heads.frames.kind: got "),
    ("simulation.precision", "flaot64", "got 'flaot64'; allowed: float32, float64 (did you mean "),
    ("theory.order", "exakt", "(did you mean exact?)"),
]


@pytest.mark.parametrize(("path", "value", "words"), PROBLEM, ids=lambda v: str(v)[:40])
def test_a_problem(folder, capsys, recwarn, path, value, words):
    Path("spec.yaml").write_text(yaml.safe_dump(changed(SPEC, path, typed(value))))
    refused(capsys, recwarn, words, "decompose", "spec.yaml", "--dry")


AXES = [
    (
        "heads.bandwith=1,2",
        "point 00000 (heads.bandwith: 1): heads.bandwith: got 'bandwith'; allowed",
    ),
    ("n=1.5", "point 00000 (n: 1.5): n: got 1.5; allowed: a valid integer"),
    ("n=9:2:3", "low and high: got [9.0, 2.0]; allowed: low < high"),
    ("n=0:2:3:log", "got 0.0; allowed: > 0 on a logarithmic scale"),
    ("n=1:2:3:lgo", "scale: got 'lgo'; allowed: linear, log (did you mean log?)"),
    ("n=5,5", "sweep: got 'a point twice'"),
    ("n=1:1.0000000000001:3", "points: got 3; allowed: distinct values; of these, 1 are distinct"),
    ("n=64:66:10", "sweep.grid.n: points: got 10; allowed: distinct values; of these, 3 are"),
    ("noise_sd=1:1.00000000001:99:log", "99; allowed: distinct values; of these, 2 are distinct"),
    ("n=8 --set n=9", "--set: got 'n=8, n=9'; allowed: each path once"),
    ("simulation.batches=8", "simulation.batches: got 'simulation'; allowed: design"),
    ("n", "--set: got 'n'; allowed: PATH=LOW:HIGH:POINTS"),
    ("n=[8", "--set n: not valid YAML (expected ',' or ']')"),
    ("noise_sd=a:b:c", "low: got 'a'; allowed: a valid number"),
]
DESIGNS = [
    ("{grid: {}, list: [{}]}", "sweep: got ['grid', 'list']; allowed: exactly one of grid"),
    ("{gird: {}}", "got 'gird'; allowed: grid, list, random (did you mean grid?)"),
    ("{grid: {n: [[1]]}}", "sweep: n: got [1]; allowed: a scalar, or a mapping with a `label`"),
    ("{list: [{n: 8}, {n: [16]}]}", "sweep: n: got [16]; allowed: a scalar, or a mapping"),
    ("{grid: {n: []}}", "sweep.grid: got '0 points'; allowed: at least 1"),
    ({"grid": {"n": list(range(1, 400)), "noise_sd": list(range(400))}}, "got '159,600 points'"),
    ("{random: {points: 3, fields: {}}}", "sweep.random.fields"),
    ("{list: [{heads.kernal: gaussian}]}", "(did you mean kernel?)"),
    ("{list: [{n: 8}, {n: 9}, {n: 8}]}", "sweep: got 'a point twice'"),
    (
        "{grid: {heads.frames.angle: [1], heads.frames: {label: a, kind: haar}}}",
        "sweep: got ['heads.frames', 'heads.frames.angle']; allowed: each field set once",
    ),
    (
        "{random: {points: 3, fields: {n: {low: 8, high: 64, points: 5}}}}",
        "points: got 'points'; allowed: high, low, scale",
    ),
]


@pytest.mark.parametrize(("axis", "words"), AXES)
def test_an_axis_of_a_sweep(folder, capsys, recwarn, axis, words):
    refused(capsys, recwarn, words, "sweep", "spec.yaml", "--set", *axis.split(" "))


@pytest.mark.parametrize(("design", "words"), DESIGNS, ids=lambda v: str(v)[:30])
def test_the_file_of_a_sweep(folder, capsys, recwarn, design, words):
    Path("spec.yaml").write_text(yaml.safe_dump(SPEC | {"sweep": typed(design)}))
    refused(capsys, recwarn, words, "sweep", "spec.yaml")


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
    (ASKED + "tolerance", "road", "tolerance: got 'road'; allowed: roads, exact, slope"),
    (ASKED + "tolerence", "roads", "(did you mean tolerance?)"),
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
def test_an_experiment(folder, capsys, recwarn, path, value, words):
    shutil.copytree(ROOT / "papers", "papers")
    EXPERIMENT_FILE.write_text(yaml.safe_dump(changed(EXPERIMENT, path, typed(value))))
    refused(capsys, recwarn, words, "run", "small", "--fidelity", "smoke", "--dry")


LAWS = [
    ("heads.bandwith", "{uniform: [0.7, 0.9]}", "(did you mean bandwidth?)"),
    ("heads.bandwidth", "{uniform: [0.9, 0.7]}", "law.heads.bandwidth.uniform: got [0.9, 0.7]"),
    ("heads.bandwidth", "{normal: [0, 1]}", "law.heads.bandwidth: got {'normal': [0, 1]}; all"),
    ("hats.count", 2, "hats.count: got 'hats'; allowed: "),
    ("noise_sd", -1.0, "noise_sd: got -1.0; allowed: greater than or equal to 0"),
]


@pytest.mark.parametrize(("path", "value", "words"), LAWS, ids=lambda v: str(v)[:40])
def test_a_law_of_problems(folder, capsys, recwarn, path, value, words):
    write(law=EXPERIMENT["law"] | {path: typed(value)})
    refused(capsys, recwarn, words, "step", "simulate", "small")


def test_an_effect_that_the_study_does_not_name(folder, capsys, recwarn):
    write(questions=[EXPERIMENT["questions"][0] | {"effect": "msee"}])
    words = "small: questions, gaps, effect: got 'msee'; allowed: "
    refused(capsys, recwarn, words, "step", "rehearse", "small")


def test_settings_that_the_experiments_own_code_cannot_use(folder, capsys, recwarn):
    own = Path("experiments/small/study.py")
    study = "from sims.study.drawn import DrawnStudy\nclass Own(DrawnStudy):\n  def units(self):\n"
    own.write_text(f"{study}    return {{self.settings['widths']: None}}\n")
    words = "study.py, line 4: got \"KeyError: 'widths'\"; allowed: settings in experiment.yaml"
    refused(capsys, recwarn, words, "step", "simulate", "small")
    own.write_text(f"{study}    return 3 + broken\n")
    with pytest.raises(NameError):  # no setting's fault: the traceback is wanted
        run("step", "simulate", "small")


def test_code_that_no_study_uses(folder, capsys, recwarn):
    Path("experiments/small/statistic.py").write_text("")
    words = "study.py: file not found; a Study in it has to use statistic.py"
    refused(capsys, recwarn, words, "step", "simulate", "small")


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
def test_answers(folder, capsys, recwarn, command, change, words):
    path = Path("results/smoke/answers.json")
    path.parent.mkdir(parents=True)
    if isinstance(change, str):
        path.write_text(change)
    else:
        write_json([ANSWER | change], path, "answers.json of smoke")
    refused(capsys, recwarn, words, *command, "--fidelity", "smoke")


LINES = [
    ("decompse spec.yaml", "No such command 'decompse'. Did you mean 'decompose'?"),
    ("run", "Missing argument 'experiment'"),
    ("run small --fidelty smoke", "No such option: --fidelty (Possible options: --fidelity)"),
    ("run small --fid smoke", "No such option: --fid"),
    ("run small --fidelity smok", "'smok' is not one of 'smoke', 'standard', 'paper'"),
    ("run small more", "unexpected extra argument"),
    (
        "run small --fidelity smoke --fidelity=paper",
        "--fidelity: got '2 values'; allowed: one value",
    ),
    ("sweep spec.yaml --set n=1 --set n=2 --seed 1 --seed 1", "--seed: got '2 values'"),
    ("run smal", "experiment: got 'smal'; allowed: small (did you mean small?)"),
    ("run \0", "experiment: got '\\x00'; allowed: small"),
    ("run small --seed-offset -1", "'--seed-offset': Input should be greater than or equal to 0"),
    (
        "step judg small",
        "step: got 'judg'; allowed: rehearse, simulate, predict, judge, search, plot (did",
    ),
    ("step simulate small --part 4/3", "--part: got '4/3'; allowed: i/N"),
    ("step simulate small --output spec.yaml/x", "spec.yaml/x: got 'Not a directory'"),
    ("step judge small", "simulation.nc"),
    ("step report", "nothing to report"),
    ("step publish", "results/standard: got 'no finished run'"),
    ("table small", "No such command 'table'"),
    ("run Small", "experiment: got 'Small'; allowed: small (did you mean small?)"),
    ("decompose small#x", "small#x"),
    ("claims --paper 2601.22767", "--paper: got '2601.22767'; allowed: "),
    ("schema decompos", "'decompos' is not one of 'experiment', 'problem', 'decompose'"),
    ("new my-question", "name: got 'my-question'; allowed: lower-case letters"),
    ("new class", "name: got 'class'; allowed: lower-case letters"),
    ("new small", "name: got 'small'; allowed: a name not yet used in experiments/"),
    ("decompose none.yaml", "none.yaml: file not found"),
    ("decompose small", "small: this is an experiment; run `sims run small`"),
    ("decompose swept.yaml", "swept.yaml: this is a sweep; run `sims sweep swept.yaml`"),
    ("sweep experiments/small/experiment.yaml", "run `sims run experiments/small`"),
    ("run spec.yaml", "spec.yaml: this is a problem; run `sims decompose spec.yaml`"),
    ("decompose .", ".: got 'Is a directory'; allowed: a text file"),
    ("decompose \0", "allowed: a text file in UTF-8"),
    ("decompose spec.yaml --rel-mcse x", "'--rel-mcse': Input should be a valid number"),
    ("decompose spec.yaml --rel-mcse inf", "simulation.rel_mcse: got inf; allowed: a finite numb"),
    ("decompose spec.yaml --rel-mcse 0", "simulation.rel_mcse: got 0.0; allowed: greater than 0"),
    ("decompose spec.yaml --seed -3", "simulation.seed: got -3; allowed: greater than or equal"),
    ("sweep spec.yaml --output a.txt", "--output: got 'a.txt'; allowed: a file whose name"),
    ("sweep spec.yaml --shards 1", "'--shards': Input should be greater than or equal to 2"),
    ("sweep spec.yaml --shards 2 --shard 1/2", "--shard, --shards: got 'both'; allowed: one of"),
    (
        "sweep spec.yaml --shards 2 --output {x}.nc",
        "--output: got '{x}.nc'; allowed: letters, digits",
    ),
    ("sweep spec.yaml other.yaml", "arguments: got 'other.yaml'; allowed: one file"),
    ("sweep spec.yaml --shard 1/", "--shard: got '1/'; allowed: i/N"),
]


@pytest.mark.parametrize(("line", "words"), LINES)
def test_the_command_line(folder, capsys, recwarn, line, words):
    Path("swept.yaml").write_text(yaml.safe_dump(SPEC | {"sweep": {"grid": {}}}))
    refused(capsys, recwarn, words, *line.split(" "))


@pytest.mark.parametrize("options", ["--executor slurm", "--workflow-profile=profiles/slurm/"])
def test_slurm_without_its_plugin(folder, capsys, recwarn, monkeypatch, options):
    monkeypatch.setattr("sims.cli.sharded.find_spec", lambda name: None)
    line = ("sweep", "spec.yaml", "--shards", "2", "--", *options.split(" "))
    refused(
        capsys,
        recwarn,
        "--shards: got 'slurm'; allowed: an installed executor; this is the extra",
        *line,
    )


def test_a_folder_that_snakemake_cannot_name(folder, capsys, recwarn, monkeypatch):
    Path("br{1}").mkdir()
    monkeypatch.chdir("br{1}")
    refused(capsys, recwarn, "without { and }", "sweep", "../spec.yaml", "--shards", "2")


def test_the_environment_and_the_machine(folder, capsys, recwarn, monkeypatch):
    def full(*arguments):
        raise MemoryError("Unable to allocate 8 EiB\nfor an array")

    monkeypatch.setattr("sims.cli.claims.experiments", full)
    words = "memory: got 'Unable to allocate 8 EiB"
    refused(capsys, recwarn, words, "experiments")
    monkeypatch.setenv("SIMS_HOST_DEVICES", "two")
    words = "SIMS_HOST_DEVICES: got 'two'; allowed: an integer from 1 to 9999"
    refused(capsys, recwarn, words, "decompose", "spec.yaml", "--dry")

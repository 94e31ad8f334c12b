"""Bad files of `sims decompose` and `sims sweep`: one line, exit code 2, nothing written."""

from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from tests.cli.small import SPEC, changed, run, typed

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
        (Path("experiments/small/experiment.yaml"), ["experiments"]),
        (Path("papers/2605.20271.yaml"), ["claims"]),
    ],
    ids=str,
)
def test_what_is_no_yaml(refuses, file, command, text, words):
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    refuses(words, *command)


def test_numbers_and_words_mean_what_yaml_1_2_says(folder, capsys):
    text = yaml.safe_dump(SPEC) + "theory: {order: exact, rtol: 1e-3}\n"
    Path("spec.yaml").write_text(text)
    assert run("decompose", "spec.yaml", "--dry") == 0, capsys.readouterr().err
    Path("spec.yaml").write_text(text.replace("precision: float64", "precision: no"))
    assert run("decompose", "spec.yaml", "--dry") == 2
    assert "simulation.precision: got 'no'; " in capsys.readouterr().err


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
    ("problem.heads.count", 10**6, "GiB of results and working memory'; allowed: "),
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
    ("problem.target.features", 10**12, "GiB of results and working memory'; allowed: "),
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
    ("problem.heads.kernel", "top_k", "kernel: got 'top_k'; allowed: a mapping {kind: NAME, …}"),
    ("problem.heads.kernel", "{kind: softmax}", "allowed: gaussian, softmax, laplace"),
    ("problem.heads.kernel", "{kind: entmax, alpah: 1.5}", "(did you mean alpha?)"),
    ("problem.heads.frames", "{}", "problem.heads.frames.kind: got "),
    ("simulation.precision", "flaot64", "got 'flaot64'; allowed: float32, float64 (did you mean "),
    ("theory.order", "exakt", "(did you mean exact?)"),
]


@pytest.mark.parametrize(("path", "value", "words"), PROBLEM, ids=lambda v: str(v)[:40])
def test_a_problem(refuses, path, value, words):
    Path("spec.yaml").write_text(yaml.safe_dump(changed(SPEC, path, typed(value))))
    refuses(words, "decompose", "spec.yaml", "--dry")


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
    ("{gird: {}}", "got 'gird'; allowed: grid, list (did you mean grid?)"),
    ("{grid: {n: [[1]]}}", "sweep: n: got [1]; allowed: a scalar, or a mapping with a `label`"),
    ("{list: [{n: 8}, {n: [16]}]}", "sweep: n: got [16]; allowed: a scalar, or a mapping"),
    ("{grid: {n: []}}", "sweep.grid: got '0 points'; allowed: at least 1"),
    ({"grid": {"n": list(range(1, 400)), "noise_sd": list(range(400))}}, "got '159,600 points'"),
    ("{list: [{heads.kernal: gaussian}]}", "(did you mean kernel?)"),
    ("{list: [{n: 8}, {n: 9}, {n: 8}]}", "sweep: got 'a point twice'"),
    (
        "{grid: {heads.frames.angle: [1], heads.frames: {label: a, kind: haar}}}",
        "sweep: got ['heads.frames', 'heads.frames.angle']; allowed: each field set once",
    ),
]


@pytest.mark.parametrize(("axis", "words"), AXES)
def test_an_axis_of_a_sweep(refuses, axis, words):
    refuses(words, "sweep", "spec.yaml", "--set", *axis.split(" "))


@pytest.mark.parametrize(("design", "words"), DESIGNS, ids=lambda v: str(v)[:30])
def test_the_file_of_a_sweep(refuses, design, words):
    Path("spec.yaml").write_text(yaml.safe_dump(SPEC | {"sweep": typed(design)}))
    refuses(words, "sweep", "spec.yaml")

"""Hostile files: each is refused in one line that names the field, the value and what is allowed.

The commands are run as a user runs them, but for ``--dry``: nothing is simulated.
"""

import shutil
import time
from pathlib import Path

import pytest

from tests.cli.small import EFFECTS, run

ROOT, FILE = Path(__file__).parents[2], "experiments/small/experiment.yaml"

SPEC = """\
problem:
  dimension: 4
  design: {kind: isotropic}
  target: {kind: rbf, lengthscale: 2.0, features: 4}
  noise_sd: 0.5
  heads:
    count: 2
    width: 1
    frames: {kind: equiangular, angle: 45}
    kernel: gaussian
    bandwidth: 0.7
  n: 64
  queries: {kind: gaussian, count: 4, scale: 0.5}
simulation: {replicates_per_batch: 8, batches: 4}
theory: {order: first}
"""
EXPERIMENT = (
    SPEC
    + """\
title: T
aim: A
data_generating_process: D
estimands: E
methods: M
performance_measures: P
settings: {pairs: 3}
grid:
  - heads.bandwidth: [0.7, 0.9]
fidelities:
  smoke: {}
  standard: {}
  paper: {simulation: {batches: 8}, settings: {pairs: 4}}
claims:
  - id: decomposition
    regime: all
    statement: The mean squared errors agree.
    test: equivalence
    effects: gaps
    kind: both roads
    over: [seeds]
    margin: 0.5
    formula: "#the-decomposition"
"""
)
EXPLICIT = "target: {kind: explicit, amplitude: [1.0], frequency: [[1, 0, 0, 0]], phase: [0.0]}"
TARGET = "target: {kind: rbf, lengthscale: 2.0, features: 4}"
DESIGN = "design: {kind: isotropic}"
FRAMES = "frames: {kind: equiangular, angle: 45}"
QUERIES = "queries: {kind: gaussian, count: 4, scale: 0.5}"
SIMULATION = "simulation: {replicates_per_batch: 8, batches: 4}"
CLAIM = "test: equivalence"
LAUGHS = "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]\n"
    for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


def covariance(last):
    rows = [[float(i == j) for j in range(4)] for i in range(4)]
    rows[3][3] = last
    return f"design: {{kind: gaussian, covariance: {rows}}}"


# What is replaced, by what, and words of the line. Files of problems: `sims decompose`.
PROBLEMS = [
    # numbers that YAML's versions read differently, or that are none
    ("n: 64", "n: 1:30", "problem.n (line 12): got '1:30'; allowed: a finite decimal number"),
    ("n: 64", "n: 0o17", "problem.n (line 12): got '0o17'; allowed: a finite decimal"),
    ("n: 64", "n: 017", "problem.n (line 12): got '017'; allowed: a finite decimal"),
    ("n: 64", "n: 089", "problem.n (line 12): got '089'; allowed: a finite decimal"),
    ("n: 64", "n: 0x40", "problem.n (line 12): got '0x40'; allowed: a finite decimal"),
    ("n: 64", "n: 0b1000000", "problem.n (line 12): got '0b1000000'; allowed: a finite"),
    ("n: 64", "n: 1_000", "problem.n (line 12): got '1_000'; allowed: a finite decimal"),
    ("n: 64", "n: 2026-01-01", "problem.n (line 12): got '2026-01-01'; allowed: a finite"),
    ("n: 64", "n: 64.0", "problem.n: got 64.0; allowed: a valid integer"),
    ("n: 64", "n: 1e2", "problem.n: got 100.0; allowed: a valid integer"),
    ("n: 64", "n: '64'", "problem.n: got '64'; allowed: a valid integer"),
    ("n: 64", "n: yes", "problem.n (line 12): got 'yes'; allowed: a finite decimal"),
    ("n: 64", "n: true", "problem.n: got True; allowed: a valid integer"),
    ("n: 64", "n:", "problem.n: got None; allowed: a valid integer"),
    ("n: 64", "n: [64]", "problem.n: got [64]; allowed: a valid integer"),
    ("n: 64", "n: {a: 1}", "problem.n: got {'a': 1}; allowed: a valid integer"),
    ("n: 64", "n: !!int 64", "problem.n (line 12): got 'the tag tag:yaml.org,2002:int'"),
    ("n: 64", "n: !!python/name:os.system x", "problem.n (line 12): got 'the tag tag:yaml.org"),
    ("noise_sd: 0.5", "noise_sd: .inf", "problem.noise_sd (line 5): got '.inf'; allowed: a fin"),
    ("noise_sd: 0.5", "noise_sd: .nan", "problem.noise_sd (line 5): got '.nan'; allowed: a fin"),
    ("noise_sd: 0.5", "noise_sd: nan", "problem.noise_sd: got 'nan'; allowed: a valid number"),
    ("noise_sd: 0.5", "noise_sd: 1e999", "problem.noise_sd (line 5): got '1e999'; allowed: a fin"),
    ("noise_sd: 0.5", "noise_sd: 1e-999", "problem.noise_sd (line 5): got '1e-999'; allowed:"),
    ("noise_sd: 0.5", "noise_sd: 0,5", "problem.noise_sd: got '0,5'; allowed: a valid number"),
    ("noise_sd: 0.5", "noise_sd: on", "problem.noise_sd (line 5): got 'on'; allowed: a finite"),
    ("noise_sd: 0.5", "noise_sd: -0.5", "problem.noise_sd: got -0.5; allowed: greater than or"),
    ("noise_sd: 0.5", "noise_sd: 1e200", "noise_sd: got 1e+200; allowed: finite and >= 0"),
    # sizes
    ("n: 64", "n: 0", "problem.n: got 0; allowed: greater than or equal to 1"),
    ("n: 64", "n: -64", "problem.n: got -64; allowed: greater than or equal to 1"),
    ("n: 64", "n: 1000000000000000", "n: got '1,000,000,000,000,000 keys x 4 queries x 2 heads x"),
    ("n: 64", "n: 99999999999999999999", "n: got 99999999999999999999; allowed: at most 9007199"),
    ("n: 64", "n: " + "9" * 5000, "problem.n (line 12): got '9999"),
    ("dimension: 4", "dimension: 1000000000", "problem: got 'about"),
    ("dimension: 4", "dimension: 1", "dimension: got 1; allowed: at least heads.count * heads.wid"),
    ("count: 2", "count: 1000000", "GiB, most of it for results'; allowed: "),
    ("width: 1", "width: 0", "problem.heads.width: got 0; allowed: greater than or equal to 1"),
    ("width: 1", "width: 5", "heads.width: got 5; allowed: 1 to dimension = 4"),
    ("features: 4", "features: 1000000000000", "GiB, most of it for target'; allowed: "),
    ("features: 4", "features: 0", "target.features: got 0; allowed: an integer >= 1"),
    ("count: 4, scale", "count: 1000000000000, scale", "GiB, most of it for "),
    ("count: 4, scale", "count: -4, scale", "queries.count: got -4; allowed: an integer >= 1"),
    (TARGET, "target: {kind: holder, levels: 2000}", "target.frequency: got 'NaN or infinity'"),
    ("batches: 4", "batches: 1", "simulation.batches: got 1; allowed: greater than or equal to 2"),
    ("batches: 4", "batches: 1000000000000000", "replicates'; allowed: at most 1e+17 operat"),
    ("h: 8, b", "h: 1, b", "simulation.replicates_per_batch: got 1; allowed: greater than or equ"),
    # degenerate problems
    ("bandwidth: 0.7", "bandwidth: 0", "heads.bandwidth: got 0.0; allowed: finite and > 0"),
    ("bandwidth: 0.7", "bandwidth: 1e-300", "heads.bandwidth: got 1e-300; allowed: finite and >"),
    ("bandwidth: 0.7", "bandwidth: 1e-30", "heads.bandwidth: got 1e-30; allowed: 1e-12 to 1e+12"),
    ("bandwidth: 0.7", "bandwidth: 1e50", "heads.bandwidth: got 1e+50; allowed: 1e-12 to 1e+12"),
    ("bandwidth: 0.7", "bandwidth: [0.7]", "heads.bandwidth: got (1,); allowed: a number or shap"),
    ("bandwidth: 0.7", "bandwidth: []", "heads.bandwidth: got (0,); allowed: a number or shape"),
    ("bandwidth: 0.7", "bandwidth: wide", "problem.heads.bandwidth: got 'wide'; allowed: a valid"),
    (DESIGN, covariance(-1.0), "design.covariance: got 'eigenvalue -1'; allowed: positive semid"),
    (DESIGN, covariance(1e200), "design.covariance: got 'NaN or infinity'; allowed: finite"),
    (DESIGN, covariance("x"), "problem.design.covariance: got [[1.0, 0.0"),
    (DESIGN, covariance("true"), "allowed: a number, or lists of numbers"),
    (DESIGN, "design: {kind: gaussian, covariance: [[1, 2], [0]]}", "allowed: a number or a rect"),
    (DESIGN, "design: {kind: gaussian, covariance: []}", "design.covariance: got (0,); allowed: a"),
    (DESIGN, "design: {kind: isotropic, scale: 1e300}", "design.scale: got 1e+300; allowed: finit"),
    (DESIGN, "design: {kind: isotropic, scale: -1}", "design.scale: got -1.0; allowed: finite and"),
    (TARGET, "target: {kind: single_index, subspace: [[1], [1], [0], [0]]}", "target.subspace: g"),
    (TARGET, EXPLICIT.replace("[1.0]", "[1e300]"), "target.amplitude: got 'NaN or infinity'"),
    (TARGET, EXPLICIT.replace("0, 0, 0", "0"), "target.frequency: got (1, 2); allowed: shape (J"),
    ("angle: 45", "angle: 91", "heads.frames.angle: got 91; allowed: degrees, 0 to 90"),
    ("angle: 45", "angle: '45'", "problem.heads.frames.angle: got '45'; allowed: a number, or"),
    ("angle: 45", "angle: 45, cosine: 0.5", "heads.frames: got 'both'; allowed: exactly one of"),
    ("angle: 45", "angle: 45, seed: -1", "heads.frames.seed: got -1; allowed: an integer from"),
    # names, with the nearest right one
    ("noise_sd:", "nosie_sd:", "got 'nosie_sd'; allowed: design, dimension, heads, n, noise_sd"),
    ("noise_sd:", "nosie_sd:", "(did you mean noise_sd?)"),
    ("bandwidth:", "bandwith:", "(did you mean bandwidth?)"),
    ("lengthscale:", "lenghtscale:", "(did you mean lengthscale?)"),
    ("kind: rbf", "kind: rbff", "problem.target.kind: got 'rbff'; allowed: constant, holder"),
    ("kind: rbf", "kind: rbff", "(did you mean rbf?)"),
    ("kind: rbf", "kind: [rbf]", "problem.target.kind: got "),
    ("kind: isotropic", "kind: isotrop", "(did you mean isotropic?)"),
    ("kind: equiangular", "kind: equianglar", "(did you mean equiangular?)"),
    ("kind: gaussian,", "kind: gausian,", "problem.queries.kind: got 'gausian'; allowed: gauss"),
    ("kernel: gaussian", "kernel: gauss", "(did you mean gaussian?)"),
    ("kernel: gaussian", "kernel: {kind: entmx}", "problem.heads.kernel.kind: got 'entmx'; allow"),
    ("kernel: gaussian", "kernel: {kind: entmax}", "heads.kernel: got 'neither'; allowed: exact"),
    ("kernel: gaussian", "kernel: {kind: entmax, nu: 0}", "heads.kernel.nu: got 0.0; allowed: fin"),
    ("kernel: gaussian", "kernel: {kind: entmax, nu: 1.0e+30}", "heads.kernel.nu: got 1e+30; all"),
    ("kernel: gaussian", "kernel: {kind: entmax, alpha: 1}", "heads.kernel.alpha: got 1.0; allow"),
    ("kernel: gaussian", "kernel: {kind: relu, gain: 0}", "heads.kernel.gain: got 0.0; allowed: "),
    ("kernel: gaussian", "kernel: {kind: relu, empty: n}", "heads.kernel.empty: got 'n'; allowed"),
    ("kernel: gaussian", "kernel: {kind: relu_gap, gain: -1}", "heads.kernel.gain: got -1.0; all"),
    ("kernel: gaussian", "kernel: {kind: top_k, k: 0}", "heads.kernel.k: got 0; allowed: an inte"),
    ("kernel: gaussian", "kernel: {kind: entmax, nu: -1}", "heads.kernel.nu: got -1.0; allowed: f"),
    ("kernel: gaussian", "kernel: {kind: entmax, nu: .inf}", "problem.heads.kernel.nu (line 10): "),
    ("kernel: gaussian", "kernel: {kind: entmax, alpha: 0.5}", "heads.kernel.alpha: got 0.5; allo"),
    ("kernel: gaussian", "kernel: {kind: entmax, nu: 2, alpha: 1.5}", "heads.kernel: got 'both'; "),
    ("kernel: gaussian", "kernel: {kind: entmax, nu: 2, scores: cos}", "kernel.scores: got 'cos';"),
    ("kernel: gaussian", "kernel: {kind: sparsemax, temperature: 0}", "temperature: got 'temperat"),
    ("kernel: gaussian", "kernel: {kind: top_k, k: -3}", "heads.kernel.k: got -3; allowed: an int"),
    ("kernel: gaussian", "kernel: {kind: top_k, k: 2.5}", "problem.heads.kernel.k: got 2.5; allow"),
    ("kernel: gaussian", "kernel: {kind: top_k, k: 65}", "n: got 64; allowed: 65 or more, which t"),
    ("kernel: gaussian", "kernel: {kind: top_k_softmax, k: 65}", "n: got 64; allowed: 65 or more,"),
    # dot products with keys of unequal norms imply no radius
    ("bandwidth: 0.7", "bandwidth: -0.7", "heads.bandwidth: got -0.7; allowed: "),
    ("order: first", "order: firs", "theory.order: got 'firs'; allowed: first, exact, auto, both"),
    ("simulation:", "simulatoin:", "got 'simulatoin'; allowed: problem, simulation, theory (did"),
    ("n: 64", '"n\\nm": 64\n  n: 64', r"problem.n m: got 'n\nm'"),
    # what would be passed over, and what is not possible
    ("n: 64", "n: 64\n  n: 65", "problem.n (line 13): got 'the key a second time'"),
    ("angle: 45", "angle: 45, angle: 45", "problem.heads.frames.angle (line 9): got 'the key a s"),
    ("theory: {order: first}", "theory: {rtol: 1e-3}", "theory.rtol: got 0.001; allowed: nothing"),
    ("theory: {order: first}", "theory: {exact_width: 2}", "theory.exact_width: got 2; allowed:"),
    ("order: first", "order: exact, rtol: 1", "theory.rtol: got 1; allowed: less than or equal"),
    ("order: first", "order: both", "theory.order: got 'both'; allowed: first, exact"),
    ("batches: 4", "batches: 4, max_batches: 8", "simulation.max_batches: got 8; allowed: noth"),
    ("batches: 4", "batches: 4, negligible: 0.1", "simulation.negligible: got 0.1; allowed: not"),
    ("batches: 4", "batches: 4, decide: adaptive", "simulation.decide: got 'adaptive'; allowed:"),
    ("batches: 4", "batches: 4, rel_mcse: 0", "simulation.rel_mcse: got 0; allowed: greater than"),
    ("batches: 4", "batches: 4, rel_mcse: 1e-2, max_batches: 3", "max_batches: got 3; allowed: at"),
    ("batches: 4", "batches: 4, seed: 9223372036854775808", "simulation.seed: got 92233720368547"),
    ("batches: 4", "batches: 4, precision: float16", "got 'float16'; allowed: float32, float64"),
    (DESIGN, "design: {kind: sphere, radius: 0}", "design.radius: got 0.0; allowed: finite and"),
    ("n: 64", "n: 1", "simulation.control_variate: got True; allowed: false for a single key"),
    (SIMULATION, "simulation: 0", "simulation: got 0; allowed: a mapping of keys to values"),
    (SIMULATION, "simulation:", "simulation: got None; allowed: a mapping of keys to values"),
    (SIMULATION, "simulation: 3", "simulation: got 3; allowed: a mapping of keys to values"),
    (SPEC, "", "got 'NoneType'; allowed: a mapping of keys to values"),
    (SPEC, "- 1", "got 'list'; allowed: a mapping of keys to values"),
    (SPEC, "problem: {n: 1", "a mistake at line 2: did not find expected"),
    (SPEC, "problem: *here", "problem (line 1): got '*here'; allowed: an alias of an anchor"),
    (SPEC, "problem: &a [*a]", "problem.0 (line 1): got '*a'; allowed: an alias of an anchor"),
    (SPEC, SPEC + "---\na: 1\n", "got 'a second document'; allowed: one document"),
    (SPEC, "{" * 1000 + "}" * 1000, "got 'a key that is no scalar'"),
    (SPEC, "[" * 1000 + "]" * 1000, "got '33 levels'; allowed: at most 32"),
    (SPEC, "[" * 100_000, "got '33 levels'; allowed: at most 32"),
    (SPEC, LAUGHS, "got 'more'; allowed: at most 1,000,000 values, copies by aliases counted"),
    (SPEC, "a: \0", "got 'a mistake at line 1: "),
    (SPEC, "<<: 3\n", "<< (line 1): got 3; allowed: mappings to merge"),
    (SPEC, "null: 3\n", "got 'the key null'; allowed: text or a whole number as a key"),
]  # fmt: skip


EXPERIMENTS = [
    # what the file says of itself
    ("title: T", "titel: T", "titel: got 'titel'; allowed: aim, claims, data_generating_process"),
    ("title: T", "titel: T", "(did you mean title?)"),
    ("title: T", "title: 3", "title: got 3; allowed: a valid string"),
    ("title: T", "title: [T]", "title: got ['T']; allowed: a valid string"),
    ("title: T", "title: yes", "title (line 16): got 'yes'; allowed: a finite decimal number"),
    ("title: T", "title: T\npaper: 2605.20271", "paper: got 2605.20271; allowed: a valid string"),
    # claims
    ("margin: 0.5", "margin: .inf", "claims.0.margin (line 37): got '.inf'; allowed: a finite dec"),
    ("margin: 0.5", "margin: .nan", "claims.0.margin (line 37): got '.nan'; allowed: a finite dec"),
    ("margin: 0.5", "margin: -0.5", "claims.0.margin: got -0.5; allowed: greater than or equal to"),
    ("margin: 0.5", "margin: '0.5'", "claims.0.margin: got '0.5'; allowed: a valid number"),
    ("margin: 0.5", "margin: true", "claims.0.margin: got True; allowed: a valid number"),
    ("margin: 0.5", "margin: 0.5\n    margin: 9", "claims.0.margin (line 38): got 'the key a sec"),
    ("margin: 0.5", "margin: 0.5\n    level: 95", "claims.0.level: got 95; allowed: less than 1"),
    ("margin: 0.5", "margn: 0.5", "claims.0.margn: got 'margn'; allowed: effects, expected"),
    ("margin: 0.5", "margn: 0.5", "(did you mean margin?)"),
    (CLAIM, "test: equivalent", "allowed: equivalence, bound, ordering, identity, rate, remainder"),
    (CLAIM, "test: equivalent", "(did you mean equivalence?)"),
    (CLAIM, "test: rate", "decomposition (all), expected: got None; allowed: a number, for a rate"),
    (CLAIM, "test: law", "decomposition (all), law: got None; allowed: a law for the test `law`"),
    (CLAIM, "test: law\n    law: powr", "claims.0.law: got 'powr'; allowed: power, log_power, log"),
    (CLAIM, "test: law\n    law: log", "margin: got 0.5; allowed: 4, that of test law"),
    (CLAIM, CLAIM + "\n    expected: 1", "expected: got 1.0; allowed: nothing, for the test"),
    (CLAIM, CLAIM + "\n    law: log", "law: got 'log'; allowed: a law for the test `law`"),
    (CLAIM, CLAIM + "\n    scatter: 0.1", "scatter: got 0.1; allowed: nothing, for the test"),
    (CLAIM, CLAIM + "\n    sequential: 1", "claims.0.sequential: got 1; allowed: a valid boolean"),
    (CLAIM, CLAIM + "\n    where: {n_eff: {}}", "range: got [None, None]; allowed: at_least, at_m"),
    (CLAIM, CLAIM + "\n    where: {n_eff: {at_leest: 1}}", "claims.0.where.n_eff"),
    ('"#the-decomposition"', '"#the-decompositoin"', "(did you mean #the-decomposition?)"),
    ("claims:\n  - id", "claims:\n  id", "a mistake at line 31: mapping values are not allow"),
    # the grid
    ("heads.bandwidth: [0.7, 0.9]", "heads.bandwith: [0.7]", "(did you mean bandwidth?)"),
    ("heads.bandwidth: [0.7, 0.9]", "haeds.bandwidth: [0.7]", "(did you mean heads?)"),
    ("heads.bandwidth: [0.7, 0.9]", "heads.bandwidth: [0.7, -0.9]", "grid point 0001 (heads.ban"),
    ("heads.bandwidth: [0.7, 0.9]", "heads.bandwidth: [0.7, wide]", "got 'wide'; allowed: a valid"),
    ("heads.bandwidth: [0.7, 0.9]", "heads.bandwidth: [[0.7, 0.9]]", "allowed: scalars or mapping"),
    ("heads.bandwidth: [0.7, 0.9]", "heads.bandwidth: []", "heads.bandwidth: got []; allowed: sca"),
    ("heads.bandwidth: [0.7, 0.9]", "n: [64, 1:30]", "grid.0.n.1 (line 24): got '1:30'; allowed:"),
    ("heads.bandwidth: [0.7, 0.9]", "target: {kind: rbf}", "allowed: a `label` in what is no sca"),
    ("heads.bandwidth: [0.7, 0.9]", "heads.kernel: [gaussian, laplace]", "grid point 0001 (heads."),
    ("heads.bandwidth: [0.7, 0.9]", "heads.count: [2, 1000000]", "grid point 0001 (heads.count: 1"),
    ("heads.bandwidth: [0.7, 0.9]", "3: [0.7]", "grid.0.3: got 3; allowed: a valid string"),
    ("grid:\n  - ", "grid:\n    ", "grid: got {'heads.bandwidth': [0.7, 0.9]}; allowed: a valid"),
    ("grid:\n  - heads.bandwidth: [0.7, 0.9]", "grid: []", "grid: got []; allowed: at least one"),
    # fidelities, also the ones that are not run
    ("  smoke: {}", "  smok: {}", "(did you mean smoke?)"),
    ("  smoke: {}\n", "", "fidelity: got 'smoke'; allowed: standard, paper"),
    ("  smoke: {}", "  smoke: 3", "fidelities.smoke: got 3; allowed: a mapping of keys to values"),
    ("{batches: 8}", "{batchs: 8}", "fidelities.paper.simulation: batchs: got 'batchs'; allowed"),
    ("{batches: 8}", "{batchs: 8}", "(did you mean batches?)"),
    ("{batches: 8}", "{batches: eight}", "fidelities.paper.simulation: batches: got 'eight'; all"),
    ("{pairs: 4}", "{pair: 4}", "fidelities.paper.settings: got 'pair'; allowed: pairs (did you m"),
    ("paper: {", "paper: {theory: {order: 2}, ", "fidelities.paper.theory: order: got 2; allowed"),
    ("smoke: {}", "smoke: {problem: {haeds.count: 2}}", "(did you mean heads?)"),
    # what would be passed over
    ("theory: {order: first}", "theory: {order: first, rtol: 1e-3}", "theory.rtol: got 0.001; al"),
    ("batches: 4}", "batches: 4, max_batches: 9}", "simulation.max_batches: got 9; allowed: noth"),
    ("settings: {pairs: 3}", "settings: {pairs: 3, pairs: 4}", "settings.pairs (line 22): got 't"),
    ("settings: {pairs: 3}", "settings: 3", "settings: got 3; allowed: a mapping of keys to val"),
    ("settings: {pairs: 3}", "setings: {pairs: 3}", "(did you mean settings?)"),
]  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working directory with an experiment; numbers are looked up by nobody."""
    monkeypatch.chdir(tmp_path)
    own = tmp_path / "experiments" / "small"
    own.mkdir(parents=True)
    (own / "effects.py").write_text(EFFECTS)
    return tmp_path


def refused(capsys, recwarn, *arguments):
    """The one line that a command ends with."""
    before = time.process_time()
    assert run(*arguments) == 2
    assert time.process_time() - before < 10
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.endswith("\n")
    assert err.isascii() or err[:-1].isprintable()
    assert [str(w.message) for w in recwarn] == []
    return err


@pytest.mark.parametrize(("old", "new", "words"), PROBLEMS)
def test_a_hostile_problem_is_one_line(folder, capsys, recwarn, old, new, words):
    text = (
        SPEC.replace("batches: 4", "batches: 4, control_variate: true") if new == "n: 1" else SPEC
    )
    assert old in text
    (folder / "spec.yaml").write_text(text.replace(old, new, 1))
    line = refused(capsys, recwarn, "decompose", "spec.yaml", "--dry")
    assert line.startswith("sims decompose: ")
    assert "allowed: " in line
    assert words in line


UNCOVERED = [
    ("kernel: gaussian", "kernel: {kind: top_k, k: 8}", "weight rule top_k (do"),
    ("kernel: gaussian", "kernel: {kind: sparsemax}", "weight rule sparsemax (dot)"),
    ("kernel: gaussian", "kernel: {kind: entmax, nu: 0.5, scores: distance}", "heads.kernel.nu"),
    ("kernel: gaussian", "kernel: laplace", "gaussian, softmax (first order); any by or"),
    (DESIGN, "design: {kind: cube}", "CubeDesign"),
]


@pytest.mark.parametrize(("old", "new", "words"), UNCOVERED)
def test_what_theory_does_not_cover_is_said_before_the_run(folder, capsys, old, new, words):
    assert old in SPEC
    (folder / "spec.yaml").write_text(SPEC.replace(old, new, 1))
    assert run("decompose", "spec.yaml", "--dry") == 0
    (line,) = (x for x in capsys.readouterr().out.splitlines() if x.startswith("theory"))
    assert "does not cover" in line
    assert words in line


@pytest.mark.parametrize(("old", "new", "words"), EXPERIMENTS)
def test_a_hostile_experiment_is_one_line(folder, capsys, recwarn, old, new, words):
    assert old in EXPERIMENT
    shutil.copytree(ROOT / "docs", folder / "docs")
    (folder / FILE).write_text(EXPERIMENT.replace(old, new, 1))
    line = refused(capsys, recwarn, "run", "small", "--fidelity", "smoke", "--dry")
    assert line.startswith("sims run: ")
    assert "allowed: " in line
    assert words in line


def test_the_files_are_valid_as_they_stand(folder, capsys):
    """And a dry run says what would be done, and does none of it."""
    (folder / "spec.yaml").write_text(SPEC)
    (folder / FILE).write_text(EXPERIMENT)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    assert run("decompose", "spec.yaml", "--dry") == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "points       1, at most 1 compile shape" in out
    assert "replicates   32 a point (4 batches of 8)\n" in out
    assert run("run", "small", "--fidelity", "paper", "--dry") == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "points       2, at most 1 compile shape" in out
    assert "replicates   64 a point (8 batches of 8)\n" in out
    assert "output       results/paper/small\n" in out
    assert before == {path: path.stat().st_mtime_ns for path in folder.rglob("*")}

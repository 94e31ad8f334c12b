"""The command line: help, one-line errors with exit code 2, JSON, nothing computed is lost."""

import json
import shutil
from pathlib import Path

import pytest
import yaml

from sims.cli import main
from sims.papers import papers
from sims.study.code import FIDELITIES

ROOT = Path(__file__).parents[1]
COMMANDS = [
    "decompose", "experiments", "claims", "schema",
    "simulate", "predict", "judge", "plot", "ledger", "report",
]  # fmt: skip
SPEC = {
    "problem": {
        "dimension": 4,
        "design": {"kind": "isotropic"},
        "target": {"kind": "rbf", "lengthscale": 2.0, "features": 4},
        "noise_sd": 0.5,
        "heads": {
            "count": 2,
            "width": 1,
            "frames": {"kind": "equiangular", "angle": 45},
            "bandwidth": 0.7,
        },
        "n": 64,
        "queries": {"kind": "gaussian", "count": 4, "scale": 0.5},
    },
    "simulation": {"replicates_per_batch": 8, "batches": 4, "precision": "float64"},
}
EXPERIMENT = {
    "title": "T", "aim": "A", "data_generating_process": "D", "estimands": "E", "methods": "M",
    "performance_measures": "P", "problem": SPEC["problem"],
    "grid": [{"heads.bandwidth": [0.7, 0.9]}], "simulation": SPEC["simulation"],
    "fidelities": {name: {} for name in FIDELITIES},
    "claims": [{"id": "decomposition", "statement": "The mean squared errors agree.",
                "test": "equivalence", "effects": "gaps", "margin": 0.5,
                "formula": "#the-decomposition"}],
}  # fmt: skip
EFFECTS = """
from sims.effects import of_batches

def effects(results):
    values = {p: results.estimates[p]["mse"].values for p in results.points}
    theory = {p: float(results.prediction(p)["mse"]) for p in results.points}
    return {"gaps": [of_batches(p, v / theory[p] - 1, p) for p, v in values.items()]}
"""
FIGURE = """
from sims import figures

def figure(results, verdicts):
    table = results.table()
    drawing, axes = figures.panels(1, 1, width=figures.COLUMN)
    figures.theory(axes[0, 0], table["heads.bandwidth"], table["mse_theory"])
    figures.simulated(axes[0, 0], table["heads.bandwidth"], table["mse"], table["mse_mcse"])
    figures.log_axes(axes[0, 0], x=True, y=True)
    return drawing

def numbers(results):
    return {"least": float(results.table()["mse"].min())}
"""
CAPTION = """**Seen** {{ points }} points; <script>x</script> {{ least | significant }}
{{ verdict("decomposition").verdict }}"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working directory with one small experiment."""
    monkeypatch.chdir(tmp_path)
    own = tmp_path / "experiments" / "small"
    own.mkdir(parents=True)
    (own / "experiment.yaml").write_text(yaml.safe_dump(EXPERIMENT))
    (own / "effects.py").write_text(EFFECTS)
    (own / "figure.py").write_text(FIGURE)
    (own / "caption.md").write_text(CAPTION)
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(SPEC))
    return tmp_path


def _exit(*arguments: str) -> int:
    try:
        return main(arguments)
    except SystemExit as stop:
        return int(stop.code or 0)


def test_every_command_has_help(capsys):
    assert _exit("--help") == 0
    overview = capsys.readouterr().out
    for command in COMMANDS:
        assert command in overview
        assert _exit(command, "--help") == 0
        assert capsys.readouterr().out.startswith(f"usage: sims {command}")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "COMMAND"),
        (["fly"], "fly"),
        (["decompose"], "SPEC.yaml"),
        (["decompose", "none.yaml"], "none.yaml"),
        (["decompose", "spec.yaml", "--rel-mcse", "-1"], "simulation.rel_mcse: got -1.0"),
        (["decompose", "spec.yaml", "--rel-mcse", "x"], "--rel-mcse"),
        (["decompose", "spec.yaml", "--seed", "-3"], "simulation.seed: got -3"),
        (["simulate", "none"], "experiment: got 'none'; allowed: small"),
        (["judge", "small", "--fidelity", "smoke"], "simulation.nc"),
        (["simulate", "small", "--fidelity", "fine"], "fine"),
        (["ledger", "--output", "spec.yaml/x.json"], "spec.yaml"),
        (["report"], "ledger.json"),
        (["claims", "--paper", "2601.22766"], "--paper: got '2601.22766'; allowed: a paper"),
        (["schema", "verse"], "verse"),
    ],
)
def test_bad_use_is_one_line_and_exit_code_2(folder, capsys, arguments, words):
    assert _exit(*arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert words in err


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("target.kind", "magic", "target.kind: got 'magic'"),
        ("dimension", 1, "dimension: got 1"),
        ("heads.frames.angle", 120, "heads.frames.angle"),
        ("noise_sd", -1.0, "noise_sd: got -1.0"),
        ("heads.bandwidth", 0.0, "bandwidth: got 0.0"),
        ("design", {"kind": "gaussian", "covariance": [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0],
                    [0, 0, 0, -1]]}, "design.covariance"),
        ("n", 0, "n: got 0"),
        ("heads.bandwith", 1.0, "bandwith"),
        ("n", "many", "n: got 'many'"),
    ],
)  # fmt: skip
def test_bad_problem_is_one_line_and_exit_code_2(folder, capsys, path, value, words):
    spec = json.loads(json.dumps(SPEC))
    *parents, last = path.split(".")
    node = spec["problem"]
    for parent in parents:
        node = node[parent]
    node[last] = value
    (folder / "spec.yaml").write_text(yaml.safe_dump(spec))
    assert _exit("decompose", "spec.yaml") == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert words in err
    assert "allowed:" in err


def test_decompose(folder, capsys):
    assert _exit("decompose", "spec.yaml", "--json", "--seed", "3") == 0
    outcome = json.loads(capsys.readouterr().out)
    assert outcome["simulation"]["replicates"] == 32
    assert outcome["settings"]["simulation"]["seed"] == 3
    for row in outcome["terms"].values():
        assert row["mcse"] > 0
        assert row["gap"] == pytest.approx(row["simulation"] - row["theory"])
    assert 1 <= outcome["n_eff"]["least"] <= outcome["n_eff"]["mean"] <= 64
    assert _exit("decompose", "spec.yaml", "--rel-mcse", "0.5") == 0
    table = capsys.readouterr().out
    assert "MSE of the ensemble" in table
    assert "Effective keys" in table


def _write(folder, theory=None, simulation=None, heads=None, **problem):
    """The small problem's file with these values in place of its own."""
    base = SPEC["problem"]
    spec = {
        "problem": {**base, **problem, "heads": base["heads"] | (heads or {})},
        "simulation": SPEC["simulation"] | (simulation or {}),
        "theory": theory or {},
    }
    (folder / "spec.yaml").write_text(yaml.safe_dump(spec))


def _decompose(folder, capsys, *arguments, **changes):
    """JSON outcome and printed text of the small problem, so changed."""
    _write(folder, **changes)
    assert _exit("decompose", "spec.yaml", "--json", *arguments) == 0
    outcome = json.loads(capsys.readouterr().out)
    assert _exit("decompose", "spec.yaml", *arguments) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return outcome, out


def test_decompose_says_where_first_order_is_rough(folder, capsys):
    """Softmax: n_third = n_eff²/n is the smaller, and warns where n_eff is above 50."""
    softmax = {"kernel": "softmax", "bandwidth": 0.9}
    outcome, text = _decompose(folder, capsys, heads=softmax, n=512)
    least = outcome["n_eff"]["least"]
    assert least > 50 > outcome["n_third"]["least"] == pytest.approx(least**2 / 512)
    assert f"n_third: least {outcome['n_third']['least']:.1f}" in text
    assert "`theory: {order: exact}`" in text
    outcome, text = _decompose(folder, capsys, n=4096)
    assert min(outcome["n_eff"]["least"], outcome["n_third"]["least"]) > 50
    assert "is rough" not in text


@pytest.mark.parametrize(
    ("problem", "words"),
    [({"heads": {"kernel": "laplace"}}, "heads.kernel"), ({"design": {"kind": "cube"}}, "design")],
)
def test_first_order_points_to_exact_theory(folder, capsys, problem, words):
    _write(folder, **problem)
    assert _exit("decompose", "spec.yaml") == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert err.startswith(f"sims decompose: {words}: got")
    assert "; any by order exact" in err
    assert _exit("decompose", "--help") == 0
    assert "order: exact" in capsys.readouterr().out


def test_decompose_with_exact_theory_bounds_its_error(folder, capsys):
    exact = {"order": "exact", "rtol": 1e-3}
    outcome, text = _decompose(folder, capsys, theory=exact, heads={"kernel": "laplace"})
    assert outcome["n_third"] is None
    assert outcome["theory"]["reached"]
    assert outcome["theory"]["largest_defect"] < 1e-3
    for row in outcome["terms"].values():
        assert (
            0
            < row["theory_error"]
            < 2e-3 * row["theory"] + 1e-4 * outcome["terms"]["mse"]["theory"]
        )
    assert "± bound" in text
    assert "Bound on theory's error: up to" in text
    assert "theory.rtol" not in text


def test_decompose_says_that_exact_theory_missed_its_accuracy(folder, capsys, monkeypatch):
    """In the file's words, in place of the library's warning."""
    monkeypatch.setattr("sims.theory.exact.ambient.SIZES", (11,))
    outcome, text = _decompose(
        folder, capsys, theory={"order": "exact", "rtol": 1e-4}, design={"kind": "cube"},
        dimension=2, heads={"kernel": "epanechnikov", "bandwidth": 0.2},
        queries={"kind": "gaussian", "count": 1, "scale": 0.5},
    )  # fmt: skip
    found = outcome["theory"]
    assert not found["reached"]
    assert found["entries"] == found["entries_missed"] == 4
    assert found["entries_unknown"] == 0
    assert outcome["terms"]["mse"]["theory_error"] > 0
    assert "theory.rtol = 0.0001 was not reached in 4 of 4" in text
    assert "max_level" not in text


def test_exact_theory_without_a_value_is_no_missing_pair():
    from sims.cli.decompose import _footer
    from sims.terms import SCALARS

    row = {"theory": None, "theory_error": None, "simulation": 1.0}
    theory = {"order": "exact", "rtol": 1e-4, "reached": False,
              "entries": 4, "entries_missed": 1, "entries_unknown": 1}  # fmt: skip
    run = {"replicates": 32, "batches": 4, "precision": "float64", "stopped": "limit",
           "missed": [], "negligible": []}  # fmt: skip
    settings = {"simulation": {}, "problem": {"heads": {"count": 2}}}
    lines = _footer(
        {"terms": dict.fromkeys(SCALARS, row), "n_eff": {"mean": None, "least": None},
         "n_third": None, "theory": theory, "simulation": run, "settings": settings}
    )  # fmt: skip
    text = "\n".join(lines)
    assert "no value in 1 of 4" in text
    assert "One head" not in text


def test_decompose_says_which_terms_missed_their_precision(folder, capsys):
    limit = {"max_batches": 8}
    outcome, text = _decompose(folder, capsys, "--rel-mcse", "1e-6", simulation=limit)
    assert outcome["simulation"]["stopped"] == "limit"
    assert set(outcome["simulation"]["missed"]) == set(outcome["terms"])
    assert "rel_mcse = 1e-06 was not reached in: squared bias, " in text
    assert "raise simulation.max_batches (8)" in text
    # What is negligible beside the MSE does not hold up stopping, and is named.
    outcome, text = _decompose(
        folder, capsys, "--rel-mcse", "1e-6", simulation={"negligible": 9.0} | limit
    )
    assert outcome["simulation"]["stopped"] == "precision"
    assert outcome["simulation"]["missed"] == []
    assert set(outcome["simulation"]["negligible"]) == set(outcome["terms"])
    assert "not asked of what is below 9 of the MSE" in text


def test_decompose_under_rel_mcse_has_room_unless_the_file_limits_it(folder, capsys):
    for simulation, most in (({}, 4096), ({"max_batches": None}, 4096), ({"max_batches": 8}, 8)):
        simulation = {"rel_mcse": 0.9} | simulation
        outcome, _ = _decompose(folder, capsys, simulation=simulation)
        assert outcome["simulation"]["batches_asked"] == most
    # The README asks 1 % of the example, which takes some 800 batches.
    example = yaml.safe_load((ROOT / "docs/examples/decompose.yaml").read_text())
    assert example["simulation"].get("max_batches", 4096) > 2000


def test_decompose_one_head(folder, capsys):
    outcome, text = _decompose(folder, capsys, heads={"count": 1})
    assert outcome["terms"]["covariance"]["simulation"] is None
    assert "no pair" in text


def test_listings(folder, capsys):
    assert _exit("experiments", "--json") == 0
    assert json.loads(capsys.readouterr().out) == [
        {"name": "small", "title": "T", "claims": ["decomposition"]}
    ]
    assert _exit("claims", "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert rows == []
    shutil.copytree(ROOT / "papers", folder / "papers")
    (paper,) = papers().values()
    assert _exit("claims", "--json", "--paper", paper.arxiv) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["paper"] for row in rows} == {paper.arxiv}
    listed = [(claim.id, False) for claim in paper.claims] + [(own.id, True) for own in paper.ours]
    assert [(row["claim"], row["ours"]) for row in rows] == listed
    assert _exit("claims", "--paper", "none") == 2
    assert capsys.readouterr().err.endswith(f"--paper: got 'none'; allowed: {paper.arxiv}\n")
    for what in ("experiment", "problem", "decompose", "paper"):
        assert _exit("schema", what) == 0
        assert json.loads(capsys.readouterr().out)["type"] == "object"
    assert _exit("experiments") == _exit("claims") == 0
    text = capsys.readouterr().out
    assert "small" in text
    assert paper.title in text
    assert "Our own claims" in text


def test_pipeline_steps(folder, capsys):
    """From an experiment's folder to the report, step by step."""
    shutil.copytree(ROOT / "papers", folder / "papers")
    for step in ("simulate", "predict", "judge", "plot"):
        assert _exit(step, "small", "--fidelity", "smoke") == 0, capsys.readouterr().err
    assert _exit("ledger", "--fidelity", "smoke") == 0
    assert _exit("report", "--fidelity", "smoke") == 0
    out = folder / "results" / "smoke"
    ledger = json.loads((out / "ledger.json").read_text())
    assert [list(row) for row in ledger] == [
        ["claim", "experiment", "regime", "statement", "verdict", "effect", "interval", "margin",
         "level", "replicates", "reason", "p_value", "adjusted", "needs", "paper", "kind", "over",
         "contract", "edited"]
    ]  # fmt: skip
    assert ledger[0]["replicates"] == 32
    page = (out / "report.html").read_text()
    assert "data:image/png;base64," in page
    assert "<script" not in page  # a caption cannot change the page
    assert 'src="http' not in page
    assert str(folder) not in page
    assert "not covered" in page
    assert (out / "small" / "caption.md").read_text().startswith("**Seen** 2 points;")
    capsys.readouterr()
    assert _exit("claims", "--fidelity", "smoke") == 0
    assert "small" in capsys.readouterr().out

    assert _exit("publish", "--fidelity", "smoke") == 0
    published = out.parent / "published"
    assert {p.name for p in published.iterdir()} == {
        "README.md", "ledger.json", "report.html", "small.png"
    }  # fmt: skip
    assert 'src="small.png"' in (published / "report.html").read_text()
    overview = (published / "README.md").read_text()
    assert "![small](small.png)" in overview
    assert "**Seen** 2 points;" in overview
    assert _exit("publish", "--fidelity", "paper") == 2
    assert "no finished run" in capsys.readouterr().err

    before = {p: p.read_bytes() for p in (out / "small").glob("figure.*")}
    assert _exit("plot", "small", "--fidelity", "smoke") == 0
    assert before == {p: p.read_bytes() for p in (out / "small").glob("figure.*")}  # same bytes


def test_finished_points_are_reused(folder, monkeypatch, capsys):
    """An interrupted or widened grid computes only what is new."""
    import sims.study.roads as roads

    calls = []
    real = roads.estimate

    def counting(*arguments, **options):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*arguments, **options)

    monkeypatch.setattr(roads, "estimate", counting)
    assert _exit("simulate", "small", "--fidelity", "smoke") == 130
    assert not Path("results/smoke/small/simulation.nc").exists()
    assert _exit("simulate", "small", "--fidelity", "smoke") == 0
    assert len(calls) == 3  # one finished, one interrupted, one again
    wider = {**EXPERIMENT, "grid": [{"heads.bandwidth": [0.5, 0.7, 0.9]}]}
    (folder / "experiments/small/experiment.yaml").write_text(yaml.safe_dump(wider))
    assert _exit("simulate", "small", "--fidelity", "smoke") == 0
    assert len(calls) == 4
    many = {"label": "many", "value": [0.9] * 5}
    bad = {**EXPERIMENT, "grid": [{"heads.bandwidth": [0.5, 0.7, many]}]}
    (folder / "experiments/small/experiment.yaml").write_text(yaml.safe_dump(bad))
    kept = Path("results/smoke/small/simulation.nc").read_bytes()
    assert _exit("simulate", "small", "--fidelity", "smoke") == 2
    assert "grid point 0002 (heads.bandwidth: many)" in capsys.readouterr().err
    assert len(calls) == 4  # the impossible point was found before any was computed
    assert Path("results/smoke/small/simulation.nc").read_bytes() == kept


def test_what_was_edited_after_the_simulation_began_is_marked(folder):
    for step in ("simulate", "predict", "judge"):
        assert _exit(step, "small", "--fidelity", "smoke") == 0
    path, verdicts = folder / "experiments/small/effects.py", "results/smoke/small/verdicts.json"
    assert not json.loads(Path(verdicts).read_text())[0]["edited"]
    path.write_text(EFFECTS.replace("- 1", "- 1.0 "))
    assert _exit("judge", "small", "--fidelity", "smoke") == 0
    assert json.loads(Path(verdicts).read_text())[0]["edited"]


def test_a_family_that_effects_lack_is_named(folder, capsys):
    path = folder / "experiments/small/experiment.yaml"
    path.write_text(yaml.safe_dump(EXPERIMENT).replace("effects: gaps", "effects: gap"))
    for step, code in (("simulate", 0), ("predict", 0), ("judge", 2)):
        assert _exit(step, "small", "--fidelity", "smoke") == code
    line = "small: claims, decomposition (all), effects: got 'gap'; allowed: gaps"
    assert line in capsys.readouterr().err


def test_run_is_all_steps_of_one_experiment(folder, capsys):
    assert _exit("run", "small", "--fidelity", "smoke") == 0
    out = capsys.readouterr().out
    assert out.startswith("supported") or out.startswith("inconclusive")
    assert (folder / out.splitlines()[-1]).is_file()

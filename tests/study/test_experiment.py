"""The experiment file: what is refused and how, the grid, defaults, schema, digests."""

import inspect
from pathlib import Path

import numpy as np
import pytest
import yaml

from sims.cli.decompose import DecomposeSpec
from sims.documents import read_yaml
from sims.errors import InputError
from sims.papers import MAIN
from sims.problem import DESIGNS, FRAMES, QUERIES, TARGETS
from sims.study.experiment import Experiment, load_experiment
from sims.study.ledger import claims_by_paper
from sims.study.schema import ExperimentSpec, SimulationSpec, TheorySpec
from sims.study.specification import ProblemSpec
from sims.validation import parse

ROOT = Path(__file__).parents[2]
PROBLEM = {
    "dimension": 6,
    "design": {"kind": "isotropic"},
    "target": {"kind": "rbf"},
    "noise_sd": 0.5,
    "heads": {
        "count": 3,
        "width": 2,
        "frames": {"kind": "equiangular", "angle": 60},
        "bandwidth": 0.7,
    },
    "n": 32,
    "queries": {"kind": "gaussian", "count": 4, "scale": 0.5},
}
CLAIM = {
    "id": "c",
    "statement": "s",
    "kind": "simulation",
    "over": ["queries", "seeds"],
    "test": "equivalence",
    "effects": "gaps",
    "margin": 0.1,
    "formula": "f",
}
EXPERIMENT = {
    "title": "t",
    "aim": "a",
    "data_generating_process": "d",
    "estimands": "e",
    "methods": "m",
    "performance_measures": "p",
    "problem": PROBLEM,
    "fidelities": {"smoke": {}, "standard": {}, "paper": {}},
    "claims": [CLAIM],
}


def changed(base, path, value):
    """A deep copy with one dotted path set."""
    first, _, rest = path.partition(".")
    return {**base, first: changed(base.get(first) or {}, rest, value) if rest else value}


def built(path, value):
    return parse(ProblemSpec, changed(PROBLEM, path, value), "file").build()


def points(data, fidelity="standard"):
    return Experiment(Path("e"), parse(ExperimentSpec, data, "file"), fidelity).points


def test_build():
    task, heads, n, queries = parse(ProblemSpec, PROBLEM, "file").build()
    assert (task.dimension, heads.count, heads.width, n) == (6, 3, 2, 32)
    assert queries.shape == (4, 6)
    assert float(task.noise_sd) == 0.5
    np.testing.assert_allclose(heads.frames[0].T @ heads.frames[1], 0.5 * np.eye(2), atol=1e-15)


def test_redundant_views():
    """The latent target and queries are padded: nothing depends on ξ but the views."""
    data = changed(PROBLEM, "design", {"kind": "redundant_views", "noise": 0.5, "correlation": 0.2})
    data = changed(data, "heads.frames", None)
    task, heads, _, queries = parse(ProblemSpec, data, "file").build()
    assert task.dimension == heads.dimension == queries.shape[1] == 6 + 3 * 2
    assert not queries[:, 6:].any()
    assert not task.target.frequency[:, 6:].any()
    with pytest.raises(InputError, match=r"heads\.frames: got 'haar'; allowed: nothing"):
        parse(ProblemSpec, changed(data, "heads.frames", {"kind": "haar"}), "file").build()


@pytest.mark.parametrize(
    ("path", "value", "line"),
    [
        # what the parts do not know
        ("target.kind", "fractal", "file: target.kind: got 'fractal'; allowed: constant,"),
        ("design.kind", "cauchy", "design.kind: got 'cauchy'; allowed: isotropic,"),
        ("heads.frames.kind", "random", "heads.frames.kind: got 'random'; allowed: equiangular,"),
        ("heads.kernel", "box", "heads.kernel: got 'box'; allowed: gaussian, softmax,"),
        ("queries.kind", "grid", "queries.kind: got 'grid'; allowed: gaussian, correlated, ball,"),
        ("target", {"beta": 1.0}, "target.kind: got 'nothing'; allowed: a value"),
        # out of range
        ("dimension", 5, "dimension: got 5; allowed: at least heads.count . heads.width = 6"),
        ("heads.frames.angle", 120, "heads.frames.angle: got 120; allowed: degrees, 0 to 90"),
        ("heads.frames.angle", -5, "heads.frames.angle: got -5; allowed: degrees, 0 to 90"),
        ("heads.frames", {"kind": "equiangular", "cosine": -0.6}, "heads.frames.cosine: got -0.6"),
        ("noise_sd", -1, "noise_sd: got -1; allowed: greater than or equal to 0"),
        ("noise_sd", float("nan"), "noise_sd: got nan"),
        ("noise_sd", float("inf"), "noise_sd: got inf"),
        ("heads.bandwidth", 0, "heads.bandwidth: got 0.0; allowed: finite and > 0"),
        ("heads.bandwidth", -0.5, "heads.bandwidth: got -0.5; allowed: finite and > 0"),
        ("heads.bandwidth", [1.0, 1.0, -2.0], "heads.bandwidth: got -2.0"),
        ("heads.bandwidth", [1.0], r"heads.bandwidth: got \(1,\); .* shape \(3,\)"),
        ("n", 0, "n: got 0; allowed: greater than or equal to 1"),
        ("heads.count", 0, "heads.count: got 0"),
        ("queries.count", 0, "queries.count: got 0; allowed: an integer >= 1"),
        ("queries.count", -3, "queries.count: got -3"),
        ("queries.scale", -1.0, "queries.scale: got -1.0"),
        ("target.seed", 2**70, "target.seed: got 1180591620717411303424"),
        ("target.lengthscale", 0.0, "target.lengthscale: got 0.0"),
        (
            "design",
            {"kind": "gaussian", "covariance": (np.eye(6) - 0.4 * np.ones((6, 6))).tolist()},
            "design.covariance: got 'eigenvalue -1.4'; allowed: positive semidefinite",
        ),
        (
            "design",
            {"kind": "gaussian", "covariance": [[1.0, 0.0], [0.0, 1.0]]},
            "design.dimension: got 2; allowed: 6",
        ),
        # misspelt or missing keys
        ("nosie_sd", 1.0, "file: nosie_sd: got 'nosie_sd'; allowed: design, dim"),
        ("heads.bandwith", 1.0, "heads.bandwith: .* allowed: bandwidth, count, frames"),
        ("target.lengthscal", 1.0, "target.lengthscal: .* allowed: features, kind, length"),
        ("heads.frames.angel", 30, "heads.frames.angel: .* allowed: angle, cosine, kind, seed"),
        ("heads.frames", None, "heads.frames: got None; allowed: equiangular, gram"),
        ("heads.frames", {"kind": "gram"}, "heads.frames.gram: got 'nothing'; allowed: a value"),
        # wrong types
        ("n", "many", "n: got 'many'; allowed: a valid integer"),
        ("n", 32.0, "n: got 32.0; allowed: a valid integer"),
        ("n", True, "n: got True; allowed: a valid integer"),
        ("heads", 3, "file: heads: got 3; allowed: a mapping of keys to values"),
        ("target", "rbf", "file: target: got 'rbf'; allowed: a mapping of keys to values"),
        ("heads.bandwidth", "wide", "heads.bandwidth: got 'wide'; allowed: a valid number"),
        ("heads.frames.angle", "wide", "heads.frames.angle: got 'wide'"),
        ("heads.frames", {"kind": "nested", "ranks": [[1], [1, 2]]}, "heads.frames.ranks"),
    ],
)  # fmt: skip
def test_bad_problems_are_refused_in_one_line(path, value, line):
    with pytest.raises(InputError, match=line) as caught:
        built(path, value)
    message = str(caught.value)
    assert "\n" not in message
    assert "got" in message
    assert "allowed" in message


def test_bad_files(tmp_path):
    """Each of: not there, a folder, no YAML, not UTF-8, not a mapping."""
    missing = tmp_path / "none.yaml"
    with pytest.raises(InputError, match=r"none\.yaml: got 'No such file.*a text file in UTF-8"):
        read_yaml(missing)
    with pytest.raises(InputError, match="a text file in UTF-8"):
        read_yaml(tmp_path)
    file = tmp_path / "file.yaml"
    for content, line in (
        (b"a: [1, 2\nb: 3", "a mistake at line 2"),
        (b"a: \xff\xfe", "allowed: a text file in UTF-8"),
        (b"- 1\n- 2", "got 'list'; allowed: a mapping"),
        (b"", "got 'NoneType'; allowed: a mapping"),
    ):
        file.write_bytes(content)
        with pytest.raises(InputError, match=line) as caught:
            read_yaml(file)
        assert "\n" not in str(caught.value)


def test_numbers_in_files(tmp_path):
    """1e-3 is a number, as everybody expects; PyYAML alone reads it as text."""
    file = tmp_path / "file.yaml"
    file.write_text("{a: 1e-3, b: -2E+5, c: 1.5e3, d: 7, e: 1e3x, f: '1e-3', g: e3}")
    assert read_yaml(file) == {
        "a": 1e-3, "b": -2e5, "c": 1500.0, "d": 7, "e": "1e3x", "f": "1e-3", "g": "e3",
    }  # fmt: skip
    assert isinstance(read_yaml(file)["d"], int)


def test_grid_is_the_product_of_each_block():
    data = EXPERIMENT | {
        "grid": [
            {"heads.frames.angle": [0, 90], "n": [16, 64], "noise_sd": 1.0},
            {
                "target": [
                    {"label": "none", "kind": "constant"},
                    {"label": "rough", "kind": "holder", "beta": 0.5},
                ]
            },
            {"heads.bandwidth": [{"label": "unequal", "value": [0.5, 0.6, 0.7]}]},
        ]
    }
    grid = points(data)
    assert [p.name for p in grid] == [f"{i:04d}" for i in range(7)]
    first = [(p.spec.heads.frames.angle, p.spec.n, p.spec.noise_sd) for p in grid[:4]]
    assert first == [(0, 16, 1.0), (0, 64, 1.0), (90, 16, 1.0), (90, 64, 1.0)]
    assert [p.spec.target.kind for p in grid[4:6]] == ["constant", "holder"]
    assert grid[5].spec.n == 32  # a block changes what it names and nothing else
    assert grid[6].spec.heads.bandwidth == [0.5, 0.6, 0.7]
    # Every coordinate of the grid at every point: its own value, or the base problem's.
    assert grid[0].coordinates == {
        "heads.frames.angle": 0, "n": 16, "noise_sd": 1.0, "target": "rbf", "heads.bandwidth": 0.7,
    }  # fmt: skip
    assert grid[5].coordinates["target"] == "rough"
    assert grid[6].coordinates["heads.bandwidth"] == "unequal"
    assert PROBLEM["n"] == 32


def test_without_a_grid_there_is_the_base_problem():
    assert [p.coordinates for p in points(EXPERIMENT)] == [{}]
    assert points(EXPERIMENT | {"problem": None}) == []


def test_fidelities_override():
    data = EXPERIMENT | {
        "grid": [{"n": [16, 64]}],
        "simulation": {"seed": 3, "batches": 10},
        "fidelities": {
            "smoke": {
                "simulation": {"batches": 4},
                "problem": {"dimension": 8, "noise_sd": 2.0},
                "grid": [{"n": [8]}],
            },
            "standard": {"problem": {"n": 5}},
        },
    }
    experiment = parse(ExperimentSpec, data, "file")
    (smoke,) = points(data, "smoke")
    assert (smoke.spec.n, smoke.spec.dimension, smoke.spec.noise_sd) == (8, 8, 2.0)
    # The grid is what is asked; a fidelity's problem is the base that it starts from.
    assert [p.spec.n for p in points(data)] == [16, 64]
    assert experiment.simulation_at("smoke").batches == 4
    assert experiment.simulation_at("smoke").seed == 3
    assert experiment.simulation_at("standard").batches == 10
    with pytest.raises(InputError, match="fidelity: got 'paper'; allowed: smoke, standard"):
        points(data, "paper")


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"grid": [{"headz.width": [1]}]}, "headz.width: got 'headz'; .*did you mean heads"),
        ({"grid": [{"heads.widht": [1]}]}, "grid point 0: heads.widht: got 'widht'; allowed"),
        ({"grid": [{"n": [8, 0]}]}, "grid point 1: n: got 0"),
        ({"grid": [{"n": []}]}, r"grid: n: got \[\]; allowed: scalars or mappings, at least one"),
        ({"grid": [{"target": {"kind": "constant"}}]}, "grid: target: got .*a `label`"),
        ({"grid": [{"heads.bandwidth": [[1.0, 2.0]]}]}, "grid: heads.bandwidth: got .*label"),
        ({"grid": []}, r"grid: got \[\]; allowed: at least one block"),
        ({"fidelities": {"smoke": {"grid": [{"n": 0}]}}}, "grid point 0: n: got 0"),
        ({"fidelities": {"smoke": {"simulation": {"batchs": 2}}}}, "smoke.simulation: batchs"),
        ({"fidelities": {"smoke": {"simulation": {"batches": 1}}}}, "smoke.simulation: batches"),
        ({"fidelities": {"tiny": {}}}, "fidelities.tiny"),
        ({"claims": []}, "claims"),
        ({"claims": [CLAIM | {"test": "custom"}]}, "claims.0.test: got 'custom'; allowed: equiv"),
        ({"claims": [CLAIM | {"kind": "simulated"}]}, "claims.0.kind: got 'simulated'; allowed: "),
        ({"claims": [CLAIM | {"over": ["querys"]}]}, "claims.0.over.0: got 'querys'; allowed: "),
        ({"claims": [{k: v for k, v in CLAIM.items() if k != "kind"}]}, "claims.0.kind: got"),
        ({"claims": [CLAIM | {"margin": -1}]}, "claims.0.margin: got -1"),
        ({"claims": [{k: v for k, v in CLAIM.items() if k != "margin"}]}, "claims.0.margin: got"),
        ({"titel": "t"}, "file: titel: got 'titel'; allowed: aim, claims"),
        ({"simulation": {"precision": "half"}}, "simulation.precision: got 'half'"),
        ({"theory": {"order": "second"}}, "theory.order: got 'second'"),
    ],
)  # fmt: skip
def test_bad_experiments_are_refused_in_one_line(change, line):
    def use():
        experiment = parse(ExperimentSpec, EXPERIMENT | change, "file")
        experiment.simulation_at("smoke")
        points(EXPERIMENT | change, "smoke")

    with pytest.raises(InputError, match=line) as caught:
        use()
    assert "\n" not in str(caught.value)


REGISTRIES = {
    "Target": (TARGETS, ("dimension",)),
    "Design": (DESIGNS, ("dimension",)),
    "Frames": (FRAMES, ("dimension", "count", "width")),
    "Queries": (QUERIES, ("dimension",)),
}


@pytest.mark.parametrize(
    ("label", "kind"), [(label, kind) for label, (r, _) in REGISTRIES.items() for kind in r]
)
def test_schema_and_defaults_are_the_functions_own(label, kind):
    """One source: the JSON schema's keys and defaults are those of the function's signature."""
    registry, given = REGISTRIES[label]
    node = ProblemSpec.model_json_schema()["$defs"][f"{label}_{kind}"]
    parameters = inspect.signature(registry[kind]).parameters
    own = {name: p for name, p in parameters.items() if name not in given}
    assert set(node["properties"]) == {"kind", *own}
    assert node["additionalProperties"] is False
    assert node["properties"]["kind"]["const"] == kind
    required = {name for name, p in own.items() if p.default is inspect.Parameter.empty}
    assert set(node["required"]) == {"kind", *required}
    for name, parameter in own.items():
        if name not in required:
            assert node["properties"][name]["default"] == parameter.default


@pytest.mark.parametrize(
    ("model", "where"), [(SimulationSpec, "simulation"), (TheorySpec, "theory")]
)
def test_schema_defaults_are_the_models(model, where):
    """The schema of either file shows the values that an empty section gets."""
    filled = parse(model, {}, "file").model_dump()
    for file in (ExperimentSpec, DecomposeSpec):
        schema = file.model_json_schema()
        shown = schema["$defs"][model.__name__]["properties"]
        assert {name: node["default"] for name, node in shown.items()} == filled
        assert schema["properties"][where]["default"] == filled
    assert parse(DecomposeSpec, {"problem": PROBLEM}, "file").model_dump()[where] == filled


def test_digest_is_of_the_problem_alone():
    base = points(EXPERIMENT)[0]
    swept = EXPERIMENT | {"grid": [{"n": [64, 32]}], "title": "other"}
    other, same = points(swept)
    assert same.name != base.name
    assert same.digest == base.digest != other.digest
    turned = EXPERIMENT | {"problem": dict(reversed(PROBLEM.items()))}
    assert points(turned)[0].digest == base.digest
    # Spelling out a default is the same problem; a whole number is the number.
    for path, value in (("heads.kernel", "gaussian"), ("target.seed", 0), ("noise_sd", 0.5)):
        spelt = EXPERIMENT | {"problem": changed(PROBLEM, path, value)}
        assert points(spelt)[0].digest == base.digest
    assert len(base.digest) == 16
    assert int(base.digest, 16) >= 0


@pytest.mark.parametrize(
    "folder",
    [p.parent for p in (ROOT / "experiments").glob("*/experiment.yaml")],
    ids=lambda p: p.name,
)
def test_every_experiment_is_valid_at_every_fidelity(folder):
    for fidelity in ("smoke", "standard", "paper"):
        experiment = load_experiment(folder, fidelity)
        assert experiment.simulation.batches >= 2
        assert experiment.points or (folder / "simulate.py").is_file()
    rows = [(c.id, c.regime) for c in experiment.claims]
    assert len(set(rows)) == len(rows)
    assert all(claim.rationale for claim in experiment.claims)


def test_claims_are_made_once_over_something_and_have_a_formula(tmp_path):
    """A wrong anchor would be a dead link of the report; the same claim twice, one verdict."""
    text = (ROOT / "experiments" / "head_count" / "experiment.yaml").read_text(encoding="utf-8")
    for old, new, message in (
        ('"#the-angle-law"', '"#the-angle-lore"', "formula: got '#the-angle-lore'; allowed: #"),
        ("regime: wider angle at fixed H", "regime: aligned heads", "claims: got .*once"),
        (
            "kind: simulation\n    over: [seeds]",
            "kind: simulation\n    over: []",
            r"fixed H\), over: got \[\]; allowed: each population once, at least 1 for kind simul",
        ),
        ("over: [seeds]", "over: [seeds, seeds]", r"over: got \['seeds', 'seeds'\]"),
    ):
        assert old in text
        (tmp_path / "experiment.yaml").write_text(text.replace(old, new), encoding="utf-8")
        with pytest.raises(InputError, match=message):
            load_experiment(tmp_path)


def test_only_tested_claims_count_in_a_family(tmp_path, monkeypatch):
    """What Holm and adaptive stopping take for the number of claims of a paper."""
    monkeypatch.chdir(tmp_path)
    kinds = ("program", "theory", "both roads", "simulation", "simulation")
    claims = [CLAIM | {"regime": str(i), "kind": kind} for i, kind in enumerate(kinds)]
    path = tmp_path / "experiments" / "e" / "experiment.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(yaml.safe_dump(EXPERIMENT | {"claims": claims}), encoding="utf-8")
    assert claims_by_paper() == {MAIN: 3}

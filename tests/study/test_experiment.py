"""The experiment file: what is refused and how, the grid, defaults, schema, digests."""

from pathlib import Path

import numpy as np
import pytest
import yaml

from sims.cli.decompose import DecomposeSpec
from sims.errors import InputError
from sims.papers import MAIN
from sims.study.experiment import Experiment, load_experiment
from sims.study.ledger import claims_by_paper
from sims.study.planning import cost
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
    "id": "decomposition",
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
        ("dimension", 5, "dimension: got 5; allowed: at least heads.count . heads.width = 6"),
        ("heads.frames.angle", 120, "heads.frames.angle: got 120; allowed: degrees, 0 to 90"),
        ("heads.bandwidth", [1.0, 1.0, -2.0], "heads.bandwidth: got -2.0"),
        ("heads.bandwidth", [1.0], r"heads.bandwidth: got \(1,\); .* shape \(3,\)"),
        ("target.lengthscale", 0.0, "target.lengthscale: got 0.0"),
        (
            "design",
            {"kind": "gaussian", "covariance": [[1.0, 0.0], [0.0, 1.0]]},
            "design.dimension: got 2; allowed: 6",
        ),
        ("heads.frames", None, "heads.frames: got None; allowed: equiangular, gram"),
        ("n", 2**60, "n: got|problem: got"),
    ],
)
def test_problems_that_cannot_be_built_are_refused_in_one_line(path, value, line):
    spec = parse(ProblemSpec, changed(PROBLEM, path, value), "file")
    with pytest.raises(InputError, match=line) as caught:
        cost(spec, spec.build(), SimulationSpec())
    assert "\n" not in str(caught.value)


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
        "heads.frames.angle": 0,
        "n": 16,
        "noise_sd": 1.0,
        "target": "rbf",
        "heads.bandwidth": 0.7,
    }
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
        ({"grid": [{"heads.widht": [1]}]}, "grid point 0: heads.*: got 'widht'; allowed"),
        ({"grid": [{"n": [8, 0]}]}, "grid point 1: n: got 0"),
        ({"grid": [{"n": []}]}, r"grid: n: got \[\]; allowed: scalars or mappings, at least one"),
        ({"grid": [{"target": {"kind": "constant"}}]}, "grid: target: got .*a `label`"),
        ({"grid": [{"heads.bandwidth": [[1.0, 2.0]]}]}, "grid: heads.bandwidth: got .*label"),
        ({"grid": []}, r"grid: got \[\]; allowed: at least one block"),
        ({"fidelities": {"smoke": {"grid": [{"n": 0}]}}}, "grid point 0: n: got 0"),
        ({"fidelities": {"smoke": {"simulation": {"batchs": 2}}}}, "smoke.simulation: .*batchs"),
        ({"fidelities": {"smoke": {"simulation": {"batches": 1}}}}, "smoke.simulation: batches"),
    ],
)
def test_bad_experiments_are_refused_in_one_line(change, line):
    def use():
        experiment = parse(ExperimentSpec, EXPERIMENT | change, "file")
        experiment.simulation_at("smoke")
        points(EXPERIMENT | change, "smoke")

    with pytest.raises(InputError, match=line) as caught:
        use()
    assert "\n" not in str(caught.value)


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


def test_claims_are_made_once_over_something_and_have_a_formula(tmp_path):
    """A wrong anchor would be a dead link of the report; the same claim twice, one verdict."""
    for claims, message in (
        ([CLAIM | {"formula": "#the-angle-lore"}], "formula: got '#the-angle-lore'; allowed: #"),
        ([CLAIM, CLAIM], "claims: got .*once"),
        ([CLAIM | {"over": []}], r"over: got \[\]; allowed: each population once, at least 1 for"),
        ([CLAIM | {"test": "rate"}], r"claims, decomposition \(all\), expected: got None"),
    ):
        (tmp_path / "experiment.yaml").write_text(yaml.safe_dump(EXPERIMENT | {"claims": claims}))
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
